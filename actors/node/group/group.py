"""The other nodes of the domain, as the bus knows them, and what this node writes for them.

This answers the bus: whether the node is a member, what may be changed now, which sessions are at
other nodes. `DomainRows` follows the rows of the domain. A message for a runtime with a session
elsewhere, or for subscribers there, is given to that node, once for all of them; what comes from
other nodes is for local sessions only.

A node that may have lost its lease is fenced: it leaves all links, and forgets what it knows.
"""

import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Reply
from actors.node.catalogue.domain import DomainCatalogue
from actors.node.dashboard.overview import Overview
from actors.node.group import link, messages
from actors.node.group.lookups import Lookups
from actors.node.group.rows import DomainRows
from actors.node.group.trace import GroupTrace
from actors.node.links.connection import Connection
from actors.node.messages import RuntimeLeft
from actors.node.policy.domain import DomainPolicies
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.session.session import Session
from fsm.effects import CoreHost, Refused, RowChanged, deferred
from fsm.engine import Step
from fsm.group import kinds
from fsm.group.catalogue import CatalogueRow
from fsm.group.membership import MembershipCore, MembershipPort, PutLease
from fsm.group.rows import Put
from fsm.policy.model import Book
from fsm.session.node_session_io import OutboundMessage
from fsm.session.runtime_names import Change as NameChange
from fsm.session.runtime_names import NameForgotten
from specs.limits.group import GROUP_ADDRESS, GROUP_NODES
from specs.trace import Op
from transports.engine import contract
from transports.engine.contract import ConflictError, Engine, EngineDownError
from transports.errors import CloseReason

if TYPE_CHECKING:
    from actors.node.group.durable import Durable

_log = get_logger("actors.node")


class Group(CoreHost, MembershipPort):
    """Host of the cores of the group; part of the bus's task.

    Args:
        exchange: The sessions of this node.
        engine: The engine; here only its health is looked at.
        trace: Of what comes from other nodes and goes to them.
        address: Base URL at which other nodes reach this one over HTTP; empty: none.
        policies: The policies of the domain.
        catalogue: The catalogue of the domain.

    Attributes:
        homes: Where the sessions of other nodes are.
        overview: What people are shown of the group.
        carrier: Takes messages to other nodes.
        durable: The logs of the domain.
        tidies: Returns whether this node, and no other, removes a row that belongs to no node.
    """

    durable: "Durable"

    def __init__(
        self,
        exchange: Exchange,
        engine: Engine,
        trace: GroupTrace,
        address: str,
        policies: DomainPolicies,
        catalogue: DomainCatalogue,
    ) -> None:
        self._exchange: Final = exchange
        self._tables: Final = exchange.tables
        self._engine: Final = engine
        self._trace: Final = trace
        self.due = deque()
        self._membership: Final = MembershipCore(trace.node, self, address)
        self._policies: Final = policies
        self._catalogue: Final = catalogue
        self._rows: Final = DomainRows(
            exchange, self._membership, trace, policies, catalogue, self._tell, self._heed_node
        )
        self.carrier: Final = self._rows.carrier
        self.homes: Final = self._rows.homes
        self._lookups: Final = Lookups(exchange, self._read)
        self._sender: ActorRef[messages.Carry] | None = None
        self._leases = deque[tuple[PutLease, contract.Written]]()
        self.overview: Final = Overview(
            self._membership, self.homes, self._rows.core, waiting=lambda: self.carrier.waiting,
            engine=engine, counters=trace.component.counters,
        )  # fmt: skip
        self.tidies: Final = self._membership.tidies
        self._starting = list[Reply[None]]()
        self._is_leaving = self._is_gone = False
        exchange.tables.watcher = self
        policies.begin(self._rows.write_agreed, self.objection)
        catalogue.begin(self._rows.write_agreed)

    # ---- what the actors that talk with the engine report, in the task of the bus

    def begin(
        self,
        store: link.GroupStore,
        sender: ActorRef[messages.Carry],
        leases: deque[tuple[PutLease, contract.Written]],
    ) -> None:
        """Work with the actors, which have started, perhaps again.

        What was under way is not answered any more.

        Args:
            store: Writes the rows of this node.
            sender: Carries messages.
            leases: Answers to renewals of the node's lease. They do not pass through the mailbox of
                the bus: behind much else they would come so late that a node is fenced that has
                renewed its lease.
        """
        self._sender, self._leases = sender, leases
        self._rows.begin(store)
        self._lookups.give_up(link.DOWN)
        if self._membership.state is None:
            self._join()

    def start_serving(self, reply: Reply[None]) -> None:
        """Answer when the node serves runtimes: it is a member, and knows all rows."""
        self._starting.append(reply)
        self._look_current()

    def renew(self) -> None:
        """Renew the lease: the engine answers again."""
        self._tell(self._membership.renew)

    def take_messages(self, payloads: Sequence[bytes]) -> None:
        """Take in what other nodes have sent."""
        self.carrier.take_messages(payloads)

    def return_unsent(self, unsent: Sequence[messages.Outgoing]) -> None:
        """Answer messages that could not be given to the engine."""
        self.carrier.return_unsent(unsent)

    def take_rows(self, prefix: str, news: Sequence[contract.Seen] | None) -> None:
        """Take what the watch of a prefix has brought; None: it begins."""
        self._rows.take_rows(prefix, news)
        self._look_current()

    def take_row_read(self, row: contract.Row | None, lookup: messages.LookUp | None) -> None:
        """Take a row that was read.

        Args:
            row: The row; None: the engine did not answer.
            lookup: The receiver that is looked up by that; None: none.
        """
        if row is not None:
            self._rows.take_read(row)
        self._look_current()
        if lookup is not None:
            self._lookups.on_row_read(lookup, is_read=row is not None)

    def take_answers(self, answers: Sequence[tuple[Put, contract.Written]]) -> None:
        """Take what has become of writes."""
        self._rows.take_answers(answers)

    def share_policies(self, book: Book, reply: Reply[Book | Refused]) -> None:
        """Propose policies for the whole domain; the reply receives those in effect afterwards."""
        self._policies.propose(book, reply.send, is_of_files=True)

    def share_catalogue(self, files: Mapping[str, CatalogueRow]) -> None:
        """Publish all usable files of this node's catalogue for the whole domain, by path."""
        self._catalogue.core.set_directory(files)

    def _join(self) -> None:
        self._tell(partial(self._membership.join, secrets.randbits(62) + 1))

    def _look_current(self) -> None:
        """Look at what nobody holds once all rows are known, and begin to serve."""
        if self._rows.look_current():
            self._tidy_paths()
        if self.is_member:
            self._catalogue.core.join()
            if self._policies.known():
                for reply in self._starting:
                    reply.send(None)
                self._starting.clear()

    # ---- the membership

    def _tell(self, call: Callable[[float], None]) -> None:
        """Call the membership, then perform what it asks for, in order."""
        call(trio.current_time())
        self.perform()

    def _heed_node(self, node: str, row: kinds.NodeRow | None, revision: int) -> None:
        """Take what the row of a node says of its membership."""
        self._tell(partial(self._membership.take_node, node, row, revision))
        if row is not None:
            self.overview.heard(row)

    def _lease_answered(self, lease: PutLease, answer: contract.Written) -> None:
        self.overview.note_renewal(answer)
        member, number = self._membership, lease.number
        match answer:
            case ConflictError(row=row):
                self._tell(partial(member.take_conflict, number, *link.version_met(row, lease)))
            case EngineDownError():
                self._tell(partial(member.take_silence, number))
            case revision:
                with self._rows.applying():
                    self._rows.owners.renewed()
                self._tell(partial(member.take_written, number, revision))
                self._trace.renewed(revision, member.holder)

    # ---- port of the membership

    @override
    @deferred
    def step(self, step: Step) -> None:
        self._trace.component.step(step)

    @override
    @deferred
    def put_lease(self, lease: PutLease) -> None:
        reported, store = self.overview.add_report(lease), self._rows.store
        self._rows.owners.asked()
        if store is None or not store.renew(reported):
            self._tell(partial(self._membership.take_silence, lease.number))

    @override
    @deferred
    def drop_lease(self, key: str, expected: int) -> None:
        if (store := self._rows.store) is not None:
            store.drop_lease(key, expected)

    @override
    @deferred
    def admit(self) -> None:
        self._trace.component.counters.count(Tally.ADMISSIONS)
        _log.info("group joined", node=self._membership.node)
        self._look_anew()

    @override
    @deferred
    def wait_for_id(self, other: kinds.Holder) -> None:
        _log.info("node id taken", node=self._membership.node)
        self._look_anew()

    @override
    @deferred
    def wait_for_room(self) -> None:
        _log.warning("group full", node=self._membership.node, members=GROUP_NODES)
        self._look_anew()

    @override
    @deferred
    def add_node(self, row: kinds.NodeRow) -> None:
        self._trace.came(row.holder)
        self._moved(row.holder)
        self._tidy_paths()

    @override
    @deferred
    def remove_node(self, holder: kinds.Holder) -> None:
        self.overview.remember(holder)
        self._trace.gone(holder, is_expected=self._is_leaving)
        self._moved(holder)
        self.carrier.lose(holder.node)
        self._tidy_paths()

    @override
    @deferred
    def refuse_row(self, key: str, reason: kinds.RowRefusal) -> None:
        self._rows.refuse(key, reason)
        self._tidy_paths()

    @override
    @deferred
    def fence(self, why: str) -> None:
        """Leave all links, and forget all: others may have the sessions of this node."""
        self._trace.component.counters.count(Tally.FENCES)
        _log.error("fenced", node=self._membership.node, why=why)
        exchange = self._exchange
        self._lookups.give_up(link.FENCED)
        self._rows.fenced()
        for session in list(exchange.sessions.values()):
            session.move_away("the node has lost its lease")
        for port in list(exchange.ports.values()):
            port.finish(CloseReason.GOING_AWAY)
        exchange.ports.clear()
        self._rows.forget()
        if not self._is_leaving and self._rows.store is not None:
            self._rows.store.watch_anew()
            self._join()

    def _look_anew(self) -> None:
        self._look_current()
        self._tidy_paths()

    def _moved(self, holder: kinds.Holder) -> None:
        self.homes.node_moved(holder.node, trio.current_time())
        self._tables.remembered.forget()

    @property
    def is_member(self) -> bool:
        """Whether this node may serve runtimes now."""
        return self._rows.is_current and self._membership.may_write(trio.current_time())

    def _read(self, wanted: messages.LookUp) -> Refused | None:
        """Read a row that may not have come yet; return why that is not possible."""
        store = self._rows.store
        if not self.is_member:
            return link.FENCED
        if store is None or not self._engine.health.is_up:
            return link.DOWN
        return None if store.read(wanted.key, lookup=wanted) else link.DOWN

    def objection(self, runtime: str | None = None) -> Refused | None:
        """Return why nothing may be changed now; None: it may.

        Args:
            runtime: A runtime that asks for a session here; None: any change.
        """
        if not self.is_member:
            return link.FENCED
        if not self._engine.health.is_up:
            return link.DOWN
        if self._rows.core.is_full:
            return link.FULL
        if runtime is None or runtime in self._exchange.sessions:
            return None
        if len(runtime.encode()) > GROUP_ADDRESS:
            return link.LONG
        return (
            link.ELSEWHERE if self.homes.is_for_its_node_only(runtime) else self._policies.objection
        )

    # ---- rows of this node

    def changed(self, row: RowChanged) -> None:
        """Note that a row has changed."""
        if row.table == "subs":
            if row.op is Op.DEL:
                self._rows.paths.over(row.key)
            else:
                self._rows.paths.begun(row.key, self._rows.hold(str(row.val)))
        elif not self._rows.is_applying:
            self._rows.owners.changed(row)

    # ---- sessions

    def take_up(self, runtime: str) -> Session | None:
        """Make the session that a runtime has at another node one of this node, detached.

        It is the other node's until it is kept; until then it can be given back.

        Args:
            runtime: Address of the runtime.

        Returns:
            The session; None: there is none that another node can take up.
        """
        exchange, row = self._exchange, self.homes.row(runtime)
        kept = self.homes.kept(runtime, trio.current_time() - exchange.names.wall())
        if row is None or kept is None:
            return None
        session = exchange.begin(row.stub, Asker(runtime, row.identity), runtime)
        is_followed = self.homes.node_of(runtime) is not None
        session.tell(
            lambda core, now: core.restore(kept, now, is_of_other=True, is_followed=is_followed)
        )
        return session

    def keep(self, session: Session, port: Connection | None) -> None:
        """Publish a session of this node to the other nodes.

        Args:
            session: The session.
            port: A link that is answered only when it is known; None: none.
        """
        core, runtime = session.core, session.core.runtime
        form = self._tables.form_of(runtime)
        if form is None or self._rows.reading.is_moved(runtime):
            return
        here, before = self._membership.holder, self._rows.core.row(kinds.session_key(runtime))
        row = kinds.SessionRow(runtime, here, 0, form, session.stub, core.kept, session.identity)
        if (old := self.homes.node_of(runtime)) is not None:
            self.carrier.left_behind.begin(
                runtime, old, self._rows.held.hold(port), trio.current_time()
            )
        kept, ticket = self._rows.moves.keep(row, before), self._rows.held.hold(port)
        self.homes.session_over(runtime)
        self._tables.remembered.forget()
        self._rows.write(kept.key, kept, ticket)

    def keep_name(self, change: NameChange, port: Connection | None) -> None:
        """Have other nodes know what this node has decided about a name.

        Args:
            change: The change.
            port: A link that is answered only when it is known; None: none.
        """
        row = None if isinstance(change, NameForgotten) else kinds.NameRow(change)
        self._rows.write(kinds.name_key(change.runtime), row, self._rows.held.hold(port))

    def ended(self, runtime: str, *, is_resumable: bool) -> AbstractContextManager[None]:
        """Note that a session of this node is over; what it owned is released in this context.

        Args:
            runtime: Address of the runtime.
            is_resumable: Whether another node may resume it, with all that it owns.
        """
        if self._rows.moves.end(runtime) and not is_resumable:
            self._rows.write(kinds.session_key(runtime), None)
        return self._rows.applying() if is_resumable else nullcontext()

    def _tidy_paths(self) -> None:
        if self.is_member:
            self._rows.paths.tidy()

    def _expire(self, runtime: str) -> None:
        """End the session of a runtime whose node is gone, and that has not come back."""
        if not self.tidies(kinds.session_key(runtime)) or self.homes.row(runtime) is None:
            return
        why, exchange = "its node is gone, and it did not come back", self._exchange
        self.homes.session_over(runtime)
        self._rows.write(kinds.session_key(runtime), None)
        self._tables.release(runtime, why)
        is_released = exchange.names.ended(runtime)
        exchange.left(RuntimeLeft(runtime, why, is_released))

    # ---- messages

    def carry(self, runtime: str, entry: OutboundMessage) -> bool:
        """Give a message to the node of a runtime without a session here.

        A message that cannot be carried is answered, or counted.

        Args:
            runtime: Address of the runtime.
            entry: The message.

        Returns:
            False: the runtime has no session elsewhere either.
        """
        if not self.is_elsewhere(runtime):
            return False
        self.carrier.carry(runtime, entry)
        return True

    def is_elsewhere(self, runtime: str) -> bool:
        """Return whether a runtime has its session at another node of the domain."""
        return self.homes.row(runtime) is not None

    def lapsed(self, entity: str, runtime: str, observer: str, *, is_expired: bool) -> None:
        """Ask the node of a runtime to end its consent to an observer.

        Args:
            entity: Address of the object.
            runtime: Address of the runtime, which has its session elsewhere.
            observer: Address of the observer.
            is_expired: Whether its lease is over; False: its owner shuts it out.
        """
        self.carrier.lapsed(entity, runtime, observer, is_expired=is_expired)

    # ---- turns of the bus

    @property
    def is_settled(self) -> bool:
        """True if nothing waits for the engine."""
        return self._is_gone or (not self._is_leaving and self._has_sent_all)

    @property
    def _has_sent_all(self) -> bool:
        is_kept = (durable := self._exchange.durable) is None or durable.is_settled
        is_kept = is_kept and self._rows.core.is_settled
        return is_kept and self.carrier.is_settled and not self._lookups.pending

    def read_out(self) -> None:
        """Take the answers to renewals of the lease; give up sessions that other nodes have.

        Only those whose links are read no longer.
        """
        while self._leases:
            self._lease_answered(*self._leases.popleft())
        for gone in self._rows.reading.over(trio.current_time()):
            self._rows.hand_over(gone)

    def settle(self) -> None:
        """Send what the turn of the bus has brought about."""
        now = trio.current_time()
        if self._rows.store is None or self._sender is None:
            return
        if not self._membership.may_write(now):
            self._tell(self._membership.tick)
            return
        if self._rows.is_current:
            self._rows.send(self._rows.store)
        self.carrier.settle(self._sender)
        if self._exchange.departure.is_over and self._has_sent_all:
            self._go()

    def _go(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self._tell(self._membership.go)

    def deadline(self) -> float:
        """Return when `tick` is due."""
        moves = min(self.homes.deadline(), self.carrier.left_behind.deadline())
        due = min(self._membership.deadline(), moves, self._rows.reading.deadline())
        return (
            min(due, self._rows.core.deadline(trio.current_time()))
            if self._rows.is_current
            else due
        )

    def tick(self) -> None:
        """Do what is due."""
        self.read_out()  # the lease may have been renewed in time
        now = trio.current_time()
        self._tell(self._membership.tick)
        self.carrier.left_behind.tick(now)
        for runtime in self.homes.overdue(now):
            self._expire(runtime)

    def leave(self) -> bool:
        """Begin to leave the group; return whether another node can have the sessions."""
        self._is_leaving = True
        is_possible = self.objection() is None and bool(self._membership.others)
        self._tell(self._membership.leave)
        return is_possible

    def close(self) -> None:
        """Forget the sessions of other nodes, and all that they own. Idempotent."""
        self._go()
        self._rows.release_all()
