"""The registry's search for the route to an address without a listener here (RES-01..15).

Opportunistic (C-20): the answer is the live P2P link if the entity is bound to one, else the
message node's stub, at once; meanwhile records are read and links set up. So a message waits
only for a stub of its domain that is being deployed, and never for P2P. A runtime may want its
messages to wait for a link, for a time, or that they go by a link or not at all (`link_policy`).

The search for a link (RES-03, RES-06, RES-13) goes by the record of the entity: it names the
runtime, and says whether a link can be set up. The record is read, or known already, or reported
by a registry. The search then waits for the link, or ends because there will be none.
"""

from typing import assert_never, final

from fsm.effects import HintRefused
from fsm.intent import Intent, LinkHint
from fsm.machines.p2p_connection import State
from fsm.machines.resolve_job import Trigger
from fsm.p2p.link_policy import P2pUse, P2pWait
from fsm.registry.resolve.address_owners import AddressOwners, RecordCache
from fsm.registry.resolve.config import ResolveConfig, Topology
from fsm.registry.resolve.jobs import LinkQueue, ResolveJobs, WaitingAsk, link_key
from fsm.registry.resolve.link_entry import LinkEntry, plan_of, plan_of_hint, refusal_of
from fsm.registry.resolve.link_table import LinkTable
from fsm.registry.resolve.node_stubs import NodeStubs
from fsm.registry.resolve.resolve_io import (
    Asked,
    Closing,
    Deployed,
    DeployFailed,
    Effect,
    HandlerReady,
    Input,
    LinkForged,
    LinkOver,
    LinkRegistered,
    Listed,
    LocalAdded,
    LocalRemoved,
    NoRoute,
    NotAsked,
    OwnerAsked,
    OwnerRead,
    PathSet,
    ReadRecord,
    RecordRead,
    RecordReported,
    Released,
    RequesterPlan,
    Route,
    StatusSeen,
    Stopped,
    StubGone,
    TimePassed,
    WitnessCalled,
)
from specs.addresses.address import (
    domain_of,
    idp_proxy,
    is_backend,
    is_below,
    is_idp_proxy,
    runtime_of,
)
from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from specs.limits.p2p import LINK_HINTS
from specs.limits.protocol import NEGATIVE_CACHE
from specs.reply_code import Code

__all__ = ["ResolveCore"]


@final
class _LinkSearch:
    """The searches for links of one registry, over its tables.

    Args:
        config: The configuration; its `link_policy` says which links are wanted.
        jobs: The open searches.
        records: The known records of remote entities.
        links: The links that are live or being set up.
    """

    def __init__(
        self, config: ResolveConfig, jobs: ResolveJobs, records: RecordCache, links: LinkTable
    ) -> None:
        self._config = config
        self._jobs = jobs
        self._records = records
        self._links = links
        self._hinted: dict[str, RequesterPlan] = {}
        self._is_closing = False

    def close(self) -> None:
        """Begin no more searches."""
        self._is_closing = True

    def is_open(self, entity: str) -> bool:
        """Return whether a link to an entity is looked for, or being set up."""
        return self._jobs.is_open(link_key(entity))

    def use(self, entity: str) -> P2pUse:
        """Return the use for links to a peer, by its address and by its known runtime."""
        entry = self._links.entities.entry_of(entity)
        return self._config.link_policy.of(*([entry.remote] if entry is not None else []), entity)

    def seek(self, asked: Asked, now: float) -> list[Effect]:
        """Begin to look for a P2P link, if the request may have one and the runtime wants one.

        Args:
            asked: The question, with the hint of the sender.
            now: Seconds on the host's clock.
        """
        entity, intent = runtime_of(asked.to), asked.intent
        key = link_key(entity)
        use = self.use(entity)
        is_due = intent is Intent.REACH and use is not P2pUse.WHEN_ASKED
        is_wanted = (is_due or intent is Intent.LINK) and use is not P2pUse.NEVER
        if not is_wanted or self._is_closing or self._jobs.is_open(key):
            return []
        begun = self._jobs.begin(key)
        record = self._records.find(entity, now)
        if record is not None:
            return [*begun, *self._set_up(entity, record, now)]
        if self._records.is_known(entity, now):
            return [*begun, *self._joined(entity, Trigger.ATTACH)]
        hinted = [] if asked.hint is None else self._follow(entity, asked.hint, now)
        return [*begun, *self._jobs.query(key, now), ReadRecord(entity), *hinted]

    def _follow(self, entity: str, hint: LinkHint, now: float) -> list[Effect]:
        """Begin to set up a link by a hint, while the record of the entity is read (RES-16).

        A hint sends no message anywhere: the record alone says whether the entity is at the other
        end.
        """
        plan = plan_of_hint(entity, hint)
        if isinstance(plan, HintRefused):
            return [plan]
        is_unwanted = self._config.link_policy.of(plan.remote, entity) is P2pUse.NEVER
        is_own = plan.remote == self._config.runtime
        if is_unwanted or is_own or len(self._hinted) >= LINK_HINTS:
            return []
        begun = self._links.plan(plan, now)
        if begun:
            self._hinted[entity] = plan
        return begun

    def _verified(self, entity: str, record: Record | None, now: float) -> list[Effect]:
        """Compare the hint that was followed for an entity with its record."""
        plan = self._hinted.pop(entity, None)
        if plan is None or (record is not None and plan_of(record) == plan):
            return []
        why = "no live record confirms it" if record is None else "its record says otherwise"
        refused = HintRefused(entity, f"a link to {plan.remote} was hinted at, but {why}")
        return [refused, *self._links.disproved(plan, now)]

    def reported(self, entity: str, record: Record | None, now: float) -> list[Effect]:
        """Take the record of an entity."""
        self._records.put(entity, record, now)
        kept = self._records.find(entity, now)
        verified = self._verified(entity, kept, now)
        return [*verified, *self._informed(entity, kept, now)]

    def _informed(self, entity: str, kept: Record | None, now: float) -> list[Effect]:
        if self._links.claims.settles(entity):
            return [] if kept is None else self._links.entities.bind(entity, kept.runtime)
        if kept is None:
            return self._joined(entity, Trigger.ATTACH)
        return self._set_up(entity, kept, now)

    def changed(self, entity: str, status: RecordStatus | None, now: float) -> list[Effect]:
        """Take the new status of a record (REG-13): no link is sought to an entity that is away.

        A link that is live stays the route: it needs no registry.
        """
        if status is None or status is RecordStatus.LIVE:
            self._records.forget(entity)
            return [] if status is None else self._links.entities.unbind(entity)
        self._records.away(entity, now)
        return self._joined(entity, Trigger.ATTACH)

    def late(self, now: float) -> list[Effect]:
        """Go on without the records that have not come in time."""
        return [each for one in self._jobs.late(now) for each in self.reported(one, None, now)]

    def _set_up(self, entity: str, record: Record, now: float) -> list[Effect]:
        plan, begun, bound = plan_of(record), list[Effect](), list[Effect]()
        is_unwanted = self._config.link_policy.of(record.runtime, entity) is P2pUse.NEVER
        if record.runtime != self._config.runtime and not is_unwanted:
            begun = self._links.plan(plan, now) if plan is not None else []
            bound = [*self._links.entities.bind(entity, record.runtime), *refusal_of(record)]
        joined = self._joined(entity, Trigger.DEPLOY if begun else Trigger.ATTACH)
        return [*joined, *begun, *bound]

    def _joined(self, entity: str, trigger: Trigger) -> list[Effect]:
        """Let the search for a link wait for what there is now; or there is none."""
        key, entry = link_key(entity), self._links.entities.entry_of(entity)
        if entry is None:
            return [*self._jobs.decide(key, Trigger.NONE, "no link to where it lives")]
        steps = self._jobs.decide(key, trigger)
        found = self._jobs.settle([key], Trigger.FOUND) if entry.is_live else []
        return [*steps, *found]


@final
class ResolveCore:
    """The registry's tables of stubs, links, remote records and own addresses.

    Attributes:
        handler: The own handler stub, once its path is set.
    """

    def __init__(self, config: ResolveConfig) -> None:
        self.handler: str | None = None
        self._config = config
        self._jobs = ResolveJobs()
        self._stubs = NodeStubs(config, self._jobs)
        self._records = RecordCache()
        self._links = LinkTable(config.runtime, self._jobs, self._records)
        self._search = _LinkSearch(config, self._jobs, self._records, self._links)
        self._waiters = LinkQueue()
        self._owners = AddressOwners(self._records)
        self._local: set[str] = set()

    def links(self) -> tuple[LinkEntry, ...]:
        """Return the P2P entries (P2P-18); not to be changed."""
        return self._links.entries()

    def row(self, whom: str, stub: str) -> LinkEntry | None:
        """Return the link that a stub gets when it asks for the row of a runtime (P2P-18).

        Args:
            whom: Address of the runtime, or of an entity at it.
            stub: Address of the stub that asks.
        """
        return self._links.row(whom, stub)

    def node_stubs(self) -> tuple[str, ...]:
        """Return the node stubs that are deployed."""
        return self._stubs.urls()

    def node_of(self, to: str) -> str:
        """Return the domain whose node leads to an address (C-49)."""
        if self._config.topology is Topology.TRIANGLE and not to.startswith("global:"):
            return domain_of(to)
        return self._config.domain

    def node_stub(self, to: str) -> str | None:
        """Return the stub of that node, if it is deployed."""
        return self._stubs.url(self.node_of(to))

    def is_local(self, address: str) -> bool:
        """Return whether an address is, or was, a component's of this runtime."""
        return runtime_of(address) in self._local or is_below(address, self._config.runtime)

    def live_link(self, entity: str) -> str | None:
        """Return the live link that leads to an entity, or to a runtime; None: none does."""
        return self._links.live_link(entity)

    def speaks_for(self, link: str, part: str, who: str, now: float) -> bool | None:
        """Return whether a component at a link's other end may speak for an entity (P2P-30).

        It may for the parts of its own runtime. A component of another runtime may speak for itself
        only, and only if its record names the link's runtime, as a node would check: a message
        received over a link proves nothing.

        Args:
            link: Address of the link.
            part: Address of the component that speaks.
            who: Address of the entity.
            now: Seconds on the host's clock.

        Returns:
            None: the link is not live yet, or the record is still to be read.
        """
        entry = self._links.entry_by(link)
        if entry is None or not (part == who or is_below(part, entry.remote)):
            return False
        if not entry.is_live:
            return None
        if is_below(who, entry.remote):
            return True
        record = self._records.find(who, now)
        if record is None and not self._records.is_known(who, now):
            return None
        return record is not None and record.runtime == entry.remote

    @property
    def searches(self) -> int:
        """The number of open searches for a route."""
        return len(self._jobs)

    def deadline(self) -> float:
        """Return when `TimePassed` is due."""
        searches = min(self._jobs.deadline(), self._waiters.deadline())
        stubs = min(self._links.deadline(), self._stubs.deadline())
        return min(stubs, searches, self._owners.deadline())

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        if isinstance(happened, Asked):
            return self._asked(happened, now)
        return [*self._feed(happened, now), *self._waited(now)]

    def _feed(self, happened: NotAsked, now: float) -> list[Effect]:
        match happened:
            case StatusSeen():
                return self._status(happened, now)
            case RecordRead() | RecordReported() | WitnessCalled():
                return self._read(happened, now)
            case Listed() | LinkOver() | LinkForged() | OwnerAsked() | OwnerRead():
                return self._learnt(happened, now)
            case HandlerReady() | LocalAdded() | LocalRemoved() | Closing() | Stopped():
                return self._own(happened)
            case TimePassed():
                late = [*self._search.late(now), *self._links.tick(now), *self._owners.tick(now)]
                return [*late, *self._stubs.tick(now)]
            case (
                Deployed() | DeployFailed() | StubGone() | Released() | PathSet() | LinkRegistered()
            ):
                return self._stub(happened, now)
            case _:
                assert_never(happened)

    def _owner_read(self, read: OwnerRead, now: float) -> list[Effect]:
        # The route back is known before what waited for that goes on.
        bound: list[Effect] = []
        if read.record is not None and read.record.status == RecordStatus.LIVE:
            bound = self._links.entities.bind(read.entity, read.record.runtime)
        return [*bound, *self._owners.read(read, now)]

    def _learnt(
        self, happened: Listed | LinkOver | LinkForged | OwnerAsked | OwnerRead, now: float
    ) -> list[Effect]:
        match happened:
            case OwnerAsked(entity, remote):
                return self._owners.asked(entity, remote, now)
            case OwnerRead():
                return self._owner_read(happened, now)
            case LinkOver(stub, link):
                return self._links.over(stub, link, now)
            case LinkForged(link):
                return self._links.forged(link, now)
            case Listed():
                return self._links.reported(happened, now)
            case _:
                assert_never(happened)

    def _read(
        self, happened: RecordRead | RecordReported | WitnessCalled, now: float
    ) -> list[Effect]:
        match happened:
            case RecordRead(entity, record):
                noticed = self._owners.noticed(entity, record)
                return [*noticed, *self._search.reported(entity, record, now)]
            case RecordReported(entity, status):
                doubted = self._owners.changed(entity)
                return [*doubted, *self._search.changed(entity, status, now)]
            case WitnessCalled(link, entity):
                return self._links.witness(link, entity, now)
            case _:
                assert_never(happened)

    def _own(
        self, happened: HandlerReady | LocalAdded | LocalRemoved | Closing | Stopped
    ) -> list[Effect]:
        match happened:
            case HandlerReady(url):
                self.handler = url
                return []
            case LocalAdded(address):
                self._local.add(address)
                return []
            case Closing():
                self._search.close()
                return [*self._links.close(), *self._jobs.end_links("the runtime goes")]
            case Stopped():
                self._search.close()
                return [*self._links.close(), *self._jobs.end("the registry goes")]
            case LocalRemoved():
                # It stays ours: late messages to it are answered here.
                return []
            case _:
                assert_never(happened)

    def _stub(
        self,
        happened: Deployed | DeployFailed | StubGone | Released | PathSet | LinkRegistered,
        now: float,
    ) -> list[Effect]:
        match happened:
            case Deployed(url):
                return [] if self._links.has_requester(url) else self._stubs.deployed(url, now)
            case DeployFailed(url, why, is_absent):
                code = Code.NOT_FOUND if is_absent else Code.UNAVAILABLE
                return [*self._links.gone(url, now), *self._stubs.failed(url, why, now, code)]
            case StubGone(url):
                return [*self._links.gone(url, now), *self._stubs.crashed(url, now)]
            case Released():
                return self._stubs.released(happened, now)
            case PathSet(url, refusal):
                return self._links.path_set(url, refusal, now)
            case LinkRegistered(link, refusal):
                return self._links.registered(link, refusal, now)
            case _:
                assert_never(happened)

    def _asked(self, asked: Asked, now: float) -> list[Effect]:
        to, intent = asked.to, asked.intent
        if self.is_local(to):
            return [NoRoute(to, intent, Code.NOT_FOUND, "target not found")]
        if not domain_of(to):
            why = f"{to[:80]!r} is no address such as hyperty://a.example/1"
            return [NoRoute(to, intent, Code.MALFORMED, why)]
        if is_backend(to) or intent is Intent.NODE:
            return self._by_node(to, intent, now)
        return self._by_link(asked, now)

    def _by_link(self, asked: Asked, now: float) -> list[Effect]:
        """Answer with the live link; else with the node, and look for a link if that is wanted."""
        to, intent, entity = asked.to, asked.intent, runtime_of(asked.to)
        link = self.live_link(entity)
        if link is not None:
            why = "live link"
            found = self._jobs.answer(link_key(entity), why)
            return [*found, Route(to, intent, link, now + NEGATIVE_CACHE, why)]
        if intent is Intent.DIRECT:
            return [NoRoute(to, intent, Code.UNAVAILABLE, "no live link leads there")]
        sought = self._search.seek(asked, now)
        if self._may_wait(WaitingAsk(to, intent, entity), now):
            return sought
        return [*self._without_link(to, intent, now), *sought]

    def _may_wait(self, ask: WaitingAsk, now: float) -> bool:
        """Let a request wait for a link that is being set up, if that is wanted (RES-09)."""
        if ask.intent is Intent.KNOWN or not self._search.is_open(ask.entity):
            return False
        entry = self._links.entities.entry_of(ask.entity)
        is_lost = entry is not None and entry.status is State.DISCONNECTED
        is_required = self._search.use(ask.entity) is P2pUse.REQUIRED
        is_awaited = self._config.link_policy.wait is P2pWait.AWAIT and not is_lost
        return (is_required or is_awaited) and self._waiters.wait(ask, now)

    def _waited(self, now: float) -> list[Effect]:
        """Answer the questions that need not wait for their link any more."""
        over = self._waiters.done(lambda entity: not self._search.is_open(entity), now)
        return [effect for ask in over for effect in self._after_waiting(ask, now)]

    def _after_waiting(self, ask: WaitingAsk, now: float) -> list[Effect]:
        link = self._links.live_link(ask.entity)
        if link is None:
            return self._without_link(ask.to, ask.intent, now)
        return [Route(ask.to, ask.intent, link, now + NEGATIVE_CACHE, "live link")]

    def _without_link(self, to: str, intent: Intent, now: float) -> list[Effect]:
        if self._search.use(runtime_of(to)) is P2pUse.REQUIRED:
            return [NoRoute(to, intent, Code.UNAVAILABLE, "no direct link, and none other may be")]
        return self._by_node(to, intent, now)

    def _by_node(self, to: str, intent: Intent, now: float) -> list[Effect]:
        return self._stubs.ask(self._server_of(to), (to, intent), now, now + NEGATIVE_CACHE)

    def _server_of(self, to: str) -> str:
        """Return the domain whose node leads to an address, or the identity provider it is of."""
        is_described = self._config.has_catalogues and domain_of(to) != self._config.domain
        return idp_proxy(domain_of(to)) if is_described and is_idp_proxy(to) else self.node_of(to)

    def _status(self, seen: StatusSeen, now: float) -> list[Effect]:
        if seen.resource is None:
            return self._stubs.status(seen, now)
        effects = self._links.status(seen, now)
        if seen.value == State.FAILED:
            self._records.forget_runtime(seen.resource)
        return effects
