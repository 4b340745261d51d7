"""Differences between the clocks of processes, by the messages that went between them.

A message arrives after it was sent. So the clock of the receiver is at least as far ahead as
the difference of the two times says with no delay at all: each crossing is a bound, as in NTP.
The bounds of one direction limit the difference from above, those of the other from below; by
way of a third process two that never spoke are compared. No claim rests on these figures:
claims across processes rest on what happened before what.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.crossings import Crossing, Part

__all__ = ["Skew", "clock_lines", "skews"]

_NEAR: Final = 0.005
"""Seconds by which clocks may differ unsaid, where each is shown to people."""

_BILLION: Final = 1e9

_Process: TypeAlias = tuple[str, str]
_Bounds: TypeAlias = defaultdict[_Process, dict[_Process, int]]
_Group: TypeAlias = dict[tuple[_Process, Part], int]

_FOLLOWS: Final = {
    Part.STUB_SENT: (Part.NODE_GOT, Part.STUB_GOT),
    Part.NODE_SENT: (Part.STUB_GOT,),
}


@final
@attrs.frozen
class Skew:
    """The time by which the clock of a process is ahead of another one.

    Attributes:
        than: The node that it is compared with; of that node itself all is 0.
        seconds: The middle of what is possible; below 0: it is behind.
        uncertainty: By how much it may be more or less.
    """

    than: str
    seconds: float
    uncertainty: float

    @property
    def is_far(self) -> bool:
        """Whether the clocks differ for certain, and by a noticeable amount."""
        return abs(self.seconds) > self.uncertainty + _NEAR


def skews(processes: Mapping[_Process, Sequence[Crossing]]) -> dict[_Process, Skew]:
    """Compare the clocks of processes, as far as messages went between them in both directions.

    The process that most others exchanged messages with is what they are compared with. Of two
    processes whose crossings contradict each other, one had its clock set while it ran: these
    crossings are not used.

    Args:
        processes: The crossings of each, by run and node.
    """
    ahead = _bounds(processes)
    behind: _Bounds = defaultdict(dict)
    for one, row in ahead.items():
        for other, bound in row.items():
            behind[other][one] = bound
    found: dict[_Process, Skew] = {}
    left = set(ahead)
    while left:
        chosen = max(sorted(left), key=lambda one: len(ahead[one]))
        most, least = _shortest(chosen, ahead), _shortest(chosen, behind)
        for one in left.intersection(most):
            if least[one] + most[one] >= 0:
                found[one] = _skew(chosen, -least[one], most[one])
        left -= {chosen, *most}
    return found


def _bounds(processes: Mapping[_Process, Sequence[Crossing]]) -> _Bounds:
    """Return by how much, at most, the clock of a second process is ahead of that of a first.

    Only of pairs between which messages went in both directions.
    """
    groups: defaultdict[str, _Group] = defaultdict(dict)
    for process, crossings in processes.items():
        for one in crossings:
            if not one.wall_ns:
                continue
            group, at = groups[one.key], (process, one.part)
            group[at] = min(one.wall_ns, group.get(at, one.wall_ns))
    bounds: dict[tuple[_Process, _Process], int] = {}
    for sender, receiver, bound in _pairs(groups.values()):
        bounds[sender, receiver] = min(bound, bounds.get((sender, receiver), bound))
    table: _Bounds = defaultdict(dict)
    for (sender, receiver), bound in bounds.items():
        back = bounds.get((receiver, sender))
        if back is not None and bound + back >= 0:
            table[sender][receiver] = bound
    return table


def _pairs(groups: Iterable[_Group]) -> Iterator[tuple[_Process, _Process, int]]:
    for group in groups:
        for (sender, part), sent in group.items():
            for follows in _FOLLOWS.get(part, ()):
                for (receiver, end), got in group.items():
                    if end is follows and sender != receiver:
                        yield sender, receiver, got - sent


def _shortest(start: _Process, bounds: _Bounds) -> dict[_Process, int]:
    """Return the least sums of bounds from a process to all that are connected with it.

    Bounds that contradict each other in a circle have no least sum: the search ends anyway.
    """
    sums = {start: 0}
    changed = {start}
    for _ in bounds:
        again: set[_Process] = set()
        for one in changed:
            for other, bound in bounds[one].items():
                total = sums[one] + bound
                if other not in sums or total < sums[other]:
                    sums[other] = total
                    again.add(other)
        changed = again
    return sums


def _skew(than: _Process, lower: int, upper: int) -> Skew:
    middle, rest = (upper + lower) / 2 / _BILLION, (upper - lower) / 2 / _BILLION
    return Skew(than[1], middle, rest)


def clock_lines(clocks: Mapping[_Process, Skew]) -> Iterator[str]:
    """Yield how far apart clocks are, for people: those that are more than milliseconds apart."""
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
