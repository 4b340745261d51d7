"""What others notice of one that misbehaves: their p99 beside it, in p99s without it."""

import os
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final

import attrs
import trio

__all__ = ["REACH", "Pair", "p99", "worst_of"]

REACH: Final = 2.0
"""p99 of the others beside the hostile one, in p99s without it (RELIABILITY R11)."""

_SECONDS: Final = 2.5
"""How long the others go on asking for one p99."""


@attrs.frozen
class Pair:
    """One round.

    Attributes:
        quiet: Milliseconds, without the hostile one.
        loud: Milliseconds, beside it.
        harms: How often it was made to misbehave, or was started for it, meanwhile.
    """

    quiet: float
    loud: float
    harms: int


async def p99(ask: Callable[[], Awaitable[object]]) -> float:
    """Ask again and again; return the p99 of how long that took, in milliseconds."""
    taken = []
    until = time.perf_counter() + _SECONDS
    while (begun := time.perf_counter()) < until:
        await ask()
        taken.append(time.perf_counter() - begun)
        await trio.sleep(0.001)
    return sorted(taken)[int(len(taken) * 0.99)] * 1e3


def worst_of(rounds: int, hows: tuple[str, ...], measure: Callable[[str], Pair]) -> float:
    """Measure each kind of harm by turns; print and return the worst median of ratios."""
    pairs: dict[str, list[Pair]] = {how: [] for how in hows}
    for _ in range(rounds):
        for how in hows:
            pairs[how].append(measure(how))
    ratios = {how: median(one.loud / one.quiet for one in pairs[how]) for how in hows}
    for how in hows:
        told = ", ".join(f"{one.quiet:.1f}/{one.loud:.1f} ms" for one in pairs[how])
        harms = [one.harms for one in pairs[how]]
        print(f"{how}: {ratios[how]:.2f} times the p99 of others ({told}; harms {harms})")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    return max(ratios.values())
