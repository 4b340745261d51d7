"""What is told of a session when it moves: a trace record, a line of the log, a count."""

from types import MappingProxyType
from typing import Final

import structlog

from actors.kit.tally import Tally
from actors.node.trace import Witness
from fsm.engine import Step
from fsm.machines.session import State, Trigger

__all__ = ["note"]

_log = structlog.get_logger("actors.node")

_EVENTS: Final = MappingProxyType(
    {
        Trigger.OPENED: "session opened",
        Trigger.LINK_LOST: "session detached",
        Trigger.REOPENED: "session reopened",
        Trigger.CLOSE: "session closed",
        Trigger.EXPIRE: "session expired",
    }
)
"""Names of the log's events; they stay."""

_OVER: Final = (State.CLOSED, State.EXPIRED)


def note(witness: Witness, runtime: str, step: Step) -> None:
    """Tell that the session of a runtime has moved."""
    witness.step(step)
    why = {"why": step.why} if step.why else {}
    _log.info(_EVENTS[Trigger(step.cause)], runtime=runtime, **why)
    if step.new in _OVER:
        witness.counters.count(Tally.SESSIONS_ENDED, State(step.new))
