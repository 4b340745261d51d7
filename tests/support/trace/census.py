"""The census: which steps of the declared machines the product took while tests ran.

It counts as coverage counts: from outside, by wrappers around the two methods that move
a state. A step counts if a core or an actor takes it. What a test or the composition
check steps itself, walking a table, does not: such a walk takes every row that there
is, and would prove nothing of the code. Child processes are not counted.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from fsm.engine import NOTHING, Entity
from fsm.machine_list import MACHINES
from fsm.static_check import MACHINE_USERS, TakenStep

_flawed: set[str] = set()
"""The machines that a test has spoilt: their steps are not the product's."""

_USERS = tuple(f"{package}." for package in MACHINE_USERS)


@attrs.frozen
class Taken:
    """A step that the product took.

    Attributes:
        given: The conditions that were true.
    """

    machine: str
    key: str
    old: str
    cause: str
    new: str
    given: frozenset[str]

    @property
    def kind(self) -> TakenStep:
        return TakenStep(self.machine, self.old, self.cause, self.new, self.given)


@contextmanager
def uncounted(machine: str) -> Iterator[None]:
    """Count no step of a machine in the body: the test has spoilt its table."""
    _flawed.add(machine)
    try:
        yield
    finally:
        _flawed.discard(machine)


@contextmanager
def reported(hear: Callable[[Taken], None]) -> Iterator[None]:
    """Tell each step that the product takes in the body, after it."""
    step, step_unreported = Entity.step, Entity.step_unreported

    def note(entity, old, trigger, given):
        caller = sys._getframe(2).f_globals.get("__name__", "")
        name = entity.table.name
        is_declared = MACHINES.get(name) is entity.table and name not in _flawed
        if is_declared and caller.startswith(_USERS):
            words = frozenset(map(str, given))
            key, new = entity.key, entity._state
            hear(Taken(name, key, str(old), str(trigger), str(new), words))

    def counted_step(self, trigger, why="", given=NOTHING):
        old = self._state
        done = step(self, trigger, why, given)
        note(self, old, trigger, given)
        return done

    def counted_unreported(self, trigger, given=NOTHING):
        old = self._state
        step_unreported(self, trigger, given)
        note(self, old, trigger, given)

    Entity.step, Entity.step_unreported = counted_step, counted_unreported
    try:
        yield
    finally:
        Entity.step, Entity.step_unreported = step, step_unreported


@contextmanager
def counted() -> Iterator[Counter[TakenStep]]:
    """Count the steps that the product takes in the body."""
    times: Counter[TakenStep] = Counter()

    def hear(taken):
        times[taken.kind] += 1

    with reported(hear):
        yield times
