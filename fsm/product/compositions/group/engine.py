"""The engine of a group, as a model: rows with revisions, writes that expect one, watches.

It makes no write of a node that knew its lease was over, or did not know the row: it would not
know better, and that is what is looked at here.
"""

from collections.abc import Hashable, Sequence
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.group.kinds import (
    GroupRow,
    Holder,
    NodeRow,
    SessionRow,
    node_key,
    session_key,
)
from fsm.group.row_form import read_row, write_row
from fsm.group.rows import Conflicted, Current, Put, Read, Seen, Written
from fsm.product.composition import Host, UnsafeError
from fsm.session.node_session_io import PeerForm

ENGINE: Final = "engine"
RUNTIME: Final = "hyperty-runtime://a.ex/ra"
KEY: Final = session_key(RUNTIME)


@final
@attrs.frozen(slots=True)
class Write:
    """A node asks the engine for a write.

    Attributes:
        put: A row, or the node's own.
        by: The process that asks.
        told: The revision of the row that it had heard of when it asked; 0: that there is none.
        is_stale: Whether its lease was over by its own clock then.
        is_lease: Whether it is the node's own row.
    """

    put: Put
    by: Holder
    told: int = 0
    is_stale: bool = False
    is_lease: bool = False

    @override
    def __str__(self) -> str:
        """The event in words."""
        what = "delete" if self.put.value is None else "write"
        return f"{what} {self.put.key} over revision {self.put.expected}, as {_said(self.by)}"


@final
@attrs.frozen(slots=True)
class Answer:
    """The engine answers a write, to the process that asked."""

    outcome: Written | Conflicted
    to: Holder
    is_lease: bool = False

    @override
    def __str__(self) -> str:
        """The event in words."""
        is_made = isinstance(self.outcome, Written)
        return f"{'made' if is_made else 'refused'}: revision {self.outcome.revision}"


@final
@attrs.frozen(slots=True)
class Watch:
    """A process begins to watch all rows."""

    by: Holder

    @override
    def __str__(self) -> str:
        """The event in words."""
        return f"{_said(self.by)} watches"


@final
@attrs.frozen(slots=True)
class Ask:
    """A process reads a row."""

    read: Read
    by: Holder

    @override
    def __str__(self) -> str:
        """The event in words."""
        return f"{_said(self.by)} reads {self.read.key}"


@final
@attrs.frozen(slots=True)
class Lapse:
    """The lease of a process ends."""

    of: Holder

    @override
    def __str__(self) -> str:
        """The event in words."""
        return f"the lease of {_said(self.of)} ends"


@final
@attrs.frozen(slots=True)
class News:
    """A watch, or a read, tells a process of a row, or that it is current.

    Attributes:
        revision: The newest one of the engine then.
    """

    seen: Seen | Current
    to: Holder
    revision: int

    @override
    def __str__(self) -> str:
        """The event in words."""
        if isinstance(self.seen, Current):
            return "all rows are known"
        is_gone = self.seen.value is None
        return f"{self.seen.key} {'is gone' if is_gone else 'is'} at {self.seen.revision}"


def _said(holder: Holder) -> str:
    return f"{holder.node}{holder.boot}"


def session_of(holder: Holder, epoch: int = 0) -> SessionRow:
    """Return the row of the session.

    Args:
        holder: The process that has it.
        epoch: Its epoch; 0: it is not known yet.
    """
    return SessionRow(RUNTIME, holder, epoch, PeerForm.OWN, "stub")


def beginning(nodes: Sequence[str], *, is_held: bool) -> dict[str, bytes]:
    """Return the rows when all begins.

    Args:
        nodes: Ids of the nodes; all are members.
        is_held: Whether the first one has the session; else there is none.
    """
    rows: list[GroupRow] = [NodeRow(Holder(node, 1)) for node in nodes]
    if is_held:
        rows.append(session_of(Holder(nodes[0], 1), 1))
    return {row.key: write_row(row) for row in rows}


@final
class EnginePlace(Host):
    """Rows with revisions.

    Attributes:
        rows: Value and revision of each.
        revision: The last one.
        watchers: The process of each node that watches.
    """

    def __init__(self, nodes: Sequence[str], *, is_held: bool) -> None:
        super().__init__()
        self.rows: dict[str, tuple[bytes, int]] = {}
        self.revision = 0
        for key, value in beginning(nodes, is_held=is_held).items():
            self.revision += 1
            self.rows[key] = value, self.revision
        self.watchers = {node: Holder(node, 1) for node in nodes}

    @property
    def session(self) -> SessionRow | None:
        """The row of the session."""
        kept = self.rows.get(KEY)
        row = None if kept is None else read_row(KEY, kept[0])
        return row if isinstance(row, SessionRow) else None

    def is_live(self, holder: Holder) -> bool:
        """Return whether a process has a lease."""
        key = node_key(holder.node)
        kept = self.rows.get(key)
        row = None if kept is None else read_row(key, kept[0])
        return isinstance(row, NodeRow) and row.holder == holder

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Write():
                self._asked(happened)
            case Watch(by):
                self.watchers[by.node] = by
                rows = sorted(self.rows.items(), key=lambda row: row[1][1])
                for key, (value, revision) in rows:
                    self._tell(by, Seen(key, value, revision))
                self._tell(by, Current(""))
            case Ask(Read(key, revision), by):
                kept = self.rows.get(key)
                read = Seen(key, None, revision) if kept is None else Seen(key, *kept)
                self._tell(by, attrs.evolve(read, is_read=True))
            case Lapse(holder):
                self.watchers = {n: by for n, by in self.watchers.items() if by != holder}
                if self.is_live(holder):
                    self._write(node_key(holder.node), None)
            case _:
                raise TypeError(happened)

    def _asked(self, asked: Write) -> None:
        put = asked.put
        value, revision = self.rows.get(put.key, (None, 0))
        if put.expected in {revision, None}:
            self._look_at(asked)
            self._write(put.key, put.value)
            outcome: Written | Conflicted = Written(put.number, self.revision)
        else:
            outcome = Conflicted(put.number, value, revision or put.expected)
        node = asked.by.node
        self.send(f"{node}-answers", Answer(outcome, asked.by, asked.is_lease))

    def _look_at(self, asked: Write) -> None:
        if asked.is_stale:
            raise UnsafeError("the engine makes a write of a node that knew its lease was over")
        if asked.is_lease:
            return
        if asked.told != self.rows.get(KEY, (b"", 0))[1]:
            raise UnsafeError("the engine makes a write over a row that its node did not know")
        if asked.put.value is None:
            return
        before, row = self.session, read_row(KEY, asked.put.value)
        if not isinstance(row, SessionRow) or before is None or row.holder == before.holder:
            return
        if row.epoch != before.epoch + 1:
            raise UnsafeError("a session changes its node, and its epoch is not the next one")

    def _write(self, key: str, value: bytes | None) -> None:
        self.revision += 1
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = value, self.revision
        for by in self.watchers.values():
            self._tell(by, Seen(key, value, self.revision))

    def _tell(self, to: Holder, seen: Seen | Current) -> None:
        self.send(f"{to.node}-hears", News(seen, to, self.revision))
