"""The engine: the only code that moves a state.

One `transitions.Machine` per table, shared by all entities of that machine. An
entity is a slots object that the library never registers (a registered model costs
5 KB and a tenth of a millisecond; this one costs about 100 bytes) and that steps by
the library's documented `machine.events[trigger].trigger(model)`.
"""

from enum import StrEnum
from functools import cache
from typing import final

import attrs
from transitions import Machine, MachineError

from fsm.errors import UndeclaredTransitionError
from fsm.table import Table
from specs.trace import ABSENT

__all__ = ["Entity", "Step"]


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
def _compile(table: Table) -> Machine:
    return Machine(
        model=None,
        states=[ABSENT, *(state.value for state in table.states)],
        initial=ABSENT,
        transitions=[
            {"trigger": row.trigger.value, "source": row.old, "dest": row.target.value}
            for row in table.rows
        ],
        auto_transitions=False,
        name=table.name,
    )


@final
class _Model:
    """What the library sees of an entity: the attribute that it sets."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: str = ABSENT


@final
class Entity:
    """One entity of a machine; absent until its first step.

    Attributes:
        table: Its machine.
        key: Which entity, as traces write it.
    """

    __slots__ = ("_machine", "_model", "key", "table")

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key
        self._machine = _compile(table)
        self._model = _Model()

    @property
    def state(self) -> StrEnum | None:
        """The state it is in, a member of the table's states; None: absent."""
        return self.table.state(self._model.state)

    @property
    def may_end(self) -> bool:
        """Whether its story may stop here; an absent one has none."""
        state = self.state
        return state is None or state in self.table.may_end

    def allows(self, trigger: StrEnum) -> bool:
        """Whether a row allows `trigger` now."""
        return self.table.target(self._model.state, trigger.value) is not None

    def step(self, trigger: StrEnum, why: str = "") -> Step:
        """Follow the row for `trigger`.

        Raises:
            UndeclaredTransitionError: There is none; the state did not move.
        """
        old = self.state
        event = self._machine.events.get(trigger.value)
        try:
            moved = event is not None and event.trigger(self._model)
        except MachineError:
            moved = False
        if not moved:
            raise UndeclaredTransitionError(self.table.name, self.key, old, trigger.value)
        return Step(self.table.name, self.key, old, self._model.state, trigger.value, why)
