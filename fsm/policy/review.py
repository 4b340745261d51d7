"""What is odd about policies that can be used: rules that never decide anything, and the like.

Only what is certain is reported. A rule is covered by another if whatever the first
asks the second asks too: comparisons that are joined by "and" are looked into, every
other condition is compared as a whole.
"""

from collections.abc import Iterator, Sequence
from typing import Final, final

import attrs

from fsm.policy.condition import ALWAYS, AllOf, Condition, Leaf
from fsm.policy.model import Policy, PolicySet, Rule, Scope, in_order
from fsm.policy.operators import exact_values
from fsm.policy.pdp import path_of
from fsm.policy.request import Value
from fsm.policy.terms import Algorithm, Direction, Operator, Result

__all__ = ["TASKS", "Remark", "review"]

TASKS: Final = ("log", "count", "stamp")
"""What a node knows how to do along with a decision (POL-13)."""

_EXACT: Final = (Operator.EQUALS, Operator.IN)

_STRONGER: Final = {
    Algorithm.DENY_OVERRIDES: Result.DENY,
    Algorithm.PERMIT_OVERRIDES: Result.PERMIT,
}
"""The result that ends the evaluation of a level."""


@final
@attrs.frozen
class Remark:
    """One odd thing.

    Attributes:
        path: Where.
        what: What is odd, and what to do.
    """

    path: str
    what: str


def review(one: PolicySet) -> list[Remark]:
    """Look for what its author cannot have meant."""
    remarks = list(_duties(one.scope, path_of(one.scope), tuple(Result)))
    if not one.policies:
        remarks.append(Remark(one.id, "has no policies, so nothing of it ever applies"))
    for policy in one.policies:
        remarks += _of_policy(policy, one)
    return remarks


def _of_policy(policy: Policy, of: PolicySet) -> Iterator[Remark]:
    path = path_of(of.scope, policy.scope)
    yield from _duties(policy.scope, path, tuple(Result))
    if not policy.rules:
        yield Remark(path, "has no rules, so nothing of it ever applies")
    above = _asked(of.scope.target) + _asked(policy.scope.target)
    ways = (of.scope.direction, policy.scope.direction)
    rules = in_order(policy.rules)
    for place, rule in enumerate(rules):
        path = path_of(of.scope, policy.scope, rule.scope)
        yield from _duties(rule.scope, path, (rule.effect,))
        never = _never(rule, above, ways)
        if never:
            yield Remark(path, f"never applies: {never}")
            continue
        by = _covering(rules, place, policy.combining)
        if by is not None:
            yield Remark(path, f"never decides: {by.scope.id} applies to all of it and prevails")


def _duties(scope: Scope, path: str, effects: Sequence[Result]) -> Iterator[Remark]:
    for effect, tasks in scope.duties.items():
        if effect not in effects:
            yield Remark(path, f"has tasks for {effect}, which it never says; remove them")
        for task in tasks:
            if task.do not in TASKS:
                then = "the node leaves it out" if task.is_advice else "permissions become denials"
                yield Remark(path, f"{task.do!r} is none of {', '.join(TASKS)}: {then}")


# ---- rules that cannot apply


def _never(rule: Rule, above: tuple[Condition, ...], ways: Sequence[Direction]) -> str:
    """Return why no message can be meant; empty: one can."""
    directions = {one for one in (*ways, rule.scope.direction) if one is not Direction.BOTH}
    if len(directions) > 1:
        return "no message is incoming and outgoing"
    asked = above + _asked(rule.scope.target) + _asked(rule.condition)
    wanted: dict[str, frozenset[Value]] = {}
    for one in asked:
        if isinstance(one, Leaf) and one.operator in _EXACT:
            name, values = one.attribute.name, _values(one)
            wanted[name] = wanted.get(name, values) & values
            if not wanted[name]:
                return f"{name} cannot be all that is asked of it at once"
    return ""


def _values(leaf: Leaf) -> frozenset[Value]:
    return exact_values(leaf.attribute, leaf.parameters)


# ---- rules that others forestall


def _covering(rules: Sequence[Rule], place: int, combining: Algorithm) -> Rule | None:
    """Return the rule that decides whenever the one at a place could."""
    rule, stronger = rules[place], _STRONGER.get(combining)
    others = list(rules[:place])
    if stronger is not None:
        later = () if rule.effect is stronger else rules[place + 1 :]
        others = [one for one in (*others, *later) if one.effect is stronger]
    return next((one for one in others if _covers(one, rule)), None)


def _covers(other: Rule, rule: Rule) -> bool:
    if other.scope.direction not in {Direction.BOTH, rule.scope.direction}:
        return False
    theirs = _asked(other.scope.target) + _asked(other.condition)
    ours = _asked(rule.scope.target) + _asked(rule.condition)
    return all(any(_implies(mine, one) for mine in ours) for one in theirs)


def _implies(ours: Condition, theirs: Condition) -> bool:
    if ours == theirs:
        return True
    if not isinstance(ours, Leaf) or not isinstance(theirs, Leaf):
        return False
    same = ours.attribute == theirs.attribute
    if same and ours.operator in _EXACT and theirs.operator in _EXACT:
        return _values(ours) <= _values(theirs)
    if same and ours.operator in _EXACT:
        return all(map(theirs.test, _values(ours)))
    return False


def _asked(condition: Condition) -> tuple[Condition, ...]:
    """Return the conditions that must all hold."""
    if condition == ALWAYS:
        return ()
    if isinstance(condition, AllOf):
        return tuple(one for part in condition.parts for one in _asked(part))
    return (condition,)
