"""How the registry finds the way to an address that has no listener here (RES-01..15).

Opportunistic (C-20): the answer is the live P2P link if the entity is bound to one,
else the message node's stub, at once; records are read and links set up beside that.
So a message waits only for a stub of its domain that is being deployed, and never
for P2P.
"""

from enum import Enum, unique
from typing import assert_never, final

import attrs

from fsm.cores.intent import Intent, P2pWish
from fsm.cores.link_entry import LinkEntry
from fsm.cores.link_table import LinkTable
from fsm.cores.node_stubs import NodeStubTable
from fsm.cores.record_cache import RecordCache
from fsm.cores.resolve_effects import Effect, NoRoute, ReadRecord, RequesterPlan, Route
from fsm.cores.resolve_inputs import (
    Asked,
    Closing,
    Deployed,
    DeployFailed,
    HandlerReady,
    HeardFrom,
    Input,
    LinkOver,
    LinkRegistered,
    LocalAdded,
    LocalRemoved,
    PathSet,
    RecordRead,
    RecordTold,
    StatusSeen,
    Stopped,
    StubGone,
    TimePassed,
)
from fsm.cores.resolve_jobs import ResolveJobs, link_key
from fsm.machines.p2p_connection import State
from fsm.machines.resolve_job import Trigger
from specs.address import domain_of, is_backend, is_below, runtime_of
from specs.body import Record
from specs.limits import NEGATIVE_CACHE
from specs.reply_code import Code
from specs.word import RecordStatus

__all__ = ["ResolveConfig", "ResolveCore", "Topology"]


@unique
class Topology(Enum):
    """Whose node a message for another domain goes to (C-49)."""

    TRIANGLE = "triangle"
    """That domain's."""

    TRAPEZOID = "trapezoid"
    """The own domain's, which sends it on."""


@final
@attrs.frozen(slots=True)
class ResolveConfig:
    """What a runtime's registry is told of its runtime.

    Attributes:
        runtime: Its address.
        domain: Its own domain.
        wish: Whether it wants P2P links.
    """

    runtime: str
    domain: str
    wish: P2pWish = P2pWish.NEVER
    topology: Topology = Topology.TRIANGLE


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
        self._stubs = NodeStubTable(config.runtime, self._jobs)
        self._links = LinkTable(config.runtime, self._jobs)
        self._records = RecordCache()
        self._local: set[str] = set()
        self._is_closing = False

    def links(self) -> tuple[LinkEntry, ...]:
        """Return the P2P entries (P2P-18); not to be changed."""
        return self._links.entries()

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
        """Say whether an address is, or was, a component's of this runtime."""
        return runtime_of(address) in self._local or is_below(address, self._config.runtime)

    @property
    def searches(self) -> int:
        """How many searches for a way are under way."""
        return len(self._jobs)

    def deadline(self) -> float:
        """Return when `TimePassed` is due."""
        return min(self._links.deadline(), self._jobs.deadline())

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take what happened and return what is to be done, in order."""
        match happened:
            case Asked(to, intent):
                return self._asked(to, intent, now)
            case StatusSeen():
                return self._status(happened, now)
            case HeardFrom() | RecordRead() | RecordTold() | LinkOver():
                return self._learnt(happened, now)
            case HandlerReady() | LocalAdded() | LocalRemoved() | Closing() | Stopped():
                return self._own(happened)
            case TimePassed():
                return self._passed(now)
            case Deployed() | DeployFailed() | StubGone() | PathSet() | LinkRegistered():
                return self._stub(happened, now)
            case _:
                assert_never(happened)

    def _learnt(
        self, happened: HeardFrom | RecordRead | RecordTold | LinkOver, now: float
    ) -> list[Effect]:
        match happened:
            case LinkOver(stub, link):
                return self._links.over(stub, link, now)
            case HeardFrom(address, link):
                return self._links.bind_heard(runtime_of(address), link)
            case RecordRead(entity, record):
                return self._told(entity, record, now)
            case RecordTold(entity, status):
                return self._changed(entity, status, now)
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
                self._is_closing = True
                return [*self._links.close(), *self._jobs.end_links("the runtime goes")]
            case Stopped():
                self._is_closing = True
                return [*self._links.close(), *self._jobs.end("the registry goes")]
            case LocalRemoved():
                # It stays ours: whoever still writes to it is answered here.
                return []
            case _:
                assert_never(happened)

    def _stub(
        self, happened: Deployed | DeployFailed | StubGone | PathSet | LinkRegistered, now: float
    ) -> list[Effect]:
        match happened:
            case Deployed(url):
                return [] if self._links.has_requester(url) else self._stubs.deployed(url)
            case DeployFailed(url, why):
                return [*self._links.gone(url, now), *self._stubs.failed(url, why, now)]
            case StubGone(url):
                return [*self._links.gone(url, now), *self._stubs.failed(url, "it crashed", now)]
            case PathSet(url, refusal):
                return self._links.path_set(url, refusal, now)
            case LinkRegistered(link, refusal):
                return self._links.registered(link, refusal, now)
            case _:
                assert_never(happened)

    def _asked(self, to: str, intent: Intent, now: float) -> list[Effect]:
        entity = runtime_of(to)
        if self.is_local(to):
            return [NoRoute(to, intent, Code.NOT_FOUND, "target not found")]
        if is_backend(to) or intent is Intent.NODE:
            return self._by_node(to, intent, now)
        link = self._links.live_link(entity)
        if link is not None:
            why = "live link"
            found = self._jobs.answer(link_key(entity), why)
            return [*found, Route(to, intent, link, now + NEGATIVE_CACHE, why)]
        return [*self._by_node(to, intent, now), *self._seek(entity, intent, now)]

    def _by_node(self, to: str, intent: Intent, now: float) -> list[Effect]:
        return self._stubs.ask(self.node_of(to), (to, intent), now, now + NEGATIVE_CACHE)

    def _seek(self, entity: str, intent: Intent, now: float) -> list[Effect]:
        """Look for a P2P link beside, if a request may and the runtime wants one."""
        key = link_key(entity)
        is_wanted = intent is Intent.REACH and self._config.wish is not P2pWish.NEVER
        if not is_wanted or self._is_closing or self._jobs.is_open(key):
            return []
        begun = self._jobs.begin(key)
        record = self._records.find(entity, now)
        if record is not None:
            return [*begun, *self._set_up(entity, record, now)]
        if self._records.is_known(entity, now):
            return [*begun, *self._joined(entity, Trigger.ATTACH)]
        return [*begun, *self._jobs.query(key, now), ReadRecord(entity)]

    def _told(self, entity: str, record: Record | None, now: float) -> list[Effect]:
        self._records.put(entity, record, now)
        kept = self._records.find(entity, now)
        if kept is None:
            return self._joined(entity, Trigger.ATTACH)
        return self._set_up(entity, kept, now)

    def _changed(self, entity: str, status: RecordStatus | None, now: float) -> list[Effect]:
        """Take a registry's word (REG-13): what is away is not linked to, what comes is sought.

        A link that is live stays the way: it needs no registry.
        """
        if status is None or status is RecordStatus.LIVE:
            self._records.forget(entity)
            return [] if status is None else self._links.unbind(entity)
        self._records.away(entity, now)
        return self._joined(entity, Trigger.ATTACH)

    def _set_up(self, entity: str, record: Record, now: float) -> list[Effect]:
        plan, begun, bound = _plan(record), list[Effect](), list[Effect]()
        if record.runtime != self._config.runtime:
            begun = self._links.plan(plan, now) if plan is not None else []
            bound = self._links.bind(entity, record.runtime)
        joined = self._joined(entity, Trigger.DEPLOY if begun else Trigger.ATTACH)
        return [*joined, *begun, *bound]

    def _joined(self, entity: str, trigger: Trigger) -> list[Effect]:
        """Let the search for a link wait for what there is now; or there is none."""
        key, entry = link_key(entity), self._links.entry_of(entity)
        if entry is None:
            return [*self._jobs.decide(key, Trigger.NONE, "no link to where it lives")]
        steps = self._jobs.decide(key, trigger)
        found = self._jobs.settle([key], Trigger.FOUND) if entry.is_live else []
        return [*steps, *found]

    def _passed(self, now: float) -> list[Effect]:
        late = [each for one in self._jobs.late(now) for each in self._told(one, None, now)]
        return [*late, *self._links.tick(now)]

    def _status(self, seen: StatusSeen, now: float) -> list[Effect]:
        if seen.resource is None:
            return self._stubs.status(seen, now)
        effects = self._links.status(seen, now)
        if seen.value == State.FAILED:
            self._records.forget_runtime(seen.resource)
        return effects


def _plan(record: Record) -> RequesterPlan | None:
    """Return how to link to a record's runtime; None: it does not take links (RES-08)."""
    if not record.p2p_handler or not record.p2p_requester:
        return None
    if not is_below(record.p2p_handler, record.runtime):
        return None
    return RequesterPlan(record.runtime, record.p2p_handler, record.p2p_requester)
