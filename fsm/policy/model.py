"""Rules, policies, policy sets, and all a node judges by at one moment (POL-06..POL-08)."""

from collections.abc import Sequence
from typing import TypeAlias, TypeVar, final

import attrs

from fsm.policy.condition import ALWAYS, Condition
from fsm.policy.terms import Algorithm, Direction, Moment, Result
from specs.jsonvalue import JsonObject

__all__ = ["Book", "Duties", "Policy", "PolicySet", "Rule", "Scope", "Task", "in_order"]


@final
@attrs.frozen
class Task:
    """Something to be done along with a decision (POL-13).

    Attributes:
        do: What: `log`, `count`, `stamp`; what the node does not know, it cannot do.
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


@final
@attrs.frozen(kw_only=True)
class Scope:
    """What rules, policies and sets have in common.

    Attributes:
        id: Its name among its neighbours.
        target: To which messages it applies at all.
        direction: Likewise (POL-17).
        priority: Its place among its neighbours, the smallest first; those with the
            same stand in the order of the document (C-61).
        duties: What is to be done along with its decisions.
    """

    id: str
    target: Condition = ALWAYS
    direction: Direction = Direction.BOTH
    priority: float = 0
    duties: Duties = attrs.field(factory=dict)


@final
@attrs.frozen(kw_only=True)
class Rule:
    """What happens to messages that a condition describes (POL-06).

    Attributes:
        effect: Permit or deny.
        reason: Half a sentence for whoever is refused; empty: none is given.
    """

    scope: Scope
    effect: Result
    condition: Condition = ALWAYS
    reason: str = ""


@final
@attrs.frozen(kw_only=True)
class Policy:
    """Rules and how their results become one (POL-07)."""

    scope: Scope
    rules: tuple[Rule, ...]
    combining: Algorithm = Algorithm.DENY_OVERRIDES


@final
@attrs.frozen(kw_only=True)
class PolicySet:
    """Policies and how their results become one: what stands in one file (POL-08).

    Attributes:
        version: Its author's name for this version of it.
        update: When its author changed it last, as text.
        source: The file it came from, or who sent it.
        document: It, as it was read.
    """

    scope: Scope
    policies: tuple[Policy, ...]
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    version: str = ""
    update: str = ""
    source: str = attrs.field(default="", eq=False)
    document: JsonObject = attrs.field(factory=dict, eq=False, repr=False)

    @property
    def id(self) -> str:
        """Its name."""
        return self.scope.id


_E = TypeVar("_E", Rule, Policy, PolicySet)


@final
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
        return next((one for one in self.sets if one.id == name), None)


def in_order(elements: Sequence[_E]) -> list[_E]:
    """Return elements in the order of their evaluation (C-61)."""
    return sorted(elements, key=lambda one: one.scope.priority)
