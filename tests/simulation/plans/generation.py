"""Plans by chance: the same seed, the same plan."""

from itertools import combinations
from random import Random
from typing import Final

import attrs

from tests.simulation.plans.plan import Act, Deed, Fault, Plan, Wrong
from tests.simulation.world.object_acts import child_acts, object_acts

HORIZON: Final = 40.0
"""Seconds of virtual time in which things happen."""

_KINDS: Final = ((), ("tcp",), ("websocket", "tcp"))
"""What P2P links may use."""

_ALSO_UNIX: Final = 0.3
"""How many of the plans with P2P links use Unix sockets, too."""

_FRIENDLY: Final = 0.6
"""How much is done by the two who talk all the time."""

_DIRECT: Final = 0.4
"""How many faults are of the direct link over which there is most to lose."""

_BREAKS: Final = (Wrong.RESET, Wrong.RESET, Wrong.LOSS, Wrong.TIMEOUT, Wrong.DELAY, Wrong.LATENCY)

_LATENCIES: Final = (0.0, 0.005, 0.02, 0.02, 0.05, 0.1)

_PAUSES: Final = (0.0, 0.01, 0.02, 0.05, 0.2)

_DEEDS: Final = {
    Deed.ASK: 10,
    Deed.CHANGE: 4,
    Deed.OBSERVE: 4,
    Deed.CREATE: 2,
    Deed.LEAVE: 2,
    Deed.DELETE: 1,
    Deed.DEPLOY: 1,
    Deed.CRASH: 1,
}

_WRONGS: Final = {
    Wrong.LATENCY: 3,
    Wrong.DELAY: 2,
    Wrong.BANDWIDTH: 1,
    Wrong.SLICER: 1,
    Wrong.SLOW_CLOSE: 1,
    Wrong.LIMIT_DATA: 1,
    Wrong.LOSS: 3,
    Wrong.RESET: 4,
    Wrong.TIMEOUT: 2,
    Wrong.PARTITION: 3,
    Wrong.DUPLICATE: 2,
    Wrong.RUNTIME: 2,
    Wrong.NODE: 1,
}

_AMOUNT: Final = {
    Wrong.LATENCY: (0.01, 0.5),
    Wrong.DELAY: (0.3, 2.0),
    Wrong.BANDWIDTH: (2_000.0, 50_000.0),
    Wrong.SLICER: (0.005, 0.05),
    Wrong.SLOW_CLOSE: (0.2, 3.0),
    Wrong.LIMIT_DATA: (500.0, 8_000.0),
    Wrong.LOSS: (0.02, 0.3),
    Wrong.DUPLICATE: (0.1, 0.6),
}
"""From least to most; what the toxic makes of it stands at `tests.simulation.world.trouble`."""


_ALSO: Final = {
    Wrong.CORRUPT: (0.01, 0.1),
    Wrong.CLOCK: (-7_200.0, 7_200.0),
    Wrong.DISK: (0.0, 0.0),
    Wrong.BUSY: (0.0, 0.0),
    Wrong.POLICY: (0.0, 0.0),
}
"""Faults of one process, and how much of each."""


def plan_of(seed: int, *, of_processes: bool = True) -> Plan:
    """Make up a plan.

    Args:
        seed: What it is made up of.
        of_processes: Whether things go wrong within processes, too, several at a time.
    """
    dice = Random(seed)  # noqa: S311 - chance, no secret
    runtimes = _runtimes(dice)
    plan = Plan(
        seed=seed,
        runtimes=runtimes,
        kinds=dice.choice(_KINDS),
        topology=dice.choice(("triangle", "triangle", "trapezoid")),
        latency=dice.choice(_LATENCIES),
        acts=_acts(dice, [name for name, _ in runtimes]),
    )
    plan = attrs.evolve(plan, faults=_faults(dice, plan))
    plan = attrs.evolve(plan, acts=(*plan.acts, *object_acts(plan)))
    acts = sorted((*plan.acts, *child_acts(plan)), key=lambda act: act.at)
    plan = attrs.evolve(plan, acts=tuple(acts))
    return _with_faults_of_processes(plan) if of_processes else plan


def _with_faults_of_processes(plan: Plan) -> Plan:
    """Let several things go wrong with one process at a time.

    Chance of its own, so that the rest of a plan does not depend on it.
    """
    dice = Random(f"{plan.seed}/processes")  # noqa: S311 - chance, no secret
    kinds = (*plan.kinds, "unix") if plan.kinds and dice.random() < _ALSO_UNIX else plan.kinds
    runtime, domain = dice.choice(plan.runtimes)
    node = f"n{domain}"
    at = dice.uniform(0, HORIZON)
    faults = []
    for wrong in dice.sample(list(_ALSO), dice.randint(0, 3)):
        began = round(max(0.0, at + dice.uniform(-2, 2)), 3)
        lasts = round(dice.uniform(0.1, HORIZON / 2), 2)
        amount = round(dice.uniform(*_ALSO[wrong]), 4)
        match wrong:
            case Wrong.CORRUPT:
                faults.append(Fault(began, wrong, runtime, node, lasts, amount))
            case Wrong.BUSY:
                faults.append(Fault(began, wrong, runtime, lasts=lasts))
            case _:
                faults.append(Fault(began, wrong, node, lasts=lasts, amount=amount))
    both = sorted((*plan.faults, *faults), key=lambda fault: fault.at)
    return attrs.evolve(plan, kinds=kinds, faults=tuple(both))


def _runtimes(dice: Random) -> tuple[tuple[str, int], ...]:
    domains = dice.choice((1, 1, 2, 2, 3))
    count = dice.randint(max(2, domains), dice.choice((3, 4, 5)))
    placed = [*range(domains), *(dice.randrange(domains) for _ in range(count - domains))]
    return tuple((f"r{number}", domain) for number, domain in enumerate(placed))


def _acts(dice: Random, names: list[str]) -> tuple[Act, ...]:
    """Make up what is done: mostly by two who talk all the time."""
    first, second = dice.sample(names, 2)
    acts = [
        Act(0.0, Deed.CREATE, first),
        # A direct link comes up in the midst of this, if there may be any.
        Act(0.2, Deed.ASK, second, first, dice.choice((1, 10, 40)), 0.02),
        Act(0.5, Deed.OBSERVE, second, first),
    ]
    for _ in range(dice.randint(4, 12)):
        friends = [first, second] if dice.random() < _FRIENDLY else names
        acts.append(_act(dice, friends))
    return tuple(sorted(acts, key=lambda act: act.at))


def _act(dice: Random, names: list[str]) -> Act:
    (deed,) = dice.choices(list(_DEEDS), list(_DEEDS.values()))
    who, whom = dice.sample(names, 2)
    at = round(dice.uniform(0, HORIZON), 2)
    if deed not in {Deed.ASK, Deed.CHANGE}:
        return Act(at, deed, who, whom)
    return Act(at, deed, who, whom, dice.choice((1, 2, 5, 20)), dice.choice(_PAUSES))


def _faults(dice: Random, plan: Plan) -> tuple[Fault, ...]:
    pairs = _pairs(plan)
    faults: dict[tuple[str, str] | int, Fault] = {}
    for number in range(dice.randint(0, 4)):
        fault = _fault(dice, plan, pairs)
        # Nobody dies twice, so that it is always known who is there.
        deadly = fault.wrong in {Wrong.RUNTIME, Wrong.NODE}
        faults.setdefault((fault.wrong, fault.one) if deadly else number, fault)
    return tuple(sorted(faults.values(), key=lambda fault: fault.at))


def _pairs(plan: Plan) -> list[tuple[str, str]]:
    """Return who may have a link; more often where more goes over it."""
    own = [(name, f"n{domain}") for name, domain in plan.runtimes]
    if plan.topology == "trapezoid":
        others = list(combinations(plan.nodes, 2))
    else:
        others = [(name, node) for name, _ in plan.runtimes for node in plan.nodes]
    direct = list(combinations([name for name, _ in plan.runtimes], 2)) if plan.kinds else []
    return [*own, *own, *others, *direct, *direct]


def _fault(dice: Random, plan: Plan, pairs: list[tuple[str, str]]) -> Fault:
    asks = [act for act in plan.acts if act.deed is Deed.ASK]
    (act,) = dice.choices(asks, [ask.count for ask in asks])
    (wrong,) = dice.choices(list(_WRONGS), list(_WRONGS.values()))
    one, other = dice.choice(pairs)
    if plan.kinds and dice.random() < _DIRECT:
        wrong, (one, other) = dice.choice(_BREAKS), (act.who, act.whom)
    at, lasts = _when(dice, act, plan.latency), round(dice.uniform(0.1, HORIZON / 2), 2)
    amount = round(dice.uniform(*_AMOUNT.get(wrong, (0.0, 0.0))), 4)
    match wrong:
        case Wrong.RUNTIME:
            return Fault(at, wrong, dice.choice(plan.runtimes)[0], lasts=lasts)
        case Wrong.NODE:
            return Fault(at, wrong, dice.choice(plan.nodes), lasts=min(lasts, 10.0))
        case Wrong.DUPLICATE if other.startswith("r"):
            # Direct links promise each frame once: what comes twice comes from a node.
            node = f"n{dict(plan.runtimes)[one]}"
            return Fault(at, wrong, one, node, lasts, amount)
        case _:
            return Fault(at, wrong, one, other, lasts, amount)


def _when(dice: Random, act: Act, latency: float) -> float:
    """Choose a time: mostly while something is under way."""
    during = act.at + dice.uniform(0, act.count * act.pause + 4 * latency + 0.05)
    return round(dice.choice((during, during, dice.uniform(0, HORIZON))), 3)
