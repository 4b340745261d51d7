"""The border between an application's values and messages: nobody shares what crosses it.

A message within a runtime is handed on as it is. So that it is the same as one that crossed a
network, a value is copied on its way in, and refused where a network would refuse it; and it
is copied again for each handler that gets it, which may do with its copy what it wants.
"""

from typing import Final

import orjson

from actors.runtime.objects.live_value import unpacked
from fsm.sync.value.json import as_json
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import BODY_BYTES, MAX_JSON_DEPTH
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.codec import check_size

__all__ = ["own", "sendable"]

_PLAIN_ONLY: Final = (
    orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
"""What is none of JSON's own types is not written, but looked at more closely."""

_SPECIAL: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.FORWARD})
"""Verbs whose bodies have a form of their own on the wire."""

_DEPTH: Final = MAX_JSON_DEPTH - 1
"""Nesting of a body: the message around it is one level."""


def sendable(message: Message) -> Message:
    """Return a message of an application with a copy of its body, as every peer would read it.

    Raises:
        NotJsonError: Something in the body is no JSON, or is nested too deep; says where.
        BadMessageError: The body is too large, with code 413; or has not the form that the
            wire asks of such a message, with code 400.
    """
    body, line = _copied(message.body)
    if len(line) > BODY_BYTES:
        raise BadMessageError(f"larger than {BODY_BYTES} bytes", Code.TOO_LARGE)
    try:
        # In brackets: it is as deep as it will be in its message.
        check_size(b"[%b]" % line, [body])
    except BadMessageError:
        as_json(body, (), unpacked, _DEPTH)
        raise
    kind, ends = message.type, (message.from_, message.to)
    if message.is_response or (kind not in _SPECIAL and body.keys() == {"value"}):
        return Message(message.id, kind, *ends, body)
    raw: JsonObject = {"id": message.id, "type": kind.value, "from": ends[0], "to": ends[1]}
    return normalise({**raw, "body": body})


def own(message: Message) -> Message:
    """Return a message with a body that is its receiver's alone.

    Raises:
        JSONEncodeError: The body is no JSON: a component of the runtime has sent it.
    """
    body: JsonObject = orjson.loads(orjson.dumps(message.body))
    return Message(message.id, message.type, message.from_, message.to, body)


def _copied(body: JsonObject) -> tuple[JsonObject, bytes]:
    """Return a copy of a body, and its JSON.

    Raises:
        NotJsonError: Something in it is no JSON, or is nested too deep.
    """
    try:
        line = orjson.dumps(body, option=_PLAIN_ONLY)
    except orjson.JSONEncodeError:
        pass
    else:
        copy: JsonObject = orjson.loads(line)
        if copy == body:
            return copy, line
    # Other mappings and tuples are taken, too; what is written as something else is not: NaN.
    looked_at = as_json(body, (), unpacked, _DEPTH)
    line = orjson.dumps(looked_at)
    found: JsonObject = orjson.loads(line)
    return found, line
