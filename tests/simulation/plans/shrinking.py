"""A plan that fails is made smaller while it still breaks the same rule."""

from collections.abc import Callable, Iterator

import attrs

from tests.simulation.plans.plan import Plan


def shrunk(plan: Plan, fails: Callable[[Plan], bool], tries: int = 400) -> Plan:
    """Return the smallest plan found that still fails.

    Halves first, then one thing after the other, then each thing itself: fewer requests
    of an act, one runtime less, no P2P, one domain.

    Args:
        plan: It fails.
        fails: Whether a plan does.
        tries: How many plans are tried at most.
    """
    left = tries
    is_smaller = True
    while is_smaller and left:
        is_smaller = False
        for candidate in _smaller(plan):
            if not left:
                break
            left -= 1
            if fails(candidate):
                plan, is_smaller = candidate, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    for name in ("faults", "acts"):
        for kept in _fewer(getattr(plan, name)):
            yield attrs.evolve(plan, **{name: kept})
    yield from _simpler(plan)
    for place, act in enumerate(plan.acts):
        for count in {1, act.count // 2} - {0, act.count}:
            fewer = attrs.evolve(act, count=count)
            yield attrs.evolve(plan, acts=(*plan.acts[:place], fewer, *plan.acts[place + 1 :]))


def _fewer(things: tuple) -> Iterator[tuple]:
    """Leave out halves, quarters and so on, at last single things."""
    size = len(things)
    while size:
        for start in range(0, len(things), size):
            yield (*things[:start], *things[start + size :])
        size //= 2


def _simpler(plan: Plan) -> Iterator[Plan]:
    """Change one thing about the world; who is named stays."""
    changed = [_without(plan, name) for name, _ in plan.runtimes if len(plan.runtimes) > 2]
    changed += [
        attrs.evolve(plan, latency=0.0),
        attrs.evolve(plan, kinds=()),
        attrs.evolve(plan, runtimes=tuple((name, 0) for name, _ in plan.runtimes)),
        attrs.evolve(plan, topology="triangle"),
        attrs.evolve(plan, stored=False),
        attrs.evolve(plan, window=0),
    ]
    yield from (one for one in changed if one != plan and _is_whole(one))


def _without(plan: Plan, gone: str) -> Plan:
    return attrs.evolve(plan, runtimes=tuple(one for one in plan.runtimes if one[0] != gone))


def _is_whole(plan: Plan) -> bool:
    """Tell whether everybody who does or suffers something is there."""
    there = {name for name, _ in plan.runtimes} | {*plan.nodes, ""}
    named = {name for act in plan.acts for name in (act.who, act.whom)}
    named |= {name for fault in plan.faults for name in (fault.one, fault.other)}
    return named <= there
