"""The rows of the domain, as a node follows them, and those that it writes.

Rows that other nodes write are applied to the tables of this node: a runtime with a session
elsewhere owns its addresses here, too. What local sessions change is written as rows, and the link
that asked for it is answered when it is written.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, assert_never

import trio
from typing_extensions import override

from actors.kit.counters import Tally
from actors.kit.log import get_logger
from actors.node.catalogue.domain import DomainCatalogue
from actors.node.group.carrier import Carrier
from actors.node.group.link import GroupStore, HeldLinks, ReadOut, report_refusal, version_met
from actors.node.group.trace import GroupTrace
from actors.node.policy.domain import DomainPolicies
from actors.node.session.exchange import Exchange
from fsm.effects import CoreHost, RowChanged, deferred
from fsm.group import kinds, moves, rows
from fsm.group.catalogue import CatalogueRow
from fsm.group.homes import Homes
from fsm.group.membership import MembershipCore
from fsm.group.order import SenderOrder
from fsm.group.policies import PolicyRow
from fsm.session.runtime_names import NameForgotten
from specs.trace import Op
from transports.engine import contract
from transports.engine.contract import ConflictError, EngineDownError

# Which runtimes of a domain own which addresses: a row each.


class OwnerRows:
    """Writes the rows of this node's sessions, and applies those of others.

    Part of the bus's task.

    Args:
        domain: The rows of the domain.
    """

    def __init__(self, domain: "DomainRows") -> None:
        self._rows: Final = domain
        self._missing: Final = dict[str, kinds.OwnerRow]()
        self._asked_about: Final = dict[str, kinds.OwnerRow]()

    # ---- of this node

    def changed(self, changed: RowChanged) -> None:
        """Write that an address has an owner, or none any more."""
        address, runtime = changed.key, str(changed.val)
        self._found(kinds.owner_key(address))
        link = self._rows.hold(runtime)
        row = None if changed.op is Op.DEL else self._row(address, runtime)
        self._rows.write(kinds.owner_key(address), row, link)

    def _row(self, address: str, runtime: str) -> kinds.OwnerRow:
        allocation = self._rows.tables.allocation
        block, is_bound = allocation.block_of(address), allocation.is_bound(address)
        return kinds.OwnerRow(address, runtime, block, is_bound)

    # ---- of any node, as the engine has them

    def there(self, row: kinds.OwnerRow) -> None:
        """Apply a row."""
        self._found(row.key)
        self._rows.tables.mirror(row.runtime, row.address, row.block, is_bound=row.is_bound)

    def gone(self, row: kinds.OwnerRow) -> None:
        """Apply that there is none any more."""
        self._rows.tables.allocation.mirror_gone(row.address)

    # ---- of a session of this node, removed by another

    def missing(self, row: kinds.OwnerRow) -> None:
        """Note that a row has gone: it was removed, or the engine has lost all rows.

        In the second case the node is about to be fenced, and until then its sessions keep what
        they own. Which case it is the next renewal of the node's lease tells.
        """
        self._missing[row.key] = row

    def asked(self) -> None:
        """Note that the lease is renewed, which the engine does only if it has its row."""
        self._asked_about.update(self._missing)
        self._missing.clear()

    def renewed(self) -> None:
        """Apply what had gone before: the engine has not lost all rows."""
        for row in self._asked_about.values():
            self.gone(row)
        self._asked_about.clear()

    def _found(self, key: str) -> None:
        self._missing.pop(key, None)
        self._asked_about.pop(key, None)

    def forget(self) -> None:
        """Apply nothing of that: the node is fenced."""
        self._missing.clear()
        self._asked_about.clear()


# Which nodes of a domain have subscribers of what: one row for each node and address.


class PathRows:
    """Writes the rows of this node, and notes those of others; part of the bus's task.

    Args:
        domain: The rows of the domain.
    """

    def __init__(self, domain: "DomainRows") -> None:
        self._rows: Final = domain
        self._subscribers: Final = Counter[str]()

    # ---- of this node

    def begun(self, resource: str, link: int | None) -> None:
        """Note one subscriber more.

        Args:
            resource: Address that it subscribes to.
            link: Number of its link, which waits until other nodes can know of it; None: none.
        """
        self._subscribers[resource] += 1
        row = kinds.PathRow(resource, self._rows.membership.holder)
        self._rows.homes.path_over(row)
        # The engine may not have it yet, though this is not the first subscriber.
        self._rows.write(row.key, row, link)

    def over(self, resource: str) -> None:
        """Note one subscriber less."""
        self._subscribers[resource] -= 1
        if not self._subscribers[resource]:
            del self._subscribers[resource]
            self._rows.write(kinds.path_key(resource, self._rows.membership.node), None, None)

    # ---- of any node, as the engine has them

    def there(self, row: kinds.PathRow) -> None:
        """Note a row."""
        if row.holder != self._rows.membership.holder:
            self._rows.homes.path(row)
            self._rows.tables.remembered.forget()
        else:
            # A write of its own that was given up, and made after all.
            is_so = row.resource in self._subscribers
            self._rows.write(row.key, row if is_so else None, None)

    def gone(self, row: kinds.PathRow) -> None:
        """Note that there is none any more."""
        self._rows.homes.path_over(row)
        self._rows.tables.remembered.forget()
        if row.holder == self._rows.membership.holder and row.resource in self._subscribers:
            self._rows.write(row.key, row, None)

    def tidy(self) -> None:
        """Remove the rows of nodes that are gone, as far as they are this node's to remove."""
        for row in list(self._rows.homes.unheld_paths()):
            if self._rows.membership.tidies(row.key):
                self._rows.homes.path_over(row)
                self._rows.write(row.key, None, None)


_log = get_logger("actors.node")
_NODES: Final = f"{kinds.Kind.NODE}/"

_Tell: TypeAlias = Callable[[Callable[[float], None]], None]
_HeedNode: TypeAlias = Callable[[str, kinds.NodeRow | None, int], None]


class DomainRows(CoreHost, rows.RowsPort, moves.MovesPort):
    """Host of the cores of rows and of sessions: applies rows of all nodes, writes those of this.

    Part of the bus's task.

    Args:
        exchange: The sessions of this node.
        member: Decides whether this node is a member.
        trace: Of what comes from other nodes and goes to them.
        policies: The policies of the domain.
        catalogue: The catalogue of the domain.
        tell: Calls the membership.
        heed_node: Takes what the row of a node says.

    Attributes:
        tables: The tables of this node.
        membership: Decides whether this node is a member.
        core: Decides what is applied, and what is written.
        homes: Where the sessions of other nodes are.
        moves: Decides which node has a session that moves.
        held: The links that wait for rows.
        reading: The sessions of other nodes whose links are still read here.
        carrier: Takes messages to other nodes.
        owners: The rows of addresses.
        paths: The rows of subscribers.
        store: Writes rows to the engine; None: it has not started yet.
        is_current: Whether the node knows all rows.
    """

    def __init__(
        self,
        exchange: Exchange,
        member: MembershipCore,
        trace: GroupTrace,
        policies: DomainPolicies,
        catalogue: DomainCatalogue,
        tell: _Tell,
        heed_node: _HeedNode,
    ) -> None:
        self._exchange: Final = exchange
        self.tables: Final = exchange.tables
        self.membership: Final = member
        self._trace: Final = trace
        self._policies: Final = policies
        self._catalogue: Final = catalogue
        self._tell: Final = tell
        self._heed_node: Final = heed_node
        self.due = deque()
        self.core: Final = rows.RowsCore(self)
        self.moves: Final = moves.MovesCore(self)
        order = SenderOrder(self.core, self.moves)
        self.homes: Final = Homes(member.is_live, exchange.tables.elsewhere, order)
        self.held: Final = HeldLinks(exchange.ports)
        self.reading: Final = ReadOut(exchange)
        self.carrier: Final = Carrier(exchange, self.homes, member, trace, self.held)
        self.owners: Final = OwnerRows(self)
        self.paths: Final = PathRows(self)
        self.store: GroupStore | None = None
        self.is_current = self.is_applying = False
        self._begun: set[str] = set()

    # ---- from and to the engine

    def begin(self, store: GroupStore) -> None:
        """Work with the actor that writes, which has started, perhaps again."""
        self.store = store
        self.core.lose_answers(trio.current_time())
        self.perform()

    def take_rows(self, prefix: str, news: Sequence[contract.Seen] | None) -> None:
        """Take what the watch of a prefix has brought; None: it begins."""
        if news is None:
            self._begun.add(prefix)
            self.core.begin_watch(prefix)
            if prefix == _NODES:
                self._tell(self.membership.begin_watch)
        for seen in news or ():
            match seen:
                case contract.Row(key, value, revision):
                    self.core.take_row(key, value, revision)
                    self.perform()
                case contract.Current():
                    self.core.end_list(prefix)
                    self.perform()
                    if prefix == _NODES:
                        self._tell(self.membership.end_list)

    def take_read(self, row: contract.Row) -> None:
        """Take a row that was read."""
        self.core.take_row(row.key, row.value, row.revision, is_read=True)
        self.perform()

    def take_answers(self, answers: Iterable[tuple[rows.Put, contract.Written]]) -> None:
        """Take the answers of the engine to writes."""
        for put, answer in answers:
            match answer:
                case ConflictError(row=row):
                    self.core.take_conflict(put.number, *version_met(row, put))
                case EngineDownError():
                    self.core.take_silence(put.number, trio.current_time())
                case revision:
                    self.core.take_written(put.number, revision)
            self.perform()

    def look_current(self) -> bool:
        """Look whether all rows are known; return whether that is new."""
        if self.is_current or len(self._begun) < len(kinds.Kind) or not self.core.is_current:
            return False
        self.is_current = True
        return True

    def write(self, key: str, row: kinds.GroupRow | None, ticket: int | None = None) -> None:
        """Write a row, None: remove it; a link that waits for it is answered then."""
        if not self.is_current:
            self.held.release(ticket)
        else:
            self.core.change(key, row, ticket)
            self.perform()

    def write_agreed(self, row: PolicyRow | CatalogueRow) -> None:
        """Write a row of the whole domain."""
        self.write(row.key, row, rows.THE_NODE)

    def hold(self, runtime: str) -> int | None:
        """Have the link of a runtime wait until a row is written; return its number."""
        session = self._exchange.sessions.get(runtime)
        return None if session is None else self.held.hold(session.port)

    def send(self, store: GroupStore) -> None:
        """Send what is to be written."""
        puts = self.core.writes(trio.current_time())
        if puts and not store.write_rows(puts):
            for put in puts:
                self.core.take_silence(put.number, trio.current_time())
                self.perform()

    # ---- without a lease

    def fenced(self) -> None:
        """Write nothing any more: the node has lost its lease."""
        self.is_current = False
        self._begun.clear()
        self.moves.fence()
        self._policies.fenced()
        self._catalogue.core.leave()

    def forget(self) -> None:
        """Forget all rows, and what waits for them: the links are left."""
        self.held.clear()
        self.carrier.lose_all()
        self.owners.forget()
        self.core.forget()
        self.perform()
        self.release_all()

    def release_all(self) -> None:
        """Forget the sessions of other nodes, and all that they own. Idempotent."""
        with self.applying():
            for runtime in self.homes.runtimes:
                self.homes.session_over(runtime)
                self.tables.release(runtime, "this node is none of the group any more")

    # ---- port of the mirror

    @override
    @deferred
    def apply(self, row: kinds.GroupRow, revision: int) -> None:
        match row:
            case kinds.NodeRow(holder):
                self._heed_node(holder.node, row, revision)
            case kinds.SessionRow():
                self._take_session(row)
            case kinds.OwnerRow():
                with self.applying():
                    self.owners.there(row)
            case kinds.PathRow():
                self.paths.there(row)
            case kinds.NameRow(name):
                self._exchange.names.mirror(name)
            case PolicyRow():
                self._policies.there(row)
            case CatalogueRow():
                self._catalogue.core.set_row(row)
            case _:
                assert_never(row)

    @override
    @deferred
    def withdraw(self, row: kinds.GroupRow, revision: int, *, is_lost: bool = False) -> None:
        match row:
            case kinds.NodeRow(holder):
                self._heed_node(holder.node, None, revision)
            case kinds.SessionRow(runtime):
                self._end_session(runtime)
            case kinds.OwnerRow(_, runtime):
                is_kept = not is_lost and runtime in self._exchange.sessions
                with self.applying():
                    (self.owners.missing if is_kept else self.owners.gone)(row)
                if is_kept:
                    self._tell(self.membership.renew)
            case kinds.PathRow():
                self.paths.gone(row)
            case kinds.NameRow(name):
                self._exchange.names.mirror(NameForgotten(name.runtime))
            case PolicyRow():
                self._policies.there(None)
            case CatalogueRow(path):
                self._catalogue.core.set_missing(path)
            case _:
                assert_never(row)

    @override
    @deferred
    def confirm(
        self, key: str, row: kinds.GroupRow | None, revision: int, tickets: tuple[int, ...]
    ) -> None:
        self._trace.home(row, revision, self.membership.holder)
        self.carrier.left_behind.written(key, trio.current_time())
        self.held.release_all(tickets)
        self._policies.written(key)
        self._catalogue.core.set_written(key)

    @override
    @deferred
    def lose(self, key: str, tickets: tuple[int, ...]) -> None:
        self._trace.component.counters.count(Tally.ROWS_LOST)
        _log.info("row was changed by another node", key=key)
        for number in tickets:
            self.held.forget(number)
            self._exchange.lost(number, "another node decided otherwise", is_misled=True)

    @override
    @deferred
    def read(self, key: str, revision: int) -> None:
        if self.store is not None:
            self.store.read(key, revision)

    @override
    def refuse(self, key: str, reason: kinds.RowRefusal) -> None:
        """Report a row that is none of ours, or one too many."""
        report_refusal(self._trace.component.counters, key, reason)

    # ---- sessions that move, and their port

    def _take_session(self, row: kinds.SessionRow) -> None:
        """Follow the row of a session, which is right whatever this node has decided."""
        here = self.membership.holder
        if row.holder != here:
            self.homes.session(row, trio.current_time())
            with self.applying():
                self.tables.came_elsewhere(row.runtime, row.form)
        self.moves.take_row(row, here)
        self.perform()

    def _end_session(self, runtime: str) -> None:
        """Follow that the row of a session has gone."""
        self.moves.take_removal(runtime)
        self.perform()
        if runtime not in self._exchange.sessions:
            self.homes.session_over(runtime)
            with self.applying():
                self.tables.release(runtime, "its session at another node is over")

    @override
    @deferred
    def put_row(self, key: str, row: kinds.SessionRow | None) -> None:
        self.write(key, row)

    @override
    @deferred
    def give_up(self, session: moves.GiveUp) -> None:
        """End this node's copy of a session, once its link is read."""
        if not self.reading.waits(session, trio.current_time()):
            self.hand_over(session)

    def hand_over(self, gone: moves.GiveUp) -> None:
        """End a session here that another node has, and hand over what waits for it."""
        if (session := self._exchange.sessions.get(gone.runtime)) is not None:
            session.move_away(gone.why)
        if gone.to is not None:
            self.carrier.hand_over(gone.runtime)

    @contextmanager
    def applying(self) -> Iterator[None]:
        """Change tables as another node has it: nothing is written."""
        was, self.is_applying = self.is_applying, True
        try:
            yield
        finally:
            self.is_applying = was
