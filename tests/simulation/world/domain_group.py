"""The nodes of one domain over an engine in memory, and what they must agree on at the end."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress

import attrs

from actors.node.group.group import Group
from actors.node.group.records import EngineRecords
from actors.node.group.shared import Shared
from fsm.group.kinds import GroupRow, NameRow, OwnerRow, PathRow, RowRefusedError, SessionRow
from fsm.group.row_form import read_row
from tests.simulation.plans.plan import Fault, Wrong
from transports.engine.memory import MemoryEngine, MemoryStore

_RECORD = "record/"


@attrs.define(eq=False)
class Member:
    """A life of a node.

    Attributes:
        engine: Its handle of the engine.
        group: What it knows of the other nodes; None: it has not got so far.
    """

    engine: MemoryEngine
    group: Group | None = None
    records: EngineRecords | None = None


class DomainGroup:
    """The engine of a domain, and who uses it.

    Attributes:
        members: The present life of each node, by its name.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.members: dict[str, Member] = {}
        self._store = store

    def opened(self, node: str) -> Callable:
        """Return what opens the engine for a life of a node."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[MemoryEngine]:
            async with self._store.open() as engine:
                self.members[node] = Member(engine)
                yield engine

        return opened

    def bury(self, node: str) -> None:
        """Let a node that dies write nothing any more."""
        member = self.members.pop(node, None)
        if member is not None:
            member.engine.close()

    def begin(self, fault: Fault) -> Callable[[], object] | None:
        """Have a fault of the engine begin; return what ends it, None: it is of something else."""
        store, member = self._store, self.members.get(fault.one)
        engine = None if member is None else member.engine
        match fault.wrong:
            case Wrong.ENGINE:
                store.stop()
                return store.start
            case Wrong.EMPTIED:
                store.stop()
                return store.restart_empty
            case Wrong.CUT | Wrong.SLOW | Wrong.UNSURE | Wrong.SWALLOWED:
                return (lambda: None) if engine is None else self._of_one(fault, engine)
            case _:
                return None

    def _of_one(self, fault: Fault, engine: MemoryEngine) -> Callable[[], object]:
        store = self._store
        match fault.wrong:
            case Wrong.CUT:
                store.stop(engine)
                return lambda: store.start(engine)
            case Wrong.SLOW:
                store.slow(fault.amount, engine)
                return lambda: store.slow(0.0, engine)
            case Wrong.UNSURE:
                store.answer_no_more(int(fault.amount), engine)
                return lambda: store.answer_no_more(0, engine)
            case _:
                store.swallow(int(fault.amount), engine)
                return lambda: store.swallow(0, engine)

    # --- what is judged

    def differences(self) -> Iterator[str]:
        """Say in what the nodes are not what the rows of the engine say, or have twice."""
        rows = dict(self._rows())
        revisions = {row.key: row.revision for row in self._store.rows() if row.key in rows}
        for name, member in self.members.items():
            if member.group is None or not member.group.is_member:
                yield f"{name} is no member"
                continue
            mirror = {key: one.revision for key, one in member.group.rows._known.items()}
            yield from _unlike(f"the mirror of {name}", mirror, revisions)
            yield from _of_tables(name, member.group, rows.values())
            if member.records is not None:
                there = {row.key: row.revision for row in self._store.rows(_RECORD)}
                known = member.records._known.items()
                kept = {_RECORD + about: one.revision for about, one in known}
                yield from _unlike(f"the records of {name}", kept, there)
        yield from self._twice()

    def _rows(self) -> Iterator[tuple[str, GroupRow]]:
        for row in self._store.rows():
            if row.value is not None:
                # Records, tokens and the secret are no rows of the group.
                with suppress(RowRefusedError):
                    yield row.key, read_row(row.key, row.value)

    def _twice(self) -> Iterator[str]:
        having = Counter(
            runtime
            for member in self.members.values()
            if member.group is not None
            for runtime in member.group.exchange.sessions
        )
        yield from (f"{count} nodes have {one}" for one, count in having.items() if count > 1)


def _of_tables(name: str, group: Group, rows: Collection[GroupRow]) -> Iterator[str]:
    """Hold the tables of a node against all rows."""
    tables, holder = group.exchange.tables, group.membership.holder
    sessions = {row.runtime: row for row in rows if isinstance(row, SessionRow)}
    here = {one for one, row in sessions.items() if row.holder == holder}
    yield from _unlike(f"the sessions of {name}", _all(group.exchange.sessions), _all(here))
    away = {one: row.holder for one, row in sessions.items() if one not in here}
    known = {one: row.holder for one, row in group.homes.sessions.items()}
    yield from _unlike(f"what {name} knows of sessions elsewhere", known, away)
    for one in sorted(away):
        if group.homes.node_of(one) is None:
            yield f"{name} knows no member that has {one}"
    names = {row.name.runtime: row.name for row in rows if isinstance(row, NameRow)}
    yield from _unlike(f"the names at {name}", group.exchange.names._core._names, names)
    owners = {row.address: row.runtime for row in rows if isinstance(row, OwnerRow)}
    runtimes = {*sessions, *owners.values()}
    owned = {
        address: owner for address, owner in tables.allocation._owners.items() if owner in runtimes
    }
    yield from _unlike(f"the owners at {name}", owned, owners)
    paths = [row for row in rows if isinstance(row, PathRow)]
    mine = [row.resource for row in paths if row.holder == holder]
    yield from _unlike(f"the subscribed of {name}", _all(group._subscribers), _all(mine))
    others = [(row.resource, row.holder.node) for row in paths if row.holder != holder]
    there = [(one, node) for one, nodes in tables.elsewhere.items() for node in nodes]
    yield from _unlike(f"what {name} knows of subscribers elsewhere", _all(there), _all(others))


def _all(keys: Collection) -> dict:
    return dict.fromkeys(keys, "there")


def _unlike(what: str, have: Mapping, should: Mapping) -> Iterator[str]:
    for key in sorted({*have, *should}):
        if have.get(key) != should.get(key):
            yield f"{what}: {key} is {have.get(key)}, not {should.get(key)}"


@contextmanager
def watched(groups: Collection[DomainGroup]) -> Iterator[None]:
    """Get hold of what nodes know, which no node tells."""
    join, records = Shared.join, Shared.records

    def member_of(shared: Shared) -> Member:
        members = (one for group in groups for one in group.members.values())
        return next((one for one in members if one.engine is shared.engine), Member(shared.engine))

    def joined(self: Shared, *about: object) -> Group:
        group = member_of(self).group = join(self, *about)
        return group

    def kept(self: Shared) -> EngineRecords:
        member_of(self).records = there = records(self)
        return there

    Shared.join, Shared.records = joined, kept
    try:
        yield
    finally:
        Shared.join, Shared.records = join, records
