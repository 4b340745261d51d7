"""The steps that a stub in a sandbox reports, compared with its tables (OBS-06)."""

from typing import Final

from fsm.engine import Entity, Step
from fsm.machines.stub_connection import (
    NODE_LINK,
    STUB_CONNECTION,
    LinkState,
    LinkTrigger,
    State,
    Trigger,
)
from fsm.table import UndeclaredTransitionError

_TALKING: Final = frozenset({LinkState.RENEWING, LinkState.OPEN, LinkState.PINGING})
"""While the session is open."""

_RESTS: Final = {
    State.CREATED: Trigger.CONNECT_IMPOSSIBLE,
    State.IN_PROGRESS: Trigger.ESTABLISH_FAILED,
    State.LIVE: Trigger.CLOSED,
}
"""The last step of a connection whose sandbox has ended."""


class StubMirror:
    """Repeats the reported steps of an untrusted stub on the tables.

    Args:
        stub: Its address.
    """

    def __init__(self, stub: str) -> None:
        self._connection = Entity(STUB_CONNECTION, stub)
        self._link = Entity(NODE_LINK, stub)

    @property
    def state(self) -> State | None:
        """The state of the stub's connection; None: not begun."""
        state = self._connection.state
        return None if state is None else State(state)

    def follow(self, machine: str, cause: str, target: str, why: str) -> Step:
        """Take a step that the stub reports.

        Args:
            machine: Name of the machine.
            cause: The trigger.
            target: The new state.
            why: Reason, for the trace.

        Raises:
            UndeclaredTransitionError: No row of the table leads there.
        """
        entity = self._link if machine == NODE_LINK.name else self._connection
        if machine != entity.table.name or cause not in set(entity.table.triggers):
            raise _refused(entity, cause)
        step = entity.step(entity.table.triggers(cause), why)
        if step.new != target:
            raise _refused(entity, cause)
        return step

    def rest(self, why: str) -> list[Step]:
        """End the link, then the connection, of a stub whose sandbox has ended."""
        steps: list[Step] = []
        if self._link.state in _TALKING:
            steps.append(self._link.step(LinkTrigger.LOST, why))
        if not self._link.may_end:
            steps.append(self._link.step(LinkTrigger.END, why))
        state = self.state
        trigger = None if state is None else _RESTS.get(state)
        return steps if trigger is None else [*steps, self._connection.step(trigger, why)]


def _refused(entity: Entity, cause: str) -> UndeclaredTransitionError:
    return UndeclaredTransitionError(entity.table.name, entity.key, entity.state, cause)
