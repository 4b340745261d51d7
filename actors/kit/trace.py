"""Evidence: what components report, and who keeps it."""

import json
from hashlib import blake2b
from typing import Final, TypedDict, Unpack

import orjson

from actors.kit.trace_file import open_trace
from actors.kit.tracer import NULL_TRACER, MemoryTracer, Tracer
from fsm.engine import Step
from fsm.errors import UndeclaredTransitionError
from specs.jsonvalue import Json
from specs.message import Message, instance_id, request_id
from specs.reply_code import DropReason
from specs.trace import ABSENT, Fact, Kind, Op

__all__ = [
    "NULL_TRACER",
    "MemoryTracer",
    "More",
    "Tracer",
    "Where",
    "digest",
    "drop_fact",
    "message_fact",
    "open_trace",
    "refused_fact",
    "step_fact",
]

_SECRET: Final = frozenset({"via", "auth", "token", "runtimeToken", "secret"})
"""Body keys that never count for a digest and never stand in a trace."""


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


class Where(TypedDict, total=False):
    """Where and by whom a message was handled; see `Fact`."""

    by: str
    listener: str
    stub: str
    link: str
    seq: int
    targets: int
    why: str


class More(Where, total=False):
    """What else a record of a message can tell."""

    reason: str


def message_fact(op: Op, message: Message, **more: Unpack[More]) -> Fact:
    """Say what happened to a message, without its body."""
    return Fact(
        k=Kind.MSG,
        op=op,
        mid=instance_id(message),
        ref=request_id(message) if message.is_response else None,
        type=message.type,
        id=message.id,
        from_=message.from_,
        to=message.to,
        code=message.code or None,
        digest=digest(message),
        **more,
    )


def drop_fact(message: Message, reason: DropReason, **where: Unpack[Where]) -> Fact:
    """Say that a message was not delivered, and the one reason why."""
    return message_fact(Op.DROP, message, reason=reason, **where)


def digest(message: Message) -> str:
    """Return a short hash of type, ends and body, equal at every hop of the message."""
    told = [message.type, message.from_, message.to, _told(message.body)]
    try:
        text = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # No wire would carry it: a number beyond 64 bits, text that is no Unicode.
        text = json.dumps(told, sort_keys=True).encode()
    return blake2b(text, digest_size=8).hexdigest()


def _told(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _told(part) for key, part in value.items() if key not in _SECRET}
    if isinstance(value, list):
        return [_told(part) for part in value]
    return value
