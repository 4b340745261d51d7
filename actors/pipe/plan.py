"""Data exchanged by a sandbox process and its host: pipe messages, sandbox plan, and code."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Annotated, Final, TypeAlias, final

import attrs
import orjson
import trio

from specs.errors import BadMessageError, ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import ANSWER_WITHIN_MOST, MAX_FRAME_BYTES, MAX_ID
from specs.limits.transfer import SANDBOX_TRANSFER_BYTES, TRANSFER_MOST
from specs.schema.field import add_checks, wire
from specs.schema.shape import Number, Whole
from transports.bodies import read_object, write_body
from transports.link import Link

# The errors between a sandbox process and its host.


class PipeError(ReasonError):
    """The other side of the pipe broke the protocol; the sandbox must end."""

    summary = "the sandbox's pipe is misused"


@final
class SandboxError(ReasonError, public=True):
    """A sandbox process, or the component in it, could not be started."""

    summary = "no sandbox"


@final
class SandboxEndedError(ReasonError, public=True):
    """A sandbox process ended although nobody requested it."""

    summary = "its sandbox has ended"


# Messages of the pipe of a sandbox: a line of JSON, perhaps followed by text.

MORE: Final = "more"
"""Text of each part of a divided frame except the last."""

_HEAD_BYTES: Final = 16_384
"""Maximum number of bytes of the JSON line of a pipe message."""

_PART_BYTES: Final = MAX_FRAME_BYTES - _HEAD_BYTES


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


@attrs.frozen(slots=True)
class PipeMessage:
    """Message between a sandbox process and its host.

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
        """Approximate size in bytes, by which queues are limited."""
        return len(self.rest) + 64

    def get(self, name: str) -> str:
        """Return the text of a field; empty if the field is missing or no text."""
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
    """Parse a frame of the pipe to a message.

    Raises:
        PipeError: The frame is invalid; the pipe must be closed.
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


Spawn: TypeAlias = Callable[[str], AbstractAsyncContextManager[Link]]
"""Opens a sandbox and yields the host's end of its pipe; the argument is what logs call it.

When the context is left, nothing of the sandbox runs any more, for any of its actions.

Raises:
    SandboxError: There is none to be had; raised on entering.
"""

TokenSource: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns a token that opens one session at a node; None: no token is available."""


async def nothing() -> str | None:
    """Return no token, for nodes that require no login."""
    await trio.lowlevel.checkpoint()
    return None


class ContentsKind(StrEnum):
    """Kinds of components that run in a sandbox."""

    NODE_STUB = "node-stub"
    """Our own stub to a message node."""

    PACKAGE = "package"
    """A stub from a package; the archive of the package follows the plan, in parts."""

    PROGRAM = "program"
    """A hyperty of the application."""

    HYPERTY = "hyperty"
    """A hyperty from a package; the archive of the package follows the plan, in parts."""


@attrs.frozen(field_transformer=add_checks)
class Contents:
    """Component that a sandbox runs, with its options.

    Attributes:
        entry: Class or factory of the component, as `module:name`; empty for our own stub.
        options: Settings that are passed to the component.
    """

    kind: Annotated[str, ContentsKind] = attrs.field(metadata=wire("is"))
    entry: str
    options: JsonObject

    @property
    def is_packaged(self) -> bool:
        """True if the archive of a package follows the plan."""
        return self.kind in {ContentsKind.PACKAGE, ContentsKind.HYPERTY}

    @property
    def is_hyperty(self) -> bool:
        """True if the component is a hyperty, not a stub."""
        return self.kind in {ContentsKind.PROGRAM, ContentsKind.HYPERTY}


NODE_STUB: Final = Contents(ContentsKind.NODE_STUB, "", {})
"""Our own stub to a message node."""


@attrs.frozen(field_transformer=add_checks)
class SandboxPlan:
    """Description of a sandbox and its component, which the host sends to the new process.

    Attributes:
        runtime: Whose session a stub opens: a runtime, or a node.
        domain: The domain a stub's link leads to; that of a hyperty.
        endpoints: The only places it may dial, as `transports.urls` writes them.
        session: Token of a session that an earlier stub had, to come back to.
        hops: Whether the host wants records of messages.
        largest_body: Bytes that a body of a hyperty may have, in chunks.
        answer_within: Seconds that handlers of a hyperty may take; None: as long as they like.
    """

    url: str
    runtime: str
    domain: str
    contents: Contents
    endpoints: tuple[str, ...]
    session: str | None = attrs.field(repr=False)
    ids: Annotated[int, Whole(0, MAX_ID)]
    hops: bool
    largest_body: Annotated[int, Whole(0, TRANSFER_MOST)] = attrs.field(
        default=SANDBOX_TRANSFER_BYTES, metadata=wire("largestBody")
    )
    answer_within: Annotated[float, Number(0.0, ANSWER_WITHIN_MOST)] | None = attrs.field(
        default=None, metadata=wire("answerWithin")
    )


def write_plan(plan: SandboxPlan) -> JsonObject:
    """Write a plan as fields of a message of the pipe."""
    return write_body(plan)


def read_plan(fields: JsonObject) -> SandboxPlan:
    """Read a plan from the fields of a message of the pipe.

    Raises:
        PipeError: It is no plan.
    """
    try:
        return read_object(fields, SandboxPlan, "the plan")
    except BadMessageError as exc:
        raise PipeError(exc.reason) from exc


# ---- code


@attrs.frozen
class SandboxCode:
    """Modules and files that a sandbox process may import besides Python's standard library.

    Attributes:
        own: Modules of ours, or `module:name`, to import before confinement.
        readable: Files and folders of installed distributions.
        places: The folders in which these are installed.
        archive: A zip archive of sources; empty if there are none.
    """

    own: tuple[str, ...]
    readable: tuple[str, ...]
    places: tuple[str, ...]
    archive: bytes = attrs.field(default=b"", repr=False)


def write_code(code: SandboxCode, host: int) -> bytes:
    """Encode the importable code, which a sandbox process reads before its plan.

    Args:
        code: What it may import.
        host: The process that must outlive it.
    """
    head = {"host": host, "own": code.own, "readable": code.readable, "places": code.places}
    return orjson.dumps(head) + b"\n" + code.archive


def read_code(text: bytes) -> tuple[SandboxCode, int]:
    """Decode the importable code of a sandbox, and the process id of its host."""
    line, _, archive = text.partition(b"\n")
    head = orjson.loads(line)
    own, readable, places = (tuple(head[name]) for name in ("own", "readable", "places"))
    return SandboxCode(own, readable, places, archive), head["host"]
