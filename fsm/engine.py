"""The engine: the only code that moves a state.

One `transitions.Machine` per table, shared by all entities of that machine; an entity
is a slots object that the library never registers (a registered model costs 5 KB and a
tenth of a millisecond; this one costs 72 bytes). The way to step that the library
documents takes 10 times as long as this one (`docs/decisions.md`), which is more than
routing a message takes; so what it built is compiled into a dictionary once. A test holds
both ways together.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from functools import cache
from typing import Final, TypeAlias, final

import attrs
from transitions import Machine, Transition

from fsm.errors import UndeclaredTransitionError
from fsm.table import Table
from specs.trace import ABSENT

__all__ = ["NOTHING", "Entity", "Step", "machine_of"]

NOTHING: Final[frozenset[StrEnum]] = frozenset()
"""No condition of any guard is true."""


@final
@attrs.frozen(slots=True)
class Step:
    """An entity moved: an effect of every core, traced by its host.

    Attributes:
        machine: Name of the table.
        key: Which entity.
        old: State left; None: it did not exist.
        new: State entered.
        cause: The trigger.
        why: Half a sentence for people; may be empty.
    """

    machine: str
    key: str
    old: str | None
    new: str
    cause: str
    why: str = ""


@cache
def machine_of(table: Table) -> Machine:
    """Return the library's machine of a table.

    Its guards are the library's `conditions` and `unless`: names of attributes of the
    model, in the table's words.
    """
    return Machine(
        model=None,
        states=[ABSENT, *(state.value for state in table.states)],
        initial=ABSENT,
        transitions=[
            {
                "trigger": row.trigger.value,
                "source": row.old,
                "dest": row.target.value,
                "conditions": sorted(row.guard.when),
                "unless": sorted(row.guard.unless),
            }
            for row in table.rows
        ],
        auto_transitions=False,
        name=table.name,
    )


@final
@attrs.frozen(slots=True)
class _Move:
    """A row as it is followed: where to, and what must be true."""

    cause: str
    target: str
    is_guarded: bool
    when: frozenset[str]
    unless: frozenset[str]


def _move(trigger: str, row: Transition) -> _Move:
    wanted, unwanted = (
        frozenset(str(each.func) for each in row.conditions if each.target is holds)
        for holds in (True, False)
    )
    return _Move(trigger, str(row.dest), bool(wanted or unwanted), wanted, unwanted)


_Moves: TypeAlias = Mapping[tuple[str, str], tuple[_Move, ...]]


@cache
def _compile(table: Table) -> _Moves:
    moves: dict[tuple[str, str], tuple[_Move, ...]] = {}
    for trigger, event in machine_of(table).events.items():
        for source, rows in event.transitions.items():
            moves[source, trigger] = tuple(_move(trigger, row) for row in rows)
    return moves


@final
class Entity:
    """One entity of a machine; absent until its first step.

    Attributes:
        table: Its machine.
        key: Which entity, as traces write it.
    """

    __slots__ = ("_moves", "_state", "key", "table")

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key
        self._moves = _compile(table)
        self._state = ABSENT

    @classmethod
    def recalled(cls, table: Table, key: str, state: StrEnum) -> "Entity":
        """Return the entity of which its host kept nothing but the state, to step it."""
        entity = cls(table, key)
        entity._state = state.value
        return entity

    @property
    def state(self) -> StrEnum | None:
        """The state it is in, a member of the table's states; None: absent."""
        return self.table.state(self._state)

    @property
    def may_end(self) -> bool:
        """Whether its story may stop here; an absent one has none."""
        state = self.state
        return state is None or state in self.table.may_end

    @property
    def patience(self) -> float:
        """Seconds it may stay in its state; infinity: without end."""
        return self.table.patience(self._state)

    def allows(self, trigger: StrEnum, given: AbstractSet[StrEnum] = NOTHING) -> bool:
        """Whether a row allows `trigger` now."""
        return self._row(trigger, given) is not None

    def step(self, trigger: StrEnum, why: str = "", given: AbstractSet[StrEnum] = NOTHING) -> Step:
        """Follow the row for `trigger`.

        Args:
            trigger: What happens.
            why: Half a sentence for people.
            given: Conditions of the table that are true; all others are not.

        Raises:
            UndeclaredTransitionError: There is none; the state did not move.
        """
        old = self._state
        move = self._move(trigger, given)
        left = None if old == ABSENT else old
        return Step(self.table.name, self.key, left, move.target, move.cause, why)

    def step_untold(self, trigger: StrEnum, given: AbstractSet[StrEnum] = NOTHING) -> None:
        """Follow the row for `trigger` where nobody is to be told: `step` without a `Step`.

        Raises:
            UndeclaredTransitionError: There is none; the state did not move.
        """
        self._move(trigger, given)

    def _move(self, trigger: StrEnum, given: AbstractSet[StrEnum]) -> _Move:
        move = self._row(trigger, given)
        if move is None:
            raise UndeclaredTransitionError(self.table.name, self.key, self.state, trigger.value)
        self._state = move.target
        return move

    def _row(self, trigger: StrEnum, given: AbstractSet[StrEnum]) -> _Move | None:
        # Once or twice per message of the whole process: a trigger is its own text.
        for move in self._moves.get((self._state, trigger), ()):
            if not move.is_guarded or (move.when <= given and move.unless.isdisjoint(given)):
                return move
        return None
