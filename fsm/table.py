"""Tables of state machines: their transitions, guards, deadlines, and checks.

A machine is declared by the rows of its table, each of which is a transition. The engine
(`fsm.engine`), the judges (`fsm.judge.replay`, the Spark job), the drawings (`fsm.drawing.draw`)
and the static check (`fsm.static_check`) read the same rows.

1. A row means: in this state, at this trigger, enter that state. `cite` names for people the
   event that has happened. `label` is the text of the original drawing.
2. An entity that does not exist is in state None, drawn `[*]`. A row with source None creates
   the entity. `may_end` lists the states in which an entity may end.
3. Transitions and ends that only the protocol pages have, not the drawings, are marked
   (`Origin.EXTENSION`, `extension_ends`).
4. A state that may not end must have a deadline, or a reason why it has none.
5. A pair (state, trigger) without a row is undeclared: the trigger is refused, not ignored.
   With guards, a pair has several rows, whose guards exclude each other. A guard consists of
   named conditions that must be true or false. It contains no code, so the exclusion can be
   checked, and an explorer can try every case. The caller states which conditions are true.
6. A table that contradicts itself cannot be built: `SpecError`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from enum import Enum, StrEnum
from itertools import combinations
from typing import Final, final

import attrs
from typing_extensions import override

from specs.errors import ProtoflyError, SpecError
from specs.limits import group, protocol
from specs.trace import ABSENT


@attrs.frozen(slots=True)
class Guard:
    """Conditions under which a row of a table applies.

    Attributes:
        when: Conditions that must be true.
        unless: Conditions that must be false.
    """

    when: frozenset[StrEnum] = frozenset()
    unless: frozenset[StrEnum] = frozenset()

    def holds(self, given: AbstractSet[str]) -> bool:
        """Return whether the guard is met if exactly the conditions `given` are true.

        The conditions may be members of the table's enum, or their texts from a file.
        """
        return self.when <= given and self.unless.isdisjoint(given)

    def excludes(self, other: "Guard") -> bool:
        """Return whether two guards can never be met at once."""
        return bool(self.when & other.unless or self.unless & other.when)

    def but_not(self, *conditions: StrEnum) -> "Guard":
        """Return this guard with the additional demand that all of `conditions` are false."""
        return attrs.evolve(self, unless=self.unless | set(conditions))

    @override
    def __str__(self) -> str:
        words = sorted(each.value for each in self.when)
        words += [f"not {each}" for each in sorted(each.value for each in self.unless)]
        return " and ".join(words)


ALWAYS: Final = Guard()
"""Guard without conditions: the row always applies to its trigger."""


def when(*conditions: StrEnum) -> Guard:
    """Return a guard that is met if all of `conditions` are true."""
    return Guard(when=frozenset(conditions))


def unless(*conditions: StrEnum) -> Guard:
    """Return a guard that is met if all of `conditions` are false."""
    return Guard(unless=frozenset(conditions))


class Origin(Enum):
    """Source of a row: the original drawing, or an extension of this project."""

    DRAWN = "drawn"
    EXTENSION = "extension"


@attrs.frozen(slots=True)
class Transition:
    """Row of a machine's table: one transition between states.

    Attributes:
        source: State before; None: the entity does not exist yet.
        trigger: The trigger.
        target: State after.
        cite: The event that has happened, or the reason for the row, as a clause for people.
        label: The text of the drawing for this transition.
        origin: DRAWN, or EXTENSION if only the protocol pages have it.
        guard: Further conditions.
    """

    source: StrEnum | None
    trigger: StrEnum
    target: StrEnum
    cite: str
    label: str = ""
    origin: Origin = Origin.DRAWN
    guard: Guard = ALWAYS

    @property
    def extension(self) -> bool:
        """True if this row is an addition to the original drawing."""
        return self.origin is Origin.EXTENSION

    @property
    def old(self) -> str:
        """The state before, as traces and drawings write it."""
        return ABSENT if self.source is None else self.source.value

    @property
    def edge(self) -> tuple[str, str]:
        """The states before and after, as traces and drawings write them."""
        return self.old, self.target.value

    @property
    def words(self) -> str:
        """The trigger and guard, as drawings write them: `changed [gap]`."""
        return f"{self.trigger} [{self.guard}]" if self.guard != ALWAYS else self.trigger.value


@attrs.frozen(slots=True)
class Deadline:
    """Time limit for staying in a state, and the trigger when the time is over.

    Attributes:
        state: The state that waits.
        limit: Name of a number of `specs.limits`; None: it waits without end.
        trigger: The trigger when the time is over; None: it waits without end.
        why: The purpose of the wait, or the reason why it may wait without end.
    """

    state: StrEnum
    limit: str | None
    trigger: StrEnum | None
    why: str

    @property
    def seconds(self) -> float | None:
        """The limit in seconds; None: no limit."""
        return None if self.limit is None else _limit(self.limit)


def _limit(name: str) -> float | None:
    """Return the value of the limit with a name, or None if no limit has this name."""
    limit = vars(protocol).get(name, vars(group).get(name))
    return None if limit is None else float(limit)


class NoCondition(StrEnum):
    """Empty enum: the conditions of a table without guards."""


_NO_ROWS: Final[tuple[Transition, ...]] = ()


@attrs.frozen(slots=True, kw_only=True, eq=False)
class Table:
    """State machine as a table of transitions. Only the same object is equal.

    Attributes:
        name: Its name in traces.
        owner: The component that keeps such entities.
        key: The form of an entity's key, such as `<own R>|<remote R>`.
        states: All states, in the order of the drawing.
        triggers: All triggers.
        conditions: The conditions of guards.
        rows: All transitions.
        may_end: States in which an entity may end.
        may_begin: States in which the trace of a process may first show an entity: the steps before
            are in the trace of another process.
        extension_ends: States of `may_end` that are no ends in the drawing.
        deadlines: One per state that may not end; others as wanted.
        meanings: One sentence for each state, for people.
        drawn_in: The drawing or page from which the table was transcribed.
        claims: Ids of the claims of `specs.claims` about this machine.
        state_of: The state of each name; None for `[*]`, which is no state.
    """

    name: str
    owner: str
    key: str
    states: type[StrEnum]
    triggers: type[StrEnum]
    conditions: type[StrEnum] = NoCondition
    rows: tuple[Transition, ...]
    may_end: frozenset[StrEnum]
    extension_ends: frozenset[StrEnum] = frozenset()
    may_begin: frozenset[StrEnum] = frozenset()
    deadlines: tuple[Deadline, ...] = ()
    meanings: Mapping[StrEnum, str] = attrs.field(factory=dict)
    drawn_in: str
    claims: tuple[str, ...] = ()
    _rows_of: Mapping[tuple[str, str], tuple[Transition, ...]] = attrs.field(init=False, repr=False)
    _deadline_of: Mapping[str, Deadline] = attrs.field(init=False, repr=False)
    state_of: Mapping[str, StrEnum | None] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        for problem in _contradictions(self):
            raise SpecError(f"table {self.name}: {problem}")
        rows_of: defaultdict[tuple[str, str], tuple[Transition, ...]] = defaultdict(tuple)
        for row in self.rows:
            rows_of[row.old, row.trigger.value] += (row,)
        object.__setattr__(self, "_rows_of", dict(rows_of))
        timed = {deadline.state.value: deadline for deadline in self.deadlines}
        object.__setattr__(self, "_deadline_of", timed)
        named = {ABSENT: None, **{state.value: state for state in self.states}}
        object.__setattr__(self, "state_of", named)

    def rows_for(self, state: str | None, trigger: str) -> tuple[Transition, ...]:
        """Return the rows for a trigger in a state; empty: the table does not allow the trigger.

        Args:
            state: The state; None or `[*]`: the entity does not exist.
            trigger: The trigger.
        """
        return self._rows_of.get((ABSENT if state is None else state, trigger), _NO_ROWS)

    def targets(self, state: str | None, trigger: str) -> tuple[StrEnum, ...]:
        """Return the states that a trigger may lead to, each once; empty: no row has the trigger.

        Args:
            state: The state; None or `[*]`: the entity does not exist.
            trigger: The trigger.
        """
        return tuple(dict.fromkeys(row.target for row in self.rows_for(state, trigger)))

    def deadline(self, state: str) -> Deadline | None:
        """Return the deadline of `state`, or None if the table has none."""
        return self._deadline_of.get(state)

    def patience(self, state: str) -> float:
        """Return the seconds that an entity may stay in `state`; infinity: no limit."""
        deadline = self._deadline_of.get(state)
        seconds = None if deadline is None else deadline.seconds
        return math.inf if seconds is None else seconds

    def drawn_edges(self) -> list[tuple[str, str]]:
        """Return the edges of the drawing as pairs of states; `[*]` stands for begin and end."""
        ends = [s for s in self.states if s in self.may_end - self.extension_ends]
        drawn = [row.edge for row in self.rows if not row.extension]
        return list(dict.fromkeys(drawn + [(end.value, ABSENT) for end in ends]))

    def extension_edges(self) -> list[tuple[str, str]]:
        """Return the edges that are additions to the original drawing."""
        ends = [(s.value, ABSENT) for s in self.states if s in self.extension_ends]
        edges = [row.edge for row in self.rows if row.extension] + ends
        drawn = set(self.drawn_edges())
        return [edge for edge in dict.fromkeys(edges) if edge not in drawn]

    def edges(self) -> list[tuple[str, str]]:
        """Return all edges: those of the original drawing, then the additions."""
        return self.drawn_edges() + self.extension_edges()


def _contradictions(table: Table) -> Iterable[str]:
    yield from _strange_words(table)
    yield from _ambiguities(table)
    yield from _bad_deadlines(table)
    if all(row.source is not None for row in table.rows):
        yield f"no initial row: no row from {ABSENT}"
    if not table.extension_ends <= table.may_end:
        yield "a state of extension_ends is missing in may_end"


def _strange_words(table: Table) -> Iterable[str]:
    named = [row.target for row in table.rows]
    named += [row.source for row in table.rows if row.source is not None]
    named += [deadline.state for deadline in table.deadlines]
    for state in [*named, *table.may_end, *table.extension_ends, *table.meanings]:
        if not isinstance(state, table.states):
            yield f"{state!r} is none of its states"
    fired = [row.trigger for row in table.rows]
    fired += [deadline.trigger for deadline in table.deadlines if deadline.trigger is not None]
    for trigger in fired:
        if not isinstance(trigger, table.triggers):
            yield f"{trigger!r} is none of its triggers"
    for condition in {each for row in table.rows for each in row.guard.when | row.guard.unless}:
        if not isinstance(condition, table.conditions):
            yield f"{condition!r} is none of its conditions"


def _ambiguities(table: Table) -> Iterable[str]:
    pairs: defaultdict[tuple[str, str], list[Guard]] = defaultdict(list)
    for row in table.rows:
        pairs[row.old, row.trigger.value].append(row.guard)
    for (state, trigger), guards in pairs.items():
        if any(not combination.excludes(other) for combination, other in combinations(guards, 2)):
            yield f"{len(guards)} rows for {trigger!r} in state {state!r}"


def _bad_deadlines(table: Table) -> Iterable[str]:
    pairs = {(row.source, row.trigger) for row in table.rows}
    for state, count in Counter(deadline.state for deadline in table.deadlines).items():
        if count > 1:
            yield f"{count} deadlines for state {state.value!r}"
    for deadline in table.deadlines:
        name = deadline.state.value
        if (deadline.limit is None) != (deadline.trigger is None):
            yield f"deadline of {name!r}: a limit and a trigger go together"
        elif deadline.limit is not None and _limit(deadline.limit) is None:
            yield f"deadline of {name!r}: no limit is named {deadline.limit!r}"
        elif deadline.trigger is not None and (deadline.state, deadline.trigger) not in pairs:
            yield f"deadline of {name!r}: no row for its trigger {deadline.trigger.value!r}"


# The errors of machines and of their drawings.


class UndeclaredTransitionError(ProtoflyError):
    """Error: no row of the table allows a transition, because of a bug here or in the peer.

    The state did not change. The host traces the refused transition; the actor's supervisor decides
    whether the actor continues.

    Attributes:
        machine: Name of the table.
        key: Key of the entity.
        state: Its state, which does not change; None: it does not exist yet.
        trigger: The refused trigger.
    """

    def __init__(self, machine: str, key: str, state: str | None, trigger: str) -> None:
        super().__init__(f"{machine} {key}: no row for '{trigger}' in state '{state or ABSENT}'")
        self.machine = machine
        self.key = key
        self.state = state
        self.trigger = trigger


@final
class UnknownMachineError(ProtoflyError, public=True):
    """Error: no machine has this name; the error names the most similar machine.

    Attributes:
        name: The unknown name.
        nearest: The first declared name that begins with the unknown one, else the most similar.
    """

    def __init__(self, name: str, known: Collection[str]) -> None:
        begun = [each for each in known if name and each.startswith(name)][:1]
        (self.nearest,) = begun or get_close_matches(name, known, n=1, cutoff=0.0)
        super().__init__(
            f"no machine is named {name!r}; the nearest is {self.nearest!r}, "
            f"all are {', '.join(known)}"
        )
        self.name = name


class CensusError(ProtoflyError):
    """Error: a census of transitions cannot be read; write the file again by a run of all tests.

    Attributes:
        line: Number of the faulty line, from 1.
        reason: The fault, as half a sentence.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line} has no step: {reason}")
        self.line = line
        self.reason = reason


class LayoutError(ProtoflyError):
    """Error: a drawing cannot be laid out; install Graphviz, or correct the graph."""
