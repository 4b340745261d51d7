"""The rows of the domain, as a node follows them, and those that it writes.

Rows that other nodes write are applied to the tables of this node: a runtime with a session
elsewhere owns its addresses here, too. What local sessions change is written as rows, and the link
that asked for it is answered when it is written.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio

from actors.kit.counters import Tally
from actors.kit.log import get_logger
from actors.node.catalogue.domain import DomainCatalogue
from actors.node.group.carrier import Carrier
from actors.node.group.link import GroupStore, HeldLinks, ReadOut, RowRefusals
from actors.node.group.trace import GroupTrace
from actors.node.messages import CatalogueRead, PoliciesReread
from actors.node.policy.domain import DomainPolicies
from actors.node.session.exchange import Exchange
from actors.node.tables import Tables
from fsm.effects import Refused, RowChanged
from fsm.group import kinds, moves, rows
from fsm.group.catalogue import CatalogueRow
from fsm.group.homes import Homes
from fsm.group.membership import MembershipCore
from fsm.group.order import SenderOrder
from fsm.group.policies import PolicyRow
from fsm.group.rows import Change, Remove, RowsCore
from fsm.session.runtime_names import NameForgotten
from specs.trace import Op

# Which runtimes of a domain own which addresses: a row each.

_Write: TypeAlias = Callable[[Change | Remove], None]
_Hold: TypeAlias = Callable[[str], int | None]


@final
class OwnerRows:
    """Writes the rows of this node's sessions, and applies those of others.

    Part of the bus's task.

    Args:
        tables: The tables of this node.
        sessions: The runtimes with a session at this node.
        write: Writes a row.
        hold: Has the link of a runtime wait for a row; returns its number, None if it has none.
    """

    def __init__(
        self, tables: Tables, sessions: Container[str], write: _Write, hold: _Hold
    ) -> None:
        self._tables: Final = tables
        self._sessions: Final = sessions
        self._write: Final = write
        self._hold: Final = hold
        self._missing: Final = dict[str, kinds.OwnerRow]()
        self._asked_about: Final = dict[str, kinds.OwnerRow]()

    # ---- of this node

    def changed(self, changed: RowChanged) -> None:
        """Write that an address has an owner, or none any more."""
        address, runtime = changed.key, str(changed.val)
        self._found(kinds.owner_key(address))
        link = self._hold(runtime)
        if changed.op is Op.DEL:
            self._write(Remove(kinds.owner_key(address), link))
        else:
            self._write(Change(self._row(address, runtime), link))

    def _row(self, address: str, runtime: str) -> kinds.OwnerRow:
        allocation = self._tables.allocation
        block, is_bound = allocation.block_of(address), allocation.is_bound(address)
        return kinds.OwnerRow(address, runtime, block, is_bound)

    # ---- of any node, as the engine has them

    def there(self, row: kinds.OwnerRow) -> None:
        """Apply a row."""
        self._found(row.key)
        self._tables.mirror(row.runtime, row.address, row.block, is_bound=row.is_bound)

    def gone(self, row: kinds.OwnerRow) -> None:
        """Apply that there is none any more."""
        self._tables.own(self._tables.allocation.mirror_gone(row.address))

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


@final
class PathRows:
    """Writes the rows of this node, and notes those of others; part of the bus's task.

    Args:
        membership: The membership of this node.
        homes: What other nodes have.
        tables: The tables of this node.
        write: Writes a row.
    """

    def __init__(
        self, membership: MembershipCore, homes: Homes, tables: Tables, write: _Write
    ) -> None:
        self._membership: Final = membership
        self._homes: Final = homes
        self._tables: Final = tables
        self._write: Final = write
        self._subscribers: Final = Counter[str]()

    # ---- of this node

    def begun(self, resource: str, link: int | None) -> None:
        """Note one subscriber more.

        Args:
            resource: Address that it subscribes to.
            link: Number of its link, which waits until other nodes can know of it; None: none.
        """
        self._subscribers[resource] += 1
        row = kinds.PathRow(resource, self._membership.holder)
        self._homes.path_over(row)
        # The engine may not have it yet, though this is not the first subscriber.
        self._write(Change(row, link))

    def over(self, resource: str) -> None:
        """Note one subscriber less."""
        self._subscribers[resource] -= 1
        if not self._subscribers[resource]:
            del self._subscribers[resource]
            self._write(Remove(kinds.path_key(resource, self._membership.node)))

    # ---- of any node, as the engine has them

    def there(self, row: kinds.PathRow) -> None:
        """Note a row."""
        if row.holder != self._membership.holder:
            self._homes.path(row)
            self._tables.remembered.forget()
        else:
            # A write of its own that was given up, and made after all.
            is_so = row.resource in self._subscribers
            self._write(Change(row) if is_so else Remove(row.key))

    def gone(self, row: kinds.PathRow) -> None:
        """Note that there is none any more."""
        self._homes.path_over(row)
        self._tables.remembered.forget()
        if row.holder == self._membership.holder and row.resource in self._subscribers:
            self._write(Change(row))

    def tidy(self) -> None:
        """Remove the rows of nodes that are gone, as far as they are this node's to remove."""
        for row in list(self._homes.unheld_paths()):
            if self._membership.tidies(row.key):
                self._homes.path_over(row)
                self._write(Remove(row.key))


_log = get_logger("actors.node")
_NODES: Final = f"{kinds.Kind.NODE}/"

_Tell: TypeAlias = Callable[[Callable[[float], None]], None]
_HeedNode: TypeAlias = Callable[[str, kinds.NodeRow | None, int], None]


@final
@attrs.frozen
class Agreed:
    """What the domain has one version of: its policies, and the files of its catalogue.

    Passes their rows on to them; part of the bus's task.
    """

    policies: DomainPolicies
    catalogue: DomainCatalogue

    def begin(
        self, write: Callable[[rows.Change], None], objection: Callable[[], Refused | None]
    ) -> None:
        """Work with a bus, which knows nothing of the engine yet.

        Args:
            write: Writes a row.
            objection: Returns why nothing can be written now; None: it can.
        """
        self.policies.begin(write, objection)
        self.catalogue.begin(write)

    @property
    def objection(self) -> Refused | None:
        """Why the node opens no sessions; None: it does."""
        return self.policies.objection

    def heed(self, event: PoliciesReread | CatalogueRead) -> None:
        """Take what the files of this node say."""
        match event:
            case PoliciesReread(book, reply):
                self.policies.propose(book, reply.send, is_of_files=True)
            case CatalogueRead(files):
                self.catalogue.core.set_directory(files)

    def there(self, row: PolicyRow | CatalogueRow) -> None:
        """Note a row of the engine."""
        match row:
            case PolicyRow():
                self.policies.there(row)
            case CatalogueRow():
                self.catalogue.core.set_row(row)

    def gone(self, row: PolicyRow | CatalogueRow) -> None:
        """Note that the engine does not have a row any more, or nothing that can be read."""
        match row:
            case PolicyRow():
                self.policies.there(None)
            case CatalogueRow(path):
                self.catalogue.core.set_missing(path)

    def written(self, key: str) -> None:
        """Note that the engine has what this node wrote.

        Args:
            key: Key of the row, which may be any.
        """
        self.policies.written(key)
        self.catalogue.core.set_written(key)

    def known(self) -> bool:
        """Note that the node is a member, and knows what the engine has. Idempotent.

        Returns:
            Whether the node knows by which policies it judges.
        """
        self.catalogue.core.join()
        return self.policies.known()

    def fenced(self) -> None:
        """Note that the node is no member any more."""
        self.policies.fenced()
        self.catalogue.core.leave()


@final
class DomainRows:
    """Host of the core of the rows: applies those of all nodes, and writes those of this one.

    Part of the bus's task.

    Args:
        exchange: The sessions of this node.
        member: Decides whether this node is a member.
        trace: Of what comes from other nodes and goes to them.
        agreed: What the domain has one version of.
        tell: Calls the membership.
        heed_node: Takes what the row of a node says.

    Attributes:
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
        agreed: Agreed,
        tell: _Tell,
        heed_node: _HeedNode,
    ) -> None:
        self._exchange: Final = exchange
        self._tables: Final = exchange.tables
        self._membership: Final = member
        self._trace: Final = trace
        self._agreed: Final = agreed
        self._tell: Final = tell
        self._heed_node: Final = heed_node
        self._refusals: Final = RowRefusals(trace.component.counters)
        self.core: Final = RowsCore()
        self.moves: Final = moves.MovesCore()
        order = SenderOrder(self.core, self.moves)
        self.homes: Final = Homes(member.is_live, exchange.tables.elsewhere, order)
        self.held: Final = HeldLinks(exchange.ports)
        self.reading: Final = ReadOut(exchange)
        self.carrier: Final = Carrier(exchange, self.homes, member, trace, self.held)
        self.owners: Final = OwnerRows(self._tables, exchange.sessions, self.write, self.hold)
        self.paths: Final = PathRows(member, self.homes, self._tables, self.write)
        self.store: GroupStore | None = None
        self.is_current = self.is_applying = False
        self._begun: set[str] = set()

    @property
    def _now(self) -> float:
        return trio.current_time()

    # ---- from and to the engine

    def begin(self, store: GroupStore) -> None:
        """Work with the actor that writes, which has started, perhaps again."""
        self.store = store
        self._applied(self.core.feed(rows.AllUnanswered(), self._now))

    def came(self, news: Sequence[rows.Gap | rows.Seen | rows.Current]) -> None:
        """Take rows that the engine has."""
        self._begun.update(one.prefix for one in news if isinstance(one, rows.Gap))
        for one in news:
            self._applied(self.core.feed(one, self._now))
            if isinstance(one, rows.Gap | rows.Current) and one.prefix == _NODES:
                member, begins = self._membership, isinstance(one, rows.Gap)
                self._tell(member.begin_watch if begins else member.end_list)

    def answered(self, answers: Sequence[rows.Answered]) -> None:
        """Take the answers of the engine to writes."""
        for answer in answers:
            self._applied(self.core.feed(answer, self._now))

    def look_current(self) -> bool:
        """Look whether all rows are known; return whether that is new."""
        if self.is_current or len(self._begun) < len(kinds.Kind) or not self.core.is_current:
            return False
        self.is_current = True
        return True

    def write(self, change: rows.Change | rows.Remove) -> None:
        """Have a row written; a link that waits for it is answered then."""
        if not self.is_current:
            self.held.release(change.ticket)
        else:
            self._applied(self.core.feed(change, self._now))

    def hold(self, runtime: str) -> int | None:
        """Have the link of a runtime wait until a row is written; return its number."""
        session = self._exchange.sessions.get(runtime)
        return None if session is None else self.held.hold(session.port)

    def send(self, store: GroupStore) -> None:
        """Send what is to be written."""
        puts = self.core.writes(self._now)
        if puts and not store.write_rows(puts):
            self.answered([rows.Unanswered(one.number) for one in puts])

    # ---- without a lease

    def fenced(self) -> None:
        """Write nothing any more: the node has lost its lease."""
        self.is_current = False
        self._begun.clear()
        self.moves.fenced()
        self._agreed.fenced()

    def forget(self) -> None:
        """Forget all rows, and what waits for them: the links are left."""
        self.held.clear()
        self.carrier.lose_all()
        self.owners.forget()
        self._applied(self.core.feed(rows.Forget(), self._now))
        self.release_all()

    def release_all(self) -> None:
        """Forget the sessions of other nodes, and all that they own. Idempotent."""
        with self.applying():
            for runtime in self.homes.runtimes:
                self.homes.session_over(runtime)
                self._tables.release(runtime, "this node is none of the group any more")

    # ---- what they say

    def _applied(self, effects: list[rows.Effect]) -> None:
        for effect in effects:
            match effect:
                case rows.Applied(row):
                    self._row(row, effect)
                case rows.Withdrawn(row):
                    self._row_gone(row, effect)
                case rows.Done(key, tickets, row, revision):
                    self._trace.home(row, revision, self._membership.holder)
                    self.carrier.left_behind.written(key, self._now)
                    self.held.release_all(tickets)
                    self._agreed.written(key)
                case rows.Lost():
                    self._lost(effect)
                case rows.Read():
                    if self.store is not None:
                        self.store.read(effect)
                case rows.Rejected(key, reason):
                    self.refuse(key, reason)
                case _:
                    assert_never(effect)

    def refuse(self, key: str, reason: kinds.RowRefusal) -> None:
        """Report a row that is none of ours, or one too many."""
        self._refusals.note(key, reason)

    def _row(self, row: kinds.GroupRow, said: rows.RowNews) -> None:
        match row:
            case kinds.NodeRow(holder):
                self._heed_node(holder.node, row, said.revision)
            case kinds.SessionRow(runtime):
                self._session(runtime, row, said)
            case kinds.OwnerRow():
                with self.applying():
                    self.owners.there(row)
            case kinds.PathRow():
                self.paths.there(row)
            case kinds.NameRow(name):
                self._exchange.names.mirror(name)
            case PolicyRow() | CatalogueRow():
                self._agreed.there(row)
            case _:
                assert_never(row)

    def _row_gone(self, row: kinds.GroupRow, said: rows.RowNews) -> None:
        match row:
            case kinds.NodeRow(holder):
                self._heed_node(holder.node, None, said.revision)
            case kinds.SessionRow(runtime):
                self._session(runtime, None, said)
            case kinds.OwnerRow(_, runtime):
                is_kept = isinstance(said, rows.Withdrawn) and runtime in self._exchange.sessions
                with self.applying():
                    (self.owners.missing if is_kept else self.owners.gone)(row)
                if is_kept:
                    self._tell(self._membership.renew)
            case kinds.PathRow():
                self.paths.gone(row)
            case kinds.NameRow(name):
                self._exchange.names.mirror(NameForgotten(name.runtime))
            case PolicyRow() | CatalogueRow():
                self._agreed.gone(row)
            case _:
                assert_never(row)

    def _session(self, runtime: str, there: kinds.SessionRow | None, said: rows.RowNews) -> None:
        """Follow the row of a session, which is right whatever this node has decided."""
        here = self._membership.holder
        if there is not None and there.holder != here:
            self.homes.session(there, self._now)
            with self.applying():
                self._tables.came_elsewhere(runtime, there.form)
        self.follow(self.moves.feed(said, here))
        if there is None and runtime not in self._exchange.sessions:
            self.homes.session_over(runtime)
            with self.applying():
                self._tables.release(runtime, "its session at another node is over")

    def follow(self, effects: list[moves.Effect]) -> None:
        """Write, or give up, sessions that move."""
        for effect in effects:
            if not isinstance(effect, moves.GiveUp):
                self.write(effect)
            elif not self.reading.waits(effect, self._now):
                self.give_up(effect)

    def give_up(self, gone: moves.GiveUp) -> None:
        """End a session here that another node has, and hand over what waits for it."""
        if (session := self._exchange.sessions.get(gone.runtime)) is not None:
            session.move_away(gone.why)
        if gone.to is not None:
            self.carrier.hand_over(gone.runtime)

    def _lost(self, lost: rows.Lost) -> None:
        """Undo what another node has decided otherwise; the link that waits has to ask anew."""
        self._trace.component.counters.count(Tally.ROWS_LOST)
        _log.info("row was changed by another node", key=lost.key)
        if lost.there is not None:
            self._row(lost.there, lost)
        elif lost.row is not None:
            self._row_gone(lost.row, lost)
        for number in lost.tickets:
            self.held.forget(number)
            self._exchange.lost(number, "another node decided otherwise", is_misled=True)

    @contextmanager
    def applying(self) -> Iterator[None]:
        """Change tables as another node has it: nothing is written."""
        was, self.is_applying = self.is_applying, True
        try:
            yield
        finally:
            self.is_applying = was
