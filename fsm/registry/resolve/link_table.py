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

from fsm.engine import Entity
from fsm.machines import p2p_entry, resolve_job
from fsm.machines.p2p_connection import State
from fsm.p2p.link_end import Role
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.jobs import ResolveJobs, link_key
from fsm.registry.resolve.link_entry import Deployment, LinkEntities, LinkEntry
from fsm.registry.resolve.port import RequesterPlan, RoutesPort
from specs.limits import protocol
from specs.trace import Op


class LinkTable:
    """The link to each remote runtime.

    The searches in `jobs` that wait for a link end when its entry is live or gone.

    Attributes:
        entities: The entities at the other ends.
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
        """Return the entry of a link, for any status."""
        return next((entry for entry in self._entries.values() if entry.link == link), None)

    def row(self, whom: str, stub: str) -> LinkEntry | None:
        """Return the link to a runtime, or to an entity at it, for the stub that asks (P2P-18)."""
        entry = self._entries.get(self.entities.remote_of(whom))
        return None if entry is None else entry.row_for(stub)

    def live_link(self, entity: str) -> str | None:
        """Return the live link to an entity or to a part of a remote runtime."""
        entry = self._entries.get(self.entities.remote_of(entity))
        return entry.url if entry is not None and entry.is_live else None

    def witness(self, link: str, entity: str, now: float) -> None:
        """Have the record read of an entity that a link's other end speaks for, unless known."""
        entry = self.entry_by(link)
        if entry is not None:
            self.entities.look_up(entity, entry, now)

    def list_entities(
        self, remote: str, there: tuple[str, ...], gone: tuple[str, ...], now: float
    ) -> None:
        """Take the report of another registry: what lives there, and no longer (P2P-25)."""
        entry = self._entries.get(remote)
        if entry is None:
            return
        self.entities.remove_listed(gone, entry)
        self.entities.add_listed(there, entry, now)
        for other, entity in self.entities.freed(gone):
            # It has moved, and its new runtime reported that first.
            self.entities.add_listed([entity], self._entries[other], now)

    # ---- requester side

    def may_plan(self, remote: str, now: float) -> bool:
        """Return whether a link may be set up: none exists, and none failed a moment ago."""
        is_cooling = now < self._cooling.get(remote, -math.inf)
        is_known = remote in self._entries
        return not (self._is_closed or is_known or is_cooling or self._is_barred(remote, now))

    def plan(self, plan: RequesterPlan, now: float) -> bool:
        """Begin to set up a link if that may be (RES-10, I-P7); return whether it may."""
        if not self.may_plan(plan.remote, now):
            return False
        self._minted += 1
        url = f"{self._runtime}/p2prequester/{self._minted}"
        entry = LinkEntry(plan.remote, Role.REQUESTER, url, url, self._life(plan.remote), plan)
        self._begin(entry, now)
        self._port.set_path(url)
        return True

    def disproved(self, plan: RequesterPlan, now: float) -> None:
        """Give up a link that was set up by a wrong plan, unless it serves an entity."""
        entry = self._entries.get(plan.remote)
        if entry is None or entry.plan is not plan or entry.entities:
            return
        self._give_up(entry, now)
        # The runtime is not to blame: a link by its own record may follow at once.
        self._cooling.pop(plan.remote, None)
        self._failed.pop(plan.remote, None)

    def _life(self, remote: str) -> Entity:
        return Entity(p2p_entry.P2P_ENTRY, f"{self._runtime}|{remote}")

    def path_set(self, url: str, refusal: str | None, now: float) -> None:
        """Deploy the requester once its path is set, not refused (P2P-05, I-P10)."""
        entry = self.entry_by(url)
        if entry is None or entry.plan is None:
            self._port.remove_path(url)
        elif refusal is not None:
            self._remove(entry, now)
        else:
            entry.deployment = Deployment.ORDERED
            self._port.deploy(url, entry.plan)

    def has_requester(self, url: str) -> bool:
        """Return whether this is a requester of this table."""
        ends = [end for entry in self.entries() for end in entry.ends]
        return any(end.link == url and end.role is Role.REQUESTER for end in ends)

    def gone(self, url: str, now: float) -> None:
        """Note that a stub is not deployed, or no longer."""
        for entry in self.entries():
            if entry.beside is not None and entry.beside.stub == url:
                self._end_beside(entry, entry.beside)
            if entry.stub == url:
                # What its record said does not work: the next attempt is by a new one.
                self._records.forget_runtime(entry.remote)
                self._remove(entry, now)

    def over(self, stub: str, link: str, now: float) -> None:
        """Note that a link has ended for good, as its stub reports (I-P19)."""
        for entry in self.entries():
            if entry.stub == stub and entry.link == link:
                self._remove(entry, now)
                return
            beside = entry.beside
            if beside is not None and (beside.stub, beside.link) == (stub, link):
                self._end_beside(entry, beside)
                return

    def forged(self, link: str, now: float) -> None:
        """End all links to a peer that sends from addresses of others, and take none for a while.

        Args:
            link: Address of the link that such messages came by.
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
        self._barred = {one: until for one, until in self._barred.items() if until > now}
        self._barred[entry.remote] = now + protocol.ERROR_WINDOW

    def _is_barred(self, remote: str, now: float) -> bool:
        return now < self._barred.get(remote, -math.inf)

    def _disconnect(self, link: LinkEntry) -> None:
        self._port.disconnect(link.stub, link.remote, link.link)

    # ---- status events

    def status(self, stub: str, value: str, remote: str, link: str, now: float) -> None:
        """Take a link's status event; an event of a link without an entry can only end that link.

        Args:
            stub: The stub it comes from.
            value: State entered, in the machine's words.
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
            self._invited(LinkEntry(remote, Role.HANDLER, stub, link, self._life(remote)), now)
        elif state is State.CREATED if is_requester else entry is None:
            # A requester whose entry another link took while it was being deployed is ended, and
            # a handler's link that its row refused, and accepted because that has gone since, or
            # whose peer has forged senders a moment ago.
            self._port.disconnect(stub, remote, link)

    def _invited(self, new: LinkEntry, now: float) -> None:
        """Take a handler's new link; the entry's table says what becomes of the link there is.

        If that one wins, the handler refuses the invitation when it asks for the row.
        """
        old = self._entries.get(new.remote)
        if old is None:
            self._begin(new, now)
            return
        if old.beside is not None:
            # The handler has one link to a runtime: the one it had before has ended.
            self._end_older(old, old.beside, now)
            self._invited(new, now)
            return
        step = old.contest(self._runtime, new.link)
        if step.new in {p2p_entry.State.YIELDING, p2p_entry.State.BOUND}:
            self._port.add_peer(new.link, new.remote)
        self._port.step(step)
        match step.new:
            case p2p_entry.State.REMOVED:
                new.entities = old.entities
                # What still comes by the old link is taken until its stub says that it has ended.
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
        """Have a link end for which another is there; a handler has ended its older one."""
        if link.role is Role.HANDLER:
            self._port.unregister_link(link.link)
        else:
            self._disconnect(link)

    # ---- two links at once

    def _end_older(self, entry: LinkEntry, beside: LinkEntry, now: float) -> None:
        if beside.role is Role.HANDLER:
            self._end_beside(entry, beside)
        else:
            self._remove(entry, now)

    def _move_beside(self, entry: LinkEntry, beside: LinkEntry, value: State, now: float) -> None:
        if value is State.FAILED:
            self._end_beside(entry, beside)
        elif beside.role is Role.HANDLER:
            self._move_invitation(entry, beside, value)
        elif value is not State.LIVE:
            beside.report_while_yielding(self._port, value)
        else:
            # It was live before the order to yield: the other one may take its place.
            beside.deployment = Deployment.AT_WORK
            beside.yields_due, entry.beside, beside.beside = 0, None, entry
            self._entries[entry.remote] = beside
            self._move(beside, value, now)

    def _move_invitation(self, entry: LinkEntry, new: LinkEntry, value: State) -> None:
        """Let an invited link take the live one's place as soon as it is live itself."""
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

    def _end_beside(self, entry: LinkEntry, beside: LinkEntry) -> None:
        """Go on with the one link that is left."""
        entry.beside = None
        self._end_stray(beside.stub, beside.link)

    def _resume(self, winner: LinkEntry, own: LinkEntry, now: float) -> None:
        """Let our own request go on: the link that it waited for has failed."""
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
                # It is live for us once its listeners stand, unless it is lost before.
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
                # It goes on: its report crossed the order.
                entry.report_while_yielding(self._port, value)
            case _:
                entry.sets_up(value)
                entry.trace(self._port, Op.UPD)

    def registered(self, link: str, refusal: str | None, now: float) -> None:
        """Route to a handler's link once both listeners are there, not refused (I-P17, I-P18)."""
        found = ((entry, end) for entry in self.entries() for end in entry.ends)
        entry, end = next((pair for pair in found if pair[1].link == link), (None, None))
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
            # It has lost the simultaneous open for good.
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
            self._invited(new, now)
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
        """Remove all entries, and take no new ones; others end links and searches."""
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
        """Remove an entry with all that belongs to it (P2P-28), or go on with the link beside."""
        if entry.yielding is not None:
            self._resume(entry, entry.yielding, now)
            return
        beside, entry.beside = entry.beside, None
        del self._entries[entry.remote]
        self._cool(entry, now)
        self.entities.forget(entry)
        entry.end(self._port)
        self._port.remove_peer(entry.link)
        self._settle(entry, resolve_job.Trigger.NONE)
        self._port.forget_routes()
        self._end_stub(entry.stub, entry.link)
        if beside is not None:
            self._begin(beside, now)

    def _cool(self, entry: LinkEntry, now: float) -> None:
        """Begin the pause before the next set-up; it doubles while none has led to a link.

        A peer that was killed has its record until its session ends: it is not tried all the time.
        """
        old = {one for one, until in self._cooling.items() if until + protocol.SESSION_IDLE <= now}
        for one in old:
            del self._cooling[one]
            self._failed.pop(one, None)
        failed = self._failed.get(entry.remote, 0)
        if entry.role is Role.REQUESTER:
            self._failed[entry.remote] = failed + 1
        pause = protocol.RETRY_COOL_DOWN * 2.0 ** min(failed, protocol.RECONNECT_TRIES + 2)
        self._cooling[entry.remote] = now + min(pause, protocol.SESSION_IDLE)
