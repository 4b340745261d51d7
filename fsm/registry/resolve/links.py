"""The registry's table of P2P links, one entry per remote runtime (REG-04, RES-05..12, I-R8).

An entry is written before any wait, so that only one set-up is under way for each remote runtime
(RES-07, I-P7). Only the stubs' status events change its status (C-19). On the handler side the
listeners of the link are set before `live` (I-P17). A lost link keeps its entry and its entities,
and the requester must reconnect; when the tries are over, or on `failed`, everything that belongs
to the entry is removed.

No link is given up for one that may not come up (P2P-27). An entry keeps two links for a while, one
of them as `beside`: our own request that yields to the link that the smaller runtime requests,
until that link is live or has failed; or the peer's invitation to a new link while ours is live,
until the new link is live or has failed. The handler does not accept the winner before our own
request has reported that it yields: so at most one of the two links is live.

An entity is bound by its record, or by the other registry's list if a record confirms it. A message
received over a link binds no entity: otherwise a peer could draw another's messages to itself by
using its address once. Only a record moves an entity that is known to live elsewhere, or binds an
entity of another domain than its runtime's.

A list is a hint (T18): a peer could draw messages meant for others to itself by listing their
addresses before this runtime has read the records. So an entity whose known record confirms the
list is bound at once. For the others the records are read, a few at a time. Until then, and if a
record contradicts the list, messages go by the node as if the entity had not been listed.
"""

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

import attrs

from fsm.effects import LinkHint, RowChanged
from fsm.engine import Entity, Step
from fsm.limits.rates import TokenBucket
from fsm.machines import p2p_entry, resolve_job
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import NO_LINKS, LinkPolicy
from fsm.p2p.link_end import Role, own_is_smaller
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.searches import RequesterPlan, ResolveJobs, RoutesPort, link_key
from specs.addresses import address
from specs.bodies.registry import Record
from specs.errors import BadMessageError, BadUrlError
from specs.limits import protocol
from specs.limits.p2p import CLAIM_BURST, CLAIM_RATE, MAX_LINK_ENTITIES
from specs.trace import Op

# The configuration of the registry's route search (C-49, RES-10, PFY-03).


class Topology(Enum):
    """The node to which messages for another domain are sent (C-49)."""

    TRIANGLE = "triangle"
    """The node of the other domain."""

    TRAPEZOID = "trapezoid"
    """The node of the own domain, which forwards them."""


@attrs.frozen(slots=True)
class ResolveConfig:
    """The configuration of a runtime's registry.

    Attributes:
        runtime: Address of the runtime.
        domain: Domain of the runtime.
        link_policy: Whether the runtime wants P2P links, and to which peers.
        topology: The node to which messages for another domain are sent.
        stub_idle: Seconds without use after which a stub of another domain is released (PFY-03);
            infinite: never.
        has_catalogues: Whether stubs of identity providers can be looked up (PFY-12).
    """

    runtime: str
    domain: str
    link_policy: LinkPolicy = NO_LINKS
    topology: Topology = Topology.TRIANGLE
    stub_idle: float = math.inf
    has_catalogues: bool = False


_TABLE: Final = "p2p"
_WRITER: Final = "registry"


class Deployment(Enum):
    """The state of a requester's stub."""

    PLANNED = "planned"
    ORDERED = "ordered"
    AT_WORK = "at work"


@attrs.define(slots=True)
class LinkEntry:
    """The link to one remote runtime.

    Attributes:
        stub: Address of the own P2P stub: PQ for a requester, PH for a handler.
        link: The link's address: PQ, or PC once the handler has named it.
        life: The entity of the entry; only this class steps it.
        plan: The deployment of a requester; None on the handler side.
        url: Address that routes to the link; None until it was live once.
        has_listeners: Whether the listeners of a handler's link are set (I-P17).
        awaits_listeners: Whether its link is live except for the missing listeners.
        entities: The entities known to live there, in the order in which they became known (I-R8).
        beside: The other link to the same runtime: our own request that yields to this link,
            or an invitation to a link that replaces this one once it is live (P2P-27).
        deployment: State of a requester's stub: at work once it has reported a status.
        yields_due: Number of orders to yield that its stub has not confirmed yet.
        until: Time of its next timer.
        fails_at: Deadline for its link to become live for the first time.
    """

    remote: str
    role: Role
    stub: str
    link: str
    life: Entity
    plan: RequesterPlan | None = None
    status: State = State.CREATED
    url: str | None = None
    has_listeners: bool = False
    awaits_listeners: bool = False
    entities: dict[str, None] = attrs.field(factory=dict)
    beside: "LinkEntry | None" = None
    deployment: Deployment = Deployment.PLANNED
    yields_due: int = 0
    tries: int = 0
    until: float = math.inf
    fails_at: float = math.inf

    @property
    def is_live(self) -> bool:
        """True if messages may go by the link."""
        return self.status is State.LIVE and self.url is not None

    @property
    def ends(self) -> "tuple[LinkEntry, ...]":
        """The entry itself, and the one beside it, if any."""
        return (self,) if self.beside is None else (self, self.beside)

    def row_for(self, stub: str) -> "LinkEntry":
        """Return the end of the link for a stub that asks for the row: a handler's newest end."""
        is_beside = self.beside is not None and self.beside.stub == stub
        return self.beside if self.beside is not None and is_beside else self

    @property
    def yielding(self) -> "LinkEntry | None":
        """Our own request that waits until this link is live or has failed, or None."""
        is_own = self.beside is not None and self.beside.role is Role.REQUESTER
        return self.beside if is_own else None

    def is_held(self, stub: str) -> bool:
        """Return whether a handler must wait for the row, since our own request may become live."""
        own = self.yielding
        return own is not None and own.yields_due > 0 and stub == self.stub

    @property
    def is_pending(self) -> bool:
        """True if our own request is being set up; two such requests are a simultaneous open."""
        setting_up = self.status in {State.CREATED, State.IN_PROGRESS}
        return self.role is Role.REQUESTER and setting_up

    def begin(self, port: RoutesPort, now: float) -> None:
        """Write the entry; called before any wait."""
        was_asked = self.role is Role.HANDLER
        port.step(
            self.life.step(p2p_entry.Trigger.INVITED if was_asked else p2p_entry.Trigger.PLANNED)
        )
        self.fails_at = now + self.life.patience
        self.trace(port, Op.ADD)

    def contest(self, own: str, link: str) -> Step:
        """Take the peer's invitation to `link`; the new state says which link yields.

        The address of this runtime, `own`, decides ties.
        """
        facts = {
            p2p_entry.Condition.OWN_REQUEST: self.is_pending,
            p2p_entry.Condition.OWN_SMALLER: own_is_smaller(own, self.remote),
            p2p_entry.Condition.LINK_LIVE: self.is_live,
        }
        conditions = {fact for fact, is_true in facts.items() if is_true}
        return self.life.step(p2p_entry.Trigger.INVITED, f"to {link}", conditions)

    def go_live(self, port: RoutesPort) -> None:
        """Route messages to the link, for the first time or again."""
        old_status = self.status
        self._become_live()
        is_first = self.life.state is not p2p_entry.State.BOUND
        if is_first or old_status is not State.LIVE:
            trigger = p2p_entry.Trigger.LIVE if is_first else p2p_entry.Trigger.RESTORED
            port.step(self.life.step(trigger))
            port.link_up(self.remote, self.link)

    def yield_to(self, port: RoutesPort, winner: "LinkEntry", now: float) -> None:
        """Give the entry to the winner of a simultaneous open, and wait beside it.

        A requester that is not deployed yet will not be deployed. One that is being deployed gets
        the order to yield when it is at work.
        """
        winner.life, winner.entities = self.life, self.entities
        winner.fails_at = now + self.life.patience
        if self.deployment is Deployment.PLANNED:
            return
        winner.beside = self
        self.yields_due += 1
        if self.deployment is Deployment.AT_WORK:
            port.suspend(self.stub, self.remote)

    def report_while_yielding(self, port: RoutesPort, value: State) -> None:
        """Take a status of its stub while the link yields, or is about to."""
        is_first, self.deployment = self.deployment is not Deployment.AT_WORK, Deployment.AT_WORK
        self.yields_due -= value is State.YIELDING
        if is_first:
            port.suspend(self.stub, self.remote)

    def resume(self, port: RoutesPort, now: float) -> None:
        """Become the entry's link again: the link that it yielded to has failed."""
        port.step(self.life.step(p2p_entry.Trigger.RESUMED))
        self.trace(port, Op.UPD)
        self.fails_at = now + self.life.patience
        if self.deployment is Deployment.AT_WORK:
            port.resume(self.stub, self.remote)
        else:
            # The order to yield has not come yet.
            self.yields_due = 0

    def replace(self, port: RoutesPort, old: "LinkEntry") -> None:
        """Take the place of a live link, since this one is live now."""
        self.life, self.entities = old.life, old.entities
        self._become_live()
        port.step(self.life.step(p2p_entry.Trigger.REPLACED, f"by {self.link}"))
        port.link_down(self.remote)
        port.link_up(self.remote, self.link)

    def _become_live(self) -> None:
        self.status, self.url = State.LIVE, self.link
        self.awaits_listeners = False
        self.tries = 0
        self.until = self.fails_at = math.inf

    def lose(self, port: RoutesPort) -> None:
        """Keep the entry of a link that is lost, even of one that was never live."""
        old_status, self.status = self.status, State.DISCONNECTED
        self.awaits_listeners = False
        if self.life.state is p2p_entry.State.BOUND and old_status is State.LIVE:
            port.step(self.life.step(p2p_entry.Trigger.LOST))
            port.link_down(self.remote)

    def sets_up(self, status: State) -> None:
        """Wait for the stub, which has a deadline, while a link is set up or negotiated again."""
        self.status, self.until = status, math.inf
        self.deployment = Deployment.AT_WORK

    def end(self, port: RoutesPort) -> None:
        """Remove the entry."""
        port.step(self.life.step(p2p_entry.Trigger.ENDED))
        self.trace(port, Op.DEL)
        port.link_gone(self.remote)

    def trace(self, port: RoutesPort, op: Op) -> None:
        """Trace the present values of the row."""
        value = f"{self.status} {self.url} {' '.join(self.entities)}"
        port.row(RowChanged(op, _TABLE, self.remote, value, _WRITER))


def plan_of(record: Record) -> RequesterPlan | None:
    """Return the plan for a link to a record's runtime, or None if it takes no links (RES-08)."""
    if not record.p2p_handler or not record.p2p_requester:
        return None
    if address.is_other_stub(record.p2p_requester):
        return None
    if not address.is_below(record.p2p_handler, record.runtime):
        return None
    return RequesterPlan(record.runtime, record.p2p_handler, record.p2p_requester)


def plan_of_hint(entity: str, hint: LinkHint) -> RequesterPlan | str:
    """Return the plan for a link that a hint about an entity describes, or the hint's fault.

    A requester is code, so only the domain of the runtime may name it (RES-16).
    """
    try:
        handler, (stub, _) = address.parse(hint.handler), address.read_entry(hint.requester)
        remote = address.runtime_of(handler.text)
        record = Record(entity, remote, p2p_handler=handler.text, p2p_requester=hint.requester)
    except (BadUrlError, BadMessageError) as error:
        return f"a link was hinted at by an invalid address: {error}"
    plan = (
        plan_of(record)
        if handler.scheme == address.RUNTIME_SCHEME and handler.text != remote
        else None
    )
    if plan is None or stub.domain != address.domain_of(remote):
        why = f"{hint.handler} and {hint.requester} are no stubs of one runtime"
        return f"a link was hinted at, but {why}"
    return plan


class LinkEntities:
    """The entities of all links, and listed entities whose records are yet to be read.

    They exist as long as the entries do. Memory: the follower of a registry bounds its list; the
    rate of requests and their time limit bound the reads under way.

    Args:
        port: The host.
        entries: The links by remote runtime; the link table owns them, and calls `forget` for each
            that is removed.
        jobs: The searches that wait for a link to an entity, and that read records too.
        records: The known records.
    """

    def __init__(
        self,
        port: RoutesPort,
        entries: Mapping[str, LinkEntry],
        jobs: ResolveJobs,
        records: RecordCache,
    ) -> None:
        self._port: Final = port
        self._entries: Final = entries
        self._jobs: Final = jobs
        self._records: Final = records
        self._remote_of: Final[dict[str, str]] = {}
        self._unread: Final[dict[tuple[str, str], None]] = {}
        self._held: Final[dict[tuple[str, str], None]] = {}
        self._reading: Final[set[str]] = set()
        self._pace: Final = TokenBucket(CLAIM_RATE, CLAIM_BURST)
        self._next_at = -math.inf

    def remote_of(self, entity: str) -> str:
        """Return the runtime of an entity, or an unknown address itself: it may be a runtime."""
        return self._remote_of.get(entity, entity)

    def entry_of(self, entity: str) -> LinkEntry | None:
        """Return the entry of the runtime on which an entity is known to live."""
        return self._entries.get(self._remote_of.get(entity, ""))

    def entry_for(self, entity: str, remote: str) -> LinkEntry | None:
        """Return the entry of a runtime that has an entity, or has room for one more."""
        entry = self._entries.get(remote)
        has_room = entry is not None and len(entry.entities) < MAX_LINK_ENTITIES
        return entry if has_room or self._remote_of.get(entity) == remote else None

    # ---- by records

    def bind(self, entity: str, remote: str) -> None:
        """Note where an entity lives according to its record, even if it lived elsewhere.

        If no link leads to that runtime, or the link has its maximum of entities, the entity is
        bound to no link.
        """
        entry = self._entries.get(remote)
        if entry is not None and self._put(entity, entry):
            self._trace_change(entry)
        elif self._remote_of.get(entity, remote) != remote:
            self.unbind(entity)

    def unbind(self, entity: str) -> None:
        """Forget where an entity lives, since it may have come back elsewhere."""
        entry = self.entry_of(entity)
        if entry is not None:
            self._drop([entity], entry)

    # ---- by lists

    def add_listed(self, urls: Iterable[str], entry: LinkEntry, now: float) -> None:
        """Bind listed entities that known records confirm, and read the records of the others."""
        known: dict[str, None] = {}
        for entity in urls:
            if self._remote_of.get(entity, entry.remote) != entry.remote:
                self._held[entry.remote, entity] = None
            elif entity not in self._remote_of and self._may_list(entity, entry):
                record = self._records.find(entity, now)
                if record is not None and record.runtime == entry.remote:
                    known[entity] = None
                else:
                    self._unread[entry.remote, entity] = None
        if [entity for entity in known if self._put(entity, entry)]:
            self._trace_change(entry)
        self.tick(now)

    def _may_list(self, entity: str, entry: LinkEntry) -> bool:
        """Return whether a registry may list an entity: one of its domain that is no runtime."""
        is_runtime = entity == entry.remote or entity in self._entries
        return address.domain_of(entity) == address.domain_of(entry.remote) and not is_runtime

    def remove_listed(self, urls: tuple[str, ...], entry: LinkEntry) -> None:
        """Unbind entities that left a link's other end; entities bound elsewhere are ignored."""
        for entity in urls:
            self._unread.pop((entry.remote, entity), None)
            self._held.pop((entry.remote, entity), None)
        self._drop([each for each in urls if self._remote_of.get(each) == entry.remote], entry)

    def freed(self, urls: Iterable[str]) -> list[tuple[str, str]]:
        """Remove and return the list entries of entities that left the runtime they were bound to.

        Returns:
            Runtimes, each with an entity that it lists; they are not remembered any more.
        """
        left = frozenset(urls) if self._held else frozenset[str]()
        claims = [claim for claim in self._held if claim[1] in left]
        for claim in claims:
            del self._held[claim]
        return claims

    def look_up(self, entity: str, entry: LinkEntry, now: float) -> None:
        """Read the record of an entity for which a link's other end sends, unless it is known."""
        if not address.is_below(entity, entry.remote) and not self._records.is_known(entity, now):
            self._unread[entry.remote, entity] = None
        self.tick(now)

    def is_read_for_list(self, entity: str) -> bool:
        """Return whether a record that came was read for a list only, and no link is wanted."""
        if entity not in self._reading or self._jobs.is_open(link_key(entity)):
            return False
        self._reading.discard(entity)
        return True

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return self._next_at if self._unread else math.inf

    def tick(self, now: float) -> None:
        """Read the next records, as fast as the limits allow."""
        while self._unread and self._next_at <= now:
            _, entity = claim = next(iter(self._unread))
            del self._unread[claim]
            if entity not in self._reading and not self._jobs.is_open(link_key(entity)):
                self._next_at = now + self._pace.spend(now)
                self._reading.add(entity)
                self._port.read_record(entity)

    # ---- the end

    def forget(self, entry: LinkEntry) -> None:
        """Forget all entities of a link, whose entry is removed, and leave listed ones unread."""
        for entity in entry.entities:
            self._remote_of.pop(entity, None)
        for claims in (self._unread, self._held):
            for claim in [each for each in claims if each[0] == entry.remote]:
                del claims[claim]

    def clear(self) -> None:
        """Forget everything."""
        self._remote_of.clear()
        self._unread.clear()
        self._held.clear()

    def _put(self, entity: str, entry: LinkEntry) -> bool:
        """Bind an entity, within the limit; return whether it is new."""
        if self._remote_of.get(entity) == entry.remote or len(entry.entities) >= MAX_LINK_ENTITIES:
            return False
        former = self.entry_of(entity)
        if former is not None:
            former.entities.pop(entity, None)
        self._remote_of[entity] = entry.remote
        entry.entities[entity] = None
        return True

    def _drop(self, entities: list[str], entry: LinkEntry) -> None:
        if not entities:
            return
        for entity in entities:
            del self._remote_of[entity]
            entry.entities.pop(entity, None)
        entry.trace(self._port, Op.UPD)
        self._jobs.settle(map(link_key, entities), resolve_job.Trigger.NONE)
        if entry.is_live:
            self._port.forget_routes()

    def _trace_change(self, entry: LinkEntry) -> None:
        entry.trace(self._port, Op.UPD)
        if entry.is_live:
            self._port.forget_routes()


class LinkTable:
    """The link to each remote runtime.

    The searches in `jobs` that wait for a link end when its entry is live or gone.

    Attributes:
        entities: The entities at the other ends of links.
    """

    def __init__(
        self, runtime: str, port: RoutesPort, jobs: ResolveJobs, records: RecordCache
    ) -> None:
        self._runtime = runtime
        self._port = port
        self._jobs = jobs
        self._records = records
        self._entries: dict[str, LinkEntry] = {}
        self.entities = LinkEntities(port, self._entries, jobs, records)
        self._cooling: dict[str, float] = {}
        self._barred: dict[str, float] = {}
        self._failed: dict[str, int] = {}
        self._minted = 0
        self._is_closed = False

    def entries(self) -> tuple[LinkEntry, ...]:
        """Return all entries."""
        return tuple(self._entries.values())

    def entry_by(self, link: str) -> LinkEntry | None:
        """Return the entry of a link, whatever its status."""
        return next((entry for entry in self._entries.values() if entry.link == link), None)

    def row(self, whom: str, stub: str) -> LinkEntry | None:
        """Return the link to a runtime, or to an entity there, for the stub that asks (P2P-18)."""
        entry = self._entries.get(self.entities.remote_of(whom))
        return None if entry is None else entry.row_for(stub)

    def live_link(self, entity: str) -> str | None:
        """Return the live link to an entity or to a part of a remote runtime."""
        entry = self._entries.get(self.entities.remote_of(entity))
        return entry.url if entry is not None and entry.is_live else None

    def witness(self, link: str, entity: str, now: float) -> None:
        """Read the record of an entity for which a link's other end sends, unless it is known."""
        entry = self.entry_by(link)
        if entry is not None:
            self.entities.look_up(entity, entry, now)

    def list_entities(
        self, remote: str, added: tuple[str, ...], removed: tuple[str, ...], now: float
    ) -> None:
        """Take the report of another registry: entities that came and that left (P2P-25)."""
        entry = self._entries.get(remote)
        if entry is None:
            return
        self.entities.remove_listed(removed, entry)
        self.entities.add_listed(added, entry, now)
        for other, entity in self.entities.freed(removed):
            # The entity has moved, and its new runtime reported that first.
            self.entities.add_listed([entity], self._entries[other], now)

    # ---- requester side

    def may_plan(self, remote: str, now: float) -> bool:
        """Return whether a link may be set up: none exists, and none failed shortly before."""
        is_cooling = now < self._cooling.get(remote, -math.inf)
        is_known = remote in self._entries
        return not (self._is_closed or is_known or is_cooling or self._is_barred(remote, now))

    def plan(self, plan: RequesterPlan, now: float) -> bool:
        """Begin to set up a link if that is allowed (RES-10, I-P7); return whether it is."""
        if not self.may_plan(plan.remote, now):
            return False
        self._minted += 1
        url = f"{self._runtime}/p2prequester/{self._minted}"
        entry = LinkEntry(plan.remote, Role.REQUESTER, url, url, self._life(plan.remote), plan)
        self._begin(entry, now)
        self._port.set_path(url)
        return True

    def disproved(self, plan: RequesterPlan, now: float) -> None:
        """Give up a link that was set up by a wrong hint, unless it serves an entity."""
        entry = self._entries.get(plan.remote)
        if entry is None or entry.plan is not plan or entry.entities:
            return
        self._give_up(entry, now)
        # The hint was wrong, not the runtime: a link by its own record may follow at once.
        self._cooling.pop(plan.remote, None)
        self._failed.pop(plan.remote, None)

    def _life(self, remote: str) -> Entity:
        return Entity(p2p_entry.P2P_ENTRY, f"{self._runtime}|{remote}")

    def path_set(self, url: str, refusal: str | None, now: float) -> None:
        """Deploy the requester once its path is set and not refused (P2P-05, I-P10)."""
        entry = self.entry_by(url)
        if entry is None or entry.plan is None:
            self._port.remove_path(url)
        elif refusal is not None:
            self._remove(entry, now)
        else:
            entry.deployment = Deployment.ORDERED
            self._port.deploy(url, entry.plan)

    def has_requester(self, url: str) -> bool:
        """Return whether a stub is a requester of this table."""
        ends = [end for entry in self.entries() for end in entry.ends]
        return any(end.link == url and end.role is Role.REQUESTER for end in ends)

    def gone(self, url: str, now: float) -> None:
        """Note that a stub is not, or no longer, deployed."""
        for entry in self.entries():
            if entry.beside is not None and entry.beside.stub == url:
                self._end_beside(entry, entry.beside)
            if entry.stub == url:
                # The plan from its record does not work: the next attempt needs a new record.
                self._records.forget_runtime(entry.remote)
                self._remove(entry, now)

    def over(self, stub: str, link: str, now: float) -> None:
        """Note that a link has ended for good, as its stub reports (I-P19)."""
        for entry in self.entries():
            if entry.stub == stub and entry.link == link:
                self._remove(entry, now)
                return
            rival = entry.beside
            if rival is not None and (rival.stub, rival.link) == (stub, link):
                self._end_beside(entry, rival)
                return

    def forged(self, link: str, now: float) -> None:
        """End all links to a peer that sends from others' addresses, and refuse new ones a while.

        Args:
            link: Address of the link by which such messages came.
            now: Seconds on the host's clock.
        """
        ends = ((entry, end) for entry in self.entries() for end in entry.ends)
        entry = next((entry for entry, end in ends if end.link == link), None)
        if entry is None:
            return
        if entry.beside is not None:
            self._disconnect(entry.beside)
            self._end_beside(entry, entry.beside)
        self._give_up(entry, now)
        self._barred = {each: until for each, until in self._barred.items() if until > now}
        self._barred[entry.remote] = now + protocol.ERROR_WINDOW

    def _is_barred(self, remote: str, now: float) -> bool:
        return now < self._barred.get(remote, -math.inf)

    def _disconnect(self, link: LinkEntry) -> None:
        self._port.disconnect(link.stub, link.remote, link.link)

    # ---- status events

    def status(self, stub: str, value: str, remote: str, link: str, now: float) -> None:
        """Take a link's status event; an event of a link without an entry can only end that link.

        Args:
            stub: The stub that reports it.
            value: State entered, as a word of the machine.
            remote: Remote runtime.
            link: The link; of a requester, its stub.
            now: Seconds on the host's clock.
        """
        if self._is_closed:
            return
        entry, state = self._entries.get(remote), State(value)
        if entry is not None and entry.link == link:
            self._move(entry, state, now)
            return
        if entry is not None and entry.beside is not None and entry.beside.link == link:
            self._move_beside(entry, entry.beside, state, now)
            return
        if state in {State.FAILED, State.DISCONNECTED}:
            self._end_stray(stub, link)
            return
        is_requester = stub == link
        if state is State.CREATED and not is_requester and not self._is_barred(remote, now):
            self._take_invited(LinkEntry(remote, Role.HANDLER, stub, link, self._life(remote)), now)
        elif state is State.CREATED if is_requester else entry is None:
            # Ended are a requester whose entry another link took while it was being deployed;
            # a handler's link that was refused by a row which has been removed since; and one
            # whose peer has forged senders shortly before.
            self._port.disconnect(stub, remote, link)

    def _take_invited(self, new: LinkEntry, now: float) -> None:
        """Take a handler's new link; the entry's table decides about the existing link.

        If the existing link wins, the handler refuses the invitation when it asks for the row.
        """
        old = self._entries.get(new.remote)
        if old is None:
            self._begin(new, now)
            return
        if old.beside is not None:
            # The handler has one link to a runtime: its former link has ended.
            self._end_older(old, old.beside, now)
            self._take_invited(new, now)
            return
        step = old.contest(self._runtime, new.link)
        if step.new in {p2p_entry.State.YIELDING, p2p_entry.State.BOUND}:
            self._port.add_peer(new.link, new.remote)
        self._port.step(step)
        match step.new:
            case p2p_entry.State.REMOVED:
                new.entities = old.entities
                # Messages by the old link are accepted until its stub reports its end.
                old.trace(self._port, Op.DEL)
                self._port.link_down(old.remote)
                self._port.forget_routes()
                self._let_go(old)
                self._begin(new, now)
            case p2p_entry.State.YIELDING:
                self._entries[new.remote] = new
                old.yield_to(self._port, new, now)
                new.trace(self._port, Op.UPD)
            case p2p_entry.State.BOUND:
                old.beside = new
            case _:
                pass

    def _begin(self, new: LinkEntry, now: float) -> None:
        new.life = self._life(new.remote)
        self._entries[new.remote] = new
        self._port.add_peer(new.link, new.remote)
        new.begin(self._port, now)

    def _let_go(self, link: LinkEntry) -> None:
        """End a link that another one has replaced; a handler has ended its older one itself."""
        if link.role is Role.HANDLER:
            self._port.unregister_link(link.link)
        else:
            self._disconnect(link)

    # ---- two links at once

    def _end_older(self, entry: LinkEntry, rival: LinkEntry, now: float) -> None:
        if rival.role is Role.HANDLER:
            self._end_beside(entry, rival)
        else:
            self._remove(entry, now)

    def _move_beside(self, entry: LinkEntry, rival: LinkEntry, value: State, now: float) -> None:
        if value is State.FAILED:
            self._end_beside(entry, rival)
        elif rival.role is Role.HANDLER:
            self._move_invitation(entry, rival, value)
        elif value is not State.LIVE:
            rival.report_while_yielding(self._port, value)
        else:
            # It was live before the order to yield, so the other link may take its place.
            rival.deployment = Deployment.AT_WORK
            rival.yields_due, entry.beside, rival.beside = 0, None, entry
            self._entries[entry.remote] = rival
            self._move(rival, value, now)

    def _move_invitation(self, entry: LinkEntry, new: LinkEntry, value: State) -> None:
        """Let an invited link replace the live one as soon as it is live itself."""
        if value is State.DISCONNECTED:
            self._disconnect(new)
            self._end_beside(entry, new)
        elif value is State.LIVE and new.has_listeners:
            self._take_over(entry, new)
        else:
            new.awaits_listeners = value is State.LIVE
            if new.awaits_listeners:
                self._port.register_link(new.link, new.stub)

    def _take_over(self, old: LinkEntry, new: LinkEntry) -> None:
        old.beside = None
        self._entries[old.remote] = new
        new.replace(self._port, old)
        new.trace(self._port, Op.UPD)
        self._port.forget_routes()
        self._let_go(old)

    def _end_beside(self, entry: LinkEntry, rival: LinkEntry) -> None:
        """Continue with the one link that is left."""
        entry.beside = None
        self._end_stray(rival.stub, rival.link)

    def _resume(self, winner: LinkEntry, own: LinkEntry, now: float) -> None:
        """Let our own request continue, since the link that it waited for has failed."""
        winner.beside = None
        self._entries[own.remote] = own
        own.resume(self._port, now)
        self._port.remove_peer(winner.link)
        self._port.unregister_link(winner.link)

    def _end_stray(self, stub: str, link: str) -> None:
        self._port.remove_peer(link)
        self._end_stub(stub, link)

    def _end_stub(self, stub: str, link: str) -> None:
        if stub != link:
            self._port.unregister_link(link)
        else:
            self._port.undeploy(stub)
            self._port.remove_path(stub)

    def _move(self, entry: LinkEntry, value: State, now: float) -> None:
        match value:
            case State.LIVE if entry.role is Role.HANDLER and not entry.has_listeners:
                # It is live for us once its listeners are set, unless it is lost before.
                entry.sets_up(State.IN_PROGRESS)
                entry.awaits_listeners = True
                self._port.register_link(entry.link, entry.stub)
            case State.LIVE:
                self._go_live(entry)
            case State.DISCONNECTED:
                self._lose(entry, now)
            case State.FAILED:
                self._remove(entry, now)
            case State.YIELDING:
                # It continues: its report crossed the order.
                entry.report_while_yielding(self._port, value)
            case _:
                entry.sets_up(value)
                entry.trace(self._port, Op.UPD)

    def registered(self, link: str, refusal: str | None, now: float) -> None:
        """Route messages to a handler's link once both listeners are set (I-P17, I-P18)."""
        ends = ((entry, end) for entry in self.entries() for end in entry.ends)
        entry, end = next((pair for pair in ends if pair[1].link == link), (None, None))
        if entry is None or end is None:
            self._port.unregister_link(link)
            return
        if refusal is not None:
            self._disconnect(end)
            if end is entry:
                self._remove(entry, now)
            else:
                self._end_beside(entry, end)
            return
        end.has_listeners = True
        if end.awaits_listeners and end is entry:
            self._go_live(entry)
        elif end.awaits_listeners:
            self._take_over(entry, end)

    def _go_live(self, entry: LinkEntry) -> None:
        self._failed.pop(entry.remote, None)
        entry.go_live(self._port)
        entry.trace(self._port, Op.UPD)
        self._settle(entry, resolve_job.Trigger.FOUND)
        self._port.forget_routes()
        own = entry.yielding
        if own is not None:
            # Our own request has lost the simultaneous open for good.
            entry.beside = None
            self._let_go(own)

    def _settle(self, entry: LinkEntry, trigger: resolve_job.Trigger) -> None:
        """End the searches that wait for this link."""
        self._jobs.settle(map(link_key, sorted(entry.entities)), trigger)

    def _lose(self, entry: LinkEntry, now: float) -> None:
        entry.lose(self._port)
        entry.trace(self._port, Op.UPD)
        self._port.forget_routes()
        if entry.beside is not None and entry.yielding is None:
            new, entry.beside = entry.beside, None
            self._take_invited(new, now)
        elif entry.role is Role.HANDLER:
            entry.until = now + protocol.SESSION_IDLE
        else:
            self._reconnect(entry, now)

    def _reconnect(self, entry: LinkEntry, now: float) -> None:
        if entry.plan is None or entry.tries >= protocol.RECONNECT_TRIES:
            self._give_up(entry, now)
            return
        entry.until = now + protocol.DIAL_TIMEOUT + protocol.RECONNECT_BASE * 2.0**entry.tries
        entry.tries += 1
        self._port.connect(entry.stub, entry.plan.handler)

    # ---- the end

    def deadline(self) -> float:
        """Return when `tick` is due."""
        untils = [min(entry.until, entry.fails_at) for entry in self._entries.values()]
        return min([self.entities.deadline(), *untils])

    def tick(self, now: float) -> None:
        """Reconnect lost links, or give links up; read the records of listed entities."""
        for entry in self.entries():
            if entry.fails_at <= now:
                if entry.beside is not None:
                    self._end_beside(entry, entry.beside)
                self._records.forget_runtime(entry.remote)
                self._give_up(entry, now)
            elif entry.until <= now:
                self._reconnect(entry, now)
        self.entities.tick(now)

    def _give_up(self, entry: LinkEntry, now: float) -> None:
        self._disconnect(entry)
        self._remove(entry, now)

    def close(self) -> None:
        """Remove all entries and refuse new ones; others end the links and searches."""
        self._is_closed = True
        entries = self.entries()
        self._entries.clear()
        self.entities.clear()
        for entry in entries:
            entry.end(self._port)
        self._port.forget_routes()
        for entry in entries:
            if entry.role is Role.HANDLER:
                self._port.unregister_link(entry.link)

    def _remove(self, entry: LinkEntry, now: float) -> None:
        """Remove an entry with all its belongings (P2P-28), or continue with the link beside it."""
        if entry.yielding is not None:
            self._resume(entry, entry.yielding, now)
            return
        rival, entry.beside = entry.beside, None
        del self._entries[entry.remote]
        self._cool(entry, now)
        self.entities.forget(entry)
        entry.end(self._port)
        self._port.remove_peer(entry.link)
        self._settle(entry, resolve_job.Trigger.NONE)
        self._port.forget_routes()
        self._end_stub(entry.stub, entry.link)
        if rival is not None:
            self._begin(rival, now)

    def _cool(self, entry: LinkEntry, now: float) -> None:
        """Begin the pause before the next set-up, which doubles while no set-up succeeds.

        A peer that was killed keeps its record until its session ends; it should not be tried all
        the time.
        """
        old = {
            each for each, until in self._cooling.items() if until + protocol.SESSION_IDLE <= now
        }
        for each in old:
            del self._cooling[each]
            self._failed.pop(each, None)
        failed = self._failed.get(entry.remote, 0)
        if entry.role is Role.REQUESTER:
            self._failed[entry.remote] = failed + 1
        pause = protocol.RETRY_COOL_DOWN * 2.0 ** min(failed, protocol.RECONNECT_TRIES + 2)
        self._cooling[entry.remote] = now + min(pause, protocol.SESSION_IDLE)
