"""What a domain registry says: answers that fit into a message, and notifications."""

from typing import Final

import orjson

from fsm.registry.records import Answered
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType, reply_to

__all__ = ["answer_body", "answered", "notification"]

_ROOM: Final = MAX_MESSAGE_BYTES - 8192
"""Bytes of a message that the records in it may take; the rest is for its addresses."""


def answered(request: Message, said: Answered) -> Message:
    """Answer a request."""
    return reply_to(request, said.code, answer_body(said))


def answer_body(said: Answered) -> JsonObject:
    """Return the body of an answer; of a long list as much as one message holds."""
    body: JsonObject = {}
    if said.why:
        body["description"] = said.why
    value = said.value
    if isinstance(value, list):
        value, left = _fitting(value)
        if left:
            body["description"] = f"{said.why or 'OK'}; {left} more do not fit into one message"
    if value is not None:
        body["value"] = value
    return body


def notification(number: int, registry: str, url: str, status: str) -> Message:
    """Tell a change of status to whoever subscribed (M-30, C-55)."""
    return Message(
        id=number,
        type=MessageType.UPDATE,
        from_=registry,
        to=f"{url}/registration",
        body={"attribute": "status", "value": str(status)},
    )


def _fitting(found: list[Json]) -> tuple[list[Json], int]:
    """Return the first of what was found, and how many are left out."""
    room = _ROOM
    for number, one in enumerate(found):
        room -= len(orjson.dumps(one)) + 1
        if room < 0:
            return found[:number], len(found) - number
    return found, 0
