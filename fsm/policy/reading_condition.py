"""Reading conditions: a table is "and", a list is "or", nothing is "always" (POL-09)."""

from typing import Final

from fsm.policy.attributes import ALIASES, ATTRIBUTES, Attribute
from fsm.policy.condition import ALWAYS, AllOf, AnyOf, Condition, Leaf, Not
from fsm.policy.operators import ParameterError, make_test
from fsm.policy.page import Place
from fsm.policy.terms import Operator
from specs.limits.policy import MAX_POLICY_DEPTH
from specs.limits.protocol import MAX_LIST

__all__ = ["LOGIC", "read_condition"]

LOGIC: Final = ("not", "anyOf", "allOf")
"""What joins conditions."""

_NAMES: Final = (*ATTRIBUTES, *ALIASES, *LOGIC)
_OPERATORS: Final = (*(str(one) for one in Operator), *LOGIC)


def read_condition(at: Place) -> Condition:
    """Read a target or a condition; what is absent or empty always holds.

    Raises:
        BadPolicyError: It is none.
    """
    if at.value is None or at.value in ({}, []):
        return ALWAYS
    return _condition(at, None, MAX_POLICY_DEPTH)


def _condition(at: Place, of: Attribute | None, depth: int) -> Condition:
    """Read a condition, or what is asked of one attribute."""
    if depth == 0:
        raise at.bad(f"is nested more than {MAX_POLICY_DEPTH} deep; make it several rules")
    if isinstance(at.value, list):
        return _joined([_condition(one, of, depth - 1) for one in _some(at)], AnyOf)
    if not isinstance(at.value, dict):
        what = "a table of attributes" if of is None else 'a table such as { equals = "..." }'
        raise at.bad(f"must be {what}, or a list of them")
    if not at.value:
        raise at.bad("says nothing; remove it or say what it must be")
    known = _NAMES if of is None else _OPERATORS
    return _joined([_entry(one, of, depth) for one in at.keys(known)], AllOf)


def _entry(at: Place, of: Attribute | None, depth: int) -> Condition:
    """Read one key of a table: a word of logic, an attribute, or an operator."""
    name = at.way.rpartition(".")[2]
    match name:
        case "not":
            return Not(_condition(at, of, depth - 1))
        case "anyOf":
            return _joined([_condition(one, of, depth - 1) for one in _some(at)], AnyOf)
        case "allOf":
            return _joined([_condition(one, of, depth - 1) for one in _some(at)], AllOf)
        case _ if of is None:
            return _condition(at, ATTRIBUTES[ALIASES.get(name, name)], depth - 1)
        case _:
            return _leaf(at, of, Operator(name))


def _leaf(at: Place, of: Attribute, operator: Operator) -> Leaf:
    if isinstance(at.value, list):
        parameters = tuple(one.value for one in _some(at))
    elif operator is Operator.IN:
        raise at.bad('must be a list such as ["a", "b"]')
    else:
        parameters = (at.value,)
    try:
        return Leaf(of, operator, parameters, make_test(of, operator, parameters))
    except ParameterError as exc:
        raise at.bad(str(exc)) from exc


def _some(at: Place) -> list[Place]:
    items = at.items(MAX_LIST)
    if not items:
        raise at.bad("is an empty list; remove it or say what it must be")
    return items


def _joined(parts: list[Condition], how: type[AllOf] | type[AnyOf]) -> Condition:
    return parts[0] if len(parts) == 1 else how(tuple(parts))
