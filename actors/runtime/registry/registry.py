"""The registry of a runtime, R/registry, which knows where entities live (REG-01..05, RES-*).

It hosts the route search. Its own tasks send requests to others and report the results, so its
mailbox, and with it the routing of the runtime, never waits. It also publishes its links (P2P-18).
Other components call its methods, which put calls into its mailbox, behind the earlier messages:
the reports of one sender stay in order, and the bus does not call the core back.

Registries at the two ends of a live link exchange the addresses of their entities
(`RegistryChanges`, P2P-23..26). Each asks the other as soon as the link is live for it, and gets
the list and every change of the list. After a refusal, or without an answer, it uses the link all
the same, and reads the records of the entities.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import attrs
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef, Delivery, Reply
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.watch import RecordWatches, RegistryClient, is_registration
from actors.runtime.stubs.catalogue import StubKind
from actors.runtime.stubs.stub import StubConfig
from fsm.effects import Intent, LinkHint, RowChanged
from fsm.engine import Step
from fsm.p2p.link_end import FIRST, Role
from fsm.registry import changes
from fsm.registry.resolve.links import LinkEntry, ResolveConfig
from fsm.registry.resolve.resolve import ResolveCore
from fsm.registry.resolve.searches import NodePlan, RoutesPort, StubPlan
from specs.addresses.address import (
    catalogue_idp,
    catalogue_stub,
    is_below,
    last_segment,
    status_of,
)
from specs.bodies.answer import Listed as AddressesListed
from specs.bodies.link import Command, LinkStatus, ListChange, Path
from specs.bodies.object import ObjectName
from specs.bodies.session import Status
from specs.bodies.word import Operation, StubMethod
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.message import Message, MessageType, reason_in, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime

_PART: Final = "changes"


@attrs.frozen(slots=True)
class RegistryView:
    """The registry's tables at one moment, for programs and tests.

    Attributes:
        links: The direct links.
        node_stubs: Addresses of the stubs of nodes.
        watched: Addresses whose registrations are followed.
    """

    links: tuple[LinkEntry, ...]
    node_stubs: tuple[str, ...]
    watched: tuple[str, ...] = ()


def is_changes(message: Message) -> bool:
    """Return whether a message is about the list of entities that a runtime publishes."""
    if message.is_event:
        return last_segment(message.to) == _PART
    resources = message.body.get("resources")
    first = resources[0] if isinstance(resources, list) and resources else None
    return isinstance(first, str) and last_segment(first) == _PART


class _Steps(changes.ChangesPort):
    """Port of cores while their runtime ends: it traces transitions and does nothing else."""

    def __init__(self, hops: HopTrace) -> None:
        self._hops = hops

    @override
    def step(self, step: Step) -> None:
        self._hops.step(step)


def _row(entry: LinkEntry) -> dict[str, Json]:
    return {
        "remote": entry.remote,
        "role": entry.role.value,
        "status": entry.status.value,
        "url": entry.url,
        "link": entry.link,
        "entities": list[Json](sorted(entry.entities)),
    }


RegistryMessage: TypeAlias = Delivery | Callable[[], None]
"""A message to R/registry, or a call to make after the earlier messages."""


_T = TypeVar("_T")


class Registry(Actor[RegistryMessage], RoutesPort, changes.ChangesPort):
    """Hosts the route search, and the lists of entities that linked registries exchange.

    Its methods are the calls of other components, and the port of these cores.

    Args:
        config: The configuration of the route search.
        runtime: The runtime.
        port: The registry's own port to the Message BUS.
        hops: Takes the trace.
    """

    def __init__(
        self, config: ResolveConfig, runtime: "Runtime", port: CorePort, hops: HopTrace
    ) -> None:
        self._config, self._runtime, self._port, self._hops = config, runtime, port, hops
        self._bus, self._ids = runtime.bus, runtime.config.ids
        self._core = ResolveCore(config, self)
        self._client = client = RegistryClient(config.domain, port, self._ids)
        self._watches = RecordWatches(self._core, client, port, hops, self.spawn)
        self._publisher = changes.ChangesPublisher(config.runtime, self)
        self._follower = changes.ChangesFollower(config.runtime, self)
        self._own_changes = changes.changes_of(config.runtime)
        # The waiting questions: each is called again until it returns True.
        self._awaiting_routes: list[Callable[[], bool]] = []
        self._waiting: list[Callable[[], bool]] = []
        self._postponed: deque[Callable[[], None]] = deque()
        self._are_routes_new = False
        self._is_stopped = False

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)
        await self._runtime.status.begin()

    @override
    async def stop(self) -> None:
        self._is_stopped = True
        self._publisher.port = self._follower.port = _Steps(self._hops)
        self._core.stop()

    @override
    def deadline(self) -> float:
        return min(self._core.deadline(), self._publisher.deadline())

    @override
    async def timed_out(self) -> None:
        self._core.time_over(trio.current_time())
        self._publisher.time_over(trio.current_time())
        self._settle()

    @override
    async def handle(self, message: RegistryMessage) -> None:
        if isinstance(message, Delivery):
            request = message.message
            try:
                self._take_delivery(request)
            except BadMessageError as error:
                if request.is_request:
                    self._port.send(refuse(request, error.code, error.reason))
        else:
            message()
        self._settle()

    def _settle(self) -> None:
        """Make the calls that the core has postponed, and answer queries that are now decided."""
        self._run_postponed()
        if self._are_routes_new:
            self._are_routes_new = False
            self._awaiting_routes = [ask for ask in self._awaiting_routes if not ask()]
        self._waiting = [ask for ask in self._waiting if not ask()]

    def _run_postponed(self) -> None:
        while self._postponed:
            self._postponed.popleft()()

    @property
    def listener(self) -> ActorRef[RegistryMessage]:
        """The receiver of status events that the registry subscribes to."""
        return self.me

    async def _tell(self, work: Callable[[], None]) -> None:
        await self.me.tell(work)

    # ---- calls of other components

    def try_ask(self, to: str, intent: Intent, hint: LinkHint | None) -> bool:
        """Search a route for the Message BUS; return whether there is room for the question."""
        return self.me.try_tell(lambda: self._ask(to, intent, hint))

    def try_ask_owner(self, entity: str, remote: str) -> bool:
        """Search an owner for the Message BUS; return whether there is room for the question."""
        return self.me.try_tell(lambda: self._core.ask_owner(entity, remote, trio.current_time()))

    def try_report_forged(self, link: str) -> bool:
        """End a link whose peer forges senders; return whether there is room for the call (S1)."""
        return self.me.try_tell(lambda: self._core.link_forged(link, trio.current_time()))

    async def stub_deployed(self, url: str) -> None:
        """Record that a stub runs. This and the next methods wait while the mailbox is full."""
        await self._tell(lambda: self._core.stub_deployed(url, trio.current_time()))

    async def stub_failed(self, url: str, why: str, *, is_absent: bool) -> None:
        """Record that a stub failed to start, or, if `is_absent`, that there is none."""
        await self._tell(
            lambda: self._core.stub_failed(url, why, trio.current_time(), is_absent=is_absent)
        )

    async def stub_gone(self, url: str) -> None:
        """Record that a stub has crashed and its sandbox was removed."""
        await self._tell(lambda: self._core.stub_gone(url, trio.current_time()))

    async def add_local(self, url: str) -> None:
        """Add the address of a hyperty of this runtime that starts soon."""
        await self._tell(lambda: self._core.add_local(url))

    async def remove_local(self, url: str) -> None:
        """Remove a hyperty that has ended; messages to it are then answered 404."""
        await self._tell(lambda: self._watches.component_left(url))

    async def show_local(self, url: str) -> None:
        """Report to linked runtimes that a hyperty or object can be reached. Idempotent."""
        await self._tell(lambda: self._publisher.add_local(url))

    async def hide_local(self, url: str) -> None:
        """Report to linked runtimes that it can no longer be reached. Idempotent."""
        await self._tell(lambda: self._publisher.remove_local(url))

    async def view(self) -> RegistryView:
        """Return the P2P entries, the node stubs, and the watched records."""
        return await self.me.ask(lambda reply: lambda: self._show(reply))

    async def close_links(self) -> tuple[LinkEntry, ...]:
        """Forget all P2P links, and set up no more; return the links that must be ended."""
        return await self.me.ask(lambda reply: lambda: self._close_links(reply))

    async def find_link(self, entity: str, known: str | None, *, is_wanted: bool) -> str | None:
        """Wait until the live link to an entity or runtime differs from a known one; return it.

        Args:
            entity: Address of the entity or runtime.
            known: The known link; None: there is none.
            is_wanted: Whether a link may be set up.
        """
        return await self.me.ask(
            lambda reply: lambda: self._await_link(entity, known, reply, is_wanted=is_wanted)
        )

    async def speaks_for(self, link: str, part: str, entity: str) -> bool:
        """Return whether a link's peer may send for an entity, according to the entity's record.

        The question is kept while the caller waits; the caller sets a time limit.
        """
        return await self.me.ask(lambda reply: lambda: self._witness(link, part, entity, reply))

    # ---- the calls, within the task of the registry

    def _ask(self, to: str, intent: Intent, hint: LinkHint | None) -> None:
        begun = Fact(k=Kind.RESOLVE, op=Op.BEGIN, to=to, kind=intent.value)
        self._hops.fact(begun)
        self._core.ask(to, intent, trio.current_time(), hint)

    async def _read_list(self, remote: str, number: int) -> None:
        answer = await self._client.follow_changes(remote)
        urls, why = None, ""
        if answer.code > LAST_SUCCESS:
            why = reason_in(answer)
        else:
            try:
                urls = read_body(answer, AddressesListed).value
            except BadMessageError as error:
                why = error.reason
        await self._tell(lambda: self._follower.take_list(remote, number, urls, why))

    def _show(self, reply: Reply[RegistryView]) -> None:
        links = tuple(attrs.evolve(entry) for entry in self._core.links())
        reply.send(RegistryView(links, self._core.node_stubs(), self._watches.urls))

    def _close_links(self, reply: Reply[tuple[LinkEntry, ...]]) -> None:
        entries = self._core.links()
        self._core.close_links(trio.current_time())
        self._settle()
        reply.send(tuple(end for entry in entries for end in entry.ends))

    def _await_link(
        self, entity: str, known: str | None, reply: Reply[str | None], *, is_wanted: bool
    ) -> None:
        def ask() -> bool:
            link = self._core.live_link(entity)
            if link != known:
                reply.send(link)
            return not reply.is_open

        if not ask():
            self._awaiting_routes.append(ask)
            if is_wanted:
                self._core.seek_link(entity, trio.current_time())

    def _witness(self, link: str, part: str, entity: str, reply: Reply[bool]) -> None:
        def ask() -> bool:
            speaks = self._core.speaks_for(link, part, entity, trio.current_time())
            if speaks is not None:
                reply.send(speaks)
            return not reply.is_open

        self._waiting.append(ask)
        self._core.witness(link, entity, trio.current_time())

    # ---- messages

    def _take_delivery(self, message: Message) -> None:
        if message.is_event and is_registration(message.to):
            reported = self._watches.read_event(message)
            if reported is not None:
                self._core.record_reported(*reported, trio.current_time())
        elif is_changes(message):
            take = self._entities_changed if message.is_event else self._follow_asked
            take(message)
        elif message.is_event:
            self._status(message)
        elif message.type in {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE}:
            self._watches.request(message)
        elif message.type is MessageType.DELETE:
            self._link_over(message)
        elif message.is_request:
            self._read(message)

    def _status(self, message: Message) -> None:
        stub, now = message.from_, trio.current_time()
        if message.body.get("resource") is None:
            status = read_body(message, Status)
            why = status.description or ""
            self._core.node_status(stub, status.value, status.link, why, now)
        else:
            of = read_body(message, LinkStatus)
            self._core.link_status(stub, of.value, of.resource, of.link, now)

    def _read(self, request: Message) -> None:
        """Answer a read of the entry of a link (P2P-18).

        A handler that asks whether it may accept a link waits until the own request for a link
        yields (P2P-27). Each handler has one open question per link, which it gives up at its own
        deadline. Senders that are no parts of the runtime are refused, as a row lists the
        hyperties at a peer.
        """
        if not is_below(request.from_, self._config.runtime):
            why = "a registry answers the parts of its own runtime only"
            raise BadMessageError(why, Code.FORBIDDEN)
        if request.type is not MessageType.READ:
            raise BadMessageError("the registry can only be read or followed")
        remote = read_body(request, ObjectName).resource

        def ask() -> bool:
            entry = self._core.row(remote, request.from_)
            if entry is None:
                self._port.send(refuse(request, Code.NOT_FOUND, "no link leads there"))
            elif entry.is_held(request.from_):
                return False
            else:
                self._port.send(reply_to(request, Code.OK, {"value": _row(entry)}))
            return True

        self._waiting.append(ask)

    def _link_over(self, message: Message) -> None:
        """Remove the entry of a link that has ended for its handler. Idempotent."""
        link = read_body(message, ObjectName).resource
        self._core.link_over(message.from_, link, trio.current_time())
        self._port.send(reply_to(message, Code.OK))

    # ---- messages of other registries

    def _follow_asked(self, request: Message) -> None:
        """Subscribe or unsubscribe the registry of a linked runtime to the list of entities."""
        entry = self._link_of_registry(request)
        resources = read_body(request, Path).resources
        if entry is None:
            why = "the contents are reported to the registry of a linked runtime only"
            raise BadMessageError(why, Code.FORBIDDEN)
        if resources != (self._own_changes,):
            raise BadMessageError("nothing else can be read here", Code.NOT_FOUND)
        if request.type is MessageType.SUBSCRIBE:
            self._publisher.subscribe(request, entry.remote, entry.link, trio.current_time())
        else:
            self._publisher.unsubscribe(request, entry.remote)

    def _entities_changed(self, event: Message) -> None:
        """Handle a report of another registry (M-09); drop one about entities of others."""
        entry = self._link_of_registry(event)
        if entry is None or event.to != changes.changes_of(entry.remote):
            self._hops.record_drop(event, DropReason.FORGED_STATUS)
            return
        try:
            change = read_body(event, ListChange)
        except BadMessageError:
            self._hops.record_drop(event, DropReason.MALFORMED)
            return
        operation = Operation(change.operation)
        self._follower.change(entry.remote, entry.link, operation, change.value)

    def _link_of_registry(self, message: Message) -> LinkEntry | None:
        """Return the link by which the registry at its other end sent a message; None: it did not.

        The last address in `via` is that of the link.
        """
        by = message.via[-1:]
        entry = next((each for each in self._core.links() if (each.link,) == by), None)
        is_of_peer = entry is not None and message.from_ == changes.registry_of(entry.remote)
        return entry if is_of_peer else None

    # ---- the port: traces

    @override
    def step(self, step: Step) -> None:
        self._hops.step(step)

    @override
    def row(self, row: RowChanged) -> None:
        self._hops.rows([row])

    @override
    def refuse_stub(self, address: str, why: str) -> None:
        self._hops.stub_refused(address, why)

    @override
    def refuse_hint(self, entity: str, why: str) -> None:
        self._hops.hint_refused(entity, why)

    # ---- the port: the Message BUS

    @override
    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        self._trace_done(to, intent, url, why)
        self._bus.take_route(to, intent, url, until)

    @override
    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        self._trace_done(to, intent, None, why)
        self._bus.no_route(to, intent, code, why, retry_after)

    def _trace_done(self, to: str, intent: Intent, result: str | None, why: str) -> None:
        done = Fact(k=Kind.RESOLVE, op=Op.DONE, to=to, result=result, why=why, kind=intent.value)
        self._hops.fact(done)

    @override
    def forget_routes(self) -> None:
        self._are_routes_new = True
        if not self._is_stopped:
            self._bus.forget_routes()

    @override
    def release(self, url: str, domain: str, number: int) -> None:
        self._postponed.append(partial(self._release, url, domain, number))

    def _release(self, url: str, domain: str, number: int) -> None:
        is_free = self._bus.release(url, domain)
        self._core.stub_released(url, number, trio.current_time(), is_free=is_free)

    @override
    def add_peer(self, link: str, remote: str) -> None:
        self._bus.add_peer(link, remote)

    @override
    def remove_peer(self, link: str) -> None:
        self._bus.remove_peer(link)

    @override
    def set_owner(self, entity: str, owner: str | None) -> None:
        self._bus.set_owner(entity, owner)

    @override
    def forget_owner(self, entity: str) -> None:
        self._bus.forget_owner(entity)

    # ---- the port: stubs

    @override
    def deploy(self, url: str, plan: StubPlan) -> None:
        own, options = self._config.runtime, self._runtime.config
        if isinstance(plan, NodePlan):
            find = catalogue_idp if plan.is_idp else catalogue_stub
            config = StubConfig(own, plan.domain, is_again=plan.is_again)
            self._runtime.loader.load(url, find(plan.domain), config)
            return
        config = StubConfig(
            own,
            self._config.domain,
            remote_runtime=plan.remote,
            p2p_handler=plan.handler,
            kinds=options.kinds,
            host=options.p2p_host,
            ice=options.ice_source,
            links=self._config.link_policy,
        )
        self._runtime.loader.load(url, plan.descriptor, config, StubKind.P2P_REQUESTER)

    @override
    def undeploy(self, url: str) -> None:
        self._runtime.loader.unload(url)

    @override
    def set_own_node(self, stub: str, *, is_live: bool, end: str | None = None) -> None:
        self._runtime.status.set_connection(stub, is_live=is_live, end=end)
        if is_live and self._runtime.status.is_published:
            self.spawn(self._publish_status)

    async def _publish_status(self) -> None:
        """Subscribe to the own status event, so that others may, and publish the status."""
        await self._client.set_path(status_of(self._config.runtime))
        await self._runtime.status.publish()

    @override
    def renew_paths(self, domain: str, session: str | None) -> None:
        self.spawn(self._runtime.restore_paths, domain, session)
        self._postponed.append(partial(self._renew_paths, domain))

    def _renew_paths(self, domain: str) -> None:
        for entry in self._core.links():
            if domain == self._config.domain and entry.role is Role.REQUESTER:
                self.spawn(self._client.set_path, entry.stub)
        for url in self._watches.node_forgot(domain):
            self._core.record_reported(url, None, trio.current_time())

    # ---- the port: requests

    @override
    def read_record(self, entity: str) -> None:
        self.spawn(self._request, self._client.read_record, entity, self._core.record_read)

    async def _request(
        self,
        ask: Callable[[str], Awaitable[_T]],
        about: str,
        take: Callable[[str, _T, float], None],
    ) -> None:
        """Send a request in a task, and pass the answer to the core."""
        answer = await ask(about)
        await self._tell(lambda: take(about, answer, trio.current_time()))

    @override
    def read_owner(self, entity: str) -> None:
        self.spawn(self._read_owner, entity)

    async def _read_owner(self, entity: str) -> None:
        record, is_answered = await self._client.read_owner(entity)
        await self._tell(
            lambda: self._core.owner_read(
                entity, record, trio.current_time(), is_answered=is_answered
            )
        )

    @override
    def set_path(self, url: str) -> None:
        self.spawn(self._request, self._client.set_path, url, self._core.path_set)

    @override
    def remove_path(self, url: str) -> None:
        self.spawn(self._client.remove_path, url)

    # ---- the port: direct links

    @override
    def register_link(self, link: str, handler: str) -> None:
        register = partial(self._client.register_link, handler=handler)
        self.spawn(self._request, register, link, self._core.link_registered)

    @override
    def unregister_link(self, link: str) -> None:
        if not self._is_stopped:
            self._port.unfollow_all(link)

    @override
    def connect(self, stub: str, handler: str) -> None:
        self.spawn(self._order_to_link, stub, Command(StubMethod.CONNECT.value, (handler,)))

    @override
    def resume(self, stub: str, remote: str) -> None:
        command = Command(StubMethod.RESUME.value, (remote,), stub, FIRST)
        self.spawn(self._order_to_link, stub, command)

    async def _order_to_link(self, stub: str, command: Command) -> None:
        """Command a stub to connect or resume; a stub that refuses counts as gone."""
        if not await self._client.order(stub, command):
            await self.stub_gone(stub)

    @override
    def suspend(self, stub: str, remote: str) -> None:
        command = Command(StubMethod.YIELD.value, (remote,), stub, FIRST)
        self.spawn(self._client.order, stub, command)

    @override
    def disconnect(self, stub: str, remote: str, link: str) -> None:
        command = Command(StubMethod.DISCONNECT.value, (remote,), link)
        self.spawn(self._client.order, stub, command)

    @override
    def link_up(self, remote: str, link: str) -> None:
        self._postponed.append(partial(self._publisher.link_up, remote, link))
        self._postponed.append(partial(self._follower.link_up, remote, link))

    @override
    def link_down(self, remote: str) -> None:
        self._postponed.append(partial(self._publisher.link_down, remote))
        self._postponed.append(partial(self._follower.link_down, remote))

    @override
    def link_gone(self, remote: str) -> None:
        self._postponed.append(partial(self._publisher.link_down, remote))
        self._postponed.append(partial(self._follower.link_gone, remote))
        if self._is_stopped:
            self._run_postponed()

    # ---- the port: lists of entities

    @override
    def answer(self, message: Message) -> None:
        # Search the route first: if the bus did, later messages could overtake the answer.
        self._core.ask(message.to, Intent.KNOWN, trio.current_time())
        self._port.send(message)

    @override
    def follow(self, link: str) -> None:
        self._port.add_link(self._own_changes, link)

    @override
    def unfollow(self, link: str) -> None:
        self._port.remove_link(self._own_changes, link)

    @override
    def publish(self, operation: Operation, url: str) -> None:
        sender, to = self._port.url, self._own_changes
        body = write_body(ListChange((url,), operation.value))
        self._port.send(Message(self._ids.next(sender), MessageType.UPDATE, sender, to, body))

    @override
    def listen(self, remote: str) -> None:
        self._port.follow(changes.changes_of(remote), self._port.url)

    @override
    def unlisten(self, remote: str) -> None:
        self._port.unfollow(changes.changes_of(remote), self._port.url)

    @override
    def ask(self, remote: str, number: int) -> None:
        self.spawn(self._read_list, remote, number)

    @override
    def list_entities(self, remote: str, there: tuple[str, ...], gone: tuple[str, ...]) -> None:
        self._core.entities_listed(remote, there, gone, trio.current_time())
