"""Conditions, rules, policies, policy sets, and all policies that a node applies (POL-06..POL-09).

A condition consists of comparisons, joined by not, anyOf and allOf. It is true, false, or unknown:
when an attribute is not available and the other parts do not decide it alone. The order of its
parts makes no difference.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeAlias, final

import attrs

from fsm.policy.attributes import Attribute, Request, reader
from fsm.policy.operators import Test
from fsm.policy.terms import Algorithm, Direction, Moment, Operator, Result
from specs.jsonvalue import JsonObject

Check: TypeAlias = Callable[[Request], bool | None]
"""Function that evaluates a condition for a request; None: the result is unknown."""


@attrs.frozen
class Leaf:
    """Comparison of an attribute with parameters.

    Attributes:
        parameters: The parameters as they were written; one match is sufficient.
        test: The function that compares.
    """

    attribute: Attribute
    operator: Operator
    parameters: tuple[object, ...]
    test: Test = attrs.field(eq=False, repr=False)


@attrs.frozen
class Not:
    """Negation of a condition."""

    of: "Condition"


@attrs.frozen
class AllOf:
    """Conjunction of conditions; without parts it is true."""

    parts: tuple["Condition", ...]


@attrs.frozen
class AnyOf:
    """Disjunction of conditions."""

    parts: tuple["Condition", ...]


Condition: TypeAlias = Leaf | Not | AllOf | AnyOf

ALWAYS: Final = AllOf(())
"""Condition that is always true, used for an empty target (POL-09)."""


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield all comparisons of a condition."""
    match condition:
        case Leaf():
            yield condition
        case Not(of):
            yield from leaves(of)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)


def check_of(condition: Condition) -> Check | None:
    """Return a function that evaluates a condition, or None if the condition always holds."""
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
            return _combine([_check(part) for part in parts], decisive=False)
        case AnyOf(parts):
            return _combine([_check(part) for part in parts], decisive=True)


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


def _combine(checks: Sequence[Check], *, decisive: bool) -> Check:
    """Return a function that evaluates all parts; one part with the result `decisive` decides."""
    if len(checks) == 1:
        return checks[0]

    def combined(request: Request) -> bool | None:
        outcome: bool | None = not decisive
        for check in checks:
            result = check(request)
            if result is decisive:
                return decisive
            if result is None:
                outcome = None
        return outcome

    return combined


@attrs.frozen
class Task:
    """Obligation or advice that accompanies a decision (POL-13).

    Attributes:
        do: The action: `log`, `count`, `stamp` or `durable`; a node cannot fulfil an unknown one.
        when: Before or after the message is forwarded.
        name: Name of the counter.
        text: The text to write.
        is_advice: Whether the decision stands if it cannot be fulfilled.
    """

    do: str
    when: Moment = Moment.BEFORE
    name: str = ""
    text: str = ""
    is_advice: bool = False


Duties: TypeAlias = dict[Result, tuple[Task, ...]]
"""Obligations and advice, by the decision that they accompany (C-61)."""


@attrs.frozen(kw_only=True)
class Element:
    """Rule, policy that has rules, or set that has policies (POL-06..POL-08).

    Attributes:
        id: Its name, unique among its siblings.
        target: The messages to which it applies at all.
        direction: The direction of the messages to which it applies (POL-17).
        priority: Its rank among its siblings, the smallest first; equal ones keep the order of the
            document (C-61).
        duties: The tasks that accompany its decisions.
        parts: Rules of a policy, policies of a set.
        combining: The algorithm that combines the results of its parts.
        effect: Permit or deny, for a rule; None: it is no rule.
        condition: The condition of a rule.
        reason: The reason of a rule for the refused sender, as half a sentence; empty: none.
    """

    id: str
    target: Condition = ALWAYS
    direction: Direction = Direction.BOTH
    priority: float = 0
    duties: Duties = attrs.field(factory=dict)
    parts: tuple["Element", ...] = ()
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    effect: Result | None = None
    condition: Condition = ALWAYS
    reason: str = ""

    def walk(self, above: str = "") -> Iterator[tuple[str, "Element"]]:
        """Yield this element and all elements in it, with paths `set/policy/rule`."""
        path = f"{above}{self.id}"
        yield path, self
        for part in in_order(self.parts):
            yield from part.walk(f"{path}/")

    def conditions(self) -> Iterator[Leaf]:
        """Yield all comparisons in this element and its parts."""
        for _, each in self.walk():
            yield from leaves(each.target)
            yield from leaves(each.condition)

    @property
    def rules(self) -> int:
        """Number of rules in this element."""
        return sum(each.effect is not None for _, each in self.walk())


@final
@attrs.frozen(kw_only=True)
class PolicySet(Element):
    """Policy set: policies with the algorithm that combines their results (POL-08); one file.

    Attributes:
        version: Its author's name for this version.
        update: The time of its last change by the author, as text.
        source: The file that it came from, or its sender.
        document: The document from which it was read.
    """

    version: str = ""
    update: str = ""
    source: str = attrs.field(default="", eq=False)
    document: JsonObject = attrs.field(factory=dict, eq=False, repr=False)


@attrs.frozen(kw_only=True)
class Book:
    """All policy sets that a node applies at one time, with default and version.

    Attributes:
        sets: The sets, in the order in which they were given.
        combining: The algorithm that combines their results.
        default: The result for a message to which no policy applies (POL-15).
        version: Number of the version, which rises with each change (POL-03).
    """

    sets: tuple[PolicySet, ...] = ()
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    default: Result = Result.PERMIT
    version: int = 1

    def set_of(self, name: str) -> PolicySet | None:
        """Return the set with a name, or None."""
        return next((each for each in self.sets if each.id == name), None)


def in_order(elements: Iterable[Element]) -> list[Element]:
    """Return elements sorted by their priorities."""
    return sorted(elements, key=attrgetter("priority"))
