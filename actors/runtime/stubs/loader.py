"""The stub loader, R/ua: deploys stubs into sandboxes and removes them (STB-10, STB-16).

The order is: descriptor, status listener, sandbox, bus listener, the stub itself. So not even
the first status event of a stub is missed (I-S7), and answers to its requests reach it while it
starts.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Never, TypeAlias

import attrs
import trio

from actors.catalogue.errors import RefusedDescriptorError
from actors.kit.errors import ActorStoppedError
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, ActorRef, BackgroundTasks, Delivery
from actors.kit.supervision.supervisor import Crash
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
from actors.runtime.stubs.sandbox import STUB_INTENSITY, Component, Sandboxes
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.catalogue.descriptor import Reason
from fsm.engine import Entity
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, State, Trigger
from specs.addresses.address import status_of
from specs.bodies.link import Command
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from transports.bodies import write_body

if TYPE_CHECKING:
    from actors.runtime.registry.registry import Registry


StubToolbox: TypeAlias = Callable[[str, MiniBusPort, StubConfig], StubContext]
"""Function that makes the context of a stub, for the stub loader."""


class Loader:
    """Deploys and removes the stubs of a runtime; each has a deployment state machine.

    Its tasks are those of `tasks`, and end with them.
    """

    registry: "Registry"
    """Is notified of the end of each deployment; set before the first one."""

    def __init__(
        self,
        port: CorePort,
        sandboxes: Sandboxes,
        catalogue: Catalogue,
        tasks: BackgroundTasks,
        hops: HopTrace,
        ids: IdSource,
        context: StubToolbox,
    ) -> None:
        self._port = port
        self._sandboxes = sandboxes
        self._catalogue = catalogue
        self._tasks = tasks
        self._hops = hops
        self._ids = ids
        self._context = context
        self._deployments: dict[str, Entity] = {}

    # ---- deployment

    def load(
        self, url: str, descriptor: str, config: StubConfig, kind: StubKind = StubKind.NODE
    ) -> None:
        """Deploy a stub; the registry gets `stub_deployed` or `stub_failed`.

        Args:
            url: Address of the stub, never used before (STB-15).
            descriptor: Catalogue address.
            config: Configuration by the deployer, which overrides the descriptor (STB-13).
            kind: Required kind of the stub; a descriptor of another kind is not deployed.
        """
        self._tasks.spawn(self._load, url, descriptor, config, kind)

    async def _load(self, url: str, descriptor: str, config: StubConfig, kind: StubKind) -> None:
        if await self.deploy(url, descriptor, config, kind) is None:
            await self.registry.stub_deployed(url)

    async def deploy(
        self, url: str, descriptor: str, config: StubConfig, kind: StubKind
    ) -> str | None:
        """Deploy a stub for another than the registry; return why that failed, or None.

        The registry gets `stub_failed`. If cancelled, parts of the stub may run until the runtime
        has closed.
        """
        entity = self._deployments[url] = Entity(STUB_DEPLOYMENT, url)
        self._hops.step(entity.step(Trigger.LOAD))
        why: str | None = "it took too long"
        is_absent = False
        try:
            with trio.move_on_after(entity.patience):
                error = await self._deploy(url, descriptor, config, kind)
                why = None if error is None else str(error)
                is_absent = error is not None and _is_absent(error)
        except trio.Cancelled:
            self._hops.step(entity.step(Trigger.LOAD_FAILED, "the loader stops"))
            raise
        ended = Trigger.LOADED if why is None else Trigger.LOAD_FAILED
        self._hops.step(entity.step(ended, why or ""))
        if entity.state is not State.DEPLOYED:
            why = why or "it is not deployed"
            del self._deployments[url]
            await self._remove(url)
            await self.registry.stub_failed(url, why, is_absent=is_absent)
        return why

    async def _deploy(
        self, url: str, address: str, config: StubConfig, kind: StubKind
    ) -> BaseException | None:
        """Deploy a stub; return why that failed, or None."""
        with Crash() as crash:
            descriptor = await self._catalogue.find(address)
            if descriptor.kind is not kind:
                wrong = WrongKindError(address, descriptor.kind, kind)
                self._hops.stub_refused(address, str(wrong))
                raise wrong
            self._port.listen(status_of(url), self.registry.listener)
            if not descriptor.takes_identity:
                self._port.anonymise(url)
            config = attrs.evolve(
                config,
                node_url=descriptor.node_url if config.node_url is None else config.node_url,
                options={**descriptor.options, **config.options},
            )
            make = partial(self._make, descriptor, config)
            component = Component(url, descriptor.kind.origin, make, STUB_INTENSITY)
            sandbox = await self._sandboxes.open(component)
            self._tasks.spawn(self._watch, url, sandbox)
        return crash.error

    def _make(
        self, descriptor: Descriptor, config: StubConfig, port: MiniBusPort
    ) -> Actor[Delivery]:
        context = self._context(port.url, port, config)
        if not descriptor.takes_identity:
            context = context.without_identity()
        return descriptor.activate(context)

    async def _watch(self, url: str, sandbox: ActorRef[Never]) -> None:
        await sandbox.wait_stopped()
        if self._forget(url):
            await self._remove(url)
            # When the runtime ends the registry may be gone first; it has no use for this then.
            with suppress(ActorStoppedError):
                await self.registry.stub_gone(url)

    def watch_hyperty(
        self,
        url: str,
        sandbox: ActorRef[Never],
        ended: Callable[[str, Exception | None], Awaitable[None]],
    ) -> None:
        """Forward the status of a hyperty in a sandbox (REG-06); remove an ended one from the bus.

        Args:
            url: Address of the hyperty.
            sandbox: The sandbox.
            ended: Called at its end with its address, and with the exception that the sandbox
                crashed with or None, to remove it elsewhere.
        """
        self._port.listen(status_of(url), self.registry.listener)
        self._tasks.spawn(self._watch_hyperty, url, sandbox, ended)

    async def _watch_hyperty(
        self,
        url: str,
        sandbox: ActorRef[Never],
        ended: Callable[[str, Exception | None], Awaitable[None]],
    ) -> None:
        cause = await sandbox.wait_stopped()
        await self._remove(url)
        with suppress(ActorStoppedError):
            await self.registry.remove_local(url)
        await ended(url, cause)

    # ---- removal

    def unload(self, url: str) -> None:
        """Disconnect a stub and remove it, in a task. Idempotent."""
        self._tasks.spawn(self.remove, url)

    async def remove(self, url: str, remote: str | None = None) -> None:
        """Disconnect a stub and remove it. Idempotent.

        Args:
            url: Address of the stub.
            remote: Runtime to disconnect from; None: from all.

        If cancelled, parts of the stub may run until the runtime has closed.
        """
        if not self._forget(url):
            return
        with trio.move_on_after(GOODBYE_TIMEOUT):
            params = () if remote is None else (remote,)
            sender = self._port.url
            body = write_body(Command("disconnect", params))
            number = self._ids.next(sender)
            await self._port.request(Message(number, MessageType.EXECUTE, sender, url, body))
        await self._remove(url)

    def _forget(self, url: str) -> bool:
        """Remove a stub from the deployed ones; return whether it was one of them."""
        entity = self._deployments.get(url)
        if entity is None or entity.state is not State.DEPLOYED:
            return False
        del self._deployments[url]
        return True

    async def _remove(self, url: str) -> None:
        await self._sandboxes.close(url)
        self._port.unlisten(status_of(url), self.registry.listener)


def _is_absent(error: BaseException) -> bool:
    """Return whether a stub was not deployed because its descriptor does not exist."""
    is_unserved = isinstance(error, RefusedDescriptorError) and (
        error.refused.reason is Reason.NOT_THERE
    )
    return is_unserved or isinstance(error, NotInCatalogueError)
