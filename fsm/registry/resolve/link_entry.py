"""One row of the registry's table of P2P links, and the entities of its runtime (REG-04, I-R8).

An entity is bound by its record, or by the other registry's list where a record confirms
it. A message received over a link binds nothing: else a peer could draw another's messages
to itself by using its address once. Only a record moves an entity that is known to live
elsewhere, or binds one of another domain than its runtime's.

A list is a hint (T18): a peer could draw messages meant for others to itself, by listing their
addresses before this runtime has read the records. So an entity whose known record confirms
the list is bound at once. For the rest the records are read, a few at a time. Until then,
and if a record contradicts the list, messages go by the node as if nothing had been listed.
"""

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

import attrs

from fsm.effects import LinkHint, RowChanged
from fsm.engine import Entity, Step
from fsm.limits.rates import TokenBucket
from fsm.machines import p2p_entry as entry
from fsm.machines import resolve_job
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import NO_LINKS, LinkPolicy
from fsm.p2p.link_end import Role, own_is_smaller
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.jobs import ResolveJobs, link_key
from fsm.registry.resolve.port import RequesterPlan, RoutesPort
from specs.addresses import address
from specs.bodies.registry import Record
from specs.errors import BadMessageError, BadUrlError
from specs.limits.p2p import CLAIM_BURST, CLAIM_RATE, MAX_LINK_ENTITIES
from specs.trace import Op

# The configuration of the registry's route search (C-49, RES-10, PFY-03).


class Topology(Enum):
    """The node that gets messages for another domain (C-49)."""

    TRIANGLE = "triangle"
    """That domain's."""

    TRAPEZOID = "trapezoid"
    """The own domain's, which sends it on."""


@attrs.frozen(slots=True)
class ResolveConfig:
    """The configuration of the registry's own runtime.

    Attributes:
        runtime: Its address.
        domain: Its own domain.
        link_policy: Whether it wants P2P links, and to which peers.
        topology: The node that gets messages for another domain.
        stub_idle: Seconds without use after which a stub of another domain is released (PFY-03);
            infinite: none is.
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
        stub: The own P2P stub: PQ, or PH.
        link: The link's address: PQ, or PC once the handler has named it.
        life: The entity of the entry, which only this class steps.
        plan: How a requester is deployed; None on the handler side.
        url: Address that routes to the link; None until it was live once.
        has_listeners: Whether the listeners of a handler's link stand (I-P17).
        awaits_listeners: Whether its link is live but for them.
        entities: The entities known to live there, in the order they became known (I-R8).
        beside: The other link to the same runtime: our own request that yields to this link,
            or an invitation to a link that replaces this one once it is live (P2P-27).
        deployment: Of a requester: at work once its stub has reported a status.
        yields_due: Orders to yield that its stub has not followed yet.
        until: When its next timer is due.
        fails_at: When it is too late for its link to become live for the first time.
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
        """This end of a link, and the one beside it."""
        return (self,) if self.beside is None else (self, self.beside)

    def row_for(self, stub: str) -> "LinkEntry":
        """Return the end of the link for a stub that asks for the row: a handler, its newest."""
        is_beside = self.beside is not None and self.beside.stub == stub
        return self.beside if self.beside is not None and is_beside else self

    @property
    def yielding(self) -> "LinkEntry | None":
        """Our own request that waits until this link is live or has failed."""
        is_own = self.beside is not None and self.beside.role is Role.REQUESTER
        return self.beside if is_own else None

    def is_held(self, stub: str) -> bool:
        """Return whether a handler is to wait for the row: our own request may become live."""
        own = self.yielding
        return own is not None and own.yields_due > 0 and stub == self.stub

    @property
    def is_pending(self) -> bool:
        """True if our own request is being set up: two such requests make a simultaneous open."""
        setting_up = self.status in {State.CREATED, State.IN_PROGRESS}
        return self.role is Role.REQUESTER and setting_up

    def begin(self, port: RoutesPort, now: float) -> None:
        """Write the entry, before anything is awaited."""
        was_asked = self.role is Role.HANDLER
        port.step(self.life.step(entry.Trigger.INVITED if was_asked else entry.Trigger.PLANNED))
        self.fails_at = now + self.life.patience
        self.trace(port, Op.ADD)

    def contest(self, own: str, link: str) -> Step:
        """Take the peer's invitation to `link`; the new state says which of both links yields.

        The address of this runtime, `own`, is for the tie-break.
        """
        facts = {
            entry.Condition.OWN_REQUEST: self.is_pending,
            entry.Condition.OWN_SMALLER: own_is_smaller(own, self.remote),
            entry.Condition.LINK_LIVE: self.is_live,
        }
        given = {fact for fact, is_true in facts.items() if is_true}
        return self.life.step(entry.Trigger.INVITED, f"to {link}", given)

    def go_live(self, port: RoutesPort) -> None:
        """Route to the link: for the first time, or again."""
        was = self.status
        self._become_live()
        is_first = self.life.state is not entry.State.BOUND
        if is_first or was is not State.LIVE:
            trigger = entry.Trigger.LIVE if is_first else entry.Trigger.RESTORED
            port.step(self.life.step(trigger))
            port.link_up(self.remote, self.link)

    def yield_to(self, port: RoutesPort, winner: "LinkEntry", now: float) -> None:
        """Let the winner of a simultaneous open have the entry, and wait beside it.

        A requester that is not deployed yet never will be. One that is being deployed gets the
        order to yield when it is at work.
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
        """Take a step of its stub while it yields, or is to."""
        is_first, self.deployment = self.deployment is not Deployment.AT_WORK, Deployment.AT_WORK
        self.yields_due -= value is State.YIELDING
        if is_first:
            port.suspend(self.stub, self.remote)

    def resume(self, port: RoutesPort, now: float) -> None:
        """Go on as the entry's link: the link that it yielded to has failed."""
        port.step(self.life.step(entry.Trigger.RESUMED))
        self.trace(port, Op.UPD)
        self.fails_at = now + self.life.patience
        if self.deployment is Deployment.AT_WORK:
            port.resume(self.stub, self.remote)
        else:
            # The order to yield has not come yet.
            self.yields_due = 0

    def replace(self, port: RoutesPort, old: "LinkEntry") -> None:
        """Take the place of a live link; this one is live now."""
        self.life, self.entities = old.life, old.entities
        self._become_live()
        port.step(self.life.step(entry.Trigger.REPLACED, f"by {self.link}"))
        port.link_down(self.remote)
        port.link_up(self.remote, self.link)

    def _become_live(self) -> None:
        self.status, self.url = State.LIVE, self.link
        self.awaits_listeners = False
        self.tries = 0
        self.until = self.fails_at = math.inf

    def lose(self, port: RoutesPort) -> None:
        """Keep the entry of a link that is away; of one that was never live, too."""
        was, self.status = self.status, State.DISCONNECTED
        self.awaits_listeners = False
        if self.life.state is entry.State.BOUND and was is State.LIVE:
            port.step(self.life.step(entry.Trigger.LOST))
            port.link_down(self.remote)

    def sets_up(self, status: State) -> None:
        """Wait for the stub, which has a deadline, while a link is set up or negotiated anew."""
        self.status, self.until = status, math.inf
        self.deployment = Deployment.AT_WORK

    def end(self, port: RoutesPort) -> None:
        """Take the entry away."""
        port.step(self.life.step(entry.Trigger.ENDED))
        self.trace(port, Op.DEL)
        port.link_gone(self.remote)

    def trace(self, port: RoutesPort, op: Op) -> None:
        """Trace the present values of the row."""
        value = f"{self.status} {self.url} {' '.join(self.entities)}"
        port.row(RowChanged(op, _TABLE, self.remote, value, _WRITER))


def plan_of(record: Record) -> RequesterPlan | None:
    """Return how to link to a record's runtime; None: it does not take links (RES-08)."""
    if not record.p2p_handler or not record.p2p_requester:
        return None
    if address.is_other_stub(record.p2p_requester):
        return None
    if not address.is_below(record.p2p_handler, record.runtime):
        return None
    return RequesterPlan(record.runtime, record.p2p_handler, record.p2p_requester)


def plan_of_hint(entity: str, hint: LinkHint) -> RequesterPlan | str:
    """Return how to link to the runtime that a hint about an entity names; or what is wrong.

    A requester is code: only the domain of the runtime names it (RES-16).
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
    """The entities of all links, and those listed ones whose records are still to be read.

    They live as long as the entries do. Memory: the follower of a registry bounds its list; the
    rate of requests and their time limit bound the reads under way.

    Args:
        port: The host.
        entries: The links by remote runtime; the link table owns them, and calls `forget` for
            each that goes.
        jobs: The searches that wait for a link to an entity, and read records too.
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
        """Return the runtime of an entity; an unknown address itself: it may be a runtime."""
        return self._remote_of.get(entity, entity)

    def entry_of(self, entity: str) -> LinkEntry | None:
        """Return the entry of the runtime on which an entity is known to live."""
        return self._entries.get(self._remote_of.get(entity, ""))

    def entry_for(self, entity: str, remote: str) -> LinkEntry | None:
        """Return the entry of a runtime if it has an entity, or can take it."""
        entry = self._entries.get(remote)
        has_room = entry is not None and len(entry.entities) < MAX_LINK_ENTITIES
        return entry if has_room or self._remote_of.get(entity) == remote else None

    # ---- by records

    def bind(self, entity: str, remote: str) -> None:
        """Note where an entity lives by its record; it moves if it lived elsewhere.

        If no link leads there, or the link has its maximum of entities, no link leads to the
        entity.
        """
        entry = self._entries.get(remote)
        if entry is not None and self._put(entity, entry):
            self._changed(entry)
        elif self._remote_of.get(entity, remote) != remote:
            self.unbind(entity)

    def unbind(self, entity: str) -> None:
        """Forget where an entity lives: it may have come back elsewhere."""
        entry = self.entry_of(entity)
        if entry is not None:
            self._drop([entity], entry)

    # ---- by lists

    def add_listed(self, there: Iterable[str], entry: LinkEntry, now: float) -> None:
        """Bind what a link's other end lists and a known record confirms; read other records."""
        known: dict[str, None] = {}
        for entity in there:
            if self._remote_of.get(entity, entry.remote) != entry.remote:
                self._held[entry.remote, entity] = None
            elif entity not in self._remote_of and self._may_list(entity, entry):
                record = self._records.find(entity, now)
                if record is not None and record.runtime == entry.remote:
                    known[entity] = None
                else:
                    self._unread[entry.remote, entity] = None
        if [entity for entity in known if self._put(entity, entry)]:
            self._changed(entry)
        self.tick(now)

    def _may_list(self, entity: str, entry: LinkEntry) -> bool:
        """Return whether a registry may name an entity: one of its domain, and no runtime."""
        is_runtime = entity == entry.remote or entity in self._entries
        return address.domain_of(entity) == address.domain_of(entry.remote) and not is_runtime

    def remove_listed(self, gone: tuple[str, ...], entry: LinkEntry) -> None:
        """Note that entities no longer live at a link's other end; those of others are ignored."""
        for entity in gone:
            self._unread.pop((entry.remote, entity), None)
            self._held.pop((entry.remote, entity), None)
        self._drop([one for one in gone if self._remote_of.get(one) == entry.remote], entry)

    def freed(self, gone: Iterable[str]) -> list[tuple[str, str]]:
        """Take out the lists of entities that no longer live where they were known to live.

        Returns:
            Runtimes, each with an entity that it lists; they are not remembered any more.
        """
        there = frozenset(gone) if self._held else frozenset[str]()
        free = [claim for claim in self._held if claim[1] in there]
        for claim in free:
            del self._held[claim]
        return free

    def look_up(self, entity: str, entry: LinkEntry, now: float) -> None:
        """Read the record of an entity that a link's other end speaks for, unless it is known."""
        if not address.is_below(entity, entry.remote) and not self._records.is_known(entity, now):
            self._unread[entry.remote, entity] = None
        self.tick(now)

    def is_read_for_list(self, entity: str) -> bool:
        """Return whether a record that has come was read for a list only: no link is wanted."""
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
        """Forget all entities of a link, and leave listed ones unread: its entry goes."""
        for entity in entry.entities:
            self._remote_of.pop(entity, None)
        for claims in (self._unread, self._held):
            for claim in [one for one in claims if one[0] == entry.remote]:
                del claims[claim]

    def clear(self) -> None:
        """Forget everything."""
        self._remote_of.clear()
        self._unread.clear()
        self._held.clear()

    def _put(self, entity: str, entry: LinkEntry) -> bool:
        """Bind an entity, within the limit; return whether that is new."""
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

    def _changed(self, entry: LinkEntry) -> None:
        entry.trace(self._port, Op.UPD)
        if entry.is_live:
            self._port.forget_routes()
