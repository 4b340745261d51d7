"""The census: which steps of the declared machines the product took while tests ran.

It counts as coverage counts: from outside, by a wrapper around the one place that moves
a state. A step counts if a core or an actor takes it. What a test or the composition
check steps itself, walking a table, does not: such a walk takes every row that there
is, and would prove nothing of the code. Child processes are not counted.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fsm.catalogue import MACHINES
from fsm.engine import NOTHING, Entity
from fsm.steps import TakenStep
from specs.trace import ABSENT

_USERS = ("actors.", "fsm.cores.")


@contextmanager
def counted() -> Iterator[Counter[TakenStep]]:
    """Count the steps taken in the body."""
    told: Counter[tuple[str, str | None, str, str, frozenset[str]]] = Counter()
    times: Counter[TakenStep] = Counter()
    plain = Entity.step

    def step(self, trigger, why="", given=NOTHING):
        done = plain(self, trigger, why, given)
        if _by_product(sys._getframe(1)) and MACHINES.get(done.machine) is self.table:
            told[done.machine, done.old, done.cause, done.new, frozenset(given)] += 1
        return done

    Entity.step = step
    try:
        yield times
    finally:
        Entity.step = plain
        for (machine, old, cause, new, given), count in told.items():
            words = frozenset(str(one) for one in given)
            times[TakenStep(machine, old or ABSENT, cause, new, words)] += count


def _by_product(caller: FrameType) -> bool:
    return caller.f_globals.get("__name__", "").startswith(_USERS)
