"""The registry's table of P2P links, one entry per remote runtime (REG-04, RES-05..12).

An entry is written before anything is awaited, so that one set-up is under way per
remote runtime (RES-07, I-P7). Only the stubs' status events move its status (C-19).
On the handler side `live` is preceded by the listeners of the link (I-P17). A lost
link keeps its entry and its entities, and the requester must reconnect; when the
tries are over, or on `failed`, everything that belongs to the entry goes.

No link is given up for one that may come to nothing (P2P-27). An entry keeps two links for
a while, one of them beside: our own request that yields to the link which the smaller
runtime asks for, until that link is live or has failed; or the peer's invitation to a new
link while ours is live, until the new link is live or has failed. The handler does not
accept the winner before our own request has said that it yields: so at most one of the
two links is ever live.
"""

import math
from typing import final

from fsm.engine import Entity
from fsm.machines import p2p_entry, resolve_job
from fsm.machines.p2p_connection import State
from fsm.p2p.negotiation import Role
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.jobs import ResolveJobs, link_key
from fsm.registry.resolve.link_entry import Deployment, LinkClaims, LinkEntities, LinkEntry
from fsm.registry.resolve.resolve_io import (
    Connect,
    Deploy,
    Disconnect,
    Effect,
    LinkDown,
    Listed,
    PeerGone,
    PeerKnown,
    RegisterLink,
    RemovePath,
    RequesterPlan,
    RoutesChanged,
    SetPath,
    StatusSeen,
    Undeploy,
    UnregisterLink,
)
from specs.limits.protocol import (
    DIAL_TIMEOUT,
    ERROR_WINDOW,
    RECONNECT_BASE,
    RECONNECT_TRIES,
    RETRY_COOL_DOWN,
    SESSION_IDLE,
)
from specs.trace import Op

__all__ = ["LinkTable"]


@final
class LinkTable:
    """The link to each remote runtime.

    The searches in `jobs` that wait for a link end when its entry is live or gone.

    Attributes:
        entities: The entities at the other ends.
        claims: The entities that other registries list and no record confirms yet.
    """

    def __init__(self, runtime: str, jobs: ResolveJobs, records: RecordCache) -> None:
        self._runtime = runtime
        self._jobs = jobs
        self._records = records
        self._entries: dict[str, LinkEntry] = {}
        self.entities = LinkEntities(self._entries, jobs)
        self.claims = LinkClaims(self.entities, records, jobs)
        self._cooling: dict[str, float] = {}
        self._barred: dict[str, float] = {}
        self._failed: dict[str, int] = {}
        self._minted = 0
        self._is_closed = False

    def entries(self) -> tuple[LinkEntry, ...]:
        """Return all entries."""
        return tuple(self._entries.values())

    def entry_by(self, link: str) -> LinkEntry | None:
        """Return the entry of a link, for any status."""
        return next((entry for entry in self._entries.values() if entry.link == link), None)

    def row(self, whom: str, stub: str) -> LinkEntry | None:
        """Return the link that a stub gets when it asks for the row of a runtime (P2P-18).

        Args:
            whom: Address of the runtime, or of an entity at it.
            stub: Address of the stub that asks.
        """
        entry = self._entries.get(self.entities.remote_of(whom))
        return None if entry is None else entry.row_for(stub)

    def live_link(self, entity: str) -> str | None:
        """Return the live link to an entity or to a part of a remote runtime."""
        entry = self._entries.get(self.entities.remote_of(entity))
        return entry.url if entry is not None and entry.is_live else None

    def witness(self, link: str, entity: str, now: float) -> list[Effect]:
        """Have the record read of an entity that another runtime speaks for, unless it is known.

        Args:
            link: Address of the link that the runtime speaks over.
            entity: Address of the entity.
            now: Seconds on the host's clock.
        """
        entry = self.entry_by(link)
        return [] if entry is None else self.claims.look_up(entity, entry, now)

    def reported(self, said: Listed, now: float) -> list[Effect]:
        """Take the report of another registry about its entities (P2P-25).

        Args:
            said: The report.
            now: Seconds on the host's clock.
        """
        entry = self._entries.get(said.remote)
        if entry is None:
            return []
        self.claims.unlisted(said.gone, entry)
        effects = [
            *self.entities.unlisted(said.gone, entry),
            *self.claims.listed(said.there, entry, now),
        ]
        for remote, entity in self.claims.freed(said.gone):
            # It has moved, and its new runtime reported that first.
            effects += self.claims.listed([entity], self._entries[remote], now)
        return effects

    # ---- requester side

    def plan(self, plan: RequesterPlan, now: float) -> list[Effect]:
        """Begin to set up a link, unless one exists or failed a moment ago (RES-10, I-P7).

        Args:
            plan: The requester to deploy.
            now: Seconds on the host's clock.
        """
        if (
            self._is_closed
            or plan.remote in self._entries
            or now < self._cooling.get(plan.remote, -math.inf)
            or self._is_barred(plan.remote, now)
        ):
            return []
        self._minted += 1
        url = f"{self._runtime}/p2prequester/{self._minted}"
        entry = LinkEntry(plan.remote, Role.REQUESTER, url, url, self._life(plan.remote), plan)
        self._entries[plan.remote] = entry
        return [PeerKnown(url, plan.remote), *entry.begun(now), SetPath(url)]

    def disproved(self, plan: RequesterPlan, now: float) -> list[Effect]:
        """Give up a link that was set up by a plan which is wrong, unless it serves an entity.

        Args:
            plan: The plan.
            now: Seconds on the host's clock.
        """
        entry = self._entries.get(plan.remote)
        if entry is None or entry.plan is not plan or entry.entities:
            return []
        effects = self._given_up(entry, now)
        # The runtime is not to blame: a link by its own record may follow at once.
        self._cooling.pop(plan.remote, None)
        self._failed.pop(plan.remote, None)
        return effects

    def _life(self, remote: str) -> Entity:
        return Entity(p2p_entry.P2P_ENTRY, f"{self._runtime}|{remote}")

    def path_set(self, url: str, refusal: str | None, now: float) -> list[Effect]:
        """Deploy the requester once its path is acknowledged (P2P-05, I-P10).

        Args:
            url: Address of the requester.
            refusal: Why the node refused the path; None: it is set.
            now: Seconds on the host's clock.
        """
        entry = self.entry_by(url)
        if entry is None or entry.plan is None:
            return [RemovePath(url)]
        if refusal is not None:
            return self._remove(entry, now)
        entry.deployment = Deployment.ORDERED
        return [Deploy(url, entry.plan)]

    def has_requester(self, url: str) -> bool:
        """Return whether this is a requester of this table."""
        ends = [end for entry in self.entries() for end in entry.ends]
        return any(end.link == url and end.role is Role.REQUESTER for end in ends)

    def gone(self, url: str, now: float) -> list[Effect]:
        """Note that a stub is not deployed, or no longer.

        Args:
            url: Address of the stub.
            now: Seconds on the host's clock.
        """
        effects: list[Effect] = []
        for entry in self.entries():
            if entry.beside is not None and entry.beside.stub == url:
                effects += self._beside_ended(entry, entry.beside)
            if entry.stub == url:
                # What its record said does not work: the next attempt is by a new one.
                self._records.forget_runtime(entry.remote)
                effects += self._remove(entry, now)
        return effects

    def over(self, stub: str, link: str, now: float) -> list[Effect]:
        """Note that a link has ended for good, as its stub reports (I-P19).

        Args:
            stub: Address of the stub.
            link: Address of the link.
            now: Seconds on the host's clock.
        """
        for entry in self.entries():
            if entry.stub == stub and entry.link == link:
                return self._remove(entry, now)
            beside = entry.beside
            if beside is not None and (beside.stub, beside.link) == (stub, link):
                return self._beside_ended(entry, beside)
        return []

    def forged(self, link: str, now: float) -> list[Effect]:
        """End all links to a peer that sends from addresses of others, and take none for a while.

        Args:
            link: Address of the link that such messages came by.
            now: Seconds on the host's clock.
        """
        ends = ((entry, end) for entry in self.entries() for end in entry.ends)
        entry = next((entry for entry, end in ends if end.link == link), None)
        if entry is None:
            return []
        effects: list[Effect] = []
        if entry.beside is not None:
            new = entry.beside
            effects = [Disconnect(new.stub, new.remote, new.link), *self._beside_ended(entry, new)]
        effects += self._given_up(entry, now)
        self._barred = {one: until for one, until in self._barred.items() if until > now}
        self._barred[entry.remote] = now + ERROR_WINDOW
        return effects

    def _is_barred(self, remote: str, now: float) -> bool:
        return now < self._barred.get(remote, -math.inf)

    # ---- status events

    def status(self, seen: StatusSeen, now: float) -> list[Effect]:
        """Take a link's status event; an event of a link without an entry can only end that link.

        Args:
            seen: The event.
            now: Seconds on the host's clock.
        """
        remote, link = seen.resource, seen.link or seen.stub
        if remote is None or self._is_closed:
            return []
        entry = self._entries.get(remote)
        value = State(seen.value)
        if entry is not None and entry.link == link:
            return self._moved(entry, value, now)
        if entry is not None and entry.beside is not None and entry.beside.link == link:
            return self._beside_moved(entry, entry.beside, value, now)
        if value in {State.FAILED, State.DISCONNECTED}:
            return self._stray_ended(seen.stub, link)
        is_requester = seen.stub == link
        is_barred = self._is_barred(remote, now)
        if value is State.CREATED and not is_requester and not is_barred:
            new = LinkEntry(remote, Role.HANDLER, seen.stub, link, self._life(remote))
            return self._invited(new, now)
        # A requester whose entry another link took while it was being deployed is ended, and
        # a handler's link that its row refused, and accepted because that has gone since, or whose
        # peer has forged senders a moment ago.
        is_stray = value is State.CREATED if is_requester else entry is None
        return [Disconnect(seen.stub, remote, link)] if is_stray else []

    def _invited(self, new: LinkEntry, now: float) -> list[Effect]:
        """Take a handler's new link; the entry's table says what becomes of the link there is.

        If that one wins, the handler refuses the invitation when it asks for the row.
        """
        there = self._entries.get(new.remote)
        if there is None:
            return self._begun(new, now)
        if there.beside is not None:
            # The handler has one link to a runtime: the one it had before has ended.
            return [*self._older_ended(there, there.beside, now), *self._invited(new, now)]
        step = there.contested(self._runtime, new.link)
        if step.new == p2p_entry.State.REMOVED:
            new.entities = there.entities
            return [step, *self._replaced(there), *self._begun(new, now)]
        if step.new == p2p_entry.State.YIELDING:
            self._entries[new.remote] = new
            steps = [step, *there.yields_to(new, now), new.changed(Op.UPD)]
            return [PeerKnown(new.link, new.remote), *steps]
        if step.new == p2p_entry.State.BOUND:
            there.beside = new
            return [PeerKnown(new.link, new.remote), step]
        return [step]

    def _begun(self, new: LinkEntry, now: float) -> list[Effect]:
        new.life = self._life(new.remote)
        self._entries[new.remote] = new
        return [PeerKnown(new.link, new.remote), *new.begun(now)]

    @staticmethod
    def _replaced(entry: LinkEntry) -> list[Effect]:
        """Let a new link take the place of an entry, which leaves it its entities.

        What still comes by the old link is taken until its stub says that it has ended.
        """
        effects: list[Effect] = [entry.changed(Op.DEL), LinkDown(entry.remote), RoutesChanged()]
        return [*effects, *LinkTable._let_go(entry)]

    @staticmethod
    def _let_go(link: LinkEntry) -> list[Effect]:
        """Have a link end for which another is there; a handler has ended its older one."""
        if link.role is Role.HANDLER:
            return [UnregisterLink(link.link)]
        return [Disconnect(link.stub, link.remote, link.link)]

    # ---- two links at once

    def _older_ended(self, entry: LinkEntry, beside: LinkEntry, now: float) -> list[Effect]:
        is_beside = beside.role is Role.HANDLER
        return self._beside_ended(entry, beside) if is_beside else self._remove(entry, now)

    def _beside_moved(
        self, entry: LinkEntry, beside: LinkEntry, value: State, now: float
    ) -> list[Effect]:
        if value is State.FAILED:
            return self._beside_ended(entry, beside)
        if beside.role is Role.HANDLER:
            return self._invitation_moved(entry, beside, value)
        orders = beside.reported_while_yielding(value)
        if value is not State.LIVE:
            return orders
        # It was live before the order to yield: the other one may take its place.
        beside.yields_due, entry.beside, beside.beside = 0, None, entry
        self._entries[entry.remote] = beside
        return self._moved(beside, value, now)

    def _invitation_moved(self, entry: LinkEntry, new: LinkEntry, value: State) -> list[Effect]:
        """Let an invited link take the live one's place as soon as it is live itself."""
        if value is State.DISCONNECTED:
            return [Disconnect(new.stub, new.remote, new.link), *self._beside_ended(entry, new)]
        if value is State.LIVE and new.has_listeners:
            return self._taken_over(entry, new)
        new.awaits_listeners = value is State.LIVE
        return [RegisterLink(new.link, new.stub)] if new.awaits_listeners else []

    def _taken_over(self, old: LinkEntry, new: LinkEntry) -> list[Effect]:
        old.beside = None
        self._entries[old.remote] = new
        steps = new.took_over(old)
        return [*steps, new.changed(Op.UPD), RoutesChanged(), *self._let_go(old)]

    @staticmethod
    def _beside_ended(entry: LinkEntry, beside: LinkEntry) -> list[Effect]:
        """Go on with the one link that is left."""
        entry.beside = None
        return LinkTable._stray_ended(beside.stub, beside.link)

    def _resumed(self, winner: LinkEntry, own: LinkEntry, now: float) -> list[Effect]:
        """Let our own request go on: the link that it waited for has failed."""
        winner.beside = None
        self._entries[own.remote] = own
        return [*own.resumed(now), PeerGone(winner.link), UnregisterLink(winner.link)]

    @staticmethod
    def _stray_ended(stub: str, link: str) -> list[Effect]:
        if stub != link:
            return [PeerGone(link), UnregisterLink(link)]
        return [PeerGone(link), Undeploy(stub), RemovePath(stub)]

    def _moved(self, entry: LinkEntry, value: State, now: float) -> list[Effect]:
        match value:
            case State.LIVE if entry.role is Role.HANDLER and not entry.has_listeners:
                # It is live for us once its listeners stand, unless it is lost before.
                entry.sets_up(State.IN_PROGRESS)
                entry.awaits_listeners = True
                return [RegisterLink(entry.link, entry.stub)]
            case State.LIVE:
                return self._live(entry)
            case State.DISCONNECTED:
                return self._disconnected(entry, now)
            case State.FAILED:
                return self._remove(entry, now)
            case State.YIELDING:
                # It goes on: its report crossed the order.
                return entry.reported_while_yielding(value)
            case _:
                entry.sets_up(value)
                return [entry.changed(Op.UPD)]

    def registered(self, link: str, refusal: str | None, now: float) -> list[Effect]:
        """Route to a handler's link once both listeners are there (I-P17, I-P18).

        Args:
            link: Address of the link.
            refusal: Why the handler refused the listeners; None: they stand.
            now: Seconds on the host's clock.
        """
        found = ((entry, end) for entry in self.entries() for end in entry.ends)
        entry, end = next((pair for pair in found if pair[1].link == link), (None, None))
        if entry is None or end is None:
            return [UnregisterLink(link)]
        if refusal is not None:
            ended = self._remove(entry, now) if end is entry else self._beside_ended(entry, end)
            return [Disconnect(end.stub, end.remote, end.link), *ended]
        end.has_listeners = True
        if not end.awaits_listeners:
            return []
        return self._live(entry) if end is entry else self._taken_over(entry, end)

    def _live(self, entry: LinkEntry) -> list[Effect]:
        self._failed.pop(entry.remote, None)
        steps = entry.went_live()
        found = self._settle(entry, resolve_job.Trigger.FOUND)
        own = entry.yielding
        effects: list[Effect] = [*steps, entry.changed(Op.UPD), *found, RoutesChanged()]
        if own is None:
            return effects
        # It has lost the simultaneous open for good.
        entry.beside = None
        return [*effects, *self._let_go(own)]

    def _settle(self, entry: LinkEntry, trigger: resolve_job.Trigger) -> list[Effect]:
        """End the searches that wait for this link."""
        return [*self._jobs.settle(map(link_key, sorted(entry.entities)), trigger)]

    def _disconnected(self, entry: LinkEntry, now: float) -> list[Effect]:
        effects: list[Effect] = [*entry.was_lost(), entry.changed(Op.UPD), RoutesChanged()]
        if entry.beside is not None and entry.yielding is None:
            new, entry.beside = entry.beside, None
            return [*effects, *self._invited(new, now)]
        if entry.role is Role.HANDLER:
            entry.until = now + SESSION_IDLE
            return effects
        return [*effects, *self._reconnect(entry, now)]

    def _reconnect(self, entry: LinkEntry, now: float) -> list[Effect]:
        if entry.plan is None or entry.tries >= RECONNECT_TRIES:
            return self._given_up(entry, now)
        entry.until = now + DIAL_TIMEOUT + RECONNECT_BASE * 2.0**entry.tries
        entry.tries += 1
        return [Connect(entry.stub, entry.plan.handler)]

    # ---- the end

    def deadline(self) -> float:
        """Return when `tick` is due."""
        untils = [min(entry.until, entry.fails_at) for entry in self._entries.values()]
        return min([self.claims.deadline(), *untils])

    def tick(self, now: float) -> list[Effect]:
        """Reconnect lost links, or give links up; read the records of listed entities."""
        effects: list[Effect] = []
        for entry in self.entries():
            if entry.fails_at <= now:
                if entry.beside is not None:
                    effects += self._beside_ended(entry, entry.beside)
                self._records.forget_runtime(entry.remote)
                effects += self._given_up(entry, now)
            elif entry.until <= now:
                effects += self._reconnect(entry, now)
        return [*effects, *self.claims.tick(now)]

    def _given_up(self, entry: LinkEntry, now: float) -> list[Effect]:
        return [Disconnect(entry.stub, entry.remote, entry.link), *self._remove(entry, now)]

    def close(self) -> list[Effect]:
        """Remove all entries, and take no new ones; others end links and searches."""
        self._is_closed = True
        entries = self.entries()
        self._entries.clear()
        self.entities.clear()
        self.claims.clear()
        handled = [entry for entry in entries if entry.role is Role.HANDLER]
        gone: list[Effect] = [effect for entry in entries for effect in entry.ended()]
        return [*gone, RoutesChanged(), *(UnregisterLink(entry.link) for entry in handled)]

    def _remove(self, entry: LinkEntry, now: float) -> list[Effect]:
        """Remove an entry with all that belongs to it (P2P-28), or go on with the link beside."""
        if entry.yielding is not None:
            return self._resumed(entry, entry.yielding, now)
        beside, entry.beside = entry.beside, None
        removed = self._removed(entry, now)
        return removed if beside is None else [*removed, *self._begun(beside, now)]

    def _cool(self, entry: LinkEntry, now: float) -> None:
        """Begin the pause before the next set-up; it doubles while none has led to a link.

        A peer that was killed has its record until its session ends: it is not tried all the time.
        """
        old = {one for one, until in self._cooling.items() if until + SESSION_IDLE <= now}
        for one in old:
            del self._cooling[one]
            self._failed.pop(one, None)
        failed = self._failed.get(entry.remote, 0)
        if entry.role is Role.REQUESTER:
            self._failed[entry.remote] = failed + 1
        pause = RETRY_COOL_DOWN * 2.0 ** min(failed, RECONNECT_TRIES + 2)
        self._cooling[entry.remote] = now + min(pause, SESSION_IDLE)

    def _removed(self, entry: LinkEntry, now: float) -> list[Effect]:
        del self._entries[entry.remote]
        self._cool(entry, now)
        self.entities.forget(entry)
        self.claims.forget(entry.remote)
        none = self._settle(entry, resolve_job.Trigger.NONE)
        effects: list[Effect] = [*entry.ended(), PeerGone(entry.link), *none, RoutesChanged()]
        if entry.role is Role.HANDLER:
            return [*effects, UnregisterLink(entry.link)]
        return [*effects, Undeploy(entry.stub), RemovePath(entry.stub)]
