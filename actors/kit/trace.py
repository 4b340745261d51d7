"""Evidence: what components report, and who keeps it."""

from typing import Unpack

from actors.kit.trace_file import open_trace
from actors.kit.trace_message import More, Ruling, Where, digest, message_fact
from actors.kit.tracer import NULL_TRACER, MemoryTracer, Tracer
from fsm.engine import Step
from fsm.errors import UndeclaredTransitionError
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import ABSENT, Fact, Kind, Op

__all__ = [
    "NULL_TRACER",
    "MemoryTracer",
    "More",
    "Ruling",
    "Tracer",
    "Where",
    "digest",
    "drop_fact",
    "message_fact",
    "open_trace",
    "refused_fact",
    "step_fact",
]


def step_fact(step: Step) -> Fact:
    """Say that an entity moved."""
    return Fact(
        k=Kind.STATE,
        op=Op.STEP,
        machine=step.machine,
        key=step.key,
        old=ABSENT if step.old is None else step.old,
        new=step.new,
        cause=step.cause,
        why=step.why or None,
    )


def refused_fact(error: UndeclaredTransitionError) -> Fact:
    """Say that an entity was asked to move as no table declares, and did not."""
    return Fact(
        k=Kind.STATE,
        op=Op.REFUSED,
        machine=error.machine,
        key=error.key,
        old=ABSENT if error.state is None else error.state,
        cause=error.trigger,
    )


def drop_fact(message: Message, reason: DropReason, **where: Unpack[Where]) -> Fact:
    """Say that a message was not delivered, and the one reason why."""
    return message_fact(Op.DROP, message, reason=reason, **where)
