"""Effect of a misbehaving neighbour on others: their p99 beside it, in p99s without it."""

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median
from typing import Final

import attrs
import trio

from bench.verdict import Verdict

REACH: Final = 2.0
"""p99 of the others beside the hostile one, in p99s without it (RELIABILITY R11)."""

_SECONDS: Final = 2.0
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
    harms: int = 0


async def p99(ask: Callable[[], Awaitable[object]]) -> float:
    """Ask again and again; return the p99 of how long that took, in milliseconds."""
    taken = []
    until = time.perf_counter() + _SECONDS
    while (begun := time.perf_counter()) < until:
        await ask()
        taken.append(time.perf_counter() - begun)
        await trio.sleep(0.001)
    return sorted(taken)[int(len(taken) * 0.99)] * 1e3


def taken(
    rounds: int, hows: Sequence[str], measure: Callable[[str], Pair]
) -> dict[str, list[Pair]]:
    """Measure each kind of harm by turns."""
    pairs: dict[str, list[Pair]] = {how: [] for how in hows}
    for _ in range(rounds):
        for how in hows:
            pairs[how].append(measure(how))
    return pairs


def judged(bench: str, pairs: Mapping[str, Sequence[Pair]], unit: str = "ms") -> Verdict:
    """Judge each kind of harm by the median of its ratios; the worst one is shown."""
    ratios = {how: median(one.loud / one.quiet for one in pairs[how]) for how in pairs}
    worst = max(ratios, key=ratios.__getitem__)
    return Verdict(
        bench=bench,
        what=f"{unit} p99 of two others, beside one that misbehaves ({worst}) / without it",
        ours=median(one.loud for one in pairs[worst]),
        peer=median(one.quiet for one in pairs[worst]),
        ratio=ratios[worst],
        reach=REACH,
        missed=tuple(f"{how}: {ratio:.2f}x" for how, ratio in ratios.items() if ratio > REACH),
        figures={
            "ratios": {how: round(ratio, 2) for how, ratio in ratios.items()},
            "rounds": {how: [attrs.asdict(one) for one in pairs[how]] for how in pairs},
            "load": round(os.getloadavg()[0], 1),
            "processors": os.cpu_count(),
        },
    )
