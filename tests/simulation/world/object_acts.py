"""What is done with data objects in every run, whatever else is: where things go wrong.

Chance of its own, so that the rest of a plan does not depend on it.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

from tests.simulation.plans.plan import Act, Deed, Fault, Plan, Wrong

_ALSO: Final = 0.5
"""How many of those who are nobody's friend observe, too."""

_HIT: Final = 0.7
"""How many faults strike while an object is being changed."""


def object_acts(plan: Plan) -> tuple[Act, ...]:
    """Make up acts for a plan that says already what goes wrong."""
    dice = Random(f"{plan.seed}/objects")  # noqa: S311 - chance, no secret
    reporter = next(act.who for act in plan.acts if act.deed is Deed.CREATE)
    others = [name for name, _ in plan.runtimes if name != reporter]
    observers = [name for name in others if dice.random() < _ALSO]
    acts = [_at(dice.uniform(0.5, 10), Deed.OBSERVE, one, reporter) for one in observers]
    acts.append(_burst(dice, reporter, dice.uniform(1, 30)))
    for fault in plan.faults:
        if dice.random() < _HIT:
            acts.append(_burst(dice, reporter, fault.at + dice.uniform(-0.1, 0.3)))
        acts += _again(dice, fault, reporter, others)
    return tuple(acts)


def child_acts(plan: Plan) -> tuple[Act, ...]:
    """Make up what is done to children: by reporter and observers, also while things go wrong.

    Chance of its own, so that the rest of a plan does not depend on it.
    """
    dice = Random(f"{plan.seed}/children")  # noqa: S311 - chance, no secret
    reporter = next(act.who for act in plan.acts if act.deed is Deed.CREATE)
    observers = [act.who for act in plan.acts if act.deed is Deed.OBSERVE and act.whom == reporter]
    writers = [reporter, *observers]
    times = [dice.uniform(1, 30), *(one.at for one in plan.faults if dice.random() < _HIT)]
    acts: list[Act] = []
    for at in times:
        for who in dice.sample(writers, min(len(writers), 2)):
            count, pause = dice.choice((1, 3, 6)), dice.choice((0.0, 0.01, 0.1))
            begins = round(max(0.0, at + dice.uniform(-0.2, 0.2)), 3)
            acts.append(Act(begins, Deed.CHILD, who, reporter, count, pause))
    return tuple(acts)


def _again(dice: Random, fault: Fault, reporter: str, others: list[str]) -> Iterator[Act]:
    """Have who comes back begin anew: it knows nothing of what was."""
    if fault.wrong is not Wrong.RUNTIME:
        return
    back = fault.at + fault.lasts + dice.uniform(1, 5)
    if fault.one == reporter:
        yield _at(back, Deed.CREATE, reporter, reporter)
    for one in others if fault.one == reporter else [fault.one]:
        yield _at(back + dice.uniform(0.5, 3), Deed.OBSERVE, one, reporter)


def _burst(dice: Random, reporter: str, at: float) -> Act:
    count, pause = dice.choice((1, 3, 10)), dice.choice((0.0, 0.01, 0.1))
    return Act(round(max(0.0, at), 3), Deed.CHANGE, reporter, reporter, count, pause)


def _at(at: float, deed: Deed, who: str, whom: str) -> Act:
    return Act(round(at, 3), deed, who, whom)
