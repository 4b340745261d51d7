"""The registry's table of P2P links, one entry per remote runtime (REG-04, RES-05..12, I-R8).

One of the two runtimes requests a link (requester); the other accepts it (handler). An entry is
added to the table before any wait, so that only one link is set up to each remote runtime (RES-07,
I-P7). Only the status events of P2P stubs change its status (C-19). On the handler side the
listeners of the link are set before it counts as live (I-P17). A lost link keeps its entry, and the
requester must reconnect; after the last attempt, or a `failed` status, the entry is removed.

No link is ended in favour of a link that may fail to be set up (P2P-27). So an entry may have a
second link (`beside`) for a while. If both runtimes request a link at once, the request of the
smaller runtime wins, and the other request waits (yields) until the winner is live or has failed.
If the peer requests a new link while one is live, the old link stays until the new one is live. The
handler does not accept the winner before this runtime's request yields, so only one is live.

An entity (a hyperty or data object) is bound to a link if its registry record names the remote
runtime. Messages that come over a link bind no entity, and neither does the list of entities that
the remote registry sends (T18): a peer could otherwise attract messages meant for others. Entities
on the list whose record is known to confirm it are bound at once. For the others the records are
read, a few at a time; until then their messages go by the node.
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
from fsm.p2p.link_end import Role, own_is_smaller
from fsm.p2p.link_policy import NO_LINKS, LinkPolicy
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.searches import RequesterPlan, ResolveJobs, RoutesPort, link_key
from fsm.registry.resolve.topology import Topology
from specs.addresses import address
from specs.bodies.registry import Record
from specs.errors import BadMessageError, BadUrlError
from specs.limits import protocol
from specs.limits.p2p import CLAIM_BURST, CLAIM_RATE, MAX_LINK_ENTITIES
from specs.trace import Op

# Configuration of the search for routes (C-49, RES-10, PFY-03).


@attrs.frozen(slots=True)
class ResolveConfig:
    """Configuration of a runtime's registry: domain, links, stubs.

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
    """The state of the P2P stub that requests a link."""

    PLANNED = "planned"
    """The stub will be deployed."""

    ORDERED = "ordered"
    """The deployment of the stub has been requested."""

    AT_WORK = "at work"
    """The stub has reported a status."""


@attrs.define(slots=True)
class LinkEntry:
    """Link to one remote runtime, with the hyperties and data objects (entities) that it reaches.

    Attributes:
        stub: Address of this runtime's P2P stub: the requester stub or the handler stub.
        link: Address of the link: that of the requester stub, or a name that the handler gave.
        life: State machine of the entry; only this class triggers its transitions.
        plan: Data for the deployment of a requester stub; None on the handler side.
        status: Status of the link, as its stub has reported it.
        url: Address that routes to the link; None until the link was live once.
        has_listeners: Whether the listeners of a handler's link are set (I-P17).
        awaits_listeners: Whether the link is live except for the missing listeners.
        entities: The entities bound to the link, in the order in which they became known (I-R8).
        beside: A second link to the same runtime: this runtime's request that yields, or a
            new link, requested by the peer, that replaces this one when it is live (P2P-27).
        deployment: State of the requester stub.
        yields_due: Number of orders to yield that the requester stub has not confirmed yet.
        tries: Number of attempts to reconnect since the link was live.
        until: Time of the next attempt to reconnect, or of the removal.
        fails_at: Deadline for the link to become live for the first time.
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
        """True if messages may be sent over the link."""
        return self.status is State.LIVE and self.url is not None

    @property
    def ends(self) -> "tuple[LinkEntry, ...]":
        """The link itself and, if any, the second link to the same runtime."""
        return (self,) if self.beside is None else (self, self.beside)

    def row_for(self, stub: str) -> "LinkEntry":
        """Return the second link if it belongs to the given stub, otherwise this link."""
        is_beside = self.beside is not None and self.beside.stub == stub
        return self.beside if self.beside is not None and is_beside else self

    @property
    def yielding(self) -> "LinkEntry | None":
        """This runtime's own request for a link that waits for the peer's link, or None."""
        is_own = self.beside is not None and self.beside.role is Role.REQUESTER
        return self.beside if is_own else None

    def is_held(self, stub: str) -> bool:
        """Return whether a handler stub must not accept this link yet.

        The runtime's own request has not confirmed yet that it yields, and may become live.
        """
        own = self.yielding
        return own is not None and own.yields_due > 0 and stub == self.stub

    @property
    def is_pending(self) -> bool:
        """True if this runtime has requested the link and it is not live yet.

        If the peer has done the same, both requests conflict (simultaneous open).
        """
        setting_up = self.status in {State.CREATED, State.IN_PROGRESS}
        return self.role is Role.REQUESTER and setting_up

    def begin(self, port: RoutesPort, now: float) -> None:
        """Start the state machine and the deadline of a new entry, and trace the entry."""
        was_asked = self.role is Role.HANDLER
        port.step(
            self.life.step(p2p_entry.Trigger.INVITED if was_asked else p2p_entry.Trigger.PLANNED)
        )
        self.fails_at = now + self.life.patience
        self.trace(port, Op.ADD)

    def contest(self, own: str, link: str) -> Step:
        """Decide between this link and `link`, to which the peer invites.

        The new state in the result says which link yields. If both were requested at once, the
        addresses of the two runtimes decide; `own` is that of this runtime.
        """
        facts = {
            p2p_entry.Condition.OWN_REQUEST: self.is_pending,
            p2p_entry.Condition.OWN_SMALLER: own_is_smaller(own, self.remote),
            p2p_entry.Condition.LINK_LIVE: self.is_live,
        }
        conditions = {fact for fact, is_true in facts.items() if is_true}
        return self.life.step(p2p_entry.Trigger.INVITED, f"to {link}", conditions)

    def go_live(self, port: RoutesPort) -> None:
        """Mark the link as live, for the first time or again, so that messages use it."""
        old_status = self.status
        self._become_live()
        is_first = self.life.state is not p2p_entry.State.BOUND
        if is_first or old_status is not State.LIVE:
            trigger = p2p_entry.Trigger.LIVE if is_first else p2p_entry.Trigger.RESTORED
            port.step(self.life.step(trigger))
            port.link_up(self.remote, self.link)

    def yield_to(self, port: RoutesPort, winner: "LinkEntry", now: float) -> None:
        """Let the peer's request for a link win over this one, which waits as the second link.

        If the requester stub is not deployed yet, it will not be. If the deployment is running, the
        stub gets the order to yield afterwards.
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
        """Handle a status of the requester stub while its request waits for the peer's link."""
        is_first, self.deployment = self.deployment is not Deployment.AT_WORK, Deployment.AT_WORK
        self.yields_due -= value is State.YIELDING
        if is_first:
            port.suspend(self.stub, self.remote)

    def resume(self, port: RoutesPort, now: float) -> None:
        """Continue this request, since the link to which it yielded has failed."""
        port.step(self.life.step(p2p_entry.Trigger.RESUMED))
        self.trace(port, Op.UPD)
        self.fails_at = now + self.life.patience
        if self.deployment is Deployment.AT_WORK:
            port.resume(self.stub, self.remote)
        else:
            # The order to yield has not come yet.
            self.yields_due = 0

    def replace(self, port: RoutesPort, old: "LinkEntry") -> None:
        """Replace an older live link to the same runtime, since this link is live now."""
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
        """Mark the link as disconnected, and keep the entry, since the link may be restored."""
        old_status, self.status = self.status, State.DISCONNECTED
        self.awaits_listeners = False
        if self.life.state is p2p_entry.State.BOUND and old_status is State.LIVE:
            port.step(self.life.step(p2p_entry.Trigger.LOST))
            port.link_down(self.remote)

    def sets_up(self, status: State) -> None:
        """Note that the stub sets up or renegotiates the link; the stub has its own deadline."""
        self.status, self.until = status, math.inf
        self.deployment = Deployment.AT_WORK

    def end(self, port: RoutesPort) -> None:
        """End the state machine of the entry, trace the removal, and report it to the host."""
        port.step(self.life.step(p2p_entry.Trigger.ENDED))
        self.trace(port, Op.DEL)
        port.link_gone(self.remote)

    def trace(self, port: RoutesPort, op: Op) -> None:
        """Trace the current values of the entry."""
        value = f"{self.status} {self.url} {' '.join(self.entities)}"
        port.row(RowChanged(op, _TABLE, self.remote, value, _WRITER))


def plan_of(record: Record) -> RequesterPlan | None:
    """Return the data to request a link to a record's runtime, or None (RES-08).

    None: the record has no valid P2P stubs, so the runtime accepts no links.
    """
    if not record.p2p_handler or not record.p2p_requester:
        return None
    if address.is_other_stub(record.p2p_requester):
        return None
    if not address.is_below(record.p2p_handler, record.runtime):
        return None
    return RequesterPlan(record.runtime, record.p2p_handler, record.p2p_requester)


def plan_of_hint(entity: str, hint: LinkHint) -> RequesterPlan | str:
    """Return the data to request a link that a hint describes, or what is wrong with the hint.

    A requester stub is code, so its address must be in the domain of the runtime (RES-16).
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
    """Knows which entities (hyperties and data objects) each link reaches.

    It also reads the records of those that a remote registry lists, to confirm the list. The
    lengths of lists, and the rate and time limit of the reads, limit the memory.

    Args:
        port: The host.
        entries: The links by remote runtime; the link table owns them, and calls `forget` for each
            that is removed.
        jobs: The open searches for links, which may wait for a link or read a record, too.
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
        """Return the remote runtime of a bound entity; any other address is returned unchanged."""
        return self._remote_of.get(entity, entity)

    def entry_of(self, entity: str) -> LinkEntry | None:
        """Return the link to which a hyperty or object is bound, or None."""
        return self._entries.get(self._remote_of.get(entity, ""))

    def entry_for(self, entity: str, remote: str) -> LinkEntry | None:
        """Return the link to a runtime if a hyperty or object is or can be bound to it, or None."""
        entry = self._entries.get(remote)
        has_room = entry is not None and len(entry.entities) < MAX_LINK_ENTITIES
        return entry if has_room or self._remote_of.get(entity) == remote else None

    # ---- by records

    def bind(self, entity: str, remote: str) -> None:
        """Bind a hyperty or object to the link to the runtime that its record names.

        The address is bound to no link if no link leads to that runtime, or too many addresses are
        bound to the link.
        """
        entry = self._entries.get(remote)
        if entry is not None and self._put(entity, entry):
            self._trace_change(entry)
        elif self._remote_of.get(entity, remote) != remote:
            self.unbind(entity)

    def unbind(self, entity: str) -> None:
        """Remove a hyperty or object from its link, since it may have moved to another runtime."""
        entry = self.entry_of(entity)
        if entry is not None:
            self._drop([entity], entry)

    # ---- by lists

    def add_listed(self, urls: Iterable[str], entry: LinkEntry, now: float) -> None:
        """Bind addresses that the remote registry lists, after their records confirm the list."""
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
        """Return whether a registry may list an address: one of its domain that is no runtime."""
        is_runtime = entity == entry.remote or entity in self._entries
        return address.domain_of(entity) == address.domain_of(entry.remote) and not is_runtime

    def remove_listed(self, urls: tuple[str, ...], entry: LinkEntry) -> None:
        """Remove addresses from a link that its remote registry has removed from the list."""
        for entity in urls:
            self._unread.pop((entry.remote, entity), None)
            self._held.pop((entry.remote, entity), None)
        self._drop([each for each in urls if self._remote_of.get(each) == entry.remote], entry)

    def freed(self, urls: Iterable[str]) -> list[tuple[str, str]]:
        """Return which other runtimes list the hyperties and objects that have left a runtime.

        Such lists were ignored as long as the addresses were bound to their former runtime.

        Returns:
            Pairs of a runtime and an address that it lists; the pairs are no longer remembered.
        """
        left = frozenset(urls) if self._held else frozenset[str]()
        claims = [claim for claim in self._held if claim[1] in left]
        for claim in claims:
            del self._held[claim]
        return claims

    def look_up(self, entity: str, entry: LinkEntry, now: float) -> None:
        """Read the record of an address from which a remote runtime sends, unless known."""
        if not address.is_below(entity, entry.remote) and not self._records.is_known(entity, now):
            self._unread[entry.remote, entity] = None
        self.tick(now)

    def is_read_for_list(self, entity: str) -> bool:
        """Return whether a record was read only to confirm a list, not to find a link."""
        if entity not in self._reading or self._jobs.is_open(link_key(entity)):
            return False
        self._reading.discard(entity)
        return True

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return self._next_at if self._unread else math.inf

    def tick(self, now: float) -> None:
        """Read the next records of listed hyperties and objects, as fast as the limits allow."""
        while self._unread and self._next_at <= now:
            _, entity = claim = next(iter(self._unread))
            del self._unread[claim]
            if entity not in self._reading and not self._jobs.is_open(link_key(entity)):
                self._next_at = now + self._pace.spend(now)
                self._reading.add(entity)
                self._port.read_record(entity)

    # ---- the end

    def forget(self, entry: LinkEntry) -> None:
        """Forget the bound and listed hyperties and objects of a link that is removed."""
        for entity in entry.entities:
            self._remote_of.pop(entity, None)
        for claims in (self._unread, self._held):
            for claim in [each for each in claims if each[0] == entry.remote]:
                del claims[claim]

    def clear(self) -> None:
        """Forget the hyperties and objects of all links."""
        self._remote_of.clear()
        self._unread.clear()
        self._held.clear()

    def _put(self, entity: str, entry: LinkEntry) -> bool:
        """Bind a hyperty or object to a link, within the limit; return whether anything changed."""
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
    """The links to all remote runtimes: set-up, conflicts, loss, reconnection, removal.

    The searches in `jobs` that wait for a link end when the link is live or removed.

    Attributes:
        entities: The hyperties and objects that the links reach.
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
        """Return the entries of all links."""
        return tuple(self._entries.values())

    def entry_by(self, link: str) -> LinkEntry | None:
        """Return the entry of a link with this address, or None."""
        return next((entry for entry in self._entries.values() if entry.link == link), None)

    def row(self, whom: str, stub: str) -> LinkEntry | None:
        """Return the link to a runtime or to an address in it that belongs to a stub (P2P-18).

        The stub itself asks, for the status of the link that it handles.
        """
        entry = self._entries.get(self.entities.remote_of(whom))
        return None if entry is None else entry.row_for(stub)

    def live_link(self, entity: str) -> str | None:
        """Return the address of the live link to a hyperty or object or remote runtime, or None."""
        entry = self._entries.get(self.entities.remote_of(entity))
        return entry.url if entry is not None and entry.is_live else None

    def witness(self, link: str, entity: str, now: float) -> None:
        """Read the record of an address from which messages come over a link, unless known."""
        entry = self.entry_by(link)
        if entry is not None:
            self.entities.look_up(entity, entry, now)

    def list_entities(
        self, remote: str, added: tuple[str, ...], removed: tuple[str, ...], now: float
    ) -> None:
        """Handle another registry's report of added and removed hyperties and objects (P2P-25)."""
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
        """Return whether a link may be requested: none exists, and none has failed lately."""
        is_cooling = now < self._cooling.get(remote, -math.inf)
        is_known = remote in self._entries
        return not (self._is_closed or is_known or is_cooling or self._is_barred(remote, now))

    def plan(self, plan: RequesterPlan, now: float) -> bool:
        """Begin to request a link if permitted (RES-10, I-P7); return whether that is so."""
        if not self.may_plan(plan.remote, now):
            return False
        self._minted += 1
        url = f"{self._runtime}/p2prequester/{self._minted}"
        entry = LinkEntry(plan.remote, Role.REQUESTER, url, url, self._life(plan.remote), plan)
        self._begin(entry, now)
        self._port.set_path(url)
        return True

    def disproved(self, plan: RequesterPlan, now: float) -> None:
        """End a link that was requested because of a wrong hint, unless an address needs it."""
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
        """Deploy a requester stub after the node has accepted its address (P2P-05, I-P10).

        If the node refuses to deliver messages to the address (`refusal`), remove the link.
        """
        entry = self.entry_by(url)
        if entry is None or entry.plan is None:
            self._port.remove_path(url)
        elif refusal is not None:
            self._remove(entry, now)
        else:
            entry.deployment = Deployment.ORDERED
            self._port.deploy(url, entry.plan)

    def has_requester(self, url: str) -> bool:
        """Return whether an address is that of a requester stub in this table."""
        ends = [end for entry in self.entries() for end in entry.ends]
        return any(end.link == url and end.role is Role.REQUESTER for end in ends)

    def gone(self, url: str, now: float) -> None:
        """Remove the link of a stub that could not be deployed or has crashed."""
        for entry in self.entries():
            if entry.beside is not None and entry.beside.stub == url:
                self._end_beside(entry, entry.beside)
            if entry.stub == url:
                # The plan from its record does not work: the next attempt needs a new record.
                self._records.forget_runtime(entry.remote)
                self._remove(entry, now)

    def over(self, stub: str, link: str, now: float) -> None:
        """Remove a link that, as its stub reports, has ended and will not be restored (I-P19)."""
        for entry in self.entries():
            if entry.stub == stub and entry.link == link:
                self._remove(entry, now)
                return
            rival = entry.beside
            if rival is not None and (rival.stub, rival.link) == (stub, link):
                self._end_beside(entry, rival)
                return

    def forged(self, link: str, now: float) -> None:
        """End all links to a peer that sends from addresses of others; refuse new ones for a while.

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
        """Handle a status event of a link; if the link is new, add an entry or end the link.

        Args:
            stub: The stub that reports the event.
            value: The new status of the link.
            remote: Address of the remote runtime.
            link: Address of the link; for a requester stub, the address of the stub.
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
            # The link is not wanted: another link was set up while the requester was deployed; or
            # the entry that refused the handler's link is gone; or the peer has forged senders.
            self._port.disconnect(stub, remote, link)

    def _take_invited(self, new: LinkEntry, now: float) -> None:
        """Add a link that the peer has requested; the state machine decides about an existing link.

        If the existing link wins, the handler stub will refuse the new one.
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
        """End a link that was replaced; a handler stub has already closed its older link."""
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
            # This runtime's request was live before the order to yield, so it becomes the link.
            rival.deployment = Deployment.AT_WORK
            rival.yields_due, entry.beside, rival.beside = 0, None, entry
            self._entries[entry.remote] = rival
            self._move(rival, value, now)

    def _move_invitation(self, entry: LinkEntry, new: LinkEntry, value: State) -> None:
        """Handle the status of a link that will replace the present link when it is live."""
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
        """Remove the second link to a runtime, so that only the first is left."""
        entry.beside = None
        self._end_stray(rival.stub, rival.link)

    def _resume(self, winner: LinkEntry, own: LinkEntry, now: float) -> None:
        """Let this runtime's request continue, since the link that it waited for has failed."""
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
                # The link counts as live after its listeners are set, unless it is lost before.
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
                # The request has been told to continue meanwhile; this report is older.
                entry.report_while_yielding(self._port, value)
            case _:
                entry.sets_up(value)
                entry.trace(self._port, Op.UPD)

    def registered(self, link: str, refusal: str | None, now: float) -> None:
        """Mark a handler's link as live after its listeners were set (I-P17, I-P18).

        If the handler refused (`refusal`), end the link.
        """
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
            # This runtime's request is no longer needed, since the other link is live.
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
        """Return the time at which `tick` must be called next."""
        untils = [min(entry.until, entry.fails_at) for entry in self._entries.values()]
        return min([self.entities.deadline(), *untils])

    def tick(self, now: float) -> None:
        """Reconnect lost links, remove links that failed, read the records of listed addresses."""
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
        """Remove all entries and refuse new ones; the caller ends the links and searches."""
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
        """Remove a link with all its data (P2P-28); if a second link exists, use that instead."""
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
        """Begin the pause before the next request of a link, which doubles with each failure.

        A crashed peer keeps its registry record until its session ends, and must not be tried all
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
