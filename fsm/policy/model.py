"""Conditions, rules, policies, policy sets, and all a node judges by (POL-06..POL-09).

A condition is comparisons, joined by not, anyOf and allOf. It is true, false, or neither, when
an attribute cannot be had and the rest does not decide it alone. The order of its parts makes
no difference.
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
"""A test of a condition; None: the result cannot be known."""


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


@attrs.frozen
class Not:
    """The contrary."""

    of: "Condition"


@attrs.frozen
class AllOf:
    """All of them; of none: always."""

    parts: tuple["Condition", ...]


@attrs.frozen
class AnyOf:
    """At least one of them."""

    parts: tuple["Condition", ...]


Condition: TypeAlias = Leaf | Not | AllOf | AnyOf

ALWAYS: Final = AllOf(())
"""The meaning of an empty target (POL-09)."""


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
    """Return the check of all parts: an outcome of a part that is `decisive` decides alone."""
    if len(checks) == 1:
        return checks[0]

    def combined(request: Request) -> bool | None:
        outcome: bool | None = not decisive
        for check in checks:
            found = check(request)
            if found is decisive:
                return decisive
            if found is None:
                outcome = None
        return outcome

    return combined


@attrs.frozen
class Task:
    """Something to be done along with a decision (POL-13).

    Attributes:
        do: What: `log`, `count`, `stamp`, `durable`; what the node does not know, it cannot do.
        when: Before the message goes on, or after it went.
        name: Of the counter.
        text: What to write.
        is_advice: Whether nothing follows if it cannot be done.
    """

    do: str
    when: Moment = Moment.BEFORE
    name: str = ""
    text: str = ""
    is_advice: bool = False


Duties: TypeAlias = dict[Result, tuple[Task, ...]]
"""Obligations and advice by the decision they belong to (C-61)."""


@attrs.frozen(kw_only=True)
class Element:
    """A rule, a policy that has rules, or a set that has policies (POL-06..POL-08).

    Attributes:
        id: Its name among its neighbours.
        target: To which messages it applies at all.
        direction: Likewise (POL-17).
        priority: Its place among its neighbours, the smallest first; those with the
            same stand in the order of the document (C-61).
        duties: What is to be done along with its decisions.
        parts: Rules of a policy, policies of a set.
        combining: How the results of its parts become one.
        effect: Permit or deny, of a rule; None: it is none.
        condition: Which messages a rule is about.
        reason: Half a sentence of a rule for the refused sender; empty: none is given.
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
        """Go through it and all below, outer ones first: `set/policy/rule`, and the element."""
        path = f"{above}{self.id}"
        yield path, self
        for part in in_order(self.parts):
            yield from part.walk(f"{path}/")

    def conditions(self) -> Iterator[Leaf]:
        """Go through all comparisons in it."""
        for _, each in self.walk():
            yield from leaves(each.target)
            yield from leaves(each.condition)

    @property
    def rules(self) -> int:
        """Number of rules in it."""
        return sum(each.effect is not None for _, each in self.walk())


@final
@attrs.frozen(kw_only=True)
class PolicySet(Element):
    """Policies and how their results become one: what stands in one file (POL-08).

    Attributes:
        version: Its author's name for this version of it.
        update: When its author changed it last, as text.
        source: The file it came from, or its sender.
        document: It, as it was read.
    """

    version: str = ""
    update: str = ""
    source: str = attrs.field(default="", eq=False)
    document: JsonObject = attrs.field(factory=dict, eq=False, repr=False)


@attrs.frozen(kw_only=True)
class Book:
    """All that a node judges by at one moment.

    Attributes:
        sets: In the order in which they were given.
        combining: How their results become one.
        default: What happens to a message that nothing applies to (POL-15).
        version: Counts up with each change (POL-03).
    """

    sets: tuple[PolicySet, ...] = ()
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    default: Result = Result.PERMIT
    version: int = 1

    def set_of(self, name: str) -> PolicySet | None:
        """Return the set of a name."""
        return next((each for each in self.sets if each.id == name), None)


def in_order(elements: Iterable[Element]) -> list[Element]:
    """Return elements in the order of their priorities."""
    return sorted(elements, key=attrgetter("priority"))
