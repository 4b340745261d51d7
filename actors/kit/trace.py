"""Evidence: what components report, and who keeps it."""

from typing import Unpack

from actors.kit.trace_file import open_trace
from actors.kit.trace_message import More, Ruling, Where, digest, message_fact
from actors.kit.trace_state import refused_fact, step_fact
from actors.kit.tracer import NULL_TRACER, MemoryTracer, Tracer
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Fact, Op

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


def drop_fact(message: Message, reason: DropReason, **where: Unpack[Where]) -> Fact:
    """Say that a message was not delivered, and the one reason why."""
    return message_fact(Op.DROP, message, reason=reason, **where)
