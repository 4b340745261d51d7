"""Engine of the state machines: the only code that changes a state.

Each table has one `transitions.Machine`, built once from its rows. All entities of that machine
share it, as do the models of applications (`fsm.machine`). An entity is a small object that the
library never registers: a registered model needs 4.6 KB, an entity 72 bytes. A transition uses the
library's own trigger, which takes 8.7 us.

The machines of `PER_MESSAGE` make transitions for every message of the process; 8.7 us would be as
much as all other processing of the message. Their entities look up transitions in a dictionary that
is compiled from the same `Machine`, in 0.9 us. A test compares both methods on every machine.

A transition of an entity runs no callback, whatever an application has registered on the shared
machine. Callbacks run for the models of applications only.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import attrs
from transitions import EventData, Machine, MachineError, Transition
from typing_extensions import override

from fsm.table import Table, UndeclaredTransitionError
from specs.trace import ABSENT

if TYPE_CHECKING:
    from transitions.core import Callback


NOTHING: Final[frozenset[StrEnum]] = frozenset()
"""Empty set of conditions: no condition of any guard is true."""

PER_MESSAGE: Final = frozenset({"transaction", "observer_copy"})
"""Machines that make transitions for every message.

`transaction` makes two for each request at each bus, `observer_copy` one for each change of an
object. All others make transitions only when something begins or ends.
"""


@attrs.frozen(slots=True)
class Step:
    """Transition of an entity from state to state, which its host writes to the trace.

    Attributes:
        machine: Name of the table.
        key: Key of the entity.
        old: State left; None: the entity did not exist.
        new: State entered.
        cause: The trigger.
        why: The reason for people, as half a sentence; may be empty.
    """

    machine: str
    key: str
    old: str | None
    new: str
    cause: str
    why: str = ""


@attrs.frozen(slots=True)
class _Holds:
    """Condition of a guard, as a function that the library calls."""

    condition: str

    def __call__(self, event: EventData) -> bool:
        """Return whether the condition is among those that the caller gave as true."""
        return self.condition in event.kwargs.get("given", NOTHING)


class _Model:
    """Object that holds the state of an entity while the library makes one transition."""

    __slots__ = ("state",)

    def __init__(self, state: str) -> None:
        self.state = state


class _Shared(Machine):
    """The library's machine of a table; callbacks run only for an application's models."""

    @override
    def callbacks(self, funcs: "Iterable[Callback]", event_data: EventData) -> None:
        if type(event_data.model) is not _Model:
            super().callbacks(funcs, event_data)

    @override
    def callback(self, func: "Callback", event_data: EventData) -> None:
        # The states name all possible callbacks; a model need not have them.
        if not isinstance(func, str) or hasattr(event_data.model, func):
            super().callback(func, event_data)


@cache
def machine_of(table: Table) -> Machine:
    """Return the `transitions.Machine` of a table, built once.

    A state names the callbacks `on_enter_<state>` and `on_exit_<state>`, with `_` for each hyphen.
    A guard reads its conditions from the argument `given` of the trigger.
    """
    return _Shared(
        model=None,
        states=[ABSENT, *map(_state, table.states)],
        initial=ABSENT,
        transitions=[
            {
                "trigger": row.trigger.value,
                "source": row.old,
                "dest": row.target.value,
                "conditions": [_Holds(each.value) for each in sorted(row.guard.when)],
                "unless": [_Holds(each.value) for each in sorted(row.guard.unless)],
            }
            for row in table.rows
        ],
        auto_transitions=False,
        send_event=True,
        name=table.name,
    )


def _state(state: StrEnum) -> dict[str, str]:
    word = state.value.replace("-", "_")
    return {"name": state.value, "on_enter": f"on_enter_{word}", "on_exit": f"on_exit_{word}"}


Take: TypeAlias = Callable[[str, StrEnum, AbstractSet[StrEnum]], str | None]
"""Function of a state, a trigger and the true conditions; returns the new state, None: no row."""


@cache
def _take_of(table: Table) -> Take:
    """Return the function that computes transitions for the entities of a machine."""
    return (by_lookup if table.name in PER_MESSAGE else by_trigger)(machine_of(table))


def by_trigger(machine: Machine) -> Take:
    """Return a function that computes transitions by the library's own trigger."""
    events = machine.events

    def take(state: str, trigger: StrEnum, given: AbstractSet[StrEnum]) -> str | None:
        model = _Model(state)
        event = events.get(trigger)
        try:
            is_taken = event is not None and event.trigger(model, given=given)
        except MachineError:
            return None
        return model.state if is_taken else None

    return take


_Move: TypeAlias = tuple[str, frozenset[str], frozenset[str]]
"""Compiled row: the new state, and the conditions that must be true and false."""


def _move(row: Transition) -> _Move:
    wanted, unwanted = (
        frozenset(
            each.func.condition
            for each in row.conditions
            if each.target is holds and isinstance(each.func, _Holds)
        )
        for holds in (True, False)
    )
    return str(row.dest), wanted, unwanted


def by_lookup(machine: Machine) -> Take:
    """Return a function that computes transitions by a dictionary, made from the machine."""
    moves = {
        (source, trigger): tuple(map(_move, rows))
        for trigger, event in machine.events.items()
        for source, rows in event.transitions.items()
    }

    def take(state: str, trigger: StrEnum, given: AbstractSet[StrEnum]) -> str | None:
        # Runs once or twice per message of the process: a trigger is used as its own text.
        for target, when, unless in moves.get((state, trigger), ()):
            if when <= given and unless.isdisjoint(given):
                return target
        return None

    return take


class Entity:
    """Instance of a state machine, with a key and a state; absent until its first transition.

    Attributes:
        table: Its machine.
        key: Its key, as traces write it.
        state: Its state, a member of the table's states; None: absent.
    """

    __slots__ = ("_member", "_state", "_take", "key", "table")
    # The state is read dozens of times for each message; this property needs no Python call.
    state: Final = cast("StrEnum | None", property(attrgetter("_member")))

    def __init__(self, table: Table, key: str) -> None:
        self.table = table
        self.key = key
        self._take = _take_of(table)
        self._state = ABSENT
        self._member: StrEnum | None = None

    @classmethod
    def restore(cls, table: Table, key: str, state: StrEnum) -> "Entity":
        """Return an entity in a given state, for a host that stores only keys and states.

        Args:
            table: The machine.
            key: Name of the entity.
            state: Its state.
        """
        entity = cls(table, key)
        entity._state, entity._member = state.value, state
        return entity

    @property
    def may_end(self) -> bool:
        """True if an entity may end in the present state; an absent entity may end, too."""
        state = self.state
        return state is None or state in self.table.may_end

    @property
    def patience(self) -> float:
        """Seconds that the entity may stay in its state; infinity: no limit."""
        return self.table.patience(self._state)

    def allows(self, trigger: StrEnum, given: AbstractSet[StrEnum] = NOTHING) -> bool:
        """Return whether the table allows a trigger in the present state.

        Args:
            trigger: The trigger.
            given: The conditions that are true.
        """
        rows = self.table.rows_for(self._state, trigger)
        return any(row.guard.holds(given) for row in rows)

    def step(self, trigger: StrEnum, why: str = "", given: AbstractSet[StrEnum] = NOTHING) -> Step:
        """Make the transition that the table declares for `trigger`, and return it.

        Args:
            trigger: The trigger.
            why: The reason for people, as half a sentence.
            given: The conditions of the table that are true; all others are false.

        Raises:
            UndeclaredTransitionError: The table declares none; the state did not change.
        """
        old = self._state
        self.step_unreported(trigger, given)
        former = None if old == ABSENT else old
        return Step(self.table.name, self.key, former, self._state, trigger.value, why)

    def step_unreported(self, trigger: StrEnum, given: AbstractSet[StrEnum] = NOTHING) -> None:
        """Make a transition like `step`, but without creating a `Step` as its result.

        Args:
            trigger: The trigger.
            given: The conditions that are true.

        Raises:
            UndeclaredTransitionError: The table declares none; the state did not change.
        """
        target = self._take(self._state, trigger, given)
        if target is None:
            raise UndeclaredTransitionError(self.table.name, self.key, self.state, trigger.value)
        self._state, self._member = target, self.table.state_of[target]
