"""Plans with stored objects: what goes wrong with disks while children are written."""

from collections.abc import Iterator
from random import Random
from typing import Final

import attrs

from tests.simulation.plans.generation import HORIZON, plan_of
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.plan import Act, Deed, Fault, Plan, Wrong

_IN_GROUP: Final = 0.15
"""How many of the plans have several nodes of one domain."""

_AWAY: Final = (8.0, 25.0)
"""Seconds for which a node is away: long enough that its runtimes refuse at once."""

_SECONDS: Final = (0.02, 0.3, 1.0, 3.0, 8.0, 20.0)
"""Seconds that a slow disk takes for one write."""


def stored_plan_of(seed: int) -> Plan:
    """Make up a plan whose runtimes store their objects, and whose disks are slow or fail.

    Chance of its own, so that the rest of a plan is that of the same seed without a store.

    Args:
        seed: What it is made up of.
    """
    dice = Random(f"{seed}/stored")  # noqa: S311 - chance, no secret
    plan = group_plan_of(seed) if dice.random() < _IN_GROUP else plan_of(seed)
    reporter = next(act.who for act in plan.acts if act.deed is Deed.CREATE)
    observers = [act.who for act in plan.acts if act.deed is Deed.OBSERVE and act.whom == reporter]
    faults = [*plan.faults, *_disks(dice, plan, reporter)]
    acts = list(plan.acts)
    for _ in range(dice.randint(1, 2)):
        at, lasts = dice.uniform(2, HORIZON - 5), dice.uniform(*_AWAY)
        faults += _away(dice, plan, reporter, round(at, 3), round(lasts, 2))
        for who in dice.sample([reporter, *observers], min(2, 1 + len(observers))):
            begins = at + dice.uniform(0, 1.2 * lasts)
            count, pause = dice.choice((1, 2, 4)), dice.choice((0.0, 0.1, 1.0))
            acts.append(Act(round(begins, 3), Deed.CHILD, who, reporter, count, pause))
    faults = _each_dies_once(faults)
    acts += _again(plan, faults, acts)
    return attrs.evolve(
        plan,
        stored=True,
        acts=tuple(sorted(acts, key=lambda act: act.at)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _disks(dice: Random, plan: Plan, reporter: str) -> Iterator[Fault]:
    """Have the disk of the reporter be slow most of the time, and fail; others' now and then."""
    for _ in range(dice.randint(1, 3)):
        name = reporter if dice.random() < 0.8 else dice.choice(plan.runtimes)[0]
        at, lasts = round(dice.uniform(0, HORIZON), 3), round(dice.uniform(0.5, 30), 2)
        if dice.random() < 0.7:
            yield Fault(at, Wrong.SLOW_STORE, name, lasts=lasts, amount=dice.choice(_SECONDS))
        else:
            yield Fault(at, Wrong.STORE, name, lasts=lasts)


def _away(dice: Random, plan: Plan, reporter: str, at: float, lasts: float) -> Iterator[Fault]:
    """Have the node of the reporter be away, and its disk be slow meanwhile."""
    nodes = plan.nodes_of(dict(plan.runtimes)[reporter])
    if dice.random() < 0.7:
        for node in nodes:
            yield Fault(at, Wrong.NODE, node, lasts=lasts)
    else:
        for node in nodes:
            yield Fault(at, Wrong.PARTITION, reporter, node, lasts)
    seconds = dice.choice(_SECONDS)
    yield Fault(round(at + 1, 3), Wrong.SLOW_STORE, reporter, lasts=lasts + 5, amount=seconds)


def _each_dies_once(faults: list[Fault]) -> list[Fault]:
    """Leave out who would die twice, so that it is always known who is there."""
    once: dict[object, Fault] = {}
    for fault in sorted(faults, key=lambda fault: fault.at):
        deadly = fault.wrong in {Wrong.RUNTIME, Wrong.NODE}
        once.setdefault((fault.wrong, fault.one) if deadly else len(once), fault)
    return list(once.values())


def _again(plan: Plan, faults: list[Fault], acts: list[Act]) -> Iterator[Act]:
    """Have who comes back report its object again: nobody else does."""
    reporters = {act.who for act in acts if act.deed is Deed.CREATE}
    for fault in faults:
        if fault.wrong is Wrong.RUNTIME and fault.one in reporters:
            back = fault.at + fault.lasts + 6
            yield Act(round(back, 3), Deed.CREATE, fault.one)
            yield Act(round(back + 30, 3), Deed.CREATE, fault.one)
