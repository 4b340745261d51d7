"""The stub loader, R/ua: deploys stubs into sandboxes and removes them (STB-10, STB-16).

The order is: descriptor, status listener, sandbox, bus listener, the stub itself. So not even
the first status event of a stub is missed (I-S7), and answers to its requests reach it while it
starts.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.catalogue.errors import RefusedDescriptorError
from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, ActorRef, Delivery, Reply
from actors.kit.supervision.supervisor import Crash
from actors.runtime.bus.messages import Listener
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.stubs.catalogue import (
    Catalogue,
    Descriptor,
    NotInCatalogueError,
    StubKind,
    WrongKindError,
)
from actors.runtime.stubs.sandbox import STUB_INTENSITY, Component, Sandboxes, StartComponent
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.catalogue.descriptor import Reason
from fsm.engine import Entity
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, State, Trigger
from specs.addresses.address import status_of
from specs.bodies.link import Command
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType, refuse
from specs.reply_code import Code
from transports.bodies import write_body


class StubRegistry(Protocol):
    """The registry: gets the ends of deployments and hyperties."""

    @property
    def listener(self) -> Listener:
        """Listens to their status events."""

    async def stub_deployed(self, url: str) -> None:
        """Take that a stub runs."""

    async def stub_failed(self, url: str, why: str, *, is_absent: bool) -> None:
        """Take that a stub will never run; or that there is none."""

    async def stub_gone(self, url: str) -> None:
        """Take that a stub has crashed."""

    async def remove_local(self, url: str) -> None:
        """Take that a hyperty has ended."""


StubToolbox: TypeAlias = Callable[[str, MiniBusPort, StubConfig], StubContext]
"""Makes the context of a stub; the composition root knows how."""


@final
@attrs.frozen(slots=True)
class Load:
    """Deploy a stub; the registry gets `stub_deployed` or `stub_failed`.

    Attributes:
        url: Address of the stub, made by the registry and never used before (STB-15).
        descriptor: Catalogue address.
        config: Configuration by the deployer, which overrides the descriptor (STB-13).
        done: Gets the reason of a failure, or None; the registry gets no report of success, as it
            did not ask.
        kind: Required kind of the stub; a descriptor of another kind is not deployed.
    """

    url: str
    descriptor: str
    config: StubConfig
    done: Reply[str | None] | None = None
    kind: StubKind = StubKind.NODE


@final
@attrs.frozen(slots=True)
class Unload:
    """Disconnect a stub and remove it. Idempotent.

    Attributes:
        url: Address of the stub.
        remote: Runtime to disconnect from; None: from all.
        done: Answered when the stub is gone.
    """

    url: str
    remote: str | None = None
    done: Reply[None] | None = None


@final
@attrs.frozen(slots=True)
class Hosted:
    """A hyperty runs in a sandbox: its status is heard (REG-06); its end takes it off the bus.

    Attributes:
        url: Address of the hyperty.
        sandbox: The sandbox.
        ended: Called at its end with its address, and with the exception that the sandbox crashed
            with or None, to remove it elsewhere.
    """

    url: str
    sandbox: ActorRef[StartComponent]
    ended: Callable[[str, Exception | None], Awaitable[None]]


@final
@attrs.frozen(slots=True)
class _Ended:
    """A sandbox has ended, on request or not."""

    url: str


@final
@attrs.frozen(slots=True)
class RegistryIs:
    """The registry, which gets the ends of deployments; comes before the first `Load`."""

    registry: StubRegistry
    done: Reply[None]


LoaderMessage: TypeAlias = RegistryIs | Load | Unload | Hosted | Delivery | _Ended


@final
@attrs.frozen(slots=True)
class LoaderTools:
    """The objects that the loader uses beside other actors.

    Attributes:
        hops: Takes its trace records.
        ids: Message ids.
        context: Makes the context of a stub.
    """

    hops: HopTrace
    ids: IdSource
    context: StubToolbox


@final
class Loader(Actor[LoaderMessage]):
    """Deploys and removes the stubs of a runtime; has one deployment machine per stub."""

    def __init__(
        self,
        port: CorePort,
        sandboxes: Sandboxes,
        catalogue: Catalogue,
        tools: LoaderTools,
    ) -> None:
        self._port = port
        self._sandboxes = sandboxes
        self._catalogue = catalogue
        self._registry: StubRegistry | None = None
        self._tools = tools
        self._deployments: dict[str, Entity] = {}

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)

    @override
    async def stop(self) -> None:
        for entity in self._deployments.values():
            if entity.state is State.DEPLOYING:
                self._tools.hops.step(entity.step(Trigger.LOAD_FAILED, "the loader stops"))

    @override
    async def handle(self, message: LoaderMessage) -> None:
        match message:
            case RegistryIs(registry, done):
                self._registry = registry
                done.send(None)
            case Load() | Unload() | Hosted() | _Ended():
                if self._registry is not None:
                    self._work(message, self._registry)
            case Delivery(asked) if asked.is_request:
                why = "the loader of a runtime answers nothing"
                await self._port.post(refuse(asked, Code.NOT_FOUND, why))
            case Delivery():
                pass
            case _:
                assert_never(message)

    def _work(self, message: Load | Unload | Hosted | _Ended, registry: StubRegistry) -> None:
        match message:
            case Hosted():
                self.spawn(self._watch_hyperty, message, registry)
            case Load():
                self.spawn(self._load, message, registry)
            case Unload(url):
                if self._forget(url):
                    self.spawn(self._unload, message, registry)
                elif message.done is not None:
                    message.done.send(None)
            case _Ended(url):
                if self._forget(url):
                    self.spawn(self._clear, url, registry)
            case _:
                assert_never(message)

    def _forget(self, url: str) -> bool:
        """Remove a stub from the deployed ones; return whether it was one of them."""
        entity = self._deployments.get(url)
        if entity is None or entity.state is not State.DEPLOYED:
            return False
        del self._deployments[url]
        return True

    # ---- deployment

    async def _load(self, load: Load, registry: StubRegistry) -> None:
        entity = self._deployments[load.url] = Entity(STUB_DEPLOYMENT, load.url)
        self._tools.hops.step(entity.step(Trigger.LOAD))
        why: str | None = "it took too long"
        is_absent = False
        with trio.move_on_after(entity.patience):
            error = await self._deploy(load, registry)
            why = None if error is None else str(error)
            is_absent = error is not None and _is_absent(error)
        ended = Trigger.LOADED if why is None else Trigger.LOAD_FAILED
        self._tools.hops.step(entity.step(ended, why or ""))
        if entity.state is not State.DEPLOYED:
            del self._deployments[load.url]
            await self._remove(load.url, registry)
            await registry.stub_failed(load.url, why or "it is not deployed", is_absent=is_absent)
        elif load.done is None:
            await registry.stub_deployed(load.url)
        if load.done is not None:
            load.done.send(why)

    async def _deploy(self, load: Load, registry: StubRegistry) -> BaseException | None:
        """Deploy a stub; return why that failed, or None."""
        with Crash() as crash:
            descriptor = await self._catalogue.find(load.descriptor)
            if descriptor.kind is not load.kind:
                wrong = WrongKindError(load.descriptor, descriptor.kind, load.kind)
                self._tools.hops.stub_refused(load.descriptor, str(wrong))
                raise wrong
            self._port.listen(status_of(load.url), registry.listener)
            if not descriptor.takes_identity:
                self._port.anonymise(load.url)
            sandbox = await self._sandboxes.open(self._component(load, descriptor))
            self.spawn(self._watch, load.url, sandbox)
        return crash.error

    def _component(self, load: Load, descriptor: Descriptor) -> Component:
        """Return the component to deploy; the configuration by the deployer overrides (STB-13)."""
        config = load.config
        config = attrs.evolve(
            config,
            node_url=descriptor.node_url if config.node_url is None else config.node_url,
            options={**descriptor.options, **config.options},
        )
        make = partial(self._make, descriptor, config)
        return Component(load.url, descriptor.kind.origin, make, STUB_INTENSITY)

    def _make(
        self, descriptor: Descriptor, config: StubConfig, port: MiniBusPort
    ) -> Actor[Delivery]:
        context = self._tools.context(port.url, port, config)
        if not descriptor.takes_identity:
            context = context.without_identity()
        return descriptor.activate(context)

    async def _watch(self, url: str, sandbox: ActorRef[StartComponent]) -> None:
        await sandbox.wait_stopped()
        await self.me.tell(_Ended(url))

    async def _watch_hyperty(self, hosted: Hosted, registry: StubRegistry) -> None:
        self._port.listen(status_of(hosted.url), registry.listener)
        cause = await hosted.sandbox.wait_stopped()
        self._port.unlisten(status_of(hosted.url), registry.listener)
        await self._sandboxes.close(hosted.url)
        with suppress(ActorStoppedError):
            await registry.remove_local(hosted.url)
        await hosted.ended(hosted.url, cause)

    # ---- removal

    async def _unload(self, unload: Unload, registry: StubRegistry) -> None:
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._disconnect(unload)
        await self._remove(unload.url, registry)
        if unload.done is not None:
            unload.done.send(None)

    async def _disconnect(self, unload: Unload) -> None:
        params = () if unload.remote is None else (unload.remote,)
        sender = self._port.url
        number = self._tools.ids.next(sender)
        body = write_body(Command("disconnect", params))
        request = Message(number, MessageType.EXECUTE, sender, unload.url, body)
        await self._port.request(request)

    async def _clear(self, url: str, registry: StubRegistry) -> None:
        await self._remove(url, registry)
        # When the runtime ends the registry may be gone first; it has no use for this then.
        with suppress(ActorStoppedError):
            await registry.stub_gone(url)

    async def _remove(self, url: str, registry: StubRegistry) -> None:
        await self._sandboxes.close(url)
        self._port.unlisten(status_of(url), registry.listener)


def _is_absent(error: BaseException) -> bool:
    """Return whether a stub was not deployed because there is none."""
    is_unserved = isinstance(error, RefusedDescriptorError) and (
        error.refused.reason is Reason.NOT_THERE
    )
    return is_unserved or isinstance(error, NotInCatalogueError)
