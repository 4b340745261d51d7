"""The other nodes of the domain, as the bus knows them, and what this node writes for them.

This answers the bus: whether the node is a member, what may be changed now, which sessions are at
other nodes. `DomainRows` follows the rows of the domain. A message for a runtime with a session
elsewhere, or for subscribers there, is given to that node, once for all of them; what comes from
other nodes is for local sessions only.

A node that may have lost its lease is fenced: it leaves all links, and forgets what it knows.
"""

import secrets
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import Final, assert_never, final

import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Reply
from actors.node.dashboard.overview import Overview
from actors.node.group.carrier import Carrier
from actors.node.group.link import DOWN, ELSEWHERE, FENCED, FULL, LONG
from actors.node.group.lookups import Lookups
from actors.node.group.messages import (
    Arrivals,
    Carry,
    EngineBack,
    LookUp,
    NotCarried,
    RowsAnswered,
    RowsCame,
    Serving,
    StoreReady,
    WatchAnew,
)
from actors.node.group.rows import Agreed, DomainRows
from actors.node.group.trace import GroupTrace
from actors.node.links.port import Port
from actors.node.messages import CatalogueRead, GroupEvent, PoliciesReread, RuntimeLeft
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.session.other_nodes import OtherNodes
from actors.node.session.session import Session
from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.group import membership, rows
from fsm.group.kinds import Holder, NameRow, SessionRow, name_key, session_key
from fsm.session.node_session_io import OutboundMessage
from fsm.session.runtime_names import Change as NameChange
from fsm.session.runtime_names import NameForgotten
from specs.limits.group import GROUP_ADDRESS
from specs.trace import Op
from transports.engine.contract import Engine
from transports.errors import CloseReason

_log = get_logger("actors.node")


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
        self._agreed: Final = agreed
        self._rows: Final = DomainRows(exchange, member, trace, agreed, self._heed_row)
        self._carrier: Final = self._rows.carrier
        self.homes: Final = self._rows.homes
        self._lookups: Final = Lookups(exchange, self._read)
        self._link: ActorRef[Carry] | None = None
        self._leases = deque[rows.Answered]()
        self.overview: Final = Overview(
            member, self.homes, self._rows.core, waiting=lambda: self._carrier.waiting,
            engine=engine, counters=trace.component.counters,
        )  # fmt: skip
        self.tidies: Final = member.tidies
        self._starting = list[Reply[None]]()
        self._is_leaving = self._is_gone = False
        exchange.tables.watcher = self
        agreed.begin(self._rows.write, self.objection)

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
            case RowsCame(news, asked):
                self._rows.came(news)
                self._look_current()
                if asked is not None:
                    self._lookups.on_row_read(asked, is_read=bool(news))
            case RowsAnswered(answers):
                self._rows.answered(answers)
            case EngineBack():
                self._member(membership.Renew())
            case PoliciesReread() | CatalogueRead():
                self._agreed.heed(event)
            case _:
                pass

    @property
    def _now(self) -> float:
        return trio.current_time()

    def _begin(self, ready: StoreReady) -> None:
        """Work with the actors, which have started, perhaps again."""
        self._link, self._leases = ready.link, ready.leases
        self._rows.begin(ready.store)
        self._lookups.give_up(DOWN)
        if self._membership.state is None:
            self._join()

    def _join(self) -> None:
        self._member(membership.Join(secrets.randbits(62) + 1))

    def _look_current(self) -> None:
        """Look at what nobody holds once all rows are known, and begin to serve."""
        if self._rows.look_current():
            self._tidy_paths()
        if self.is_member and self._agreed.known():
            for reply in self._starting:
                reply.send(None)
            self._starting.clear()

    # ---- the membership

    def _heed_row(
        self, news: membership.NodeSeen | membership.Renew | rows.Gap | rows.Current
    ) -> None:
        """Take what the rows say of the membership of nodes."""
        self._member(news)
        if isinstance(news, membership.NodeSeen) and news.row is not None:
            self.overview.heard(news.row)

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
            with self._rows.applying():
                self._rows.owners.renewed()
        self._member(answer)
        self._trace.renewed(answer, self._membership.holder)

    def _lease(self, work: membership.PutLease | membership.DropLease) -> None:
        if isinstance(work, membership.PutLease):
            work = self.overview.reporting(work)
            self._rows.owners.asked()
        is_taken = self._rows.store is not None and self._rows.store.try_tell(work)
        if not is_taken and isinstance(work, membership.PutLease):
            self._member(rows.Unanswered(work.number))

    def _other_node(self, news: membership.NodeNews) -> None:
        match news:
            case rows.Rejected():
                self._rows.noted(news)
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
        self._lookups.give_up(FENCED)
        self._rows.fenced()
        for session in list(exchange.sessions.values()):
            session.move_away("the node has lost its lease")
        for port in list(exchange.ports.values()):
            port.finish(CloseReason.GOING_AWAY)
        exchange.ports.clear()
        self._rows.forget()
        if not self._is_leaving and self._rows.store is not None:
            self._rows.store.try_tell(WatchAnew())
            self._join()

    @property
    @override
    def is_member(self) -> bool:
        return self._rows.is_current and self._membership.may_write(self._now)

    def _read(self, wanted: LookUp) -> Refused | None:
        """Read a row that may not have come yet; return why that is not possible."""
        store = self._rows.store
        if not self.is_member:
            return FENCED
        is_asked = self._engine.health.is_up and store is not None and store.try_tell(wanted)
        return None if is_asked else DOWN

    @override
    def objection(self, runtime: str | None = None) -> Refused | None:
        if not self.is_member:
            return FENCED
        if not self._engine.health.is_up:
            return DOWN
        if self._rows.core.is_full:
            return FULL
        if runtime is None or runtime in self._exchange.sessions:
            return None
        if len(runtime.encode()) > GROUP_ADDRESS:
            return LONG
        return ELSEWHERE if self.homes.is_for_its_node_only(runtime) else self._agreed.objection

    # ---- rows of this node

    @override
    def changed(self, row: RowChanged) -> None:
        if row.table == "subs":
            if row.op is Op.DEL:
                self._rows.paths.over(row.key)
            else:
                self._rows.paths.begun(row.key, self._rows.hold(str(row.val)))
        elif not self._rows.is_applying:
            self._rows.owners.changed(row)

    # ---- sessions

    @override
    def take_up(self, runtime: str) -> Session | None:
        exchange, row = self._exchange, self.homes.row(runtime)
        kept = self.homes.kept(runtime, self._now - exchange.names.wall())
        if row is None or kept is None:
            return None
        session = exchange.begin(row.stub, Asker(runtime, row.identity), runtime)
        is_followed = self.homes.node_of(runtime) is not None
        session.restore(kept, is_of_other=True, is_followed=is_followed)
        return session

    @override
    def keep(self, session: Session, port: Port | None) -> None:
        core, runtime = session.core, session.core.runtime
        form = self._tables.form_of(runtime)
        if form is None or self._rows.reading.is_moved(runtime):
            return
        here, before = self._membership.holder, self._rows.core.row(session_key(runtime))
        row = SessionRow(runtime, here, 0, form, session.stub, core.kept, session.identity)
        if (old := self.homes.node_of(runtime)) is not None:
            self._carrier.left_behind.begin(runtime, old, self._rows.held.hold(port), self._now)
        change = self._rows.moves.keep(row, before, self._rows.held.hold(port))
        self.homes.session_over(runtime)
        self._tables.remembered.forget()
        self._rows.write(change)

    def keep_name(self, change: NameChange, port: Port | None) -> None:
        """Have other nodes know what this node has decided about a name.

        Args:
            change: The change.
            port: A link that is answered only when it is known; None: none.
        """
        link = self._rows.held.hold(port)
        if isinstance(change, NameForgotten):
            self._rows.write(rows.Remove(name_key(change.runtime), link))
        else:
            self._rows.write(rows.Change(NameRow(change), link))

    @override
    def ended(self, runtime: str, *, is_resumable: bool) -> AbstractContextManager[None]:
        removed = self._rows.moves.end(runtime)
        if not is_resumable:
            self._rows.follow(removed)
        return self._rows.applying() if is_resumable else nullcontext()

    def _tidy_paths(self) -> None:
        if self.is_member:
            self._rows.paths.tidy()

    def _expire(self, runtime: str) -> None:
        """End the session of a runtime whose node is gone, and that has not come back."""
        if not self.tidies(session_key(runtime)) or self.homes.row(runtime) is None:
            return
        why, exchange = "its node is gone, and it did not come back", self._exchange
        self.homes.session_over(runtime)
        self._rows.write(rows.Remove(session_key(runtime)))
        self._tables.release(runtime, why)
        is_released = exchange.names.ended(runtime)
        exchange.left(RuntimeLeft(runtime, why, is_released))

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
        is_kept = is_kept and self._rows.core.is_settled
        return is_kept and self._carrier.is_settled and not self._lookups.pending

    @override
    def read_out(self) -> None:
        while self._leases:
            self._lease_answered(self._leases.popleft())
        for gone in self._rows.reading.over(self._now):
            self._rows.give_up(gone)

    @override
    def settle(self) -> None:
        now = self._now
        if self._rows.store is None or self._link is None:
            return
        if not self._membership.may_write(now):
            self._member(membership.Tick())
            return
        if self._rows.is_current:
            self._rows.send(self._rows.store)
        self._carrier.settle(self._link)
        if self._exchange.departure.is_over and self._has_sent_all:
            self._go()

    def _go(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._member(membership.Gone())

    @override
    def deadline(self) -> float:
        moves = min(self.homes.deadline(), self._carrier.left_behind.deadline())
        due = min(self._membership.deadline(), moves, self._rows.reading.deadline())
        return min(due, self._rows.core.deadline(self._now)) if self._rows.is_current else due

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
        self._rows.release_all()
