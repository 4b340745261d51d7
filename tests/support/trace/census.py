"""The census: which steps of the declared machines the product took while tests ran.

It counts as coverage counts: from outside, by wrappers around the two methods that move
a state. A step counts if a core or an actor takes it. What a test or the composition
check steps itself, walking a table, does not: such a walk takes every row that there
is, and would prove nothing of the code. Child processes are not counted.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial

from fsm.engine import NOTHING, Entity
from fsm.machine_list import MACHINES
from fsm.static_check import MACHINE_USERS, TakenStep

_flawed: set[str] = set()
"""The machines that a test has spoilt: their steps are not the product's."""

_USERS = tuple(f"{package}." for package in MACHINE_USERS)


@contextmanager
def uncounted(machine: str) -> Iterator[None]:
    """Count no step of a machine in the body: the test has spoilt its table."""
    _flawed.add(machine)
    try:
        yield
    finally:
        _flawed.discard(machine)


@cache
def _is_user(module: str) -> bool:
    return module.startswith(_USERS)


def _is_product(caller, entity) -> bool:
    name = entity.table.name
    return (
        _is_user(caller.f_globals.get("__name__", ""))
        and MACHINES.get(name) is entity.table
        and name not in _flawed
    )


def _named(times: Mapping[tuple, int]) -> Counter[TakenStep]:
    named: Counter[TakenStep] = Counter()
    for (machine, old, cause, new, given), number in times.items():
        words = frozenset(map(str, given))
        named[TakenStep(machine, str(old), str(cause), str(new), words)] += number
    return named


@contextmanager
def counted() -> Iterator[Callable[[], Counter[TakenStep]]]:
    """Count the steps that the product takes in the body; what is yielded returns their numbers.

    All tests run with it: a step is noted as it is, and named when it is asked for.
    """
    times: defaultdict[tuple, int] = defaultdict(int)
    step, step_unreported = Entity.step, Entity.step_unreported
    code_of_step = getattr(step, "__code__", None)

    def note(caller, entity, old, trigger, given):
        if _is_product(caller, entity):
            times[entity.table.name, old, trigger, entity._state, frozenset(given)] += 1

    def counted_step(self, trigger, why="", given=NOTHING):
        old = self._state
        done = step(self, trigger, why, given)
        note(sys._getframe(1), self, old, trigger, given)
        return done

    def counted_unreported(self, trigger, given=NOTHING):
        old = self._state
        step_unreported(self, trigger, given)
        caller = sys._getframe(1)
        if caller.f_code is not code_of_step:
            note(caller, self, old, trigger, given)

    Entity.step, Entity.step_unreported = counted_step, counted_unreported
    try:
        yield partial(_named, times)
    finally:
        Entity.step, Entity.step_unreported = step, step_unreported
