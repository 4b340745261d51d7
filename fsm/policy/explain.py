"""Why policies decide as they do of one message: every element, every comparison."""

from collections.abc import Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.policy.attributes import ATTRIBUTES
from fsm.policy.condition import ALWAYS, AllOf, AnyOf, Condition, Leaf, Not, check_of
from fsm.policy.model import Book, Policy, PolicySet, Rule, Scope, in_order
from fsm.policy.pdp import (
    Judge,
    Pdp,
    Verdict,
    about,
    judge_of_policy,
    judge_of_rule,
    judge_of_set,
    path_of,
)
from fsm.policy.request import Request, Value, subjects
from fsm.policy.terms import Direction, Operator, Result

__all__ = ["Explanation", "Finding", "Seen", "effective", "explain", "missing"]


@final
@attrs.frozen
class Seen:
    """How a condition came out.

    Attributes:
        text: The comparison, or the word that joins its parts.
        outcome: Whether it holds; None: that cannot be known.
        value: What the attribute was; None: it could not be had, or it is no comparison.
    """

    text: str
    outcome: bool | None
    value: Value | None = None
    parts: tuple["Seen", ...] = ()


@final
@attrs.frozen
class Finding:
    """What one element says.

    Attributes:
        path: The element: `set`, `set/policy` or `set/policy/rule`.
        is_addressed: Whether the message goes its direction.
        target: How its target came out; None: it has none.
        condition: How its condition came out; None: it has none.
    """

    path: str
    result: Result
    is_addressed: bool
    target: Seen | None = None
    condition: Seen | None = None


@final
@attrs.frozen
class Explanation:
    """What was decided and why.

    Attributes:
        verdict: What the policies say.
        effective: What the enforcement point makes of it.
        findings: Every element, in the order of evaluation, outer ones first.
        missing: Attributes that could not be had, and why.
    """

    verdict: Verdict
    effective: Result
    findings: tuple[Finding, ...]
    missing: dict[str, str]


def explain(book: Book, request: Request) -> Explanation:
    """Judge a message and explain each step; by the same functions as a node judges.

    Of a message that names several resources, the deciding one is explained.

    Args:
        book: The policies.
        request: The attributes of the message.
    """
    pdp = Pdp(book)
    verdict = pdp.decide(request)
    alone = [about(request, one) for one in subjects(request)]
    if len(alone) > 1:
        request = next(one for one in alone if pdp.decide(one).result is verdict.result)
    findings: list[Finding] = []
    for one in in_order(book.sets):
        findings.append(_finding(request, judge_of_set(one), one.scope))
        for policy in in_order(one.policies):
            judge = judge_of_policy(policy, one)
            findings.append(_finding(request, judge, one.scope, policy.scope))
            findings += [_of_rule(request, rule, policy, one) for rule in in_order(policy.rules)]
    happens = effective(verdict, book.default)
    return Explanation(verdict, happens, tuple(findings), missing(request))


def effective(verdict: Verdict, default: Result) -> Result:
    """Return what happens to the message: an undecided message is denied (POL-14, POL-15).

    Args:
        verdict: The verdict of the policies.
        default: The result if no policy applies.
    """
    if verdict.result is Result.NOT_APPLICABLE:
        return default
    return Result.PERMIT if verdict.result is Result.PERMIT else Result.DENY


def missing(request: Request) -> dict[str, str]:
    """Return which attributes could not be had when a message was judged, and why."""
    return {
        name: ATTRIBUTES[name].missing for name, value in request.known.items() if value is None
    }


def _of_rule(request: Request, rule: Rule, policy: Policy, of: PolicySet) -> Finding:
    judge = judge_of_rule(rule, policy, of)
    finding = _finding(request, judge, of.scope, policy.scope, rule.scope)
    return attrs.evolve(finding, condition=_seen_if_any(rule.condition, request))


def _finding(request: Request, judge: Judge, *scopes: Scope) -> Finding:
    scope = scopes[-1]
    is_addressed = scope.direction is Direction.BOTH or (
        (scope.direction is Direction.OUT) is request.is_outgoing
    )
    target = _seen_if_any(scope.target, request)
    return Finding(path_of(*scopes), judge(request).result, is_addressed, target)


def _seen_if_any(condition: Condition, request: Request) -> Seen | None:
    return None if condition == ALWAYS else _seen(condition, request)


_JOINED: Final = {AllOf: "allOf", AnyOf: "anyOf"}
_Parts: TypeAlias = Sequence[Condition]


def _seen(condition: Condition, request: Request) -> Seen:
    check = check_of(condition)
    outcome = True if check is None else check(request)
    match condition:
        case Leaf(attribute, operator, parameters):
            is_one = len(parameters) == 1 and operator is not Operator.IN
            told = repr(parameters[0] if is_one else list(parameters))
            text = f"{attribute.name} {operator} {told}"
            return Seen(text, outcome, request.known.get(attribute.name))
        case Not(of):
            return Seen("not", outcome, parts=_all_seen((of,), request))
        case AllOf(parts) | AnyOf(parts):
            return Seen(_JOINED[type(condition)], outcome, parts=_all_seen(parts, request))


def _all_seen(parts: _Parts, request: Request) -> tuple[Seen, ...]:
    return tuple(_seen(part, request) for part in parts)
