"""Conditions: comparisons, joined by not, anyOf and allOf (POL-09).

A condition is true, false, or neither, when an attribute cannot be had and the rest
does not decide it alone. In which order its parts stand makes no difference.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, final

import attrs

from fsm.policy.attributes import Attribute, reader
from fsm.policy.operators import Test
from fsm.policy.request import Request
from fsm.policy.terms import Operator

__all__ = [
    "ALWAYS",
    "AllOf",
    "AnyOf",
    "Check",
    "Condition",
    "Leaf",
    "Not",
    "check_of",
    "leaves",
]

Check: TypeAlias = Callable[[Request], bool | None]
"""Says whether a condition holds; None: that cannot be known."""


@final
@attrs.frozen
class Leaf:
    """One comparison.

    Attributes:
        parameters: As they were written; any of them may fit.
        test: The comparison.
    """

    attribute: Attribute
    operator: Operator
    parameters: tuple[object, ...]
    test: Test = attrs.field(eq=False, repr=False)


@final
@attrs.frozen
class Not:
    """The contrary."""

    of: "Condition"


@final
@attrs.frozen
class AllOf:
    """All of them; of none: always."""

    parts: tuple["Condition", ...]


@final
@attrs.frozen
class AnyOf:
    """At least one of them."""

    parts: tuple["Condition", ...]


Condition: TypeAlias = Leaf | Not | AllOf | AnyOf

ALWAYS: Final = AllOf(())
"""What an empty target says (POL-09)."""


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Go through all comparisons of a condition."""
    match condition:
        case Leaf():
            yield condition
        case Not(of):
            yield from leaves(of)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)


def check_of(condition: Condition) -> Check | None:
    """Make a function of a condition; None: it always holds."""
    if condition == ALWAYS:
        return None
    return _check(condition)


def _check(condition: Condition) -> Check:
    match condition:
        case Leaf(attribute, _, _, test):
            return _compare(attribute, test)
        case Not(of):
            return _contrary(_check(of))
        case AllOf(parts):
            return _all([_check(part) for part in parts])
        case AnyOf(parts):
            return _any([_check(part) for part in parts])


def _compare(attribute: Attribute, test: Test) -> Check:
    name, read = attribute.name, reader(attribute)

    def compare(request: Request) -> bool | None:
        known = request.known
        value = known[name] if name in known else read(request)
        return None if value is None else test(value)

    return compare


def _contrary(check: Check) -> Check:
    def contrary(request: Request) -> bool | None:
        outcome = check(request)
        return None if outcome is None else not outcome

    return contrary


def _all(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def every(request: Request) -> bool | None:
        outcome: bool | None = True
        for check in checks:
            found = check(request)
            if found is False:
                return False
            if found is None:
                outcome = None
        return outcome

    return every


def _any(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def some(request: Request) -> bool | None:
        outcome: bool | None = False
        for check in checks:
            found = check(request)
            if found is True:
                return True
            if found is None:
                outcome = None
        return outcome

    return some
