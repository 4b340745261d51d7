"""Plans of domains with several nodes over an engine: what else can go wrong there."""

from random import Random
from typing import Final

import attrs

from tests.simulation.plans.generation import HORIZON, plan_of
from tests.simulation.plans.plan import Fault, Plan, Wrong

_MEMBERS: Final = 3
"""Nodes of each domain."""

_WRONGS: Final = {
    Wrong.NODE: 3,
    Wrong.MOVE: 5,
    Wrong.ENGINE: 2,
    Wrong.EMPTIED: 1,
    Wrong.CUT: 2,
    Wrong.SLOW: 2,
    Wrong.UNSURE: 2,
    Wrong.SWALLOWED: 2,
}

_DELAYS: Final = (0.01, 0.1, 1.0, 3.0, 6.0)
"""Seconds that an engine takes; writes beyond its patience are made late."""


def group_plan_of(seed: int) -> Plan:
    """Make up a plan whose domain has several nodes.

    Args:
        seed: What it is made up of.
    """
    plan = attrs.evolve(plan_of(seed), topology="triangle", members=_MEMBERS)
    plan = attrs.evolve(plan, runtimes=tuple((name, 0) for name, _ in plan.runtimes))
    dice = Random(f"{seed}/groups")  # noqa: S311 - chance, no secret
    faults = [_at_member(dice, plan, fault) for fault in plan.faults]
    faults = [fault for fault in faults if fault.wrong is not Wrong.DISK]
    faults += [_fault(dice, plan) for _ in range(dice.randint(1, 6))]
    once: dict[object, Fault] = {}
    for fault in sorted(faults, key=lambda fault: fault.at):
        # Nobody dies twice, so that it is always known who is there.
        deadly = fault.wrong in {Wrong.RUNTIME, Wrong.NODE}
        once.setdefault((fault.wrong, fault.one) if deadly else len(once), fault)
    return attrs.evolve(plan, faults=tuple(once.values()))


def _at_member(dice: Random, plan: Plan, fault: Fault) -> Fault:
    """Let a fault of the only node of a domain be one of one of its nodes."""
    one, other = (_member(dice, plan, name) for name in (fault.one, fault.other))
    return attrs.evolve(fault, one=one, other=other)


def _member(dice: Random, plan: Plan, name: str) -> str:
    return dice.choice(plan.nodes_of(0)) if name.startswith("n") else name


def _fault(dice: Random, plan: Plan) -> Fault:
    (wrong,) = dice.choices(list(_WRONGS), list(_WRONGS.values()))
    at, node = round(dice.uniform(0, HORIZON), 3), dice.choice(plan.nodes)
    lasts = round(dice.choice((dice.uniform(0.1, 3), dice.uniform(3, 20))), 2)
    match wrong:
        case Wrong.MOVE:
            return Fault(at, wrong, dice.choice(plan.runtimes)[0], node)
        case Wrong.SLOW:
            return Fault(at, wrong, node, lasts=lasts, amount=dice.choice(_DELAYS))
        case Wrong.UNSURE | Wrong.SWALLOWED:
            return Fault(at, wrong, node, lasts=lasts, amount=float(dice.choice((1, 2, 5))))
        case _:
            return Fault(at, wrong, node, lasts=lasts)
