"""The other nodes of the domain, as the bus knows them, and what this node writes for them.

Rows that other nodes write are applied to the tables of this node: a runtime with a session
elsewhere owns its addresses here, too. What local sessions change is written as rows, and the link
that asked for it is answered when it is written. A message for a runtime with a session elsewhere,
or for subscribers there, is given to that node, once for all of them; what comes from other nodes
is for local sessions only.

A node that may have lost its lease is fenced: it leaves all links, and forgets what it knows.
"""

import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, assert_never, final

import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Reply
from actors.node.dashboard.overview import Overview
from actors.node.group.agreed import Agreed
from actors.node.group.carrier import Carrier
from actors.node.group.held_links import HeldLinks, ReadOut
from actors.node.group.messages import (
    Arrivals,
    Carry,
    EngineBack,
    NotCarried,
    RowsAnswered,
    RowsCame,
    Serving,
    StoreReady,
    StoreRef,
    WatchAnew,
    WriteRows,
)
from actors.node.group.owner_rows import OwnerRows
from actors.node.group.path_rows import PathRows
from actors.node.group.refusals import DOWN, ELSEWHERE, FENCED, FULL, LONG, RowRefusals
from actors.node.group.trace import GroupTrace
from actors.node.links.port import Port
from actors.node.messages import CatalogueRead, GroupEvent, PoliciesReread, RuntimeLeft
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.session.other_nodes import OtherNodes
from actors.node.session.session import Session
from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.group import membership, moves
from fsm.group import rows_io as rows
from fsm.group.catalogue import CatalogueRow
from fsm.group.homes import Homes
from fsm.group.kinds import (
    GroupRow,
    Holder,
    Kind,
    NameRow,
    NodeRow,
    OwnerRow,
    PathRow,
    SessionRow,
    name_key,
    session_key,
)
from fsm.group.order import SenderOrder
from fsm.group.policies import PolicyRow
from fsm.group.rows import RowsCore
from fsm.session.node_session_io import MovedAway, OutboundMessage, Resumed
from fsm.session.runtime_names import Change as NameChange
from fsm.session.runtime_names import NameForgotten
from specs.limits.group import GROUP_ADDRESS
from specs.trace import Op
from transports.engine.contract import Engine
from transports.errors import CloseReason

__all__ = ["Group"]

_log = get_logger("actors.node")
_NODES: Final = f"{Kind.NODE}/"


@final
class Group(OtherNodes):
    """Host of the cores of the group; part of the bus's task.

    Args:
        exchange: The sessions of this node.
        engine: The engine; here only its health is looked at.
        trace: Of what comes from other nodes and goes to them.
        member: Decides whether this node is a member.
        agreed: What the domain has one version of.

    Attributes:
        homes: Where the sessions of other nodes are.
        overview: What people are shown of the group.
        tidies: Returns whether this node, and no other, removes a row that belongs to no node.
    """

    def __init__(
        self,
        exchange: Exchange,
        engine: Engine,
        trace: GroupTrace,
        member: membership.MembershipCore,
        agreed: Agreed,
    ) -> None:
        self._exchange: Final = exchange
        self._tables: Final = exchange.tables
        self._engine: Final = engine
        self._trace: Final = trace
        self._membership: Final = member
        self._rows: Final = RowsCore()
        self._moves: Final = moves.MovesCore()
        order = SenderOrder(self._rows, self._moves)
        self.homes: Final = Homes(member.is_live, exchange.tables.elsewhere, order)
        self._store: StoreRef | None = None
        self._link: ActorRef[Carry] | None = None
        self._leases = deque[rows.Answered]()
        self._held: Final = HeldLinks(exchange.ports)
        self._reading: Final = ReadOut(exchange)
        self._refusals: Final = RowRefusals(trace.component.counters)
        self._carrier: Final = Carrier(exchange, self.homes, member, trace, self._held)
        self._owners: Final = OwnerRows(self._tables, exchange.sessions, self._write, self._hold)
        self.overview: Final = Overview(
            member, self.homes, self._rows, waiting=lambda: self._carrier.waiting,
            engine=engine, counters=trace.component.counters,
        )  # fmt: skip
        self.tidies: Final = member.tidies
        self._paths: Final = PathRows(member, self.homes, self._tables, self._write)
        self._starting = list[Reply[None]]()
        self._is_current = self._is_leaving = self._is_applying = self._is_gone = False
        self._begun: set[str] = set()
        exchange.tables.watcher = self
        self._agreed: Final = agreed
        agreed.begin(self._write, self.objection)

    # ---- news

    @override
    def heed(self, event: GroupEvent) -> None:
        match event:
            case StoreReady():
                self._begin(event)
            case Serving(reply):
                self._starting.append(reply)
                self._look_current()
            case Arrivals() | NotCarried():
                self._carrier.heed(event)
            case RowsCame() | RowsAnswered():
                self._rows_moved(event)
            case EngineBack():
                self._member(membership.Renew())
            case PoliciesReread() | CatalogueRead():
                self._agreed.heed(event)
            case _:
                pass

    def _rows_moved(self, event: RowsCame | RowsAnswered) -> None:
        match event:
            case RowsCame(news):
                self._begun.update(one.prefix for one in news if isinstance(one, rows.Gap))
                for one in news:
                    self._applied(self._rows.feed(one, self._now))
                    if isinstance(one, rows.Gap | rows.Current) and one.prefix == _NODES:
                        self._member(one)
                self._look_current()
            case RowsAnswered(answers):
                for answer in answers:
                    self._applied(self._rows.feed(answer, self._now))

    @property
    def _now(self) -> float:
        return trio.current_time()

    def _begin(self, ready: StoreReady) -> None:
        """Work with the actors, which have started, perhaps again."""
        self._store, self._link, self._leases = ready.store, ready.link, ready.leases
        self._applied(self._rows.feed(rows.AllUnanswered(), self._now))
        if self._membership.state is None:
            self._join()

    def _join(self) -> None:
        self._member(membership.Join(secrets.randbits(62) + 1))

    def _look_current(self) -> None:
        """Look at what nobody holds once all rows are known, and begin to serve."""
        if not self._is_current and len(self._begun) == len(Kind) and self._rows.is_current:
            self._is_current = True
            self._tidy_paths()
        if self.is_member and self._agreed.known():
            for reply in self._starting:
                reply.send(None)
            self._starting.clear()

    # ---- the membership

    def _member(self, happened: membership.Input) -> None:
        for effect in self._membership.feed(happened, self._now):
            self.overview.noted(effect)
            match effect:
                case Step():
                    self._trace.component.step(effect)
                case membership.PutLease() | membership.DropLease():
                    self._lease(effect)
                case membership.Admitted() | membership.IdTaken() | membership.GroupFull():
                    self._trace.joins(effect)
                    self._look_current()
                    self._tidy_paths()
                case membership.Fenced(why):
                    self._fence(why)
                case membership.NodeCame() | membership.NodeGone() | rows.Rejected():
                    self._other_node(effect)
                case membership.Left():
                    pass
                case _:
                    assert_never(effect)

    def _lease_answered(self, answer: rows.Answered) -> None:
        self.overview.answered(answer)
        if isinstance(answer, rows.Written):
            with self._applying():
                self._owners.renewed()
        self._member(answer)
        self._trace.renewed(answer, self._membership.holder)

    def _lease(self, work: membership.PutLease | membership.DropLease) -> None:
        if isinstance(work, membership.PutLease):
            work = self.overview.reporting(work)
            self._owners.asked()
        is_taken = self._store is not None and self._store.try_tell(work)
        if not is_taken and isinstance(work, membership.PutLease):
            self._member(rows.Unanswered(work.number))

    def _other_node(self, news: membership.NodeNews) -> None:
        match news:
            case rows.Rejected():
                self._noted(news)
            case membership.NodeCame(row):
                self._trace.came(row.holder)
                self._moved(row.holder)
            case membership.NodeGone(holder):
                self._trace.gone(holder, is_expected=self._is_leaving)
                self._moved(holder)
                self._carrier.lose(holder.node)
        self._tidy_paths()

    def _moved(self, holder: Holder) -> None:
        self.homes.node_moved(holder.node, self._now)
        self._tables.remembered.forget()

    def _fence(self, why: str) -> None:
        """Leave all links, and forget all: others may have the sessions of this node."""
        _log.error("fenced", node=self._membership.node, why=why)
        exchange = self._exchange
        self._is_current = False
        self._begun.clear()
        self._moves.fenced()
        self._agreed.fenced()
        for session in list(exchange.sessions.values()):
            exchange.feed(session, MovedAway("the node has lost its lease"))
        for port in list(exchange.ports.values()):
            port.finish(CloseReason.GOING_AWAY)
        exchange.ports.clear()
        self._held.clear()
        self._carrier.lose_all()
        self._owners.forget()
        self._applied(self._rows.feed(rows.Forget(), self._now))
        self._forget_all()
        if not self._is_leaving and self._store is not None:
            self._store.try_tell(WatchAnew())
            self._join()

    @property
    @override
    def is_member(self) -> bool:
        return self._is_current and self._membership.may_write(self._now)

    @override
    def objection(self, runtime: str | None = None) -> Refused | None:
        if not self.is_member:
            return FENCED
        if not self._engine.health.is_up:
            return DOWN
        if self._rows.is_full:
            return FULL
        if runtime is None or runtime in self._exchange.sessions:
            return None
        if len(runtime.encode()) > GROUP_ADDRESS:
            return LONG
        return ELSEWHERE if self.homes.is_for_its_node_only(runtime) else self._agreed.objection

    # ---- rows of others

    def _applied(self, effects: list[rows.Effect]) -> None:
        for effect in effects:
            match effect:
                case rows.Applied(row):
                    self._row(row, effect)
                case rows.Withdrawn(row):
                    self._row_gone(row, effect)
                case rows.Done(key, tickets, row, revision):
                    self._trace.home(row, revision, self._membership.holder)
                    self._carrier.left_behind.written(key, self._now)
                    self._held.release_all(tickets)
                    self._agreed.written(key)
                case rows.Lost():
                    self._lost(effect)
                case rows.Read() | rows.Rejected():
                    self._noted(effect)
                case _:
                    assert_never(effect)

    def _noted(self, effect: rows.Read | rows.Rejected) -> None:
        if isinstance(effect, rows.Rejected):
            self._refusals.note(effect.key, effect.reason)
        elif self._store is not None:
            self._store.try_tell(effect)

    def _row(self, row: GroupRow, said: rows.RowNews) -> None:
        match row:
            case NodeRow(holder):
                seen = membership.NodeSeen(holder.node, row, said.revision)
                self._member(seen)
                self.overview.heard(row)
            case SessionRow(runtime):
                self._session(runtime, row, said)
            case OwnerRow():
                with self._applying():
                    self._owners.there(row)
            case PathRow():
                self._paths.there(row)
            case NameRow(name):
                self._exchange.names.mirror(name)
            case PolicyRow() | CatalogueRow():
                self._agreed.there(row)
            case _:
                assert_never(row)

    def _row_gone(self, row: GroupRow, said: rows.RowNews) -> None:
        match row:
            case NodeRow(holder):
                gone = membership.NodeSeen(holder.node, None, said.revision)
                self._member(gone)
            case SessionRow(runtime):
                self._session(runtime, None, said)
            case OwnerRow(_, runtime):
                is_kept = isinstance(said, rows.Withdrawn) and runtime in self._exchange.sessions
                with self._applying():
                    (self._owners.missing if is_kept else self._owners.gone)(row)
                if is_kept:
                    self._member(membership.Renew())
            case PathRow():
                self._paths.gone(row)
            case NameRow(name):
                self._exchange.names.mirror(NameForgotten(name.runtime))
            case PolicyRow() | CatalogueRow():
                self._agreed.gone(row)
            case _:
                assert_never(row)

    def _session(self, runtime: str, there: SessionRow | None, said: rows.RowNews) -> None:
        """Follow the row of a session, which is right whatever this node has decided."""
        here = self._membership.holder
        if there is not None and there.holder != here:
            self.homes.session(there, self._now)
            with self._applying():
                self._tables.came_elsewhere(runtime, there.form)
        self._follow(self._moves.feed(said, here))
        if there is None and runtime not in self._exchange.sessions:
            self.homes.session_over(runtime)
            with self._applying():
                self._tables.release(runtime, "its session at another node is over")

    def _follow(self, effects: list[moves.Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, moves.GiveUp):
                self._write(effect)
            elif not self._reading.waits(effect, self._now):
                self._give_up(effect)

    def _give_up(self, gone: moves.GiveUp) -> None:
        if (session := self._exchange.sessions.get(gone.runtime)) is not None:
            self._exchange.feed(session, MovedAway(gone.why))
        if gone.to is not None:
            self._carrier.hand_over(gone.runtime)

    def _lost(self, lost: rows.Lost) -> None:
        """Undo what another node has decided otherwise; the link that waits has to ask anew."""
        self._trace.component.counters.count(Tally.ROWS_LOST)
        _log.info("row was changed by another node", key=lost.key)
        if lost.there is not None:
            self._row(lost.there, lost)
        elif lost.row is not None:
            self._row_gone(lost.row, lost)
        for number in lost.tickets:
            self._held.forget(number)
            self._exchange.lost(number, "another node decided otherwise", is_misled=True)

    @contextmanager
    def _applying(self) -> Iterator[None]:
        """Change tables as another node has it: nothing is written."""
        was, self._is_applying = self._is_applying, True
        try:
            yield
        finally:
            self._is_applying = was

    # ---- rows of this node

    @override
    def changed(self, row: RowChanged) -> None:
        if row.table == "subs":
            if row.op is Op.DEL:
                self._paths.over(row.key)
            else:
                self._paths.begun(row.key, self._hold(str(row.val)))
        elif not self._is_applying:
            self._owners.changed(row)

    @override
    def offered(self, address: str, by: str | None) -> None:
        self._owners.offered(address, by)

    def _write(self, change: rows.Change | rows.Remove) -> None:
        if not self._is_current:
            self._held.release(change.ticket)
        else:
            self._applied(self._rows.feed(change, self._now))

    def _hold(self, runtime: str) -> int | None:
        """Have the link of a runtime wait until a row is written; return its number."""
        session = self._exchange.sessions.get(runtime)
        return None if session is None else self._held.hold(session.port)

    # ---- sessions

    @override
    def take_up(self, runtime: str) -> Session | None:
        exchange, row = self._exchange, self.homes.row(runtime)
        kept = self.homes.kept(runtime, self._now - exchange.names.wall())
        if row is None or kept is None:
            return None
        session = exchange.begin(row.stub, Asker(runtime, row.identity), runtime)
        is_followed = self.homes.node_of(runtime) is not None
        exchange.feed(session, Resumed(kept, is_of_other=True, is_followed=is_followed))
        return session

    @override
    def keep(self, session: Session, port: Port | None) -> None:
        core, runtime = session.core, session.core.runtime
        form = self._tables.form_of(runtime)
        if form is None or self._reading.is_moved(runtime):
            return
        here, before = self._membership.holder, self._rows.row(session_key(runtime))
        row = SessionRow(runtime, here, 0, form, session.stub, core.kept, session.identity)
        if (old := self.homes.node_of(runtime)) is not None:
            self._carrier.left_behind.begin(runtime, old, self._held.hold(port), self._now)
        change = self._moves.keep(row, before, self._held.hold(port))
        self.homes.session_over(runtime)
        self._tables.remembered.forget()
        self._write(change)

    def keep_name(self, change: NameChange, port: Port | None) -> None:
        """Have other nodes know what this node has decided about a name.

        Args:
            change: The change.
            port: A link that is answered only when it is known; None: none.
        """
        link = self._held.hold(port)
        if isinstance(change, NameForgotten):
            self._write(rows.Remove(name_key(change.runtime), link))
        else:
            self._write(rows.Change(NameRow(change), link))

    @override
    def ended(self, runtime: str, *, is_resumable: bool) -> AbstractContextManager[None]:
        removed = self._moves.end(runtime)
        if not is_resumable:
            self._follow(removed)
        return self._applying() if is_resumable else nullcontext()

    def _tidy_paths(self) -> None:
        if self.is_member:
            self._paths.tidy()

    def _expire(self, runtime: str) -> None:
        """End the session of a runtime whose node is gone, and that has not come back."""
        if not self.tidies(session_key(runtime)) or self.homes.row(runtime) is None:
            return
        why, exchange = "its node is gone, and it did not come back", self._exchange
        self.homes.session_over(runtime)
        self._write(rows.Remove(session_key(runtime)))
        self._tables.release(runtime, why)
        exchange.names.ended(runtime)
        exchange.notices.notify(exchange.components.values(), RuntimeLeft(runtime, why))

    # ---- messages

    @property
    @override
    def carrier(self) -> Carrier:
        return self._carrier

    @override
    def carry(self, runtime: str, entry: OutboundMessage) -> bool:
        if not self.is_elsewhere(runtime):
            return False
        self._carrier.carry(runtime, entry)
        return True

    @override
    def is_elsewhere(self, runtime: str) -> bool:
        return self.homes.row(runtime) is not None

    @override
    def lapsed(self, entity: str, runtime: str, observer: str, *, is_expired: bool) -> None:
        self._carrier.lapsed(entity, runtime, observer, is_expired=is_expired)

    # ---- turns of the bus

    @property
    @override
    def is_settled(self) -> bool:
        return self._is_gone or (not self._is_leaving and self._has_sent_all)

    @property
    def _has_sent_all(self) -> bool:
        is_kept = (durable := self._exchange.durable) is None or durable.is_settled
        return is_kept and self._rows.is_settled and self._carrier.is_settled

    @override
    def read_out(self) -> None:
        while self._leases:
            self._lease_answered(self._leases.popleft())
        for gone in self._reading.over(self._now):
            self._give_up(gone)

    @override
    def settle(self) -> None:
        now = self._now
        if self._store is None or self._link is None:
            return
        if not self._membership.may_write(now):
            self._member(membership.Tick())
            return
        if self._is_current:
            self._write_rows(self._store, now)
        self._carrier.settle(self._link)
        if self._exchange.departure.is_over and self._has_sent_all:
            self._go()

    def _write_rows(self, store: StoreRef, now: float) -> None:
        puts = self._rows.writes(now)
        if puts and not store.try_tell(WriteRows(puts)):
            for one in puts:
                self._applied(self._rows.feed(rows.Unanswered(one.number), now))

    def _go(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._member(membership.Gone())

    @override
    def deadline(self) -> float:
        moves = min(self.homes.deadline(), self._carrier.left_behind.deadline())
        due = min(self._membership.deadline(), moves, self._reading.deadline())
        return min(due, self._rows.deadline(self._now)) if self._is_current else due

    @override
    def tick(self) -> None:
        self.read_out()  # the lease may have been renewed in time
        now = self._now
        self._member(membership.Tick())
        self._carrier.left_behind.tick(now)
        for runtime in self.homes.overdue(now):
            self._expire(runtime)

    @override
    def leave(self) -> bool:
        self._is_leaving = True
        is_possible = self.objection() is None and bool(self._membership.others)
        self._member(membership.Leave())
        return is_possible

    @override
    def close(self) -> None:
        self._go()
        self._forget_all()

    def _forget_all(self) -> None:
        with self._applying():
            for runtime in self.homes.runtimes:
                self.homes.session_over(runtime)
                self._tables.release(runtime, "this node is none of the group any more")
