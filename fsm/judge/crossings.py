"""Sample of messages between processes, and clock differences computed from the sample.

Each process keeps the messages with the smallest hashes, for each link and direction, so the sender
and the receiver keep the same messages. This needs no number of a message on its link, which only
stubs record. `fsm.judge.trace_files` detects missing traces of runs by these messages.

A message arrives after it was sent. So the clock of the receiver is ahead by at most the difference
of the two times: each message is a bound, as in NTP. The bounds of one direction limit the
difference from above, those of the other from below; two processes that never exchanged a message
are compared through a third. No claim depends on these figures: claims across processes use the
order of cause and effect.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Final, TypeAlias
from zlib import crc32

import attrs

from fsm.judge.claims import fold
from fsm.judge.claims.records import is_p2p_end, split
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import runtime_of
from specs.trace import Op

KEPT: Final = 16
"""Number of messages in the sample for each link and direction."""

LINKS: Final = 4096
"""Largest number of pairs of link and direction with a sample."""


class Part(IntEnum):
    """Place on the route of a message where a record of it was written.

    The `via` of a message stays the same from the stub that stamped it to the next stub that stamps
    it. Between the two, the first stub sends the message, and a node, which stamps nothing, may
    receive and send it once.
    """

    STUB_SENT = 0
    NODE_SENT = 1
    NODE_GOT = 2
    STUB_GOT = 3


@attrs.frozen(slots=True)
class Crossing:
    """Record of a message that was sent by a process to another, or received from another.

    Attributes:
        key: Hash of the message instance and of the stubs that it had passed.
        rank: Hash of the message instance, by which it was chosen for the sample.
        wall_ns: Time by the clock of the process, in nanoseconds: the first, if it was recorded
            several times.
        ln: Number of the record.
        link: The link, by the name that the process uses.
        sender: For a received message, the runtime or node that sent it; empty: unknown.
    """

    key: str
    part: Part
    rank: int
    wall_ns: int
    ln: int
    link: str
    sender: str = ""

    @property
    def is_sent(self) -> bool:
        """True if the process sent the message, False if it received the message."""
        return self.part < Part.NODE_GOT


class Crossings:
    """Collects a sample of the messages that one process sent and received."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, str | None], _Least] = {}

    @fold.on(fold.any_msg(Op.XMIT, Op.RCV))
    def take(self, record: TraceLine) -> None:
        """Add the record of a sent or received message, if it belongs to the sample."""
        mid = record.mid
        if mid is None:
            return
        direction = record.link or record.stub, record.op
        least = self._kept.get(direction)
        if least is None:
            if len(self._kept) == LINKS:
                return
            least = self._kept[direction] = _Least()
        rank = crc32(mid.encode(errors="replace"))
        if rank <= least.limit:
            least.add(rank, record, mid)

    def end(self, nodes: Mapping[str, str]) -> tuple[Crossing, ...]:
        """Return the sample; no more records follow.

        Args:
            nodes: The message node that each stub of the process leads to.
        """
        return tuple(
            _crossing(record, key, rank, nodes)
            for least in self._kept.values()
            for rank, of_rank in least.found.items()
            for key, record in of_rank.items()
        )


class _Least:
    """Messages with the smallest hashes for one link and direction."""

    __slots__ = ("_ranks", "found", "limit")

    def __init__(self) -> None:
        self.limit = 1 << 32
        self.found: dict[int, dict[str, TraceLine]] = {}
        self._ranks: list[int] = []

    def add(self, rank: int, record: TraceLine, mid: str) -> None:
        of_rank = self.found.get(rank)
        if of_rank is None:
            of_rank = self.found[rank] = {}
            insort(self._ranks, rank)
        of_rank.setdefault(f"{mid} {_via_between(record)}", record)
        if len(self._ranks) > KEPT:
            del self.found[self._ranks.pop()]
        if len(self._ranks) == KEPT:
            self.limit = self._ranks[-1]


def _via_between(record: TraceLine) -> str:
    """Return the `via` of a message between two stubs, without the stamp of the receiving stub."""
    via, stub = record.via or "", record.stub
    if record.op != Op.RCV or stub is None or not via.endswith(stub):
        return via
    return via.removesuffix(stub).removesuffix("|")


def _crossing(record: TraceLine, key: str, rank: int, nodes: Mapping[str, str]) -> Crossing:
    hashed = blake2b(key.encode(errors="replace"), digest_size=8).hexdigest()
    stub, link = record.stub, record.link or record.stub or ""
    if record.op == Op.XMIT:
        part = Part.NODE_SENT if stub is None else Part.STUB_SENT
        return Crossing(hashed, part, rank, record.wall_ns, record.ln, link)
    if stub is None or is_p2p_end(stub):
        sender = runtime_of(split(_via_between(record))[-1]) or ""
    else:
        sender = nodes.get(stub, "")
    part = Part.NODE_GOT if stub is None else Part.STUB_GOT
    return Crossing(hashed, part, rank, record.wall_ns, record.ln, link, sender)


# --- clocks -----------------------------------------------------------------------------


_NEAR: Final = 0.005
"""Difference of two clocks in seconds that is too small to be displayed."""

_BILLION: Final = 1e9

_Process: TypeAlias = tuple[str, str]
_Bounds: TypeAlias = defaultdict[_Process, dict[_Process, int]]
_Group: TypeAlias = dict[tuple[_Process, Part], int]

_FOLLOWS: Final = {
    Part.STUB_SENT: (Part.NODE_GOT, Part.STUB_GOT),
    Part.NODE_SENT: (Part.STUB_GOT,),
}


@attrs.frozen
class Skew:
    """Difference between the clock of a process and the clock of a reference node.

    Attributes:
        than: The reference node; its own difference is 0.
        seconds: The middle of the possible range; below 0: the clock is behind.
        uncertainty: Half of the possible range, in seconds.
    """

    than: str
    seconds: float
    uncertainty: float

    @property
    def is_far(self) -> bool:
        """True if the clocks certainly differ by a noticeable amount."""
        return abs(self.seconds) > self.uncertainty + _NEAR


def skews(processes: Mapping[_Process, Sequence[Crossing]]) -> dict[_Process, Skew]:
    """Return the clock differences of processes that exchanged messages in both directions.

    The reference is the process that exchanged messages with most others. If the messages of two
    processes contradict each other, the clock of one was set while it ran: they are not used.

    Args:
        processes: The crossings of each process, by run and node.
    """
    ahead = _bounds(processes)
    behind: _Bounds = defaultdict(dict)
    for process, row in ahead.items():
        for other, bound in row.items():
            behind[other][process] = bound
    results: dict[_Process, Skew] = {}
    remaining = set(ahead)
    while remaining:
        chosen = max(sorted(remaining), key=lambda process: len(ahead[process]))
        upper, lower = _shortest(chosen, ahead), _shortest(chosen, behind)
        for process in remaining.intersection(upper):
            if lower[process] + upper[process] >= 0:
                results[process] = _skew(chosen, -lower[process], upper[process])
        remaining -= {chosen, *upper}
    return results


def _bounds(processes: Mapping[_Process, Sequence[Crossing]]) -> _Bounds:
    """Return an upper bound, in nanoseconds, by which the second clock of each pair is ahead.

    Only pairs with messages in both directions have bounds.
    """
    groups: defaultdict[str, _Group] = defaultdict(dict)
    for process, crossings in processes.items():
        for crossing in crossings:
            if not crossing.wall_ns:
                continue
            group, end = groups[crossing.key], (process, crossing.part)
            group[end] = min(crossing.wall_ns, group.get(end, crossing.wall_ns))
    bounds: dict[tuple[_Process, _Process], int] = {}
    for sender, receiver, bound in _pairs(groups.values()):
        bounds[sender, receiver] = min(bound, bounds.get((sender, receiver), bound))
    table: _Bounds = defaultdict(dict)
    for (sender, receiver), bound in bounds.items():
        reverse = bounds.get((receiver, sender))
        if reverse is not None and bound + reverse >= 0:
            table[sender][receiver] = bound
    return table


def _pairs(groups: Iterable[_Group]) -> Iterator[tuple[_Process, _Process, int]]:
    for group in groups:
        for (sender, part), sent_ns in group.items():
            for follows in _FOLLOWS.get(part, ()):
                for (receiver, end), received_ns in group.items():
                    if end is follows and sender != receiver:
                        yield sender, receiver, received_ns - sent_ns


def _shortest(start: _Process, bounds: _Bounds) -> dict[_Process, int]:
    """Return the smallest sums of bounds from a process to all processes connected with it.

    If bounds contradict each other, a cycle has no smallest sum; the search still ends.
    """
    sums = {start: 0}
    changed = {start}
    for _ in bounds:
        again: set[_Process] = set()
        for each in changed:
            for other, bound in bounds[each].items():
                total = sums[each] + bound
                if other not in sums or total < sums[other]:
                    sums[other] = total
                    again.add(other)
        changed = again
    return sums


def _skew(than: _Process, lower: int, upper: int) -> Skew:
    middle, rest = (upper + lower) / 2 / _BILLION, (upper - lower) / 2 / _BILLION
    return Skew(than[1], middle, rest)


def clock_lines(clocks: Mapping[_Process, Skew]) -> Iterator[str]:
    """Yield lines of text for the report about clocks that differ by more than milliseconds."""
    if not clocks:
        return
    apart = [(node, skew) for (_, node), skew in sorted(clocks.items()) if skew.is_far]
    if not apart:
        worst = max(abs(skew.seconds) + skew.uncertainty for skew in clocks.values())
        yield f"clocks of {len(clocks)} processes: at most {_seconds(worst)} apart"
    for node, skew in apart:
        where = "ahead of" if skew.seconds > 0 else "behind"
        amount, rest = _seconds(abs(skew.seconds)), _seconds(skew.uncertainty)
        yield f"clock of {node}: {amount} {where} that of {skew.than}, give or take {rest}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.2g} ms"
