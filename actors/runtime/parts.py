"""The actors of one runtime, and its presence: what it sets up, and removes on leaving."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import final

import attrs
import trio

from actors.kit.counters import Counters
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.monitor import Monitor
from actors.kit.trace import Tracer
from actors.pipe.process import ProcessSandboxes
from actors.runtime.bus.message_bus import MessageBus
from actors.runtime.bus.ports import CorePort
from actors.runtime.bus.transfers import Transfers
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import Discoverer
from actors.runtime.following import Followers
from actors.runtime.objects.windows import RequestWindows
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.own_sender import OwnSender
from actors.runtime.policing import Policing
from actors.runtime.registry.allocation import AddressAllocation
from actors.runtime.registry.registrations import Registrar
from actors.runtime.registry.registry import Registry
from actors.runtime.registry.status import RuntimeStatus
from actors.runtime.store.runtime_store import RuntimeStore
from actors.runtime.stubs.catalogue import (
    Catalogue,
    StubKind,
    handler_descriptor,
    requester_descriptor,
)
from actors.runtime.stubs.credentials import Entrance
from actors.runtime.stubs.loader import Load, LoaderMessage, Unload
from actors.runtime.stubs.sandbox import Sandboxes
from actors.runtime.stubs.stub import StubConfig
from actors.runtime.sync.context import ObjectsClosed, PathsForgotten, SyncMessage
from fsm.p2p.negotiation import Role
from fsm.registry.resolve.link_entry import LinkEntry
from specs.addresses.address import subscription_manager
from specs.bodies.link import Command, Path
from specs.bodies.word import StubMethod
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import DEPLOY_TIMEOUT, RENEW_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from transports.bodies import write_body

_log = get_logger("actors.runtime")


@final
@attrs.frozen
class RuntimeParts:
    """The actors of a runtime.

    Attributes:
        agent: The port of `R/ua`.
        processes: Opens sandbox processes.
        catalogue: Finds descriptors.
        store: What is stored.
        followers: The models of the application that go along with entities.
        identity: The key of the runtime, and what was said of it.
        own: The user of the runtime, as its node says.
        discoverer: Searches in the name of `R/discovery`.
        policing: The policies of the runtime; None: the application decides itself.
        status: The status of the runtime.
        transfers: What the bodies in chunks of its hyperties share.
        windows: The open requests of its hyperties.
    """

    config: RuntimeConfig
    counters: Counters
    monitor: Monitor
    tracer: Tracer
    bus: MessageBus
    agent: CorePort
    sandboxes: Sandboxes
    processes: ProcessSandboxes
    catalogue: Catalogue
    loader: ActorRef[LoaderMessage]
    registrar: Registrar
    registry: Registry
    allocation: AddressAllocation
    sync_manager: ActorRef[SyncMessage]
    store: RuntimeStore
    followers: Followers
    identity: OwnIdentity
    own: OwnSender
    discoverer: Discoverer
    policing: Policing | None
    status: RuntimeStatus
    transfers: Transfers
    windows: RequestWindows

    @property
    def user(self) -> str | None:
        """Address of the user who owns the hyperties: the configured one, else that of the login.

        Before the first session, nobody has logged in.
        """
        return self.config.user or self.own.identity.user


@final
class Presence:
    """The sessions, links and paths of a runtime, without its hyperties.

    Attributes:
        handler: Address of the handler stub that accepts direct links; None: there is none.
    """

    def __init__(self, parts: RuntimeParts) -> None:
        self.handler: str | None = None
        self._parts = parts
        self._url = parts.config.runtime
        attempts = 1 if parts.config.identity_gui is None else MAX_ATTEMPTS
        self._entrance = Entrance(parts.agent, parts.config.domain, attempts)

    # ---- coming

    async def enter(self) -> None:
        """Open the session at the own node.

        If cancelled, the session may still be opened; the answer of the node is dropped.

        Raises:
            SessionError: The node refuses it, or cannot be reached; see its `code`.
            ActorStoppedError: The runtime has closed.
        """
        await self._entrance.enter(self._parts.config.ids.next(self._parts.agent.url))

    async def release_name(self, runtime: str) -> None:
        """Release a name of the logged-in user at the own node.

        Args:
            runtime: The name: address of the runtime.

        If cancelled, the name may be given back.

        Raises:
            ReleaseError: The node refuses, or cannot be reached.
            ActorStoppedError: The runtime has closed.
        """
        number = self._parts.config.ids.next(self._parts.agent.url)
        await self._entrance.release(number, runtime)

    async def boot(self) -> None:
        """Deploy the handler stub and set its path, if direct links are wanted (P2P-01, P2P-02).

        The descriptor of the runtime, if it has one, names the stubs; without a handler, or with
        one that nobody is told how to reach, the runtime takes no links (CAT-04, CAT-10).

        If cancelled, the stub may be deployed without a path.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        config = self._parts.config
        # Constraints of other descriptors are judged by that of the runtime, with links or without.
        handler, requester = await self._link_stubs()
        if not config.kinds or not config.links.wants_any:
            return
        if handler is None or requester is None:
            _log.warning("no direct links are taken", runtime=self._url, why="no stubs for them")
            return
        url = f"{self._url}/p2phandler/1"
        stub = StubConfig(
            self._url,
            config.domain,
            kinds=config.kinds,
            host=config.p2p_host,
            ice=config.ice_source,
            links=config.links,
        )
        refusal: str | None = await self._parts.loader.ask(
            lambda done: Load(url, handler, stub, done, StubKind.P2P_HANDLER)
        )
        if refusal is not None:
            _log.warning("no direct links are taken", runtime=self._url, why=refusal)
        if refusal is None and await self._set_path(url, MessageType.SUBSCRIBE):
            self.handler = url
            self._parts.registrar.accept_links(url, requester)

    async def _link_stubs(self) -> tuple[str | None, str | None]:
        """Return the catalogue addresses of handler and requester stub."""
        config = self._parts.config
        if config.descriptor is None:
            return handler_descriptor(config.domain), requester_descriptor(config.domain)
        with trio.move_on_after(DEPLOY_TIMEOUT):
            described = await self._parts.catalogue.runtime(config.descriptor)
            if described is not None:
                return described.p2p
        _log.warning("no runtime descriptor", runtime=self._url, descriptor=config.descriptor)
        return None, None

    async def paths_lost(self, domain: str, session: str | None) -> None:
        """Claim addresses, registrations and paths again that a node has lost (STB-09).

        The stub of the own node sends nothing else until that is done.

        Args:
            domain: Domain of the node.
            session: Name of the new session at it.

        If cancelled, some of them may be missing.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        parts = self._parts
        async with trio.open_nursery() as nursery:
            nursery.start_soon(parts.sync_manager.ask, partial(PathsForgotten, domain))
            if domain != parts.config.domain:
                return
            await parts.allocation.claim_all()
            nursery.start_soon(parts.registrar.register_all_again)
            if self.handler is not None:
                nursery.start_soon(self._set_path, self.handler, MessageType.SUBSCRIBE)
            # What the node refuses for now is asked for again, and holds up nobody for longer.
            nursery.cancel_scope.deadline = trio.current_time() + RENEW_TIMEOUT
        if session is not None:
            stub = session.partition("/session/")[0]
            await self._ask(MessageType.EXECUTE, stub, Command(StubMethod.RENEWED, link=session))

    async def _set_path(self, url: str, kind: MessageType) -> bool:
        """Set or remove the path of a P2P stub at the own node (M-01, M-02, M-04)."""
        to = subscription_manager(self._parts.config.domain)
        answer = await self._ask(kind, to, Path((url,), url))
        return answer.code <= LAST_SUCCESS

    async def _ask(self, kind: MessageType, to: str, body: Path | Command) -> Message:
        sender = self._parts.agent.url
        number = self._parts.config.ids.next(sender)
        request = Message(number, kind, sender, to, write_body(body))
        answer = await self._parts.agent.request(request)
        self._entrance.heard(answer)
        return answer

    # ---- going

    async def end_links_and_objects(self) -> None:
        """End the direct links, then every data object (P2P-28).

        If cancelled, some of them remain, and end with the runtime.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        await self._end_links()
        # The objects of links are among them: their open requests are awaited.
        await self._parts.sync_manager.ask(ObjectsClosed)

    async def _end_links(self) -> None:
        view = await self._parts.registry.view()
        ends = [end for entry in view.links for end in entry.ends]
        # A link is disconnected first, then its row and its listener go (SC-28).
        await self._end_all(self._disconnect, ends)
        links = await self._parts.registry.close_links()
        await self._end_all(self._end_link, links)
        if self.handler is not None:
            await self._set_path(self.handler, MessageType.UNSUBSCRIBE)
            await self._unload(self.handler, None)

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
            await self._unload(entry.stub, entry.remote)
            await self._set_path(entry.stub, MessageType.UNSUBSCRIBE)
        else:
            await self._disconnect(entry)

    async def end_sessions(self) -> None:
        """Close the sessions with all nodes, unless data objects are stored.

        If cancelled, some of them remain; the nodes end them after a while.

        Raises:
            ActorStoppedError: The runtime closes.
        """
        if not self._parts.store.is_empty:
            # A runtime that resumes stored objects finds the session, and all paths, for a while.
            return
        await self._parts.status.leave()
        view = await self._parts.registry.view()
        async with trio.open_nursery() as nursery:
            for stub in view.node_stubs:
                nursery.start_soon(self._unload, stub, None)

    async def _unload(self, url: str, remote: str | None) -> None:
        await self._parts.loader.ask(lambda done: Unload(url, remote, done))
