"""A running runtime: the state that its components share, its operations, its hyperties."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, NoReturn, final

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import Crash, Intensity, Monitor
from actors.pipe.process import ProcessSandboxes
from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from actors.runtime.bus.transfers import Transfers
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import Discoverer
from actors.runtime.following import Followers, StepFeed
from actors.runtime.hyperty.addresses import HypertyAddresses
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.hyperty.hyperty import (
    HypertyFailedError,
    HypertyMaker,
    Lifecycle,
    Profile,
    recorded_schema,
)
from actors.runtime.isolation import SandboxedCode, SandboxProcesses, find_hyperty, load_errors
from actors.runtime.link_guard import LinkGuard
from actors.runtime.objects.participant import Participant, RequestWindows
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.own_sender import OwnSender
from actors.runtime.policing import Policing
from actors.runtime.registry.allocation import AddressAllocation
from actors.runtime.registry.registrations import Registrar, RuntimeStatus
from actors.runtime.registry.registry import Registry
from actors.runtime.store.runtime_store import RuntimeStore
from actors.runtime.stubs.catalogue import (
    Catalogue,
    StubKind,
    handler_descriptor,
    requester_descriptor,
)
from actors.runtime.stubs.loader import Loader
from actors.runtime.stubs.login import LoginAttempts
from actors.runtime.stubs.sandbox import Component, ComponentMaker, Sandboxes
from actors.runtime.stubs.stub import StubConfig
from actors.runtime.sync.manager import SyncManager
from fsm.p2p.link_end import Role
from fsm.registry.resolve.links import LinkEntry
from specs.addresses.address import runtime as runtime_url
from specs.addresses.address import runtime_name, subscription_manager
from specs.bodies.link import Command, Path
from specs.bodies.registry import Record
from specs.bodies.word import StubMethod
from specs.jsonvalue import JsonObject
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import DEPLOY_TIMEOUT, GOODBYE_TIMEOUT, RENEW_TIMEOUT
from specs.limits.transfer import SANDBOX_TRANSFER_BYTES
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from transports.bodies import write_body
from transports.link import Network

_log = get_logger("actors.runtime")

_SHARE: Final = 0.25
"""Share of `GOODBYE_TIMEOUT` for each later stage of leaving, after one has used up its time."""


@attrs.define(eq=False)
class _Deployment:
    """Everything about one hyperty, from the allocation of its address to its removal.

    Attributes:
        is_up: Whether it is deployed, so that the loader reports its end.
        removed: Set at the end of a removal; None: no removal is under way.
        keeps: Whether the address is kept for the next hyperty with the same descriptor.
        error: Why the last removal failed; None: no removal has failed.
    """

    url: str
    profile: Profile
    life: Lifecycle
    is_up: bool = False
    removed: trio.Event | None = None
    keeps: bool = False
    error: Exception | None = None


@final
class Runtime:
    """A runtime, which owns what its components share; `open_runtime` makes one.

    Args:
        config: Its configuration.
        network: Network on which it dials and listens.
        counters: Counts of dropped messages and of the findings of the monitor.
        monitor: Monitor of the process.
        tracer: Takes its trace, and offers its steps to followers.
        store: Keeps addresses, sessions and data objects over restarts.
        processes: Opens sandbox processes.
        identity: The key of the runtime, and statements of others about the key.

    Attributes:
        url: Its address.
        is_leaving: Whether the runtime is closing or has closed.
        own: The user of the runtime, as its node says.
        agent: The port of `R/ua`.
        catalogue: Finds descriptors.
        discoverer: Searches domain registries in the name of `R/discovery`.
        followers: The models of the application that follow entities.
        policing: The policies of the runtime; None: the application has its own `Policy`.
        status: Whether the runtime reaches its node.
        transfers: Memory and permits that its hyperties share for bodies in chunks.
        windows: The open requests of its hyperties.
        handler: Address of the handler stub that accepts direct links; None: there is none.
        http_url: Where health and metrics are served; None: nowhere.
        failure: Error of the last hyperty that was given up; None: no hyperty was.
    """

    bus: MessageBus
    agent: CorePort
    guard: LinkGuard
    sandboxes: Sandboxes
    catalogue: Catalogue
    loader: Loader
    registrar: Registrar
    registry: Registry
    allocation: AddressAllocation
    sync: SyncManager
    discoverer: Discoverer
    followers: Followers
    status: RuntimeStatus
    policing: Policing | None
    background: trio.Nursery
    _addresses: HypertyAddresses
    _entrance: LoginAttempts

    def __init__(
        self,
        config: RuntimeConfig,
        network: Network,
        counters: Counters,
        monitor: Monitor,
        tracer: StepFeed,
        store: RuntimeStore,
        processes: ProcessSandboxes,
        identity: OwnIdentity,
    ) -> None:
        self.url: Final = config.runtime
        self.config: Final = config
        self.ids: Final = config.ids
        self.network: Final = network
        self.counters: Final = counters
        self.monitor: Final = monitor
        self.tracer: Final = tracer
        self.store: Final = store
        self.processes: Final = processes
        self.identity: Final = identity
        self.own: Final = OwnSender.of(config.runtime)
        self.transfers: Final = Transfers(config.largest_body)
        self.answer_within: Final = config.answer_within
        self.windows: Final[RequestWindows] = {}
        self.handler: str | None = None
        self.http_url: str | None = None
        self.failure: HypertyFailedError | None = None
        self.is_leaving = False
        self._deployments: dict[str, _Deployment] = {}
        self._has_failed = trio.Event()

    @property
    def user(self) -> str | None:
        """Address of the user who owns the hyperties: the configured one, else that of the login.

        Before the first session, nobody has logged in.
        """
        return self.config.user or self.own.identity.user

    def port(self, part: str) -> CorePort:
        """Return the port by which a component, such as `registry`, sends messages."""
        return CorePort(f"{self.url}/{part}", self.bus)

    # ---- operations of its owner

    async def deploy(self, profile: str | Profile, make: HypertyMaker) -> str:
        """Run a hyperty and register it; return its address (HYP-01).

        Args:
            profile: Its description for the domain registry; a text is its name.
            make: Makes the hyperty, and makes it anew after each crash; a class will do.

        If cancelled, as `host`.

        Raises:
            AllocationError: As `host`; so are the others.
        """
        participant, _ = await self.run_hyperty(profile, make)
        return participant.url

    async def run_hyperty(
        self, profile: str | Profile, make: HypertyMaker
    ) -> tuple[Participant, Lifecycle]:
        """Run a hyperty as `deploy` does; return the participant and its lifecycle.

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
        participants: list[Participant] = []

        def host(port: MiniBusPort) -> Actor[Delivery]:
            # One participant, with the port of the first life, for all lives.
            if not participants:
                participants.append(Participant(self, port))
            return HypertyHost(make, participants[0], life.record_error)

        await self.host(described, host, life)
        return participants[0], life

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
            loaded = await find_hyperty(self.catalogue, address, name)
            return await self.run_in_sandbox(*loaded)

    async def run_in_sandbox(self, profile: str | Profile, code: SandboxedCode) -> Lifecycle:
        """Run a hyperty in a sandbox process of its own; return its lifecycle.

        Args:
            profile: Its description for the domain registry.
            code: Where its class is, or the package that has it.

        If cancelled, as `host`.

        Raises:
            SandboxError: The hyperty did not start; all others are as `host`.
        """
        config, life = self.config, self._lifecycle(profile)
        processes = SandboxProcesses(
            code,
            partial(self.processes.open, find=code.find),
            self.url,
            config.ids,
            self.counters,
            life,
            min(config.largest_body, SANDBOX_TRANSFER_BYTES),
            config.answer_within,
        )
        await self.host(profile, processes.begin, life)
        return life

    def _lifecycle(self, profile: str | Profile) -> Lifecycle:
        name = profile if isinstance(profile, str) else profile.name
        return Lifecycle(name, self.config.entropy, self.monitor)

    async def host(
        self, profile: str | Profile, make: ComponentMaker, life: Lifecycle | None = None
    ) -> str:
        """Run an actor in the place of a hyperty: the actor handles messages and answers requests.

        Args:
            profile: Its description for the domain registry; a text is its name.
            make: Makes the actor around its port, anew for each life.
            life: Lifecycle of the hyperty; None: a new one is made.

        Returns:
            Its address.

        If cancelled, and after any error, the runtime removes the hyperty; the call waits for the
        removal, for at most `GOODBYE_TIMEOUT` seconds. An address that was kept is kept again,
        another one is given back to the node, also if the node allocates it later.

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
        allocated = await self._addresses.allocate(described)
        if self.is_leaving:
            raise ActorStoppedError(self.url)
        url = life.url = allocated.address
        deployment = self._deployments[url] = _Deployment(url, described, life)
        try:
            self.bus.set_name(url, described.name)
            await self.registry.add_local(url)
            component = Component(url, Origin.LOCAL, make, Intensity())
            sandbox = await self.sandboxes.open(component)
            await self._register(url, described)
            self.loader.watch_hyperty(url, sandbox, self._remove_ended)
            deployment.is_up = True
        finally:
            if not deployment.is_up:
                with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await self._remove(url, keeps=not allocated.is_new)
        return url

    async def undeploy(self, url: str) -> None:
        """Unregister a hyperty, stop it, and give its address back. Idempotent.

        The objects that it reports are deleted, those that it observes are unsubscribed; peers
        that do not answer in time are not waited for. The runtime itself undeploys a hyperty
        that crashes too often. Requests that it is working on are answered 503.

        If cancelled, only the wait ends: the runtime removes the hyperty all the same, and a
        second call waits for the end of the removal.

        Raises:
            ActorStoppedError: The runtime closes at the same time.
        """
        await self._remove(url, keeps=False)

    async def rest(self, url: str) -> None:
        """Stop a hyperty, but reserve its address for the next hyperty with the same descriptor.

        If cancelled, only the wait ends, as for `undeploy`.

        Raises:
            ActorStoppedError: The runtime closes at the same time.
        """
        await self._remove(url, keeps=True)

    async def _remove_ended(self, url: str, crash: Exception | None) -> None:
        """Remove a hyperty whose sandbox has ended, on request or not."""
        deployment = self._deployments.get(url)
        if deployment is None:
            return
        if crash is not None and deployment.removed is None:
            self.failure = deployment.life.give_up(crash)
            self._has_failed.set()
        deployment.life.finish()
        await self.undeploy(url)

    async def raise_failure(self) -> NoReturn:
        """Wait until a hyperty is given up, and raise its error.

        If cancelled, only the wait ends.

        Raises:
            HypertyFailedError: A hyperty was given up.
        """
        while self.failure is None:
            await self._has_failed.wait()
        raise self.failure

    async def _remove(self, url: str, *, keeps: bool) -> None:
        """Wait until a hyperty is removed, by a background task that the first call starts."""
        deployment = self._deployments.get(url)
        if deployment is None:
            return
        removed = deployment.removed
        if removed is None:
            removed = deployment.removed = trio.Event()
            deployment.keeps = keeps
            self.background.start_soon(self._end, deployment, removed)
        await removed.wait()
        if deployment.error is not None:
            raise deployment.error

    async def _end(self, deployment: _Deployment, removed: trio.Event) -> None:
        with trio.CancelScope(shield=True), Crash() as crash:
            await self._take_down(deployment)
        deployment.error = crash.error
        if crash.error is None:
            self._deployments.pop(deployment.url, None)
            deployment.life.finish()
        else:
            deployment.removed = None
        removed.set()

    async def _take_down(self, deployment: _Deployment) -> None:
        url = deployment.url
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._unregister(url)
        await self.sandboxes.close(url)
        self.bus.set_name(url, None)
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self.sync.leave_all(url)
        if deployment.is_up:
            # The address stays reserved until the loader has recorded the end.
            await deployment.life.wait_until_ended()
        if deployment.keeps:
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
        await self._entrance.enter(self.ids.next(self.agent.url))

    async def release_name(self, name: str | None = None) -> None:
        """Give a name back to the node; once the name has no session, any user may take it.

        Args:
            name: Name of a runtime of the same user in the own domain; None: the own name, which
                is free when this runtime has closed.

        If cancelled, the name may be given back.

        Raises:
            BadUrlError: `name` cannot be the name of a runtime.
            ReleaseError: The node refuses, or cannot be reached.
            ActorStoppedError: The runtime has closed.
        """
        url = self.url if name is None else runtime_url(self.config.domain, runtime_name(name))
        await self._entrance.release(self.ids.next(self.agent.url), url)

    # ---- start

    async def boot(self) -> None:
        """Deploy the handler stub and claim stored addresses; called once, before anything else.

        If cancelled, some of it is set up; the runtime ends then.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        attempts = 1 if self.config.identity_gui is None else MAX_ATTEMPTS
        self._entrance = LoginAttempts(self.agent, self.config.domain, attempts)
        self._addresses = HypertyAddresses(
            self.config,
            self.agent,
            self.allocation,
            self.store,
            self.discoverer,
            lambda: self.user,
        )
        await self._accept_links()
        await self._addresses.boot()

    async def _accept_links(self) -> None:
        """Deploy the handler stub and its route at the node, if direct links are wanted.

        The descriptor of the runtime, if there is one, names the stubs. Unless it names both a
        handler and a requester stub, the runtime accepts no links (CAT-04, CAT-10).
        """
        config = self.config
        # Read in any case: the constraints of other descriptors are judged by this descriptor.
        handler, requester = await self._link_stubs()
        if not config.kinds or not config.links.wants_any:
            return
        if handler is None or requester is None:
            _log.warning("no direct links are taken", runtime=self.url, why="no stubs for them")
            return
        url = f"{self.url}/p2phandler/1"
        stub = StubConfig(
            self.url,
            config.domain,
            kinds=config.kinds,
            host=config.p2p_host,
            ice=config.ice_source,
            links=config.links,
        )
        refusal = await self.loader.deploy(url, handler, stub, StubKind.P2P_HANDLER)
        if refusal is not None:
            _log.warning("no direct links are taken", runtime=self.url, why=refusal)
        if refusal is None and await self._set_path(url, MessageType.SUBSCRIBE):
            self.handler = url
            self.registrar.accept_links(url, requester)

    async def _link_stubs(self) -> tuple[str | None, str | None]:
        """Return the catalogue addresses of handler and requester stub."""
        config = self.config
        if config.descriptor is None:
            return handler_descriptor(config.domain), requester_descriptor(config.domain)
        with trio.move_on_after(DEPLOY_TIMEOUT):
            described = await self.catalogue.runtime(config.descriptor)
            if described is not None:
                return described.p2p
        _log.warning("no runtime descriptor", runtime=self.url, descriptor=config.descriptor)
        return None, None

    async def restore_paths(self, domain: str, session: str | None) -> None:
        """Restore the addresses, registrations and routes that a node has lost (STB-09).

        The stub of the own node sends nothing else until they are restored.

        Args:
            domain: Domain of the node.
            session: Name of the new session at the node.

        If cancelled, some of them may be missing.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.sync.renew_paths, domain)
            if domain != self.config.domain:
                return
            await self.allocation.claim_all()
            nursery.start_soon(self.registrar.register_all_again)
            if self.handler is not None:
                nursery.start_soon(self._set_path, self.handler, MessageType.SUBSCRIBE)
            # The limit of the wait: requests that the node refuses for now are repeated later.
            nursery.cancel_scope.deadline = trio.current_time() + RENEW_TIMEOUT
        if session is not None:
            stub = session.partition("/session/")[0]
            await self._ask(MessageType.EXECUTE, stub, Command(StubMethod.RENEWED, link=session))

    async def _set_path(self, url: str, kind: MessageType) -> bool:
        """Add or remove the route to a P2P stub at the own node (M-01, M-02, M-04)."""
        to = subscription_manager(self.config.domain)
        answer = await self._ask(kind, to, Path((url,), url))
        return answer.code <= LAST_SUCCESS

    async def _ask(self, kind: MessageType, to: str, body: Path | Command) -> Message:
        sender = self.agent.url
        number = self.ids.next(sender)
        request = Message(number, kind, sender, to, write_body(body))
        answer = await self.agent.request(request)
        self._entrance.take_answer(answer)
        return answer

    async def order(self, part: str, kind: MessageType, to: str, body: JsonObject) -> Message:
        """Send a request as a component of the runtime, such as `registry`; return its answer.

        It is for tools that test a node. If `part` names no part, the answer is 401.

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
        number = self.ids.next(sender)
        return await self.port(part).request(Message(number, kind, sender, to, body))

    async def reload_policies(self) -> str:
        """Read the policy files again; the runtime keeps its policies if one cannot be used.

        If cancelled, the files may be read all the same.

        Returns:
            Why the files cannot be used, as a sentence for people; empty if the runtime uses them,
            or an application's own policy.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        policing = self.policing
        return "" if policing is None else await policing.reload()

    async def links(self) -> tuple[LinkEntry, ...]:
        """Return the direct links, one per remote runtime (P2P-18).

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        return (await self.registry.view()).links

    @property
    def hyperties(self) -> int:
        """Number of hyperties that run."""
        return sum(each.is_up and each.removed is None for each in self._deployments.values())

    # ---- hyperties

    async def _register(self, url: str, profile: Profile) -> None:
        record = Record(
            url,
            self.url,
            user=self.user,
            name=profile.name,
            descriptor=profile.descriptor,
            resources=profile.resources,
            data_schemes=profile.data_schemes,
            message_schema=profile.message_schema,
        )
        await self.registrar.register(record)
        await self.registry.show_local(url)

    # ---- end

    async def leave(self) -> None:
        """Close registrations, links, objects, paths, addresses, sessions, in this order (P2P-28).

        Each step has at most `GOODBYE_TIMEOUT` seconds.

        If cancelled, the remaining steps are left out, and peers learn of the end by their
        timers.
        """
        self.is_leaving = True
        deployments, self._deployments = self._deployments, {}
        urls = tuple(deployments)
        try:
            await _in_turn(
                partial(self._withdraw, urls),
                self._end_links_and_objects,
                partial(self._addresses.free, urls),
                self._end_sessions,
            )
        finally:
            for deployment in deployments.values():
                deployment.life.finish()

    async def _withdraw(self, urls: tuple[str, ...]) -> None:
        """Unregister and stop hyperties."""

        async def withdraw(url: str) -> None:
            await self._unregister(url)
            await self.sandboxes.close(url)

        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(withdraw, url)

    async def _unregister(self, url: str) -> None:
        await self.registry.hide_local(url)
        await self.registrar.unregister(url)

    async def _end_links_and_objects(self) -> None:
        await self._end_links()
        # These include the objects of links, whose open requests are awaited.
        await self.sync.close()

    async def _end_links(self) -> None:
        view = await self.registry.view()
        ends = [end for entry in view.links for end in entry.ends]
        # A link is disconnected first, then its row and its listener go (SC-28).
        await self._end_all(self._disconnect, ends)
        links = await self.registry.close_links()
        await self._end_all(self._end_link, links)
        if self.handler is not None:
            await self._set_path(self.handler, MessageType.UNSUBSCRIBE)
            await self.loader.remove(self.handler)

    @staticmethod
    async def _end_all(
        end: Callable[[LinkEntry], Awaitable[None]], entries: Iterable[LinkEntry]
    ) -> None:
        async with trio.open_nursery() as nursery:
            for entry in entries:
                nursery.start_soon(end, entry)

    async def _disconnect(self, entry: LinkEntry) -> None:
        command = Command(StubMethod.DISCONNECT.value, (entry.remote,))
        await self._ask(MessageType.EXECUTE, entry.stub, command)

    async def _end_link(self, entry: LinkEntry) -> None:
        if entry.role is Role.REQUESTER:
            await self.loader.remove(entry.stub, entry.remote)
            await self._set_path(entry.stub, MessageType.UNSUBSCRIBE)
        else:
            await self._disconnect(entry)

    async def _end_sessions(self) -> None:
        """Close the sessions with all nodes, unless data objects are stored."""
        if not self.store.is_empty:
            # For a while, a new process that resumes the objects can resume the session, too.
            return
        await self.status.leave()
        view = await self.registry.view()
        async with trio.open_nursery() as nursery:
            for stub in view.node_stubs:
                nursery.start_soon(self.loader.remove, stub)


async def _in_turn(*steps: Callable[[], Awaitable[None]]) -> None:
    """Run the stages of leaving one after the other, each for `GOODBYE_TIMEOUT` seconds at most.

    A node or peer that is gone does not answer; its own timers remove its state (P2P-28). After a
    step without an answer, the next will hardly get one: the later steps get less time, so that
    all of them fit into `DRAIN_TIMEOUT`.

    If cancelled, the remaining steps are left out.
    """
    limit = GOODBYE_TIMEOUT
    for step in steps:
        with trio.move_on_after(limit) as waiting:
            await step()
        if waiting.cancelled_caught:
            limit = GOODBYE_TIMEOUT * _SHARE
