"""Messages of the pipe of a sandbox: a line of JSON, perhaps followed by text.

| word | sender | number | text | fields | rest |
|---|---|---|---|---|---|
| plan | host | | | the plan of the sandbox | |
| code | host | | `more`: it goes on | | (a part of) the archive of a package |
| ready | sandbox | | why not; empty: it is | | |
| hand | host | | | | a message for the stub |
| post | sandbox | | | | a message of the stub |
| ask | sandbox | | | | a request of the component, which awaits the one final answer |
| lost | sandbox | | | | a delivered message that no mailbox had room for |
| step | sandbox | | reporting part | a step of the stub's machine | |
| hop | sandbox | | reporting part | what happened to a message | the message |
| keep | sandbox | | token of the stub's session | | |
| fault | sandbox | | correlation id | which handler of the hyperty failed | its traceback |
| login | sandbox | which time | | | |
| login | host | which time | token to open a session with; empty: there is none | | |
| dial | sandbox | link | address | kind, subprotocol | |
| open | host | link | name of the link | subprotocol | |
| gone | host | link | why there is no link, or no longer | farewell, refused | |
| data | both | link | `more`: the frame goes on | | (a part of) a frame |
| took | both | link | | | |
| hang | sandbox | link | farewell | | |
| ping | host | | | | |
| pong | sandbox | | | what was dropped, by reason | |
| leave | host | | | | |
| left | sandbox | | | the same | |

Only the message behind `hand`, `post` and `ask`, and what a foreign node wrote into a
frame, are as large as a message or frame may be; what does not fit goes in parts.
"""

from collections.abc import Iterator
from enum import StrEnum, unique
from typing import Final, final

import attrs
import orjson

from actors.pipe.errors import PipeError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_FRAME_BYTES

MORE: Final = "more"
"""Stands with every part of a frame but the last."""

_HEAD_BYTES: Final = 16_384
"""Bytes of a line of JSON: an address and a sentence, several times over."""

_PART_BYTES: Final = MAX_FRAME_BYTES - _HEAD_BYTES


@final
@unique
class Word(StrEnum):
    """The kinds of messages of the pipe."""

    PLAN = "plan"
    CODE = "code"
    READY = "ready"
    HAND = "hand"
    POST = "post"
    ASK = "ask"
    LOST = "lost"
    STEP = "step"
    HOP = "hop"
    KEEP = "keep"
    FAULT = "fault"
    LOGIN = "login"
    DIAL = "dial"
    OPEN = "open"
    GONE = "gone"
    DATA = "data"
    TOOK = "took"
    HANG = "hang"
    PING = "ping"
    PONG = "pong"
    LEAVE = "leave"
    LEFT = "left"


@final
@attrs.frozen(slots=True)
class PipeMessage:
    """One message of the pipe.

    Attributes:
        number: Of a link of the sandbox, or of a login; 0 where none is meant. Of a token, 1:
            the session is new.
    """

    word: Word
    number: int = 0
    text: str = ""
    fields: JsonObject = attrs.field(factory=dict)
    rest: bytes = b""

    def __len__(self) -> int:
        """Bytes it takes, roughly: what queues are bounded by."""
        return len(self.rest) + 64

    def get(self, name: str) -> str:
        """Return a field that is text; empty if there is none."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def write_message(item: PipeMessage) -> bytes:
    """Write a message as a frame of the pipe."""
    head: JsonObject = {"k": item.word.value}
    if item.number:
        head["n"] = item.number
    if item.text:
        head["t"] = item.text
    if item.fields:
        head["f"] = item.fields
    return orjson.dumps(head) + b"\n" + item.rest


def read_message(frame: bytes) -> PipeMessage:
    """Read a frame of the pipe.

    Raises:
        PipeError: It is none; its sender must not be heard any more.
    """
    line, _, rest = frame.partition(b"\n")
    if len(line) > _HEAD_BYTES:
        raise PipeError(f"a line of more than {_HEAD_BYTES} bytes")
    try:
        head: Json = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise PipeError(f"a line that is no JSON: {exc.msg}") from exc
    if not isinstance(head, dict):
        raise PipeError("a line that is no object")
    return _read(head, rest)


def _read(head: JsonObject, rest: bytes) -> PipeMessage:
    word, number, text = head.get("k"), head.get("n", 0), head.get("t", "")
    fields = head.get("f", {})
    if not isinstance(word, str) or word not in set(Word):
        raise PipeError("an unknown word")
    if not isinstance(number, int) or not isinstance(text, str) or not isinstance(fields, dict):
        raise PipeError(f"{word} with fields of other types")
    return PipeMessage(Word(word), number, text, fields, rest)


def parts_of(number: int, frame: bytes, word: Word = Word.DATA) -> Iterator[PipeMessage]:
    """Split a frame of a link, or another large text, into messages.

    Args:
        number: Number of the link.
        frame: The frame or text.
        word: Kind of the messages.
    """
    for start in range(0, max(len(frame), 1), _PART_BYTES):
        part = frame[start : start + _PART_BYTES]
        is_last = start + _PART_BYTES >= len(frame)
        yield PipeMessage(word, number, "" if is_last else MORE, rest=part)
