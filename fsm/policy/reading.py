"""Reader of policy documents: returns a whole policy set or an error (POL-03, POL-06..POL-08).

The document is the content of a TOML file or a JSON message. Unknown keys are refused, so that a
misspelt key cannot leave a rule without its condition.

In a condition, a table means "and", a list means "or", and an empty table or list means "always"
(POL-09).
"""

import re
from typing import Final

import attrs

from fsm.policy import model
from fsm.policy.attributes import ALIASES, ATTRIBUTES, Attribute
from fsm.policy.operators import ParameterError, make_test
from fsm.policy.page import Place
from fsm.policy.terms import ALGORITHMS, EFFECTS, Algorithm, Direction, Moment, Operator, Result
from specs.limits import node
from specs.limits.protocol import MAX_LIST

_LOGIC: Final = ("not", "anyOf", "allOf")
"""Keys that join conditions."""

_GROUPS: Final = {
    group: tuple(
        name.removeprefix(f"{group}.") for name in ATTRIBUTES if name.startswith(f"{group}.")
    )
    for group in dict.fromkeys(name.partition(".")[0] for name in ATTRIBUTES if "." in name)
}
"""Tables for attributes with a dot in their names: `identity.user` is `user` in `identity`."""

_NAMES: Final = (*(name.partition(".")[0] for name in ATTRIBUTES), *ALIASES, *_LOGIC)
_OPERATORS: Final = (*(str(each) for each in Operator), *_LOGIC)


def read_condition(at: Place) -> model.Condition:
    """Read a target or a condition; an absent or empty one is always true.

    Raises:
        BadPolicyError: It is no condition.
    """
    if at.value is None or at.value in ({}, []):
        return model.ALWAYS
    return _condition(at, None, node.MAX_POLICY_DEPTH)


def _condition(at: Place, of: Attribute | None, depth: int) -> model.Condition:
    """Read a condition, or the conditions on one attribute, from a document."""
    if depth == 0:
        raise at.bad(f"is nested more than {node.MAX_POLICY_DEPTH} deep; make it several rules")
    if isinstance(at.value, list):
        return _join([_condition(each, of, depth - 1) for each in _some(at)], model.AnyOf)
    if not isinstance(at.value, dict):
        expected = "a table of attributes" if of is None else 'a table such as { equals = "..." }'
        raise at.bad(f"must be {expected}, or a list of them")
    if not at.value:
        raise at.bad("says nothing; remove it or say what it must be")
    known = _NAMES if of is None else _OPERATORS
    return _join([_entry(each, of, depth) for each in at.keys(known)], model.AllOf)


def _entry(at: Place, of: Attribute | None, depth: int) -> model.Condition:
    """Read the value at one key of a condition: a logical word, an attribute, or an operator."""
    name = at.path.rpartition(".")[2]
    match name:
        case "not":
            return model.Not(_condition(at, of, depth - 1))
        case "anyOf":
            return _join([_condition(each, of, depth - 1) for each in _some(at)], model.AnyOf)
        case "allOf":
            return _join([_condition(each, of, depth - 1) for each in _some(at)], model.AllOf)
        case _ if of is None and name in _GROUPS:
            return _join(
                [_member(each, name, depth) for each in at.keys(_GROUPS[name])], model.AllOf
            )
        case _ if of is None:
            return _condition(at, ATTRIBUTES[ALIASES.get(name, name)], depth - 1)
        case _:
            return _leaf(at, of, Operator(name))


def _member(at: Place, group: str, depth: int) -> model.Condition:
    """Read the conditions on one attribute of a group such as `identity`."""
    name = at.path.rpartition(".")[2]
    return _condition(at, ATTRIBUTES[f"{group}.{name}"], depth - 1)


def _leaf(at: Place, of: Attribute, operator: Operator) -> model.Leaf:
    if isinstance(at.value, list):
        parameters = tuple(each.value for each in _some(at))
    elif operator is Operator.IN:
        raise at.bad('must be a list such as ["a", "b"]')
    else:
        parameters = (at.value,)
    try:
        return model.Leaf(of, operator, parameters, make_test(of, operator, parameters))
    except ParameterError as exc:
        raise at.bad(str(exc)) from exc


def _some(at: Place) -> list[Place]:
    items = at.items(MAX_LIST)
    if not items:
        raise at.bad("is an empty list; remove it or say what it must be")
    return items


def _join(
    parts: list[model.Condition], how: type[model.AllOf] | type[model.AnyOf]
) -> model.Condition:
    return parts[0] if len(parts) == 1 else how(tuple(parts))


_SCOPE_KEYS: Final = (
    "id", "description", "direction", "target", "priority", "obligations", "advice",
)  # fmt: skip
SET_KEYS: Final = (*_SCOPE_KEYS, "version", "update", "policyCombiningAlgorithm", "policies")
POLICY_KEYS: Final = (*_SCOPE_KEYS, "ruleCombiningAlgorithm", "rules")
RULE_KEYS: Final = (*_SCOPE_KEYS, "effect", "condition", "reason")
TASK_KEYS: Final = ("do", "when", "name", "text")

ID: Final = r"[A-Za-z0-9._-]{1,64}"
"""Regular expression for names of sets, policies and rules, which are parts of paths."""

_DIRECTIONS: Final = {str(each): each for each in Direction}
_MOMENTS: Final = {str(each): each for each in Moment}
_CHANGES: Final = {"stamp": "stamped", "durable": "kept"}
"""Tasks that change the message, with a verb for error messages."""


def read_set(document: object, source: str) -> model.PolicySet:
    """Read a policy set from a document.

    Args:
        document: The content of a TOML file or a JSON message.
        source: The file, or the sender of the message, for errors.

    Raises:
        BadPolicyError: It is none; nothing of it is used.
    """
    at = Place(source, "", document)
    _check_keys(at, SET_KEYS)
    policies = tuple(_policy(each) for each in at.key("policies").items(node.MAX_POLICY_RULES))
    common = attrs.asdict(_element(at), recurse=False)
    common |= {"parts": policies, "combining": _algorithm(at.key("policyCombiningAlgorithm"))}
    policy_set = model.PolicySet(
        **common,
        version=at.key("version").label(),
        update=at.key("update").text(),
        source=source,
        document=document,  # type: ignore[arg-type] # an object, and every value was read
    )
    _distinct(at.key("policies"), policies)
    _check_bounds(at, policy_set)
    return policy_set


def _policy(at: Place) -> model.Element:
    _check_keys(at, POLICY_KEYS)
    rules = tuple(_rule(each) for each in at.key("rules").items(node.MAX_POLICY_RULES))
    _distinct(at.key("rules"), rules)
    combining = _algorithm(at.key("ruleCombiningAlgorithm"))
    return attrs.evolve(_element(at), parts=rules, combining=combining)


def _rule(at: Place) -> model.Element:
    _check_keys(at, RULE_KEYS)
    effect = at.key("effect").word(EFFECTS, None)
    if effect is None:
        raise at.bad('has no effect; write effect = "permit" or "deny"')
    condition = read_condition(at.key("condition"))
    reason = at.key("reason").text()
    return attrs.evolve(_element(at), effect=effect, condition=condition, reason=reason)


def _element(at: Place) -> model.Element:
    name = at.key("id").label()
    if not re.fullmatch(ID, name):
        raise at.key("id").bad("must be 1 to 64 letters, digits, dots, dashes or underscores")
    at.key("description").text()
    return model.Element(
        id=name,
        target=read_condition(at.key("target")),
        direction=at.key("direction").word(_DIRECTIONS, Direction.BOTH),
        priority=at.key("priority").number(),
        duties=_duties(at),
    )


def _duties(at: Place) -> model.Duties:
    duties: model.Duties = {}
    for key in ("obligations", "advice"):
        table = at.key(key)
        if table.value is None:
            continue
        for each in table.keys(tuple(EFFECTS)):
            effect = EFFECTS[each.path.rpartition(".")[2]]
            tasks = tuple(_task(task, effect, key) for task in each.items(node.MAX_POLICY_TASKS))
            duties[effect] = duties.get(effect, ()) + tasks
    return duties


def _task(at: Place, effect: Result, key: str) -> model.Task:
    _check_keys(at, TASK_KEYS)
    do = at.key("do").text()
    if not do:
        raise at.bad('does not say what to do; write do = "log" or another')
    if do in _CHANGES and effect is Result.DENY:
        raise at.bad(
            f"what is denied goes nowhere and cannot be {_CHANGES[do]}; "
            f'write do = "{do}" for what is permitted'
        )
    when = at.key("when").word(_MOMENTS, Moment.BEFORE)
    if do in _CHANGES and when is Moment.AFTER:
        why = f'must be "before": what has gone cannot be {_CHANGES[do]} any more'
        raise at.key("when").bad(why)
    name, text = at.key("name").text(), at.key("text").text()
    if do == "count" and not re.fullmatch(ID, name):
        raise at.bad("a counter needs a name of letters, digits, dots, dashes or underscores")
    return model.Task(do, when, name, text, is_advice=key == "advice")


def _algorithm(at: Place) -> Algorithm:
    return at.word(ALGORITHMS, Algorithm.DENY_OVERRIDES)


def _check_keys(at: Place, keys: tuple[str, ...]) -> None:
    for _ in at.keys(keys):
        pass


def _distinct(at: Place, elements: tuple[model.Element, ...]) -> None:
    names = [element.id for element in elements]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise at.bad(f"two are called {repeated!r}; give each an id of its own")


def _check_bounds(at: Place, made: model.Element) -> None:
    if made.rules > node.MAX_POLICY_RULES:
        raise at.bad(f"has {made.rules} rules; more than {node.MAX_POLICY_RULES} are too many")
    number = sum(1 for _ in made.conditions())
    if number > node.MAX_POLICY_CONDITIONS:
        most = node.MAX_POLICY_CONDITIONS
        raise at.bad(f"makes {number} comparisons; more than {most} are too many")
