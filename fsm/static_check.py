"""Static check of state machine tables: finds faults that do not prevent a table from being built.

A table that contradicts itself cannot be built (`fsm.table`), for instance if it has two rows for
one state and trigger. The check also finds nondeterminism of a drawing: the same label at two edges
that leave the same state.

`check` reads a table alone. `check_fired` compares the table with the triggers that the sources of
the cores mention (the sources are parsed; nothing is imported or run). `check_taken` compares it
with a census: the kinds of transitions that test runs made, and how often. A census has one JSON
object per line: `machine`, `old`, `cause`, `given`, `new`, `times`. `given` lists the conditions
that were true; without this field no condition was true.
"""

import ast
import json
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import combinations
from typing import Final, TypeAlias

import attrs

from fsm.table import CensusError, Table, Transition
from specs.jsonvalue import JsonObject

MACHINE_USERS: Final = (
    "fsm.bus",
    "fsm.catalogue",
    "fsm.group",
    "fsm.limits",
    "fsm.p2p",
    "fsm.policy",
    "fsm.registry",
    "fsm.session",
    "fsm.sync",
    "actors",
)
"""Packages whose code fires triggers; other packages only read the machines."""


# ---- the census


@attrs.frozen(slots=True, order=True)
class TakenStep:
    """Kind of state machine transition that a run has made: one line of a census.

    Attributes:
        machine: Name of the table.
        old: State left; `[*]`: the entity did not exist.
        cause: The trigger.
        new: State entered.
        given: The conditions that were true.
    """

    machine: str
    old: str
    cause: str
    new: str
    given: frozenset[str] = attrs.field(default=frozenset(), order=sorted)


_WORDS: Final = ("machine", "old", "cause", "new")


def write_census(times: Mapping[TakenStep, int]) -> str:
    """Return a census as text: one line per kind of transition, sorted."""
    lines = (json.dumps(_object(step, times[step]), ensure_ascii=False) for step in sorted(times))
    return "".join(f"{line}\n" for line in lines)


def read_census(lines: Iterable[str]) -> frozenset[TakenStep]:
    """Return the kinds of transitions that a census lists.

    Raises:
        CensusError: A line has another form.
    """
    return frozenset(_read(line, number) for number, line in enumerate(lines, start=1))


def _object(step: TakenStep, times: int) -> JsonObject:
    words: JsonObject = {name: getattr(step, name) for name in _WORDS}
    return words | {"given": [*sorted(step.given)], "times": times}


def _read(line: str, number: int) -> TakenStep:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise CensusError(number, "it is no JSON") from exc
    if not isinstance(entry, dict):
        raise CensusError(number, "it is no JSON object")
    machine, old, cause, new = (_word(entry, name, number) for name in _WORDS)
    given = entry.get("given", [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise CensusError(number, "given is no list of texts")
    return TakenStep(machine, old, cause, new, frozenset(given))


def _word(entry: Mapping[str, object], name: str, number: int) -> str:
    word = entry.get(name)
    if not isinstance(word, str):
        raise CensusError(number, f"{name} is no text")
    return word


# ---- sources of cores


_Names: TypeAlias = dict[str, str]


def mentions(source: str) -> frozenset[str]:
    """Return the dotted names that a Python source uses, resolved through its imports.

    After `from fsm.machines.session import Trigger as T`, a use of `T.CLOSE` is
    `fsm.machines.session.Trigger.CLOSE`. Names in a comment, a text or an import alone are not
    used.

    Raises:
        SyntaxError: The source is no Python.
    """
    tree = ast.parse(source)
    imported: _Names = {}
    for node in ast.walk(tree):
        imported |= _imported_names(node)
    used = (_spelled_out(node, imported) for node in ast.walk(tree))
    return frozenset(name for name in used if name)


def dotted_name(member: StrEnum) -> str:
    """Return the full name of an enum's member, in the form that `mentions` returns."""
    return f"{type(member).__module__}.{type(member).__qualname__}.{member.name}"


def _imported_names(node: ast.AST) -> _Names:
    match node:
        case ast.ImportFrom(module=str(module), names=names):
            return {name.asname or name.name: f"{module}.{name.name}" for name in names}
        case ast.Import(names=names):
            return dict(_bound_name(name) for name in names)
        case _:
            return {}


def _bound_name(name: ast.alias) -> tuple[str, str]:
    # `import a.b` binds `a`; `import a.b as c` binds all of it.
    root = name.name.partition(".")[0]
    return (name.asname, name.name) if name.asname else (root, root)


def _spelled_out(node: ast.AST, imported: _Names) -> str:
    if not isinstance(node, ast.Attribute):
        return ""
    root, *rest = _parts(node)
    return ".".join((imported[root], *rest)) if root in imported else ""


def _parts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Attribute(value=value, attr=attr):
            yield from _parts(value)
            yield attr
        case ast.Name(id=name):
            yield name
        case _:
            yield ""  # the result of a call or the like, not an imported name


# ---- the check


def shortest_paths(table: Table) -> Mapping[StrEnum | None, tuple[Transition, ...]]:
    """Return the shortest sequence of transitions from `[*]` (None) to every reachable state."""
    paths: dict[StrEnum | None, tuple[Transition, ...]] = {None: ()}
    waiting: deque[StrEnum | None] = deque([None])
    while waiting:
        state = waiting.popleft()
        for row in table.rows:
            if row.source is state and row.target not in paths:
                paths[row.target] = (*paths[state], row)
                waiting.append(row.target)
    return paths


def can_end(table: Table) -> frozenset[StrEnum]:
    """Return the states from which an entity can reach an end; states that may end are included."""
    states = set(table.may_end)
    while True:
        more = {row.source for row in table.rows if row.target in states and row.source}
        if more <= states:
            return frozenset(states)
        states |= more


class Rule(StrEnum):
    """Rule that the static check enforces."""

    UNREACHABLE = "unreachable"
    DEAD_END = "dead-end"
    NONDETERMINISM = "nondeterminism"
    NO_DEADLINE = "no-deadline"
    NO_CITATION = "no-citation"
    UNUSED_TRIGGER = "unused-trigger"
    INCOMPLETE_GUARD = "incomplete-guard"
    NEVER_FIRED = "never-fired"
    NEVER_REPORTED = "never-reported"
    NEVER_TAKEN = "never-taken"
    NOT_DECLARED = "not-declared"


@attrs.frozen(slots=True)
class Finding:
    """Violation of a rule by a table, as the check reports it.

    Attributes:
        machine: Name of the table.
        rule: The rule that is broken.
        subject: The state, row, trigger or condition.
        detail: An explanation, as half a sentence.
    """

    machine: str
    rule: Rule
    subject: str
    detail: str


def check(table: Table) -> list[Finding]:
    """Return the violations that can be found in a table alone."""
    faults: list[Finding] = []
    for rule, search in _SEARCHES.items():
        faults += [Finding(table.name, rule, subject, detail) for subject, detail in search(table)]
    return faults


def check_fired(table: Table, mentioned: AbstractSet[str]) -> list[Finding]:
    """Return the triggers and conditions of a table that no core's source mentions.

    Args:
        table: The machine.
        mentioned: The names that the cores' sources use (`mentions`).
    """
    missing = [trigger for trigger in table.triggers if dotted_name(trigger) not in mentioned]
    unreported = [
        condition for condition in table.conditions if dotted_name(condition) not in mentioned
    ]
    return [
        *(Finding(table.name, Rule.NEVER_FIRED, each, "no core fires it") for each in missing),
        *(
            Finding(table.name, Rule.NEVER_REPORTED, each, "no core reports it")
            for each in unreported
        ),
    ]


def check_taken(table: Table, steps: Iterable[TakenStep]) -> list[Finding]:
    """Return the rows that no recorded transition followed, and transitions that no row allows.

    Args:
        table: The machine.
        steps: The steps; those of other machines are ignored.
    """
    taken = [step for step in steps if step.machine == table.name]
    findings = [
        Finding(table.name, Rule.NEVER_TAKEN, f"{row.old} {row.words}", "no test ever took it")
        for row in table.rows
        if not any(_follows(step, row) for step in taken)
    ]
    for step in taken:
        if not any(_follows(step, row) for row in table.rows_for(step.old, step.cause)):
            what = f"{step.old} {step.cause} {step.new}"
            findings.append(
                Finding(table.name, Rule.NOT_DECLARED, what, "taken, and no row allows it")
            )
    return findings


def check_unknown(names: Container[str], steps: Iterable[TakenStep]) -> list[Finding]:
    """Return a finding for each machine that has recorded transitions, but is not declared.

    Args:
        names: Names of the declared machines.
        steps: Steps that were taken.
    """
    unknown = dict.fromkeys(step.machine for step in steps if step.machine not in names)
    why = "steps of it were taken, and no machine has that name"
    return [Finding(name, Rule.NOT_DECLARED, "machine", why) for name in unknown]


def _follows(step: TakenStep, row: Transition) -> bool:
    same = (step.old, step.cause, step.new) == (row.old, row.trigger.value, row.target.value)
    return same and row.guard.holds(step.given)


def _unreachable(table: Table) -> Iterator[tuple[str, str]]:
    reached = shortest_paths(table)
    for state in table.states:
        if state not in reached:
            yield state.value, "no path leads to it"


def _dead_ends(table: Table) -> Iterator[tuple[str, str]]:
    released = can_end(table)
    for state in table.states:
        if state not in released:
            yield state.value, "it may not end and no path leads to a state that may"


def _nondeterminism(table: Table) -> Iterator[tuple[str, str]]:
    labels: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in table.rows:
        if row.label:
            labels[row.old, row.label, str(row.guard)].add(row.target.value)
    for (state, label, _), targets in labels.items():
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
            yield f"{row.old} {row.trigger.value}", "the row does not say what has happened"


def _unused_triggers(table: Table) -> Iterator[tuple[str, str]]:
    used = {row.trigger for row in table.rows}
    for trigger in table.triggers:
        if trigger not in used:
            yield trigger.value, "no row has it"


def _incomplete_guards(table: Table) -> Iterator[tuple[str, str]]:
    rows_of: defaultdict[tuple[str, str], list[Transition]] = defaultdict(list)
    for row in table.rows:
        rows_of[row.old, row.trigger.value].append(row)
    for (state, trigger), rows in rows_of.items():
        named = sorted({each for row in rows for each in row.guard.when | row.guard.unless})
        for case in _cases(named):
            if not any(row.guard.holds(case) for row in rows):
                words = [each if each in case else f"not {each}" for each in named]
                yield f"{state} {trigger}", f"no row for the case {' and '.join(words)}"


def _cases(conditions: Sequence[StrEnum]) -> Iterator[frozenset[StrEnum]]:
    for count in range(len(conditions) + 1):
        yield from map(frozenset, combinations(conditions, count))


_SEARCHES: Final = {
    Rule.UNREACHABLE: _unreachable,
    Rule.DEAD_END: _dead_ends,
    Rule.NONDETERMINISM: _nondeterminism,
    Rule.NO_DEADLINE: _no_deadline,
    Rule.NO_CITATION: _no_citation,
    Rule.UNUSED_TRIGGER: _unused_triggers,
    Rule.INCOMPLETE_GUARD: _incomplete_guards,
}
