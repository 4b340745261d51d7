"""Machines with one flaw each, made from the declared ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from random import Random

import attrs

from fsm.machine_list import MACHINES
from fsm.table import ALWAYS, Guard, Origin, Table, Transition


@attrs.frozen
class Mutant:
    """A machine with one flaw.

    Attributes:
        operator: What sort of flaw.
        about: The row, state or deadline.
        changes: To the table; a table that contradicts itself is refused by `table`.
    """

    machine: str
    operator: str
    about: str
    changes: Mapping[str, object] = attrs.field(eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.machine}: {self.operator} {self.about}"

    def table(self) -> Table:
        """The table with the flaw.

        Raises:
            SpecError: It cannot be built.
        """
        return attrs.evolve(MACHINES[self.machine], **self.changes)


Found = Iterator[tuple[str, Mapping[str, object]]]


def _replaced(table: Table, old: Transition, *new: Transition) -> Mapping[str, object]:
    return {"rows": tuple(one for row in table.rows for one in (new if row is old else (row,)))}


def _words(row: Transition) -> str:
    return f"{row.old} {row.words} {row.target}"


def _without_row(table: Table) -> Found:
    for row in table.rows:
        yield _words(row), _replaced(table, row)


def _retargeted(table: Table) -> Found:
    for row in table.rows:
        for state in table.states:
            if state is not row.target:
                yield (
                    f"{_words(row)} to {state}",
                    _replaced(table, row, attrs.evolve(row, target=state)),
                )


def _without_deadline(table: Table) -> Found:
    for deadline in table.deadlines:
        kept = tuple(one for one in table.deadlines if one is not deadline)
        yield deadline.state.value, {"deadlines": kept}


def _without_guard(table: Table) -> Found:
    for row in table.rows:
        if row.guard != ALWAYS:
            yield _words(row), _replaced(table, row, attrs.evolve(row, guard=ALWAYS))


def _negated(table: Table) -> Found:
    for row in table.rows:
        for condition in sorted(row.guard.when | row.guard.unless):
            turned = frozenset({condition})
            guard = Guard(row.guard.when ^ turned, row.guard.unless ^ turned)
            yield (
                f"{_words(row)} in {condition}",
                _replaced(table, row, attrs.evolve(row, guard=guard)),
            )


def _swapped(table: Table) -> Found:
    for one, other in combinations(table.rows, 2):
        differ = one.trigger is not other.trigger and one.target is not other.target
        if one.source is other.source and differ:
            turned = {
                id(one): attrs.evolve(one, trigger=other.trigger),
                id(other): attrs.evolve(other, trigger=one.trigger),
            }
            rows = tuple(turned.get(id(row), row) for row in table.rows)
            yield f"{_words(one)} with {_words(other)}", {"rows": rows}


def _without_end(table: Table) -> Found:
    for state in table.states:
        if state in table.may_end:
            ends = {"may_end": table.may_end, "extension_ends": table.extension_ends}
            yield state.value, {name: kept - {state} for name, kept in ends.items()}


def _added(table: Table) -> Found:
    for source in table.states:
        for trigger in table.triggers:
            for target in table.states:
                if not table.rows_for(source, trigger):
                    row = Transition(source, trigger, target, "nowhere", origin=Origin.EXTENSION)
                    yield _words(row), {"rows": (*table.rows, row)}


OPERATORS: Mapping[str, Callable[[Table], Found]] = {
    "without the row": _without_row,
    "retargeted": _retargeted,
    "without the deadline of": _without_deadline,
    "without the guard of": _without_guard,
    "negated": _negated,
    "swapped": _swapped,
    "without the end": _without_end,
    "added": _added,
}


def mutants(names: Iterable[str] = MACHINES) -> Iterator[Mutant]:
    """Every mutant of these machines."""
    for name in names:
        for operator, vary in OPERATORS.items():
            for about, changes in vary(MACHINES[name]):
                yield Mutant(name, operator, about, changes)


def sample(seed: int, of_each: int) -> list[Mutant]:
    """Some of each operator and machine, always the same for a seed."""
    random = Random(seed)  # noqa: S311 - no secret
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants():
        groups.setdefault((mutant.machine, mutant.operator), []).append(mutant)
    return [
        mutant
        for group in groups.values()
        for mutant in random.sample(group, min(of_each, len(group)))
    ]
