"""Explanations of policies: the reasons of a decision, and rules that can never decide.

`explain` reports every element and every comparison for one message. `review` reports probable
mistakes in policies that are valid, but only certain ones. A rule is covered by another if every
condition of the second is implied by conditions of the first: comparisons that are joined by "and"
are compared individually, every other condition as a whole.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from fsm.policy import model
from fsm.policy import pdp as decisions
from fsm.policy.attributes import ATTRIBUTES, Request, Value, subjects
from fsm.policy.operators import exact_values
from fsm.policy.terms import Algorithm, Direction, Operator, Result

# ---- explanations


@attrs.frozen
class Seen:
    """Result of a condition or comparison for a message, with the results of its parts.

    Attributes:
        text: The comparison, or the word that joins the parts.
        outcome: Whether it is true; None: unknown.
        value: The value of the attribute; None: not available, or this is no comparison.
    """

    text: str
    outcome: bool | None
    value: Value | None = None
    parts: tuple["Seen", ...] = ()


@attrs.frozen
class Finding:
    """Result of a set, policy or rule for a message.

    Attributes:
        path: The element: `set`, `set/policy` or `set/policy/rule`.
        is_addressed: Whether the message has its direction.
        target: The result of its target; None: it has no target.
        condition: The result of its condition; None: it has no condition.
    """

    path: str
    result: Result
    is_addressed: bool
    target: Seen | None = None
    condition: Seen | None = None


@attrs.frozen
class Explanation:
    """Decision on a message with its reasons.

    Attributes:
        verdict: The verdict of the policies.
        effective: The result at the enforcement point.
        findings: Every element, in the order of evaluation, outer ones first.
        missing: Attributes that were not available, and why.
    """

    verdict: decisions.Verdict
    effective: Result
    findings: tuple[Finding, ...]
    missing: dict[str, str]


def explain(book: model.Book, request: Request) -> Explanation:
    """Judge a message and report each evaluation, by the functions that a node uses.

    For a message that names several resources, the deciding one is explained.

    Args:
        book: The policies.
        request: The attributes of the message.
    """
    pdp = decisions.Pdp(book)
    verdict = pdp.decide(request)
    requests = [decisions.about(request, subject) for subject in subjects(request)]
    if len(requests) > 1:
        request = next(each for each in requests if pdp.decide(each).result is verdict.result)
    walks = (each.walk() for each in model.in_order(book.sets))
    findings = [_finding(request, path, element) for walk in walks for path, element in walk]
    happens = effective(verdict, book.default)
    return Explanation(verdict, happens, tuple(findings), missing(request))


def effective(verdict: decisions.Verdict, default: Result) -> Result:
    """Return the result for the message: an undecided message is denied (POL-14, POL-15).

    Args:
        verdict: The verdict of the policies.
        default: The result if no policy applies.
    """
    if verdict.result is Result.NOT_APPLICABLE:
        return default
    return Result.PERMIT if verdict.result is Result.PERMIT else Result.DENY


def missing(request: Request) -> dict[str, str]:
    """Return the unavailable attributes that a condition tested, with the reasons."""
    return {
        name: ATTRIBUTES[name].missing for name, value in request.known.items() if value is None
    }


def _finding(request: Request, path: str, element: model.Element) -> Finding:
    result, direction = decisions.judge_of(element, path)(request).result, element.direction
    is_addressed = direction is Direction.BOTH or (
        (direction is Direction.OUT) is request.is_outgoing
    )
    target, condition = (
        _seen_if_any(each, request) for each in (element.target, element.condition)
    )
    return Finding(path, result, is_addressed, target, condition)


def _seen_if_any(condition: model.Condition, request: Request) -> Seen | None:
    return None if condition == model.ALWAYS else _see_condition(condition, request)


_JOINED: Final = {model.AllOf: "allOf", model.AnyOf: "anyOf"}
_Parts: TypeAlias = Sequence[model.Condition]


def _see_condition(condition: model.Condition, request: Request) -> Seen:
    check = model.check_of(condition)
    outcome = True if check is None else check(request)
    match condition:
        case model.Leaf(attribute, operator, parameters):
            is_one = len(parameters) == 1 and operator is not Operator.IN
            value = repr(parameters[0] if is_one else list(parameters))
            text = f"{attribute.name} {operator} {value}"
            return Seen(text, outcome, request.known.get(attribute.name))
        case model.Not(of):
            return Seen("not", outcome, parts=_all_seen((of,), request))
        case model.AllOf(parts) | model.AnyOf(parts):
            return Seen(_JOINED[type(condition)], outcome, parts=_all_seen(parts, request))


def _all_seen(parts: _Parts, request: Request) -> tuple[Seen, ...]:
    return tuple(_see_condition(part, request) for part in parts)


# ---- rules that never decide


TASKS: Final = ("log", "count", "stamp", "durable")
"""Obligations that a node can fulfil (POL-13)."""

_EXACT: Final = (Operator.EQUALS, Operator.IN)

_STRONGER: Final = {
    Algorithm.DENY_OVERRIDES: Result.DENY,
    Algorithm.PERMIT_OVERRIDES: Result.PERMIT,
}
"""For a combining algorithm, the result that ends the evaluation at once."""


@attrs.frozen
class Remark:
    """Probable mistake in a policy, and how to correct it.

    Attributes:
        path: Path of the element.
        what: The mistake and its remedy.
    """

    path: str
    what: str


def review(policy_set: model.PolicySet) -> list[Remark]:
    """Return the probable mistakes in a policy set."""
    remarks = list(_duties(policy_set, policy_set.id, tuple(Result)))
    if not policy_set.parts:
        remarks.append(Remark(policy_set.id, "has no policies, so nothing of it ever applies"))
    for policy in policy_set.parts:
        remarks += _of_policy(policy, policy_set)
    return remarks


def _of_policy(policy: model.Element, of: model.Element) -> Iterator[Remark]:
    path = f"{of.id}/{policy.id}"
    yield from _duties(policy, path, tuple(Result))
    if not policy.parts:
        yield Remark(path, "has no rules, so nothing of it ever applies")
    rules = model.in_order(policy.parts)
    for place, rule in enumerate(rules):
        name = f"{path}/{rule.id}"
        yield from _duties(rule, name, (rule.effect,))
        never = _never(of, policy, rule)
        if never:
            yield Remark(name, f"never applies: {never}")
            continue
        by = _covering(rules, place, policy.combining)
        if by is not None:
            yield Remark(name, f"never decides: {by.id} applies to all of it and prevails")


def _duties(
    element: model.Element, path: str, effects: Sequence[Result | None]
) -> Iterator[Remark]:
    for effect, tasks in element.duties.items():
        if effect not in effects:
            yield Remark(path, f"has tasks for {effect}, which it never says; remove them")
        for task in tasks:
            if task.do not in TASKS:
                then = "the node leaves it out" if task.is_advice else "permissions become denials"
                yield Remark(path, f"{task.do!r} is none of {', '.join(TASKS)}: {then}")


# ---- rules that cannot apply


def _never(*elements: model.Element) -> str:
    """Return why no message can match a rule; empty: a message may match."""
    if {Direction.IN, Direction.OUT} <= {element.direction for element in elements}:
        return "no message is incoming and outgoing"
    conditions = [condition for element in elements for condition in _asked_by(element)]
    common: dict[str, frozenset[Value]] = {}
    for each in conditions:
        if isinstance(each, model.Leaf) and each.operator in _EXACT:
            name, values = each.attribute.name, _values(each)
            common[name] = common.get(name, values) & values
            if not common[name]:
                return f"{name} cannot be all that is asked of it at once"
    return ""


def _values(leaf: model.Leaf) -> frozenset[Value]:
    return exact_values(leaf.attribute, leaf.parameters)


# ---- rules that others forestall


def _covering(
    rules: Sequence[model.Element], place: int, combining: Algorithm
) -> model.Element | None:
    """Return another rule that decides whenever the rule at an index could; None: no such rule."""
    rule, stronger = rules[place], _STRONGER.get(combining)
    stronger_rules = list(rules[:place])
    if stronger is not None:
        later = () if rule.effect is stronger else rules[place + 1 :]
        stronger_rules = [other for other in (*stronger_rules, *later) if other.effect is stronger]
    return next((other for other in stronger_rules if _covers(other, rule)), None)


def _covers(other: model.Element, rule: model.Element) -> bool:
    if other.direction not in {Direction.BOTH, rule.direction}:
        return False
    return all(
        any(_implies(each, theirs) for each in _asked_by(rule)) for theirs in _asked_by(other)
    )


def _asked_by(element: model.Element) -> tuple[model.Condition, ...]:
    return _conjuncts(element.target) + _conjuncts(element.condition)


def _implies(ours: model.Condition, theirs: model.Condition) -> bool:
    if ours == theirs:
        return True
    if not isinstance(ours, model.Leaf) or not isinstance(theirs, model.Leaf):
        return False
    same = ours.attribute == theirs.attribute
    if same and ours.operator in _EXACT and theirs.operator in _EXACT:
        return _values(ours) <= _values(theirs)
    if same and ours.operator in _EXACT:
        return all(map(theirs.test, _values(ours)))
    return False


def _conjuncts(condition: model.Condition) -> tuple[model.Condition, ...]:
    """Return the conditions that must all be true for a condition to be true."""
    if condition == model.ALWAYS:
        return ()
    if isinstance(condition, model.AllOf):
        return tuple(each for part in condition.parts for each in _conjuncts(part))
    return (condition,)
