"""Membership of a node in the group of all nodes of its domain.

`Group` decides by three cores: the membership of this node, the rows in the engine, and the
sessions that move between nodes. Rows of other nodes are applied to the tables of this node: a
runtime with a session at another node owns its addresses here, too. Changes of local sessions are
written as rows; a request that causes a change is answered when the rows are written.

A message for runtimes or subscribers at another node is sent to that node once for all of them. A
message from another node is delivered to local sessions only.

A node that may have lost its lease is fenced: it closes all links and clears its tables.
"""

import math
import secrets
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVarTuple, assert_never

import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Reply
from actors.node.dashboard.overview import Overview
from actors.node.group.carrier import Carrier
from actors.node.group.durable import Durable
from actors.node.group.engine_client import EngineClient
from actors.node.group.lookups import DOWN, Lookups
from actors.node.group.messages import LookUp
from actors.node.group.trace import GroupTrace, report_refusal
from actors.node.links.connection import Connection
from actors.node.messages import RuntimeLeft
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.session.other_nodes import Change, OtherNodes
from actors.node.session.session import Session
from actors.node.tables import ConsentEnded
from fsm.effects import CoreHost, Refused, RowChanged, deferred
from fsm.engine import Step
from fsm.group import kinds, moves, rows
from fsm.group.catalogue import CatalogueRow
from fsm.group.homes import Homes
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.policies import PolicyRow
from fsm.session.node_session_io import OutboundMessage
from fsm.session.runtime_names import NameForgotten, NameKept
from specs.limits.group import GROUP_ADDRESS, GROUP_NODES, GROUP_READ_OUT
from specs.message import Message, is_durable
from specs.reply_code import Code
from specs.trace import Op
from transports.engine import contract
from transports.engine.contract import ConflictError, EngineDownError
from transports.errors import CloseReason

if TYPE_CHECKING:
    from actors.node.group.shared import Shared

Ts = TypeVarTuple("Ts")

_log = get_logger("actors.node")
_NODES: Final = f"{kinds.Kind.NODE}/"

_FENCED: Final = Refused(Code.UNAVAILABLE, "this node is no member of its group now")
_FULL: Final = Refused(Code.UNAVAILABLE, "too much waits to be written to the engine")
_LONG: Final = Refused(Code.TOO_LARGE, f"the address has more than {GROUP_ADDRESS} bytes")
_ELSEWHERE: Final = Refused(Code.CONFLICT, "another node has the session, and cannot hand it over")


class Group(OtherNodes, CoreHost, MembershipPort, rows.RowsPort, moves.MovesPort):
    """Membership of this node in the group of its domain, and its messages to other members.

    Args:
        exchange: The sessions of this node.
        shared: The engine, and the state that outlives a crash of the bus.
        trace: Trace of messages and changes between nodes.
        address: Base URL at which other nodes reach this one over HTTP; empty: none.

    Attributes:
        membership: Decides whether this node is a member of the group.
        rows: Decides which rows of the engine are applied here, and which are written.
        moves: Decides which node keeps a session that is moving.
        homes: Knows which node has the session of each other runtime.
        carrier: Exchanges messages with other nodes.
        lookups: Reads the rows of unknown receivers from the engine.
        durable: Stores durable messages in the engine, and delivers them.
        overview: State of the group for the dashboard.
    """

    is_alone = False

    def __init__(
        self, exchange: Exchange, shared: "Shared", trace: GroupTrace, address: str
    ) -> None:
        super().__init__(exchange)
        self.trace: Final = trace
        self.due = deque()
        self.membership: Final = MembershipCore(trace.node, self, address)
        self.rows: Final = rows.RowsCore(self)
        self.moves: Final = moves.MovesCore(self)
        elsewhere, is_live = exchange.tables.elsewhere, self.membership.is_live
        self.homes: Final = Homes(is_live, elsewhere, self.rows, self.moves)
        self.carrier: Final = Carrier(self)
        self.lookups: Final = Lookups(self)
        self.durable: Final = Durable(self)
        self.overview: Final = Overview(self, shared.engine)
        self._tables: Final = exchange.tables
        self._engine: Final = shared.engine
        self._policies: Final = shared.policies
        self._catalogue: Final = shared.catalogue
        self._client: EngineClient | None = None
        self._begun: set[str] = set()
        self._subscribers: Final = Counter[str]()
        # Rows of addresses of local sessions that were removed. For the second dict, a renewal of
        # the lease has begun; its outcome shows whether the engine has lost all rows.
        self._missing: Final = dict[str, kinds.OwnerRow]()
        self._missing_in_renewal: Final = dict[str, kinds.OwnerRow]()
        # Sessions that other nodes have taken while this node still reads their links.
        self._moving_away: Final = dict[str, tuple[moves.GiveUp, float]]()
        self._starting = list[Reply[None]]()
        self._is_current = self._is_applying = False
        self._is_leaving = self._is_gone = False
        exchange.others = self
        self._tables.publish, self._tables.away = self.publish, self.homes.sessions
        shared.policies.begin(self)
        shared.catalogue.begin(self)

    # ---- calls to the other nodes

    @override
    def objection(self, runtime: str | None = None) -> Refused | None:
        if not self.is_member:
            return _FENCED
        if not self._engine.health.is_up:
            return DOWN
        if self.rows.is_full:
            return _FULL
        if runtime is None or runtime in self.exchange.sessions:
            return None
        if len(runtime.encode()) > GROUP_ADDRESS:
            return _LONG
        return _ELSEWHERE if self.homes.is_for_its_node_only(runtime) else self._policies.objection

    @override
    def publish(self, change: Change, link: Connection | None = None) -> None:
        match change:
            case RowChanged(table="subs"):
                self._publish_path(change)
            case RowChanged():
                if not self._is_applying:
                    self._publish_owner(change)
            case ConsentEnded():
                self.carrier.end_consent(change)
            case Session():
                self._publish_session(change, link)
            case NameKept():
                self._write(kinds.name_key(change.runtime), kinds.NameRow(change), _hold(link))
            case NameForgotten():
                self._write(kinds.name_key(change.runtime), None, _hold(link))
            case PolicyRow() | CatalogueRow():
                self._write(change.key, change, rows.THE_NODE)

    def _publish_path(self, change: RowChanged) -> None:
        resource, by = change.key, self.exchange.sessions.get(str(change.val))
        row = kinds.PathRow(resource, self.membership.holder)
        if change.op is not Op.DEL:
            link = None if by is None else _hold(by.port)
            self._subscribers[resource] += 1
            self.homes.path_over(row)
            # Write for each subscriber: the engine may not have the row yet.
            self._write(row.key, row, link)
            return
        self._subscribers[resource] -= 1
        if not self._subscribers[resource]:
            del self._subscribers[resource]
            self._write(row.key, None)

    def _publish_owner(self, change: RowChanged) -> None:
        address, runtime = change.key, str(change.val)
        key, session = kinds.owner_key(address), self.exchange.sessions.get(runtime)
        self._forget_missing(key)
        link = None if session is None else _hold(session.port)
        if change.op is Op.DEL:
            self._write(key, None, link)
            return
        allocation = self._tables.allocation
        block, is_bound = allocation.block_of(address), allocation.is_bound(address)
        self._write(key, kinds.OwnerRow(address, runtime, block, is_bound), link)

    def _publish_session(self, session: Session, port: Connection | None) -> None:
        core, runtime = session.core, session.core.runtime
        form = self._tables.form_of(runtime)
        if form is None or runtime in self._moving_away:
            return
        here, before = self.membership.holder, self.rows.row(kinds.session_key(runtime))
        row = kinds.SessionRow(runtime, here, 0, form, session.stub, core.kept, session.identity)
        if (old := self.homes.node_of(runtime)) is not None:
            self.carrier.hand_overs.begin(runtime, old, _hold(port), trio.current_time())
        kept, link = self.moves.keep(row, before), _hold(port)
        self.homes.session_over(runtime)
        self._tables.remembered.forget()
        self._write(kept.key, kept, link)

    @override
    def send(
        self,
        entry: OutboundMessage,
        by: str | None,
        runtimes: Sequence[str],
        nodes: Collection[str] = (),
    ) -> Sequence[str]:
        return self.carrier.send(entry, by, runtimes, nodes)

    @override
    def look_up(self, message: Message, by: str | None) -> bool:
        return self.lookups.look_up(message, by)

    def look_row_up(self, wanted: LookUp) -> Refused | None:
        """Start to read a row that may not have arrived yet; return a refusal if impossible."""
        if not self.is_member:
            return _FENCED
        is_up = self._engine.health.is_up
        return None if is_up and self.begin(EngineClient.read_row, wanted.key, 0, wanted) else DOWN

    @override
    def keep(self, message: Message, by: str | None) -> bool:
        if by is not None and self.durable.end(message, by):
            return True
        if message.to in self.lookups.pending and self.lookups.look_up(message, by):
            return True
        runtime = self.log_of(message) if is_durable(message) else None
        if by is None or runtime is None or runtime == by:
            return False
        # A log belongs to a session: if the session's row has not arrived yet, look it up first.
        is_known = runtime in self.exchange.sessions or runtime in self.homes.sessions
        if is_known:
            self.durable.keep(message, runtime, by)
        return is_known

    @override
    def follow(self, session: Session) -> None:
        self.durable.follow(session)

    @override
    def take_up(self, runtime: str) -> Session | None:
        exchange, row = self.exchange, self.homes.row(runtime)
        kept = self.homes.kept_session(runtime, trio.current_time() - exchange.names.wall())
        if row is None or kept is None:
            return None
        session = exchange.begin(row.stub, Asker(runtime, row.identity), runtime)
        is_followed = self.homes.node_of(runtime) is not None
        session.tell(
            lambda core, now: core.restore(kept, now, is_of_other=True, is_followed=is_followed)
        )
        return session

    @override
    def end(self, left: RuntimeLeft, *, is_resumable: bool) -> None:
        if self.moves.end(left.runtime) and not is_resumable:
            self._write(kinds.session_key(left.runtime), None)
        with self._applying() if is_resumable else nullcontext():
            self._tables.release(left.runtime, left.why)
        if not is_resumable:
            self.exchange.notify_left(left)

    # ---- calls of the engine client

    def connect(self, client: EngineClient) -> None:
        """Use an engine client that has started, perhaps after a crash of another one.

        Requests of the earlier client get no answer any more.
        """
        self._client = client
        self.rows.lose_answers(trio.current_time())
        self.perform()
        self.lookups.give_up(DOWN)
        self.durable.begin()
        if self.membership.state is None:
            self._join()

    def begin(
        self,
        work: Callable[[EngineClient, *Ts], Awaitable[object]],
        *args: *Ts,
    ) -> bool:
        """Start a request to the engine; return False if there is no engine client now."""
        client = self._client
        return client is not None and client.begin(work, client, *args)

    def start_serving(self, reply: Reply[None]) -> None:
        """Reply as soon as the node may serve runtimes: it is a member, and knows all rows."""
        self._starting.append(reply)
        self._check_current()

    def renew(self) -> None:
        """Renew the lease, because the engine answers again."""
        self._tell(self.membership.renew)

    def take_rows(self, prefix: str, news: Sequence[contract.Seen] | None) -> None:
        """Process rows that the watch of a key prefix reports; None: the watch has begun."""
        if news is None:
            self._begun.add(prefix)
            self.rows.begin_watch(prefix)
            if prefix == _NODES:
                self._tell(self.membership.begin_watch)
        for event in news or ():
            match event:
                case contract.Row(key, value, revision):
                    self.rows.take_row(key, value, revision)
                    self.perform()
                case contract.Current():
                    self.rows.end_list(prefix)
                    self.perform()
                    if prefix == _NODES:
                        self._tell(self.membership.end_list)
        self._check_current()

    def take_row_read(self, row: contract.Row | None, lookup: LookUp | None) -> None:
        """Process a row that was read from the engine.

        Args:
            row: The row; None: the engine did not answer.
            lookup: The lookup of a receiver that needs the row; None: none.
        """
        if row is not None:
            self.rows.take_row(row.key, row.value, row.revision, is_read=True)
            self.perform()
        self._check_current()
        if lookup is not None:
            self.lookups.on_row_read(lookup, is_read=row is not None)

    def take_answers(self, answers: Iterable[tuple[rows.Put, contract.Written]]) -> None:
        """Process the engine's answers to writes of rows."""
        for put, answer in answers:
            match answer:
                case ConflictError(row=row):
                    self.rows.take_conflict(put.number, *_newer_version(row, put))
                case EngineDownError():
                    self.rows.take_silence(put.number, trio.current_time())
                case revision:
                    self.rows.take_written(put.number, revision)
            self.perform()

    def _join(self) -> None:
        self._tell(partial(self.membership.join, secrets.randbits(62) + 1))

    def _check_current(self) -> None:
        """If all rows are known, remove path rows without a node; as a member, begin to serve."""
        is_complete = len(self._begun) == len(kinds.Kind) and self.rows.is_current
        if is_complete and not self._is_current:
            self._is_current = True
            self._tidy_paths()
        if self.is_member:
            self._catalogue.core.join()
            if self._policies.start():
                for reply in self._starting:
                    reply.send(None)
                self._starting.clear()

    # ---- the membership

    @property
    @override
    def is_member(self) -> bool:
        return self._is_current and self.membership.may_write(trio.current_time())

    def _tell(self, call: Callable[[float], None]) -> None:
        """Call a method of the membership core with the time, then perform what it has decided."""
        call(trio.current_time())
        self.perform()

    def _take_node(self, node: str, row: kinds.NodeRow | None, revision: int) -> None:
        """Pass the row of a node to the membership core; None: the row was removed."""
        self._tell(partial(self.membership.take_node, node, row, revision))
        if row is not None:
            self.overview.take_row(row)

    def _take_lease_answer(self, lease: PutLease, answer: contract.Written) -> None:
        self.overview.note_renewal(answer)
        member, number = self.membership, lease.number
        match answer:
            case ConflictError(row=row):
                self._tell(partial(member.take_conflict, number, *_newer_version(row, lease)))
            case EngineDownError():
                self._tell(partial(member.take_silence, number))
            case revision:
                # The engine has not lost all rows, so the missing rows were removed.
                with self._applying():
                    for gone in self._missing_in_renewal.values():
                        self._tables.allocation.mirror_gone(gone.address)
                self._missing_in_renewal.clear()
                self._tell(partial(member.take_written, number, revision))
                self.trace.record_renewal(revision, member.holder)

    @override
    @deferred
    def step(self, step: Step) -> None:
        self.trace.step(step)

    @override
    @deferred
    def put_lease(self, lease: PutLease) -> None:
        reported = self.overview.add_report(lease)
        # The engine renews the lease only if it has its row.
        self._missing_in_renewal.update(self._missing)
        self._missing.clear()
        if not self.begin(EngineClient.renew_lease, reported):
            self._tell(partial(self.membership.take_silence, lease.number))

    @override
    @deferred
    def drop_lease(self, key: str, expected: int) -> None:
        if self._client is not None:
            self._client.drop_lease(key, expected)

    @override
    @deferred
    def admit(self) -> None:
        self.trace.counters.count(Tally.ADMISSIONS)
        _log.info("group joined", node=self.membership.node)
        self._refresh()

    @override
    @deferred
    def wait_for_id(self, other: kinds.Holder) -> None:
        _log.info("node id taken", node=self.membership.node)
        self._refresh()

    @override
    @deferred
    def wait_for_room(self) -> None:
        _log.warning("group full", node=self.membership.node, members=GROUP_NODES)
        self._refresh()

    @override
    @deferred
    def add_node(self, row: kinds.NodeRow) -> None:
        self.trace.record_arrival(row.holder)
        self._move_home(row.holder)
        self._tidy_paths()

    @override
    @deferred
    def remove_node(self, holder: kinds.Holder) -> None:
        self.overview.remember(holder)
        self.trace.record_departure(holder, is_expected=self._is_leaving)
        self._move_home(holder)
        self.carrier.lose(holder.node)
        self._tidy_paths()

    @override
    @deferred
    def refuse_row(self, key: str, reason: kinds.RowRefusal) -> None:
        report_refusal(self.trace.counters, key, reason)
        self._tidy_paths()

    @override
    @deferred
    def fence(self, why: str) -> None:
        """Close all links and clear all tables: other nodes may have this node's sessions."""
        self.trace.counters.count(Tally.FENCES)
        _log.error("fenced", node=self.membership.node, why=why)
        exchange = self.exchange
        self.lookups.give_up(_FENCED)
        self._is_current = False
        self._begun.clear()
        self.moves.fence()
        self._policies.stop()
        self._catalogue.core.leave()
        for session in list(exchange.sessions.values()):
            session.move_away("the node has lost its lease")
        for port in list(exchange.ports.values()):
            port.finish(CloseReason.GOING_AWAY)
        exchange.ports.clear()
        self.carrier.lose_all()
        self._missing.clear()
        self._missing_in_renewal.clear()
        self.rows.forget()
        self.perform()
        self._release_all()
        if not self._is_leaving and self._client is not None:
            self._client.watch_anew()
            self._join()

    def _refresh(self) -> None:
        self._check_current()
        self._tidy_paths()

    def _move_home(self, holder: kinds.Holder) -> None:
        self.homes.node_moved(holder.node, trio.current_time())
        self._tables.remembered.forget()

    # ---- rows

    def _write(self, key: str, row: kinds.GroupRow | None, link: int | None = None) -> None:
        """Write a row, or remove it if None; a link, if any, is released when this is done."""
        if not self._is_current:
            self.release(link)
        else:
            self.rows.change(key, row, link)
            self.perform()

    def release(self, link: int | None) -> None:
        """Let the link write again after one of its pending writes of rows has ended."""
        port = None if link is None else self.exchange.ports.get(link)
        if port is not None:
            port.release()

    @override
    @deferred
    def apply(self, row: kinds.GroupRow, revision: int) -> None:
        match row:
            case kinds.NodeRow(holder):
                self._take_node(holder.node, row, revision)
            case kinds.SessionRow():
                self._take_session(row)
            case kinds.OwnerRow(address, runtime, block, is_bound):
                self._forget_missing(row.key)
                with self._applying():
                    self._tables.mirror(runtime, address, block, is_bound=is_bound)
            case kinds.PathRow(resource, holder):
                if holder != self.membership.holder:
                    self.homes.path(row)
                    self._tables.remembered.forget()
                else:
                    # The engine has executed a write that this node had counted as failed.
                    self._write(row.key, row if resource in self._subscribers else None)
            case kinds.NameRow(name):
                self.exchange.names.mirror(name)
            case PolicyRow():
                self._policies.take_row(row)
            case CatalogueRow():
                self._catalogue.core.set_row(row)
            case _:
                assert_never(row)

    @override
    @deferred
    def withdraw(self, row: kinds.GroupRow, revision: int, *, is_lost: bool = False) -> None:
        match row:
            case kinds.NodeRow(holder):
                self._take_node(holder.node, None, revision)
            case kinds.SessionRow(runtime):
                self._end_session(runtime)
            case kinds.OwnerRow(address, runtime):
                if is_lost or runtime not in self.exchange.sessions:
                    with self._applying():
                        self._tables.allocation.mirror_gone(address)
                else:
                    # The row was removed, or the engine has lost all rows. In the second case this
                    # node will be fenced, and until then its sessions keep their addresses.
                    self._missing[row.key] = row
                    self._tell(self.membership.renew)
            case kinds.PathRow(resource, holder):
                self.homes.path_over(row)
                self._tables.remembered.forget()
                if holder == self.membership.holder and resource in self._subscribers:
                    self._write(row.key, row)
            case kinds.NameRow(name):
                self.exchange.names.mirror(NameForgotten(name.runtime))
            case PolicyRow():
                self._policies.take_row(None)
            case CatalogueRow(path):
                self._catalogue.core.set_missing(path)
            case _:
                assert_never(row)

    @override
    @deferred
    def confirm(
        self, key: str, row: kinds.GroupRow | None, revision: int, tickets: tuple[int, ...]
    ) -> None:
        self.trace.record_home(row, revision, self.membership.holder)
        self.carrier.hand_overs.note_written(key, trio.current_time())
        for link in tickets:
            self.release(link)
        self._policies.confirm_write(key)
        self._catalogue.core.set_written(key)

    @override
    @deferred
    def lose(self, key: str, tickets: tuple[int, ...]) -> None:
        self.trace.counters.count(Tally.ROWS_LOST)
        _log.info("row was changed by another node", key=key)
        for link in tickets:
            self.exchange.lose_link(link, "another node decided otherwise", is_misled=True)

    @override
    @deferred
    def read(self, key: str, revision: int) -> None:
        self.begin(EngineClient.read_row, key, revision, None)

    @override
    def refuse(self, key: str, reason: kinds.RowRefusal) -> None:
        report_refusal(self.trace.counters, key, reason)

    @contextmanager
    def _applying(self) -> Iterator[None]:
        """Apply changes of other nodes to the tables; within this context no row is written."""
        previous, self._is_applying = self._is_applying, True
        try:
            yield
        finally:
            self._is_applying = previous

    def _forget_missing(self, key: str) -> None:
        self._missing.pop(key, None)
        self._missing_in_renewal.pop(key, None)

    def _tidy_paths(self) -> None:
        """Remove rows of subscriptions at nodes that have gone, if this node has to do this."""
        for row in list(self.homes.unheld_paths()) if self.is_member else ():
            if self.membership.tidies(row.key):
                self.homes.path_over(row)
                self._write(row.key, None)

    # ---- sessions that move

    def _take_session(self, row: kinds.SessionRow) -> None:
        """Apply the row of a session; the row overrides earlier decisions of this node."""
        own = self.membership.holder
        if row.holder != own:
            self.homes.session(row, trio.current_time())
            with self._applying():
                self._tables.came_elsewhere(row.runtime, row.form)
        self.moves.take_row(row, own)
        self.perform()

    def _end_session(self, runtime: str) -> None:
        """Apply that the row of a session was removed from the engine."""
        self.moves.take_removal(runtime)
        self.perform()
        if runtime not in self.exchange.sessions:
            self._release(runtime, "its session at another node is over")

    def _release(self, runtime: str, why: str) -> None:
        self.homes.session_over(runtime)
        with self._applying():
            self._tables.release(runtime, why)

    def _release_all(self) -> None:
        for runtime in tuple(self.homes.sessions):
            self._release(runtime, "this node is no member of its group any more")

    @override
    @deferred
    def put_row(self, key: str, row: kinds.SessionRow | None) -> None:
        self._write(key, row)

    @override
    @deferred
    def give_up(self, session: moves.GiveUp) -> None:
        """End the session of a runtime that has moved, when its link here has been read to the end.

        The runtime sent messages over that link before it moved.
        """
        if self.exchange.departure.has_begun and self._is_read(session.runtime):
            self._moving_away[session.runtime] = session, trio.current_time() + GROUP_READ_OUT
        else:
            self._hand_over(session)

    def _is_read(self, runtime: str) -> bool:
        session = self.exchange.sessions.get(runtime)
        return session is not None and session.port is not None

    def _hand_over(self, move: moves.GiveUp) -> None:
        """End a local session that another node has taken, and tell that node when all is sent."""
        if (session := self.exchange.sessions.get(move.runtime)) is not None:
            session.move_away(move.why)
        if move.to is not None:
            self.carrier.hand_over(move.runtime)

    def _expire(self, runtime: str) -> None:
        """Remove the session of a runtime that did not reconnect after its node had gone."""
        key = kinds.session_key(runtime)
        if not self.membership.tidies(key) or self.homes.row(runtime) is None:
            return
        why, exchange = "its node is gone, and it did not come back", self.exchange
        self.homes.session_over(runtime)
        self._write(key, None)
        self._tables.release(runtime, why)
        is_released = exchange.names.note_ended(runtime)
        exchange.notify_left(RuntimeLeft(runtime, why, is_released))

    # ---- calls of the bus after each batch of messages, and at its end

    @property
    @override
    def is_settled(self) -> bool:
        return self._is_gone or (not self._is_leaving and self._has_sent_all)

    @property
    def _has_sent_all(self) -> bool:
        is_kept = self.durable.is_settled and self.rows.is_settled
        return is_kept and self.carrier.is_settled and not self.lookups.pending

    @override
    def catch_up(self) -> None:
        while self._client is not None and self._client.leases:
            self._take_lease_answer(*self._client.leases.popleft())
        now = trio.current_time()
        for runtime, (gone, until) in tuple(self._moving_away.items()):
            if until <= now or not self._is_read(runtime):
                del self._moving_away[runtime]
                self._hand_over(gone)

    @override
    def settle(self) -> None:
        now = trio.current_time()
        if self._client is not None:
            if self.membership.may_write(now):
                self._send_rows(now)
                self.carrier.settle(self._client.me)
                if self.exchange.departure.is_over and self._has_sent_all:
                    self._go()
            else:
                self._tell(self.membership.tick)
        self.durable.settle()

    def _send_rows(self, now: float) -> None:
        puts = self.rows.writes(now) if self._is_current else ()
        if puts and not self.begin(EngineClient.write_rows, puts):
            for put in puts:
                self.rows.take_silence(put.number, now)
                self.perform()

    def _go(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._tell(self.membership.go)

    @override
    def deadline(self) -> float:
        own = self.membership.deadline(), self.homes.deadline(), self.durable.deadline()
        read_out = next((until for _, until in self._moving_away.values()), math.inf)
        due = min(*own, self.carrier.hand_overs.deadline(), read_out)
        return min(due, self.rows.deadline(trio.current_time())) if self._is_current else due

    @override
    def tick(self) -> None:
        self.catch_up()  # a renewal of the lease may have arrived
        now = trio.current_time()
        self._tell(self.membership.tick)
        self.carrier.hand_overs.tick(now)
        for runtime in self.homes.overdue(now):
            self._expire(runtime)
        self.durable.tick()

    @override
    def leave(self) -> bool:
        self._is_leaving = True
        is_possible = self.objection() is None and bool(self.membership.others)
        self._tell(self.membership.leave)
        return is_possible

    @override
    def close(self) -> None:
        self._go()
        self._release_all()


def _hold(port: Connection | None) -> int | None:
    """Suspend writes to a link until one more row is written; return the link's number, or None."""
    if port is None:
        return None
    port.hold()
    return port.number


def _newer_version(row: contract.Row | None, put: rows.Put | PutLease) -> tuple[bytes | None, int]:
    """Return value and revision of the row that was in the engine in place of the expected one.

    Args:
        row: The row; None: there is none.
        put: The write.
    """
    return (None, put.expected) if row is None else (row.value, row.revision)
