"""Explanations of policies: why they decide as they do, and rules that never decide anything.

`explain` shows every element and every comparison for one message. `review` finds what is odd
about policies that can be used, and reports only what is certain. A rule is covered by another
if whatever the first asks the second asks too: comparisons that are joined by "and" are looked
into, every other condition is compared as a whole.
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
    """The result of a condition.

    Attributes:
        text: The comparison, or the word that joins its parts.
        outcome: Whether it holds; None: that cannot be known.
        value: What the attribute was; None: it could not be had, or it is no comparison.
    """

    text: str
    outcome: bool | None
    value: Value | None = None
    parts: tuple["Seen", ...] = ()


@attrs.frozen
class Finding:
    """The result of one element.

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


@attrs.frozen
class Explanation:
    """A decision and its reasons.

    Attributes:
        verdict: What the policies say.
        effective: What the enforcement point makes of it.
        findings: Every element, in the order of evaluation, outer ones first.
        missing: Attributes that could not be had, and why.
    """

    verdict: decisions.Verdict
    effective: Result
    findings: tuple[Finding, ...]
    missing: dict[str, str]


def explain(book: model.Book, request: Request) -> Explanation:
    """Judge a message and explain each step; by the same functions as a node judges.

    Of a message that names several resources, the deciding one is explained.

    Args:
        book: The policies.
        request: The attributes of the message.
    """
    pdp = decisions.Pdp(book)
    verdict = pdp.decide(request)
    alone = [decisions.about(request, subject) for subject in subjects(request)]
    if len(alone) > 1:
        request = next(each for each in alone if pdp.decide(each).result is verdict.result)
    walks = (each.walk() for each in model.in_order(book.sets))
    findings = [_finding(request, path, element) for walk in walks for path, element in walk]
    happens = effective(verdict, book.default)
    return Explanation(verdict, happens, tuple(findings), missing(request))


def effective(verdict: decisions.Verdict, default: Result) -> Result:
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
            shown = repr(parameters[0] if is_one else list(parameters))
            text = f"{attribute.name} {operator} {shown}"
            return Seen(text, outcome, request.known.get(attribute.name))
        case model.Not(of):
            return Seen("not", outcome, parts=_all_seen((of,), request))
        case model.AllOf(parts) | model.AnyOf(parts):
            return Seen(_JOINED[type(condition)], outcome, parts=_all_seen(parts, request))


def _all_seen(parts: _Parts, request: Request) -> tuple[Seen, ...]:
    return tuple(_see_condition(part, request) for part in parts)


# ---- rules that never decide


TASKS: Final = ("log", "count", "stamp", "durable")
"""The obligations that a node can fulfil (POL-13)."""

_EXACT: Final = (Operator.EQUALS, Operator.IN)

_STRONGER: Final = {
    Algorithm.DENY_OVERRIDES: Result.DENY,
    Algorithm.PERMIT_OVERRIDES: Result.PERMIT,
}
"""The result that ends the evaluation of a level."""


@attrs.frozen
class Remark:
    """One odd thing.

    Attributes:
        path: Where.
        what: What is odd, and what to do.
    """

    path: str
    what: str


def review(one: model.PolicySet) -> list[Remark]:
    """Look for what its author cannot have meant."""
    remarks = list(_duties(one, one.id, tuple(Result)))
    if not one.parts:
        remarks.append(Remark(one.id, "has no policies, so nothing of it ever applies"))
    for policy in one.parts:
        remarks += _of_policy(policy, one)
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
    """Return why no message can be meant by a rule in a policy in a set; empty: one can."""
    if {Direction.IN, Direction.OUT} <= {element.direction for element in elements}:
        return "no message is incoming and outgoing"
    asked = [condition for element in elements for condition in _asked_by(element)]
    wanted: dict[str, frozenset[Value]] = {}
    for each in asked:
        if isinstance(each, model.Leaf) and each.operator in _EXACT:
            name, values = each.attribute.name, _values(each)
            wanted[name] = wanted.get(name, values) & values
            if not wanted[name]:
                return f"{name} cannot be all that is asked of it at once"
    return ""


def _values(leaf: model.Leaf) -> frozenset[Value]:
    return exact_values(leaf.attribute, leaf.parameters)


# ---- rules that others forestall


def _covering(
    rules: Sequence[model.Element], place: int, combining: Algorithm
) -> model.Element | None:
    """Return the rule that decides whenever the one at a place could."""
    rule, stronger = rules[place], _STRONGER.get(combining)
    others = list(rules[:place])
    if stronger is not None:
        later = () if rule.effect is stronger else rules[place + 1 :]
        others = [other for other in (*others, *later) if other.effect is stronger]
    return next((other for other in others if _covers(other, rule)), None)


def _covers(other: model.Element, rule: model.Element) -> bool:
    if other.direction not in {Direction.BOTH, rule.direction}:
        return False
    return all(
        any(_implies(ours, theirs) for ours in _asked_by(rule)) for theirs in _asked_by(other)
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
    """Return the conditions that must all hold."""
    if condition == model.ALWAYS:
        return ()
    if isinstance(condition, model.AllOf):
        return tuple(each for part in condition.parts for each in _conjuncts(part))
    return (condition,)
