"""Plans whose objects keep a window of children, of which many are written."""

from random import Random
from typing import Final

import attrs

from tests.simulation.plans.generation import HORIZON, plan_of
from tests.simulation.plans.plan import Act, Deed, Plan
from tests.simulation.plans.stored import stored_plan_of

_STORED: Final = 0.3
"""How many of the plans have stored objects."""


def window_plan_of(seed: int) -> Plan:
    """Make up a plan of a chat that goes on: reporter and observers write more than is kept.

    Chance of its own, so that the rest of a plan is that of the same seed without a window.
    """
    dice = Random(f"{seed}/window")  # noqa: S311 - chance, no secret
    plan = stored_plan_of(seed) if dice.random() < _STORED else plan_of(seed)
    reporter = next(act.who for act in plan.acts if act.deed is Deed.CREATE)
    observers = [act.who for act in plan.acts if act.deed is Deed.OBSERVE and act.whom == reporter]
    acts = list(plan.acts)
    for _ in range(dice.randint(2, 6)):
        at, count = round(dice.uniform(1, HORIZON), 3), dice.choice((2, 6, 20))
        who, pause = dice.choice([reporter, *observers]), dice.choice((0.0, 0.01, 0.5))
        acts.append(Act(at, Deed.CHILD, who, reporter, count, pause))
    acts.sort(key=lambda act: act.at)
    return attrs.evolve(plan, window=dice.choice((1, 3, 8, 20)), acts=tuple(acts))
