"""What a stub in a room says of its connection, held against the machine's table (OBS-06)."""

from typing import Final, final

from fsm.engine import Entity, Step
from fsm.errors import UndeclaredTransitionError
from fsm.machines.stub_connection import STUB_CONNECTION, State, Trigger

__all__ = ["StubMirror"]

_RESTS: Final = {
    State.CREATED: Trigger.CONNECT_IMPOSSIBLE,
    State.IN_PROGRESS: Trigger.ESTABLISH_FAILED,
    State.LIVE: Trigger.CLOSED,
}
"""How the story of a stub ends whose room is no more."""


@final
class StubMirror:
    """Steps along with a stub that cannot be trusted to step by the table.

    Args:
        stub: Its address.
    """

    def __init__(self, stub: str) -> None:
        self._entity = Entity(STUB_CONNECTION, stub)

    @property
    def state(self) -> State | None:
        """Where the stub's connection stands."""
        state = self._entity.state
        return None if state is None else State(state)

    def follow(self, cause: str, target: str, why: str) -> Step:
        """Take a step that the stub says it has taken.

        Raises:
            UndeclaredTransitionError: No row of the table leads there.
        """
        if cause not in set(Trigger):
            raise self._refused(cause)
        step = self._entity.step(Trigger(cause), why)
        if step.new != target:
            raise self._refused(cause)
        return step

    def _refused(self, cause: str) -> UndeclaredTransitionError:
        entity = self._entity
        return UndeclaredTransitionError(entity.table.name, entity.key, entity.state, cause)

    def rest(self, why: str) -> Step | None:
        """Bring the story of a stub to its end whose room is no more."""
        state = self.state
        trigger = None if state is None else _RESTS.get(state)
        return None if trigger is None else self._entity.step(trigger, why)
