"""Copies of message bodies at the border between applications and messages: no object is shared.

Within a runtime the message object itself is passed on. It must be equal to one that crossed a
network: so a body is copied when it is sent, refused where the network would refuse it, and
copied again for each handler that gets it.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

import orjson

from actors.runtime.hyperty.typed import Sendable, plain
from fsm.bus.chunks import too_large
from fsm.sync.value.json import as_json
from specs.addresses.address import scheme_of
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError
from specs.identity import IDENTITY, SenderIdentity
from specs.jsonvalue import JsonObject
from specs.limits.protocol import BODY_BYTES, MAX_JSON_DEPTH
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.codec import check_large, check_size

_PLAIN_ONLY: Final = (
    orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
"""Options of the JSON writer that raise an error for values of other types than JSON's."""

SPECIAL: Final = frozenset({MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.FORWARD})
"""Message types whose bodies have a special form in the wire formats."""

_DEPTH: Final = MAX_JSON_DEPTH - 1
"""Maximum nesting of a body: the message that contains the body is one level more."""


def copy_message(message: Message) -> Message:
    """Return a message of an application with a copy of its body; see `compose`."""
    head = message.id, message.type, message.from_, message.to
    return compose(head, message.body)


Head: TypeAlias = tuple[int, MessageType, str, str]
"""Id, type, sender and receiver of a message."""


def compose(
    head: Head, body: Mapping[str, Sendable], identity: SenderIdentity | None = None
) -> Message:
    """Return a message of an application with a copy of its body, as each receiver would read it.

    Args:
        head: Id, type, sender and receiver.
        body: The body.
        identity: Identity of the sender, as the bus will set it; None: not known.

    Raises:
        NotJsonError: A part of the body is not JSON, or is nested too deep; the error says where.
        BadMessageError: 413: the body is too large; 400: it does not have the form that the wire
            requires of such a message.
    """
    copy, line = _copy(cast("JsonObject", body))
    if len(line) > BODY_BYTES:
        raise BadMessageError(f"the body is larger than {BODY_BYTES} bytes", Code.TOO_LARGE)
    try:
        # In brackets, so that it is nested as deep as in its message.
        check_size(b"[%b]" % line, [copy])
    except BadMessageError:
        as_json(copy, (), plain, _DEPTH)
        raise
    number, kind, from_, to = head
    if kind is MessageType.RESPONSE or (kind not in SPECIAL and copy.keys() == {"value"}):
        return Message(number, kind, from_, to, copy, identity)
    raw: JsonObject = {"id": number, "type": kind.value, "from": from_, "to": to}
    return normalise({**raw, "body": copy})


def large_body(message: Message, kind: MessageType, limit: int) -> bytes:
    """Return the JSON of a body for its transfer in chunks, as it is too large (P2P-21).

    Args:
        message: The message, which `copy_message` has refused by 413.
        kind: Type of the request, or of the request that is answered; its chunks have it.
        limit: Bytes that the body may have.

    Raises:
        NotJsonError: A part of the body is not JSON, or is nested too deep.
        BadMessageError: 413: the body is too large for chunks as well, or has no chunks: only
            requests between hyperties and their answers have.
    """
    are_hyperties = scheme_of(message.from_) == scheme_of(message.to) == "hyperty"
    if kind in SPECIAL or message.is_event or not are_hyperties:
        raise BadMessageError(f"the body is larger than {BODY_BYTES} bytes", Code.TOO_LARGE)
    body, line = _copy({key: value for key, value in message.body.items() if key != IDENTITY})
    if len(line) > limit:
        raise too_large(limit)
    check_large(line, body)
    return line


def own_copy(message: Message) -> Message:
    """Return a message with a copy of its body, for one receiver.

    Raises:
        JSONEncodeError: The body is not JSON: a component of the runtime has sent it.
    """
    body: JsonObject = orjson.loads(orjson.dumps(message.body))
    return Message(message.id, message.type, message.from_, message.to, body, message.identity)


def _copy(body: JsonObject) -> tuple[JsonObject, bytes]:
    """Return a copy of a body, and its JSON.

    Raises:
        NotJsonError: A part of the body is no JSON, or is nested too deep.
    """
    try:
        line = orjson.dumps(body, option=_PLAIN_ONLY)
    except orjson.JSONEncodeError:
        pass
    else:
        copy: JsonObject = orjson.loads(line)
        if copy == body:
            return copy, line
    # Other mappings and tuples are permitted; values that JSON would change, such as NaN, are not.
    checked = as_json(body, (), plain, _DEPTH)
    line = orjson.dumps(checked)
    result: JsonObject = orjson.loads(line)
    return result, line


def as_body(body: Mapping[str, Sendable]) -> JsonObject:
    """Return a body of an application as one of a message; `copy_message` checks and copies it."""
    return cast("JsonObject", body)
