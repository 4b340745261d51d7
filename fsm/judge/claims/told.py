"""A trace as claims read it: the records of each node in order, up to the first gap.

A missing record is no proof of a wrong step. The records of a node count up to the first
gap in their numbers, and not at all if its sink dropped some. A record that never came is
missed only in a trace that has its end. Rows of tables and listeners of routers are kept
while the records of a process are read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.claims.finding import Finding
from fsm.judge.replay import NodeJudgement, judge_node
from fsm.judge.trace_line import Flaw, TraceLine
from specs.addresses.address import last_segment, runtime_of
from specs.message import Message, MessageType
from specs.message_kind import bound
from specs.reply_code import FIRST_FINAL
from specs.trace import Kind, Op

__all__ = [
    "BUS",
    "LINK_MACHINE",
    "LISTENERS",
    "LIVE",
    "MANAGER",
    "RESPONSE",
    "SLACK",
    "TOLERANCE",
    "Key",
    "Listeners",
    "NodeTrace",
    "Rows",
    "Trace",
    "expects_answer",
    "is_answer",
    "is_connection",
    "is_final",
    "is_p2p_end",
    "is_p2p_link",
    "is_shared",
    "key_of",
    "read_trace",
    "split",
]

_TABLE: Final = "listeners"
_ALL: Final = "*"
_NOBODY: Final[Sequence[str]] = ()


@final
class Listeners:
    """The `listeners` tables of one process, one for each router that tells of its own."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, list[str]]] = {}
        self._unclear: dict[tuple[str, str], set[str]] = {}

    def take(self, record: TraceLine) -> bool:
        """Take a record; say whether it was a change of these tables."""
        if record.k != Kind.TABLE or record.table != _TABLE:
            return False
        table = self._tables.setdefault(record.actor, {})
        row = table.setdefault(record.key or "", [])
        listener = record.val or ""
        if record.op == Op.ADD:
            row.append(listener)
        elif listener in row:
            self._remove(record, row, listener)
        return True

    def _remove(self, record: TraceLine, row: list[str], listener: str) -> None:
        """Remove one of a name: which, a record does not tell if there are others."""
        row.remove(listener)
        unclear = self._unclear.setdefault((record.actor, record.key or ""), set())
        if listener in row:
            unclear.add(listener)
        else:
            unclear.discard(listener)

    def is_in_order(self, router: str, address: str) -> bool:
        """Whether it is known in which order those came who listen to an address."""
        return not self._unclear.get((router, address))

    def knows(self, router: str) -> bool:
        """Whether a router tells of its table; one in another process does not."""
        return router in self._tables

    def of(self, router: str, address: str) -> Sequence[str]:
        """Return who listens to an address, in the order they were added."""
        return self._tables.get(router, {}).get(address, _NOBODY)

    def of_all(self, router: str) -> Sequence[str]:
        """Return who listens to everything."""
        return self.of(router, _ALL)

    def has(self, router: str, listener: str) -> bool:
        """Whether somebody listens to any one address."""
        table = self._tables.get(router, {})
        return any(listener in row for address, row in table.items() if address != _ALL)


@final
class Rows:
    """What a table with one row for each key holds."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._rows: dict[str, str] = {}

    def take(self, record: TraceLine) -> bool:
        """Take a record; say whether it was a change of this table."""
        if record.k != Kind.TABLE or record.table != self._table:
            return False
        if record.op == Op.DEL:
            self._rows.pop(record.key or "", None)
        else:
            self._rows[record.key or ""] = record.val or ""
        return True

    def words(self, key: str) -> list[str]:
        """Return what a row holds, word by word."""
        return self._rows.get(key, "").split()

    def all(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each row, word by word."""
        return ((key, value.split()) for key, value in self._rows.items())


_SHARED: Final = frozenset({"changes", "subscription"})
"""Last segments of addresses that several components may listen to."""

BUS: Final = "bus"
"""The actor that routes between the sandboxes of a runtime, or for the sessions of a node."""

MANAGER: Final = "sm"
"""The actor at whose hands are the data objects of a runtime; its registry has lists of its own."""

LISTENERS: Final = "listeners"
LINK_MACHINE: Final = "p2p_connection"
LIVE: Final = "live"
RESPONSE: Final = MessageType.RESPONSE.value

SLACK: Final = 5.0
"""Seconds by which a loaded machine may be late (ours)."""

TOLERANCE: Final = 0.001
"""Seconds by which a clock may have been read late (ours)."""

Key: TypeAlias = tuple[str, str, int]
"""From, to and id of a request."""


@final
@attrs.frozen(eq=False)
class NodeTrace:
    """The records of one run of one process.

    Attributes:
        told: All of them, by `ln`.
        records: The same, as far as nothing is missing; claims are judged by these.
        judgement: What is known of the trace as a whole.
    """

    run: str
    node: str
    told: Sequence[TraceLine]
    records: Sequence[TraceLine]
    judgement: NodeJudgement

    @cached_property
    def end(self) -> TraceLine | None:
        """The last record, if the process ended orderly and nothing is missing."""
        whole = not self.judgement.flaws - {Flaw.NO_START}
        return self.records[-1] if whole and self.records else None

    @cached_property
    def messages(self) -> Sequence[TraceLine]:
        """Records of messages that name both ends."""
        return [
            record
            for record in self.records
            if record.k == Kind.MSG and record.from_ is not None and record.to is not None
        ]

    @cached_property
    def at_bus(self) -> Sequence[TraceLine]:
        """Records of messages that a runtime's Message BUS wrote; of a node: none."""
        return [record for record in self.messages if record.actor == BUS] if self.home else []

    @cached_property
    def home(self) -> str | None:
        """Address of the runtime; None: this is a node, or listeners are not told."""
        for record in self.records:
            if record.k == Kind.TABLE and record.table == LISTENERS and record.actor == BUS:
                return runtime_of(record.key or "")
        return None

    @cached_property
    def arrivals(self) -> Mapping[str, int]:
        """Messages that came over a link, and the `ln` of the first time."""
        arrived: dict[str, int] = {}
        for record in self.messages:
            if record.op == Op.RCV and record.mid is not None:
                arrived.setdefault(record.mid, record.ln)
        return arrived

    def is_over_since(self, time: float) -> bool:
        """Whether the process lasted beyond a time, and ended orderly."""
        return self.end is not None and self.end.t > time

    def is_local(self, record: TraceLine) -> bool:
        """Whether a message came from here: not over a link, up to this record."""
        return self.arrivals.get(record.mid or "", record.ln) >= record.ln

    def rows(self, table: str) -> Iterator[TraceLine]:
        """Yield the changes of a table, whoever holds it."""
        return (one for one in self.records if one.k == Kind.TABLE and one.table == table)

    def steps(self, machine: str) -> Iterator[TraceLine]:
        """Yield the steps of a machine."""
        return (one for one in self.records if one.is_step and one.machine == machine)

    def finding(self, claim: str, record: TraceLine, expected: str, about: str = "") -> Finding:
        """Say that a record breaks a claim."""
        subject = about or record.mid or record.key or record.link or record.to or ""
        return Finding(claim, self.run, (self.node,), record.ln, subject, expected)


@final
@attrs.frozen(eq=False)
class Trace:
    """The records of all processes."""

    nodes: Sequence[NodeTrace]


def read_trace(records: Iterable[TraceLine]) -> Trace:
    """Sort the records of any number of processes, in any order, and see what is missing."""
    by_node: dict[tuple[str, str], list[TraceLine]] = {}
    for record in records:
        by_node.setdefault((record.run, record.node), []).append(record)
    return Trace([_node(told) for _, told in sorted(by_node.items())])


def _node(told: list[TraceLine]) -> NodeTrace:
    told.sort(key=lambda record: record.ln)
    judgement = judge_node(told)
    known = told if judgement.is_whole(0) else told[: _whole_length(judgement, told)]
    return NodeTrace(told[0].run, told[0].node, told, known, judgement)


def _whole_length(judgement: NodeJudgement, told: Sequence[TraceLine]) -> int:
    if Flaw.DROPPED in judgement.flaws:
        return 0
    first = min(judgement.holes)
    return sum(record.ln <= first for record in told)


def split(key: str | None) -> list[str]:
    """Return the parts of a key or a value, which are joined by `|`."""
    return (key or "").split("|")


def is_answer(record: TraceLine) -> bool:
    """Whether a record is of an answer."""
    return record.type == RESPONSE


def is_final(record: TraceLine) -> bool:
    """Whether a record is of an answer that ends its request."""
    return record.type == RESPONSE and (record.code or 0) >= FIRST_FINAL


@lru_cache(maxsize=4096)
def is_shared(to: str) -> bool:
    """Whether components here and elsewhere may listen to an address (C-81)."""
    return last_segment(to) in _SHARED or "/children/" in to


def is_p2p_end(address: str) -> bool:
    """Whether an address is of a P2P stub, or of a handler's end of one link."""
    return bound("PX", address) is not None


def is_connection(address: str) -> bool:
    """Whether an address is of a handler's end of one link."""
    return bound("PC", address) is not None


def is_p2p_link(record: TraceLine) -> bool:
    """Whether a record is of a direct link that came or went."""
    return record.k == Kind.LINK and record.kind == "p2p"


def key_of(record: TraceLine) -> Key:
    """Return which request a message is, or answers."""
    from_, to = record.from_ or "", record.to or ""
    ends = (to, from_) if record.type == RESPONSE else (from_, to)
    return *ends, record.id or 0


def expects_answer(record: TraceLine) -> bool:
    """Whether a record is of a request that exactly one final answer must follow."""
    return _expects_answer(record.type or "", record.to or "")


@lru_cache(maxsize=4096)
def _expects_answer(kind: str, to: str) -> bool:
    is_verb = kind in set(MessageType)
    return is_verb and Message(1, MessageType(kind), "", to).is_request
