"""A running runtime: what its owner can do with it, and its hyperties."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, NoReturn, final

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.monitor import Crash
from actors.kit.supervision.supervisor import Intensity
from actors.kit.supervision.waits import SERVING
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.ports import CorePort
from actors.runtime.discovery.search import Discoverer
from actors.runtime.hyperty.addresses import HypertyAddresses
from actors.runtime.hyperty.host import HypertyHosts
from actors.runtime.hyperty.hyperty import (
    HypertyFailedError,
    HypertyMaker,
    Lifecycle,
    Profile,
    recorded_schema,
)
from actors.runtime.isolation.hyperty import HypertyTools, SandboxedCode, sandboxed_hyperty
from actors.runtime.isolation.loading import find_hyperty, load_errors
from actors.runtime.objects.context import HypertyContext
from actors.runtime.parts import Presence, RuntimeParts
from actors.runtime.registry.allocation import AddressGiven
from actors.runtime.registry.registry import RegistryView
from actors.runtime.stubs.loader import Hosted
from actors.runtime.stubs.sandbox import Component, ComponentMaker, StartComponent
from actors.runtime.sync.context import ComponentLeft
from fsm.bus.forward_rules import ForwardRule
from fsm.registry.resolve.link_entry import LinkEntry
from specs.addresses.address import runtime as runtime_url
from specs.addresses.address import runtime_name
from specs.bodies.registry import Record
from specs.jsonvalue import JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.limits.transfer import SANDBOX_TRANSFER_BYTES
from specs.message import Message, MessageType

_SHARE: Final = 0.25
"""Share of its time limit that each step gets after one has exceeded it."""


@final
@attrs.define(eq=False)
class _Removal:
    """The end of a deployment, made by a background task.

    Attributes:
        keeps: Whether the address is kept for the next hyperty with the same descriptor.
        done: Set when the hyperty is removed, or `error` says why not.
    """

    keeps: bool
    error: Exception | None = None
    done: trio.Event = attrs.field(factory=trio.Event)


@final
@attrs.define(eq=False)
class _Deployment:
    """A hyperty, from the allocation of its address to its removal.

    Attributes:
        is_up: Whether it is deployed, so that the loader reports its end.
        removal: Its removal, once that has begun.
    """

    url: str
    profile: Profile
    life: Lifecycle
    is_up: bool = False
    removal: _Removal | None = None


@final
class Runtime:
    """A runtime; made by `open_runtime`.

    Args:
        parts: Its actors.
        background: Runs the removal of hyperties; it is left after `leave`.

    Attributes:
        url: Its address.
        is_leaving: Whether it closes, or has closed.
        counters: Counts of dropped messages and of the findings of the monitor.
        followers: The models of the application that go along with entities.
        status: Whether the runtime reaches its node.
        http_url: Where health and metrics are served; None: nowhere.
    """

    def __init__(self, parts: RuntimeParts, background: trio.Nursery) -> None:
        self.url = parts.config.runtime
        self.counters = parts.counters
        self.followers = parts.followers
        self.status = parts.status
        self.http_url: str | None = None
        self._parts = parts
        self._presence = Presence(parts)
        self._addresses = HypertyAddresses(parts)
        self._background = background
        self._deployments: dict[str, _Deployment] = {}
        self._failure: HypertyFailedError | None = None
        self._has_failed = trio.Event()
        self.is_leaving = False

    # ---- for its owner

    async def deploy(self, profile: str | Profile, make: HypertyMaker) -> str:
        """Run a hyperty and register it; return its address (HYP-01).

        Args:
            profile: Its description for the domain registry; a text is its name.
            make: Makes the hyperty, and makes it anew after each crash; a class will do.

        If cancelled, as `host`.

        Raises:
            AllocationError: As `host`; so are the others.
        """
        context, _ = await self.settle(profile, make)
        return context.url

    async def settle(
        self, profile: str | Profile, make: HypertyMaker
    ) -> tuple[HypertyContext, Lifecycle]:
        """Run a hyperty as `deploy` does; return its context and its lifecycle.

        Args:
            profile: Its description for the domain registry.
            make: Makes the hyperty, and makes it anew after each crash.

        If cancelled, as `host`.

        Raises:
            AllocationError: As `host`; so are the others.
        """
        described = Profile(profile) if isinstance(profile, str) else profile
        if described.message_schema is None:
            described = attrs.evolve(described, message_schema=recorded_schema(make))
        life = self._lifecycle(described)
        hosts = HypertyHosts(make, self._parts, life)
        await self.host(described, hosts.make, life)
        return hosts.context, life

    async def load(self, address: str, name: str | None = None) -> Lifecycle:
        """Run the hyperty that a signed descriptor describes; return its lifecycle (HYP-01).

        Args:
            address: Catalogue address of the descriptor.
            name: Name in the domain registry; None: that of the descriptor.

        If cancelled, as `host`.

        Raises:
            HypertyLoadError: A step failed; those before it are undone.
        """
        with load_errors(address):
            found = await find_hyperty(self._parts.catalogue, address, name)
            return await self.settle_apart(*found)

    async def settle_apart(self, profile: str | Profile, code: SandboxedCode) -> Lifecycle:
        """Run a hyperty in a sandbox process of its own; return its lifecycle.

        Args:
            profile: Its description for the domain registry.
            code: Where its class is, or the package that has it.

        If cancelled, as `host`.

        Raises:
            SandboxError: The hyperty did not start; all others are as `host`.
        """
        config, life = self._parts.config, self._lifecycle(profile)
        largest = min(config.largest_body, SANDBOX_TRANSFER_BYTES)
        tools = HypertyTools(config.runtime, config.ids, self.counters, life, largest)
        spawn = partial(self._parts.processes.open, find=code.find)
        await self.host(profile, sandboxed_hyperty(code, spawn, tools), life)
        return life

    def _lifecycle(self, profile: str | Profile) -> Lifecycle:
        name = profile if isinstance(profile, str) else profile.name
        return Lifecycle(name, self._parts.config.entropy, self._parts.monitor)

    async def host(
        self, profile: str | Profile, make: ComponentMaker, life: Lifecycle | None = None
    ) -> str:
        """Run an actor as a hyperty: it handles messages, and answers requests, itself.

        Args:
            profile: Its description for the domain registry; a text is its name.
            make: Makes the actor around its port, anew for each life.
            life: Shows what becomes of it; None: a new one.

        Returns:
            Its address.

        If cancelled, and after any error, the runtime removes it; the call waits for that, for
        at most `GOODBYE_TIMEOUT` seconds. An address that was kept is kept again, another one
        is given back to the node, also if the node allocates it later.

        Raises:
            AllocationError: The node gave no address; `code` 503 if it cannot be reached.
            BadMessageError: The node answered the allocation with something else.
            NotKeptError: The profile names an address that is not kept for it.
            RegistrationError: The domain registry did not take the record.
            ActorStoppedError: The runtime has closed.
            Exception: What making or starting the actor raised.
        """
        described = Profile(profile) if isinstance(profile, str) else profile
        life = life or self._lifecycle(profile)
        given = await self.reserve(described)
        if self.is_leaving:
            raise ActorStoppedError(self.url)
        url = life.url = given.address
        deployment = self._deployments[url] = _Deployment(url, described, life)
        try:
            self._parts.bus.set_name(url, described.name)
            sandbox = await self._run(url, make)
            await self._register(url, described)
            await self._parts.loader.tell(Hosted(url, sandbox, self._ended))
            deployment.is_up = True
        finally:
            if not deployment.is_up:
                with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await self._remove(url, keeps=not given.is_new)
        return url

    async def undeploy(self, url: str) -> None:
        """Unregister a hyperty, stop it, and give its address back. Idempotent.

        The objects that it reports are deleted, those that it observes are unsubscribed; peers
        that do not answer in time are not waited for. The runtime itself undeploys a hyperty
        that crashes too often. Requests that it is working on are answered 503.

        If cancelled, only the wait ends: the runtime removes the hyperty all the same, and a
        second call waits for the end of that.

        Raises:
            ActorStoppedError: The runtime closes at the same time.
        """
        await self._remove(url, keeps=False)

    async def rest(self, url: str) -> None:
        """Stop a hyperty, but keep its address for the next one with the same descriptor.

        If cancelled, only the wait ends, as for `undeploy`.

        Raises:
            ActorStoppedError: The runtime closes at the same time.
        """
        await self._remove(url, keeps=True)

    async def reserve(self, profile: Profile) -> AddressGiven:
        """Get an address for a hyperty, as `host` does, without running one.

        If cancelled, an address that the node allocates all the same is given back to it.

        Raises:
            AllocationError: The node gave no address.
            BadMessageError: The node answered with something else.
            NotKeptError: The profile names an address that is not kept for it.
            ActorStoppedError: The runtime has closed.
        """
        return await self._addresses.give(profile)

    async def _ended(self, url: str, crash: Exception | None) -> None:
        """Remove a hyperty whose sandbox has ended, on request or not."""
        deployment = self._deployments.get(url)
        if deployment is None:
            return
        if crash is not None and deployment.removal is None:
            self._failure = deployment.life.given_up(crash)
            self._has_failed.set()
        deployment.life.undeployed()
        await self.undeploy(url)

    async def raise_failure(self) -> NoReturn:
        """Wait until a hyperty is given up, and raise its error.

        If cancelled, only the wait ends.

        Raises:
            HypertyFailedError: A hyperty was given up.
        """
        while self._failure is None:
            await self._has_failed.wait()
        raise self._failure

    async def _remove(self, url: str, *, keeps: bool) -> None:
        """Wait until a hyperty is removed; a background task does it, once."""
        deployment = self._deployments.get(url)
        if deployment is None:
            return
        removal = deployment.removal
        if removal is None:
            removal = deployment.removal = _Removal(keeps)
            self._background.start_soon(self._end, deployment, removal)
        await removal.done.wait()
        if removal.error is not None:
            raise removal.error

    async def _end(self, deployment: _Deployment, removal: _Removal) -> None:
        # The task that asked may be a handler of the hyperty itself, which ends first.
        SERVING.set(None)
        with trio.CancelScope(shield=True), Crash() as crash:
            await self._take_down(deployment, removal)
        removal.error = crash.error
        if crash.error is None:
            self._deployments.pop(deployment.url, None)
            deployment.life.undeployed()
        else:
            deployment.removal = None
        removal.done.set()

    async def _take_down(self, deployment: _Deployment, removal: _Removal) -> None:
        url = deployment.url
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._unregister(url)
        await self._parts.sandboxes.close(url)
        self._parts.bus.set_name(url, None)
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._parts.sync_manager.ask(lambda done: ComponentLeft(url, done))
        if deployment.is_up:
            # Until the loader has done its part, the address is reserved.
            await deployment.life.ended()
        if removal.keeps:
            self._addresses.keep(url, deployment.profile)
            return
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._addresses.free((url,))

    async def enter(self) -> None:
        """Open the session at the own node now; otherwise the first message does it.

        If cancelled, the session may still be opened; the answer of the node is dropped.

        Raises:
            SessionError: The node refuses it, or cannot be reached; see its `code`.
            ActorStoppedError: The runtime has closed.
        """
        await self._presence.enter()

    async def release_name(self, name: str | None = None) -> None:
        """Give a name back to the node; any user may open it when it has no session any more.

        Args:
            name: Name of a runtime of the same user in the own domain; None: the own name, which
                is free when this runtime has closed.

        If cancelled, the name may be given back.

        Raises:
            BadUrlError: It cannot be the name of a runtime.
            ReleaseError: The node refuses, or cannot be reached.
            ActorStoppedError: The runtime has closed.
        """
        domain = self._parts.config.domain
        url = self.url if name is None else runtime_url(domain, runtime_name(name))
        await self._presence.release_name(url)

    async def boot(self) -> None:
        """Set up the handler stub and the kept addresses; called once, before anything else.

        If cancelled, some of it is set up; the runtime ends then.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        await self._presence.boot()
        await self._addresses.boot()

    async def paths_lost(self, domain: str, session: str | None) -> None:
        """Claim everything again that a node has lost with the session of this runtime.

        Args:
            domain: Domain of the node.
            session: Name of the new session at it.

        If cancelled, some of them may be missing.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        await self._presence.paths_lost(domain, session)

    async def order(self, part: str, kind: MessageType, to: str, body: JsonObject) -> Message:
        """Send a request as a part of the runtime, such as `registry`; return its answer.

        It is for tools that try a node; the name of no part is answered 401.

        Args:
            part: Name of the part.
            kind: Verb of the request.
            to: Address of the receiver.
            body: Body of the request.

        If cancelled, the request may have been sent; its answer is dropped.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        sender = f"{self.url}/{part}"
        number = self._parts.config.ids.next(sender)
        port = CorePort(sender, self._parts.bus)
        return await port.request(Message(number, kind, sender, to, body))

    @property
    def discoverer(self) -> Discoverer:
        """Searches domain registries in the name of the runtime."""
        return self._parts.discoverer

    async def lend(self, part: str) -> None:
        """Let code beside the runtime send as a part of it; it is checked like any part.

        Args:
            part: Name of the part.

        If cancelled, the permission may have been given.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        sender = f"{self.url}/{part}"
        self._parts.bus.grant(sender, sender, Origin.LOCAL)

    def forwarded(self, rule: ForwardRule) -> AbstractAsyncContextManager[None]:
        """Copy messages between two addresses of this runtime, while the context is open.

        Args:
            rule: The forward rule or alias (BUS-08, BUS-10).
        """
        return self._parts.agent.forwarded(rule)

    async def reload_policies(self) -> str:
        """Read the policy files again; the runtime keeps its policies if one cannot be used.

        If cancelled, the files may be read all the same.

        Returns:
            Why the files cannot be used, as a sentence for people; empty if the runtime uses them,
            or an application's own policy.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        policing = self._parts.policing
        return "" if policing is None else await policing.reload()

    async def links(self) -> tuple[LinkEntry, ...]:
        """Return the direct links, one per remote runtime (P2P-18).

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        return (await self._view()).links

    async def node_stubs(self) -> tuple[str, ...]:
        """Return the addresses of the deployed stubs to message nodes.

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        return (await self._view()).node_stubs

    @property
    def hyperties(self) -> int:
        """Number of hyperties that run."""
        return sum(one.is_up and one.removal is None for one in self._deployments.values())

    @property
    def failure(self) -> HypertyFailedError | None:
        """Why the last hyperty was given up that crashed too often; None: none was."""
        return self._failure

    @property
    def handler(self) -> str | None:
        """Address of the handler stub that accepts direct links; None: there is none."""
        return self._presence.handler

    async def _view(self) -> RegistryView:
        return await self._parts.registry.view()

    # ---- hyperties

    async def _run(self, url: str, make: ComponentMaker) -> ActorRef[StartComponent]:
        await self._parts.registry.add_local(url)
        component = Component(url, Origin.LOCAL, make, Intensity())
        return await self._parts.sandboxes.open(component)

    async def _register(self, url: str, profile: Profile) -> None:
        record = Record(
            url,
            self.url,
            user=self._parts.user,
            name=profile.name,
            descriptor=profile.descriptor,
            resources=profile.resources,
            data_schemes=profile.data_schemes,
            message_schema=profile.message_schema,
        )
        await self._parts.registrar.register(record)
        await self._parts.registry.show_local(url)

    # ---- going

    async def leave(self) -> None:
        """Leave in order: registrations, links, objects, paths, addresses, sessions (P2P-28).

        Each step has at most `GOODBYE_TIMEOUT` seconds.

        If cancelled, the remaining steps are left out, and peers learn of the end by their
        timers.
        """
        there, self.is_leaving = self._presence, True
        deployments, self._deployments = self._deployments, {}
        urls = tuple(deployments)
        try:
            await _in_turn(
                partial(self._withdraw, urls),
                there.end_links_and_objects,
                partial(self._addresses.free, urls),
                there.end_sessions,
            )
        finally:
            for deployment in deployments.values():
                deployment.life.undeployed()

    async def _withdraw(self, urls: tuple[str, ...]) -> None:
        """Unregister and stop hyperties."""

        async def one(url: str) -> None:
            await self._unregister(url)
            await self._parts.sandboxes.close(url)

        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(one, url)

    async def _unregister(self, url: str) -> None:
        await self._parts.registry.hide_local(url)
        await self._parts.registrar.unregister(url)


async def _in_turn(*steps: Callable[[], Awaitable[None]]) -> None:
    """Take each step, for at most `GOODBYE_TIMEOUT` seconds.

    A node or peer that is gone does not answer; its own timers end what is left there (P2P-28). One
    that did not answer one step will hardly answer the next: the others get less time, so that all
    together fit into the time to drain.

    If cancelled, the remaining steps are left out.
    """
    patience = GOODBYE_TIMEOUT
    for step in steps:
        with trio.move_on_after(patience) as waiting:
            await step()
        if waiting.cancelled_caught:
            patience = GOODBYE_TIMEOUT * _SHARE
