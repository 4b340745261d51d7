"""Traces as processes with other clocks would have written them."""

from collections.abc import Iterable, Mapping

import attrs

from fsm.judge.trace_line import TraceLine

Clock = tuple[float, float]
"""By how many seconds a clock is ahead, and by which part of the time it goes too fast."""


def shifted(
    lines: Iterable[TraceLine], clocks: Mapping[str, Clock], rest: Clock = (0.0, 0.0)
) -> list[TraceLine]:
    """Return the records with the times of other clocks.

    Args:
        lines: The records.
        clocks: The clock of each process, by the name of its node.
        rest: That of all others.
    """
    return [_read(line, *clocks.get(line.node, rest)) for line in lines]


def _read(line: TraceLine, ahead: float, fast: float) -> TraceLine:
    wall_ns = round(line.wall_ns * (1 + fast) + ahead * 1e9)
    return attrs.evolve(line, t=line.t * (1 + fast) + ahead, wall_ns=wall_ns)
