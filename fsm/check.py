"""The static check: what a table can be built with and should still not have.

A table that contradicts itself does not get this far (`fsm.table`): two rows for one
state and trigger, for instance, are refused when it is built. What is left of
nondeterminism is in the drawing: the same words on two edges out of one state.
"""

from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum, unique
from typing import Final, final

import attrs

from fsm.explore import can_end, shortest_ways
from fsm.table import Table

__all__ = ["Finding", "Rule", "check"]


@unique
class Rule(StrEnum):
    """What is looked for."""

    UNREACHABLE = "unreachable"
    DEAD_END = "dead-end"
    NONDETERMINISM = "nondeterminism"
    NO_DEADLINE = "no-deadline"
    NO_CITATION = "no-citation"
    UNUSED_TRIGGER = "unused-trigger"


@final
@attrs.frozen(slots=True)
class Finding:
    """Something a table should not have.

    Attributes:
        machine: Name of the table.
        rule: What is wrong.
        subject: The state, row or trigger.
        detail: What to think of it, as half a sentence.
    """

    machine: str
    rule: Rule
    subject: str
    detail: str


def check(table: Table) -> list[Finding]:
    """Find what is wrong with a table."""
    found: list[Finding] = []
    for rule, search in _SEARCHES.items():
        found += [Finding(table.name, rule, subject, detail) for subject, detail in search(table)]
    return found


def _unreachable(table: Table) -> Iterator[tuple[str, str]]:
    reached = shortest_ways(table)
    for state in table.states:
        if state not in reached:
            yield state.value, "no way leads to it"


def _dead_ends(table: Table) -> Iterator[tuple[str, str]]:
    released = can_end(table)
    for state in table.states:
        if state not in released:
            yield state.value, "it may not end and no way leads to a state that may"


def _nondeterminism(table: Table) -> Iterator[tuple[str, str]]:
    said: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in table.rows:
        if row.label:
            said[row.old, row.label, str(row.guard)].add(row.target.value)
    for (state, label, _), targets in said.items():
        if len(targets) > 1:
            yield state, f"{label!r} leads to {' and to '.join(sorted(targets))}"


def _no_deadline(table: Table) -> Iterator[tuple[str, str]]:
    timed = {deadline.state for deadline in table.deadlines if deadline.limit or deadline.why}
    for state in table.states:
        if state not in table.may_end | timed:
            yield state.value, "neither a deadline nor a reason to wait without end"


def _no_citation(table: Table) -> Iterator[tuple[str, str]]:
    for row in table.rows:
        if not row.cite.strip():
            yield f"{row.old} {row.trigger.value}", "the row does not say where it comes from"


def _unused_triggers(table: Table) -> Iterator[tuple[str, str]]:
    used = {row.trigger for row in table.rows}
    for trigger in table.triggers:
        if trigger not in used:
            yield trigger.value, "no row has it"


_SEARCHES: Final = {
    Rule.UNREACHABLE: _unreachable,
    Rule.DEAD_END: _dead_ends,
    Rule.NONDETERMINISM: _nondeterminism,
    Rule.NO_DEADLINE: _no_deadline,
    Rule.NO_CITATION: _no_citation,
    Rule.UNUSED_TRIGGER: _unused_triggers,
}
