"""The engine: the only code that moves a state.

One `transitions.Machine` per table, shared by all entities of that machine; an entity
is a slots object that the library never registers (a registered model costs 5 KB and a
tenth of a millisecond; this one costs about 100 bytes). The way to step that the
library documents takes 7 us, which is more than routing a message takes; so what it
built is compiled into a dictionary once. A test holds both ways together.
"""

import math
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

    target: str
    when: frozenset[str]
    unless: frozenset[str]


def _move(row: Transition) -> _Move:
    wanted, unwanted = (
        frozenset(str(each.func) for each in row.conditions if each.target is holds)
        for holds in (True, False)
    )
    return _Move(str(row.dest), wanted, unwanted)


_Moves: TypeAlias = Mapping[tuple[str, str], tuple[_Move, ...]]


@cache
def _compile(table: Table) -> _Moves:
    moves: dict[tuple[str, str], tuple[_Move, ...]] = {}
    for trigger, event in machine_of(table).events.items():
        for source, rows in event.transitions.items():
            moves[source, trigger] = tuple(map(_move, rows))
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
        deadline = self.table.deadline(self._state)
        seconds = None if deadline is None else deadline.seconds
        return math.inf if seconds is None else seconds

    def allows(self, trigger: StrEnum, given: AbstractSet[StrEnum] = NOTHING) -> bool:
        """Whether a row allows `trigger` now."""
        return self._target(trigger, given) is not None

    def step(self, trigger: StrEnum, why: str = "", given: AbstractSet[StrEnum] = NOTHING) -> Step:
        """Follow the row for `trigger`.

        Args:
            trigger: What happens.
            why: Half a sentence for people.
            given: Conditions of the table that are true; all others are not.

        Raises:
            UndeclaredTransitionError: There is none; the state did not move.
        """
        target = self._target(trigger, given)
        if target is None:
            raise UndeclaredTransitionError(self.table.name, self.key, self.state, trigger.value)
        old, self._state = self._state, target
        return Step(
            self.table.name,
            self.key,
            None if old == ABSENT else old,
            target,
            trigger.value,
            why,
        )

    def _target(self, trigger: StrEnum, given: AbstractSet[StrEnum]) -> str | None:
        for move in self._moves.get((self._state, trigger.value), ()):
            if move.when <= given and move.unless.isdisjoint(given):
                return move.target
        return None
