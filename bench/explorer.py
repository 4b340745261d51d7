"""How long does it take to explore the compositions of the product (`fsm check --product`)?

Ordinary case: those of one session, of direct links, of data objects and of a group of nodes, in
one process; `fsm check` explores as many at a time as there are cores.
"""

import time
from itertools import islice
from typing import Final

from bench.report import BenchError, Row, program
from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import explore

_NAMES: Final = ("session", "p2p", "sync", "group")


async def measure(compositions: int) -> list[Row]:
    """Measure the exploration of the first `compositions` compositions."""
    rows, states, whole = [], 0, 0.0
    for name in islice(_NAMES, compositions):
        began = time.process_time()
        result = explore(COMPOSITIONS[name])
        took = time.process_time() - began
        if not result.holds:
            raise BenchError(f"{name} does not hold")
        states, whole = states + result.states, whole + took
        rows.append(Row(f"{name}, {result.states:,} states", took, "s of CPU"))
    return [*rows, Row("states of all, for each second of CPU", states / whole, "")]


main = program(measure, {"compositions": (len(_NAMES), 1)})

if __name__ == "__main__":
    main()
