"""The runtime's registry, R/registry: the one writer of where entities live (REG-01..05, RES-*).

It hosts the resolve core. Its own tasks send requests to others and report the outcome, so its
mailbox, and with it the runtime's routing, never waits. It also publishes its links (P2P-18).

Registries at the two ends of a live link exchange the addresses that live there
(`RegistryChanges`, P2P-23..26). Each asks the other as soon as the link is live for it, and gets
the list and every change of it. If it is refused or gets no answer it uses the link all the same,
and reads the records of the entities.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.messages import (
    LinkAwaited,
    LinksClosed,
    LinksWanted,
    LinkWitnessed,
    PendingRoutes,
    RegistryMessage,
    RegistryParts,
    RegistryView,
)
from actors.runtime.registry.watch import (
    LinkOrder,
    RecordWatches,
    RegistryTalk,
    is_registration,
)
from actors.runtime.stubs.catalogue import StubKind
from actors.runtime.stubs.loader import Load, Unload
from actors.runtime.stubs.stub import StubConfig
from fsm.effects import Answer, HintRefused, OwnNode, RowChanged, StubRefused
from fsm.engine import Step
from fsm.intent import Intent
from fsm.p2p.negotiation import Role
from fsm.registry import changes
from fsm.registry.changes import ChangesFollower, ChangesPublisher, changes_of, registry_of
from fsm.registry.resolve import resolve_io as rs
from fsm.registry.resolve.config import ResolveConfig
from fsm.registry.resolve.link_entry import LinkEntry
from fsm.registry.resolve.resolve import ResolveCore
from fsm.registry.resolve.resolve_io import LinkDown, LinkGone, LinkUp, Listed
from specs.addresses.address import (
    catalogue_idp,
    catalogue_stub,
    is_below,
    last_segment,
    status_of,
)
from specs.bodies.answer import Listed as AddressesListed
from specs.bodies.link import LinkStatus, ListChange, Path
from specs.bodies.session import Status
from specs.bodies.sync import ObjectName
from specs.bodies.word import Operation
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.message import Message, MessageType, reason_in, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

__all__ = [
    "ChangesTask",
    "LinksClosed",
    "LinksWanted",
    "Registry",
    "RegistryChanges",
    "RegistryMessage",
    "RegistryParts",
    "RegistryView",
    "RowQuestions",
    "is_changes",
]

_PART: Final = "changes"

ChangesTask: TypeAlias = Callable[[Awaitable[changes.SnapshotRead]], None]
"""Runs what takes time beside the registry's mailbox, and reports the outcome to it."""


def is_changes(message: Message) -> bool:
    """Return whether an event or request is about the entities of a runtime."""
    if message.is_event:
        return last_segment(message.to) == _PART
    resources = message.body.get("resources")
    first = resources[0] if isinstance(resources, list) and resources else None
    return isinstance(first, str) and last_segment(first) == _PART


@final
@attrs.define
class RegistryChanges:
    """Hosts both ends of the registries' talk; part of the registry's task.

    Attributes:
        runtime: The own one.
        routes: The links, and the runtimes of entities.
        learn: Takes what was learnt of where entities live.
        answer: Sends an answer by the route known now, before the reports after it.
    """

    runtime: str
    routes: ResolveCore
    talk: RegistryTalk
    port: CorePort
    ids: IdSource
    hops: HopTrace
    task: ChangesTask
    learn: Callable[[Listed], Awaitable[None]]
    answer: Callable[[Message], Awaitable[None]]
    publisher: ChangesPublisher = attrs.field(init=False)
    follower: ChangesFollower = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher = ChangesPublisher(self.runtime)
        self.follower = ChangesFollower(self.runtime)

    # ---- requests and events

    async def asked(self, request: Message) -> None:
        """Let the other registry follow, or end that; only a registry may (M-08, M-10)."""
        entry = self._speaker(request)
        try:
            resources = read_body(request, Path).resources
        except BadMessageError as error:
            await self.port.post(refuse(request, error.code, error.reason))
            return
        if entry is None:
            why = "the contents are reported to the registry of a linked runtime only"
            await self.port.post(refuse(request, Code.FORBIDDEN, why))
        elif resources != (changes_of(self.runtime),):
            await self.port.post(refuse(request, Code.NOT_FOUND, "nothing else can be read here"))
        elif request.type is MessageType.SUBSCRIBE:
            await self.feed(changes.Asked(request, entry.remote, entry.link))
        else:
            await self.feed(changes.LeaveAsked(request, entry.remote))

    async def heard(self, event: Message) -> None:
        """Take a report of another registry (M-09); one about other entities is dropped."""
        entry = self._speaker(event)
        if entry is None or event.to != changes_of(entry.remote):
            self.hops.dropped(event, DropReason.FORGED_STATUS)
            return
        try:
            change = read_body(event, ListChange)
        except BadMessageError:
            self.hops.dropped(event, DropReason.MALFORMED)
            return
        operation = Operation(change.operation)
        await self.feed(changes.Reported(entry.remote, entry.link, operation, change.value))

    def _speaker(self, message: Message) -> LinkEntry | None:
        """Return the link by which another registry speaks for its own runtime; None: it does not.

        The bus stamped the link's address last.
        """
        by = message.via[-1:]
        found = next((entry for entry in self.routes.links() if (entry.link,) == by), None)
        is_own_word = found is not None and message.from_ == registry_of(found.remote)
        return found if is_own_word else None

    # ---- done

    async def feed(self, happened: changes.Input) -> None:
        """Take what happened, and do what follows."""
        for effect in self._decide(happened):
            await self._perform(effect)

    def _decide(self, happened: changes.Input) -> list[changes.Effect]:
        now = trio.current_time()
        match happened:
            case LinkUp() | LinkDown() | LinkGone():
                published = self.publisher.feed(happened, now)
                return [*published, *self.follower.feed(happened)]
            case changes.SnapshotRead() | changes.Reported():
                return self.follower.feed(happened)
            case _:
                return self.publisher.feed(happened, now)

    def end(self, happened: LinkGone) -> None:
        """Report how a link ends, when nothing can be done any more."""
        for effect in self._decide(happened):
            if isinstance(effect, Step):
                self.hops.step(effect)

    def deadline(self) -> float:
        """Return when to be fed `TimePassed`."""
        return self.publisher.deadline()

    async def _perform(self, effect: changes.Effect) -> None:
        match effect:
            case Step():
                self.hops.step(effect)
            case Listed():
                await self.learn(effect)
            case changes.Ask(remote, ask):
                self.task(self._snapshot(remote, ask))
            case Answer(message):
                await self.answer(message)
            case changes.Publish(operation, url):
                await self.port.post(self._change(operation, url))
            case _:
                await self._set_path(effect)

    async def _set_path(
        self, effect: changes.Follow | changes.Unfollow | changes.Listen | changes.Unlisten
    ) -> None:
        match effect:
            case changes.Follow(link):
                self.port.add_link(changes_of(self.runtime), link)
            case changes.Unfollow(link):
                self.port.remove_link(changes_of(self.runtime), link)
            case changes.Listen(remote):
                self.port.follow(changes_of(remote), self.port.url)
            case changes.Unlisten(remote):
                self.port.unfollow(changes_of(remote), self.port.url)
            case _:
                assert_never(effect)

    def _change(self, operation: Operation, url: str) -> Message:
        sender, to = self.port.url, changes_of(self.runtime)
        body = write_body(ListChange((url,), operation.value))
        return Message(self.ids.next(sender), MessageType.UPDATE, sender, to, body)

    async def _snapshot(self, remote: str, ask: int) -> changes.SnapshotRead:
        answer = await self.talk.follow_changes(remote)
        if answer.code > LAST_SUCCESS:
            return changes.SnapshotRead(remote, ask, None, reason_in(answer))
        try:
            return changes.SnapshotRead(remote, ask, read_body(answer, AddressesListed).value)
        except BadMessageError as error:
            return changes.SnapshotRead(remote, ask, None, error.reason)


@final
class RowQuestions:
    """Answers what other components ask about links.

    A handler that asks whether it may accept a link waits while our own request has not said
    that it yields (P2P-27). Memory: one question per link of the handler, which gives up at
    its own deadline. Others than parts of the runtime are refused: a row says which hyperties live
    at a peer.
    """

    def __init__(self, core: ResolveCore, runtime: str) -> None:
        self._core: Final = core
        self._runtime: Final = runtime
        self._waiting: list[Message] = []

    def asked(self, request: Message) -> list[Message]:
        """Return the answer; none, if the question waits."""
        if not is_below(request.from_, self._runtime):
            why = "a registry answers the parts of its own runtime only"
            return [refuse(request, Code.FORBIDDEN, why)]
        if request.type is not MessageType.READ:
            return [refuse(request, Code.MALFORMED, "the registry can only be read or followed")]
        self._waiting.append(request)
        return self.decided()

    def decided(self) -> list[Message]:
        """Return the answers to all questions that need not wait any more."""
        waiting, self._waiting = self._waiting, []
        return [answer for request in waiting for answer in self._answers(request)]

    def _answers(self, request: Message) -> list[Message]:
        try:
            whom = read_body(request, ObjectName).resource
        except BadMessageError as error:
            return [refuse(request, error.code, error.reason)]
        entry = self._core.row(whom, request.from_)
        if entry is None:
            return [refuse(request, Code.NOT_FOUND, "no link leads there")]
        if entry.is_held(request.from_):
            self._waiting.append(request)
            return []
        return [reply_to(request, Code.OK, {"value": _row(entry)})]


def _row(entry: LinkEntry) -> dict[str, Json]:
    return {
        "remote": entry.remote,
        "role": entry.role.value,
        "status": entry.status.value,
        "url": entry.url,
        "link": entry.link,
        "entities": list[Json](sorted(entry.entities)),
    }


@final
class Registry(Actor[RegistryMessage]):
    """Hosts the resolve core."""

    def __init__(self, config: ResolveConfig, parts: RegistryParts) -> None:
        self._config = config
        self._parts = parts
        self._core = ResolveCore(config)
        self._rows = RowQuestions(self._core, config.runtime)
        self._talk = talk = RegistryTalk(config.domain, parts.port, parts.ids)
        self._watches = RecordWatches(self._core, talk, parts.port, parts.hops, self.spawn)
        self._pending_routes = PendingRoutes(self._core)
        self._changes = RegistryChanges(
            runtime=config.runtime,
            routes=self._core,
            talk=talk,
            port=parts.port,
            ids=parts.ids,
            hops=parts.hops,
            task=self._following,
            learn=self._feed,
            answer=self._answer_now,
        )

    @override
    async def start(self) -> None:
        await self._parts.port.add_listener(self._parts.port.url, self.me)
        await self._parts.status.begin()

    @override
    async def stop(self) -> None:
        for effect in self._core.feed(rs.Stopped(), trio.current_time()):
            self._keep(effect)
            if isinstance(effect, rs.LinkGone):
                self._changes.end(effect)

    @override
    def deadline(self) -> float:
        return min(self._core.deadline(), self._changes.deadline())

    @override
    async def timed_out(self) -> None:
        await self._feed(rs.TimePassed())
        await self._changes.feed(changes.TimePassed())

    @override
    async def handle(self, message: RegistryMessage) -> None:
        match message:
            case Delivery(delivered):
                await self._delivered(delivered)
            case LinksWanted(reply_):
                links = tuple(attrs.evolve(entry) for entry in self._core.links())
                stubs, watched = self._core.node_stubs(), self._watches.urls
                reply_.send(RegistryView(links, stubs, watched))
            case LinksClosed(closed):
                entries = self._core.links()
                await self._feed(rs.Closing())
                closed.send(tuple(end for entry in entries for end in entry.ends))
            case rs.Asked(to, intent, _):
                begun = Fact(k=Kind.RESOLVE, op=Op.BEGIN, to=to, kind=intent.value)
                self._parts.hops.fact(begun)
                await self._feed(message)
            case LinkAwaited() | LinkWitnessed():
                await self._perform_all(self._pending_routes.asked(message, trio.current_time()))
            case changes.LocalLive() | changes.LocalGone() | changes.SnapshotRead():
                await self._changes.feed(message)
            case rs.LocalRemoved(url):
                await self._feed(message)
                await self._watches.component_left(url)
            case _:
                await self._feed(message)

    # ---- messages

    async def _delivered(self, message: Message) -> None:
        if message.is_event and is_registration(message.to):
            reported = self._watches.read_event(message)
            if reported is not None:
                await self._feed(reported)
        elif is_changes(message):
            await self._changes_reported(message)
        elif message.is_event:
            await self._status(message)
        elif message.type in {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE}:
            await self._watches.request(message)
        elif message.type is MessageType.DELETE:
            await self._link_over(message)
        elif message.is_request:
            await self._post(self._rows.asked(message))

    async def _changes_reported(self, message: Message) -> None:
        if message.is_event:
            await self._changes.heard(message)
        else:
            await self._changes.asked(message)

    async def _status(self, message: Message) -> None:
        try:
            is_of_stub = message.body.get("resource") is None
            status = read_body(message, Status) if is_of_stub else read_body(message, LinkStatus)
        except BadMessageError:
            return
        why = status.description or ""
        seen = rs.StatusSeen(message.from_, status.value, status.resource, status.link, why)
        await self._feed(seen)

    async def _link_over(self, message: Message) -> None:
        """Remove the entry of a link that its handler will not get back; repeated is fine."""
        try:
            link = read_body(message, ObjectName).resource
        except BadMessageError as error:
            await self._parts.port.post(refuse(message, error.code, error.reason))
            return
        await self._feed(rs.LinkOver(message.from_, link))
        await self._parts.port.post(reply_to(message, Code.OK))

    # ---- effects

    async def _feed(self, happened: rs.Input) -> None:
        now = trio.current_time()
        effects = self._core.feed(happened, now)
        await self._perform_all(effects)
        self._pending_routes.look(effects, now)
        await self._post(self._rows.decided())

    async def _post(self, answers: Iterable[Message]) -> None:
        for answer in answers:
            await self._parts.port.post(answer)

    async def _perform_all(self, effects: list[rs.Effect]) -> None:
        for effect in effects:
            await self._perform(effect)

    async def _perform(self, effect: rs.Effect) -> None:
        match effect:
            case rs.Route() | rs.NoRoute():
                self._trace_done(effect)
                self._parts.bus.report(effect)
            case (
                rs.RoutesChanged()
                | rs.PeerKnown()
                | rs.PeerGone()
                | rs.OwnerKnown()
                | rs.OwnerDoubted()
            ):
                self._parts.bus.report(effect)
            case Step() | RowChanged() | StubRefused() | HintRefused():
                self._keep(effect)
            case rs.Deploy() | rs.Undeploy():
                await self._load(effect)
            case OwnNode() | rs.PathsLost():
                await self._node_reported(effect)
            case rs.Release():
                self.spawn(self._report, self._release(effect))
            case rs.LinkUp() | rs.LinkDown() | rs.LinkGone():
                await self._changes.feed(effect)
            case _:
                self._talk_about(effect)

    async def _node_reported(self, effect: OwnNode | rs.PathsLost) -> None:
        match effect:
            case OwnNode():
                await self._parts.status.reported(effect)
                if effect.is_live and self._parts.status.is_published:
                    self.spawn(self._publish_status)
            case rs.PathsLost(domain, session):
                await self._renew_paths(domain, session)
            case _:
                assert_never(effect)

    async def _publish_status(self) -> None:
        """Subscribe to the own status, by which the node knows that others may, and publish it."""
        await self._talk.renew_path(status_of(self._config.runtime))
        await self._parts.status.publish()

    def _keep(self, effect: rs.Effect) -> None:
        match effect:
            case Step():
                self._parts.hops.step(effect)
            case RowChanged():
                self._parts.hops.rows([effect])
            case StubRefused(address, why):
                self._parts.hops.stub_refused(address, why)
            case HintRefused(entity, why):
                self._parts.hops.hint_refused(entity, why)
            case _:
                pass

    def _talk_about(
        self,
        effect: rs.ReadRecord
        | rs.ReadOwner
        | rs.SetPath
        | rs.RemovePath
        | rs.RegisterLink
        | rs.UnregisterLink
        | LinkOrder,
    ) -> None:
        talk = self._talk
        match effect:
            case rs.ReadRecord(entity) | rs.ReadOwner(entity):
                is_owner = isinstance(effect, rs.ReadOwner)
                read = talk.read_owner if is_owner else talk.read_record
                self.spawn(self._report, read(entity))
            case rs.SetPath(url):
                self.spawn(self._report, talk.set_path(url))
            case rs.RegisterLink(link, handler):
                self.spawn(self._report, talk.register_link(link, handler))
            case rs.RemovePath(url):
                self.spawn(talk.remove_path, url)
            case rs.UnregisterLink(link):
                self._parts.port.unfollow_all(link)
            case rs.Connect() | rs.Disconnect() | rs.Yield() | rs.Resume():
                self.spawn(self._order, effect)
            case _:
                assert_never(effect)

    async def _order(self, order: LinkOrder) -> None:
        """Give an order; a stub that is to go on with its link, and does not, is gone."""
        is_followed = await self._talk.order(order)
        if not is_followed and isinstance(order, rs.Connect | rs.Resume):
            await self.me.tell(rs.StubGone(order.stub))

    def _following(self, answer: Awaitable[changes.SnapshotRead]) -> None:
        self.spawn(self._report, answer)

    async def _answer_now(self, answer: Message) -> None:
        """Send an answer with its route: if the bus asked for it, later messages would go first."""
        await self._feed(rs.Asked(answer.to, Intent.KNOWN))
        await self._parts.port.post(answer)

    async def _report(self, answer: Awaitable[RegistryMessage]) -> None:
        await self.me.tell(await answer)

    async def _load(self, effect: rs.Deploy | rs.Undeploy) -> None:
        match effect:
            case rs.Deploy(url, plan):
                await self._deploy(url, plan)
            case rs.Undeploy(url):
                await self._parts.loader.tell(Unload(url))
            case _:
                assert_never(effect)

    async def _deploy(self, url: str, plan: rs.NodePlan | rs.RequesterPlan) -> None:
        match plan:
            case rs.NodePlan(domain, is_idp, is_again):
                config = StubConfig(self._config.runtime, domain, is_again=is_again)
                load = Load(
                    url, catalogue_idp(domain) if is_idp else catalogue_stub(domain), config
                )
            case rs.RequesterPlan():
                config = self._parts.requester(self._config, plan)
                load = Load(url, plan.descriptor, config, kind=StubKind.P2P_REQUESTER)
            case _:
                assert_never(plan)
        await self._parts.loader.tell(load)

    async def _release(self, effect: rs.Release) -> rs.Released:
        """Ask the bus whether an idle stub is free; once it has stopped, none matters."""
        is_free = self._parts.bus.release(effect.url, effect.domain)
        return rs.Released(effect.url, effect.number, is_free)

    async def _renew_paths(self, domain: str, session: str | None) -> None:
        self.spawn(self._parts.paths_lost, domain, session)
        for entry in self._core.links():
            if domain == self._config.domain and entry.role is Role.REQUESTER:
                self.spawn(self._talk.renew_path, entry.stub)
        for unknown in self._watches.node_forgot(domain):
            await self._feed(unknown)

    def _trace_done(self, effect: rs.Route | rs.NoRoute) -> None:
        result = effect.url if isinstance(effect, rs.Route) else None
        done = Fact(k=Kind.RESOLVE, op=Op.DONE, to=effect.to, result=result, why=effect.why)
        self._parts.hops.fact(attrs.evolve(done, kind=effect.intent.value))
