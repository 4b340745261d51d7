"""Encoding and decoding of messages in frames: one JSON object in each line of a frame.

JSON is read as by RFC 8259; where that leaves a choice, as by JavaScript: of a repeated key the
last value counts, whole numbers beyond 64 bits become floating point. Anything else is refused: bad
UTF-8, NaN, numbers too large for floating point, lone surrogates.

`check_size` bounds the JSON of one message (RELIABILITY L4).

On the wire, the identity of a sender is part of the body; in memory it is part of the message. The
caller states who vouches for the sender (`Stamp`); an identity written by a peer counts only if the
caller says so.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Final

import attrs
import orjson

from specs.dialects.dialect import Dialect, emit
from specs.dialects.normalise import (
    Envelope,
    normalise,
    read_envelope,
    with_envelope,
    without_identity,
)
from specs.errors import BadMessageError
from specs.identity import IDENTITY, NOBODY, SenderIdentity, Stamp, write_sender
from specs.jsonvalue import Json, JsonObject
from specs.limits import protocol
from specs.limits.transfer import TRANSFER_PARTS
from specs.message import Message, MessageType, malformed_answer, refuse
from specs.reply_code import FIRST_CODE, FIRST_FINAL, Code

_NESTED: Final = frozenset({dict, list})

_SHORT: Final = 4 * protocol.MAX_JSON_KEYS
"""Length of JSON that is too short for an object with too many keys: a key takes four bytes."""

_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_OUTLINE: Final = bytes(each for each in range(256) if each not in b'{}[]:"')

_SHAPES: Final = 32
"""Maximum iterations of the fast check for objects with too many keys."""


def check_size(text: bytes, value: Json) -> None:
    """Refuse JSON with too much nesting, too many keys or too long a text.

    Args:
        text: The JSON as bytes; its length bounds its content, so that most messages need no
            closer examination.
        value: The same JSON as dictionaries and lists.

    Raises:
        BadMessageError: A limit is exceeded; the code is 413.
    """
    has_texts = len(text) > protocol.MAX_JSON_TEXT
    if has_texts or not (_has_few_parts(text) or _is_flat(value) or _is_small(text)):
        _check_levels(value, has_texts=has_texts)


def _has_few_parts(text: bytes) -> bool:
    """Return whether JSON is too short for too many keys, and has too few brackets to be deep."""
    return len(text) <= _SHORT and text.count(b"{") + text.count(b"[") <= protocol.MAX_JSON_DEPTH


def _is_small(text: bytes) -> bool:
    """Return whether JSON certainly has few keys and little nesting, by a fast check of its text.

    The check removes everything but brackets and colons. This takes a few passes over the text, and
    no iteration over objects.

    Args:
        text: Valid JSON.
    """
    if b"\\" in text:
        text = text.replace(b"\\\\", b"--").replace(b'\\"', b"--")
    outline = text.translate(_BRACKETS, _NO_OUTLINE).replace(b'""', b"")
    if b'"' in outline:  # of texts with a bracket or colon, one or several together
        outline = b"".join(outline.split(b'"')[::2])
    return _is_shallow(outline.replace(b":", b"")) and _has_few_keys(outline)


def _is_shallow(brackets: bytes) -> bool:
    for _ in range(protocol.MAX_JSON_DEPTH):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return True
    return False


def _has_few_keys(outline: bytes) -> bool:
    """Return whether certainly no object has too many keys, from the brackets and colons of JSON.

    Each colon is a key. In each iteration, all innermost objects with the same number of keys are
    removed at once.
    """
    if outline.count(b":") <= protocol.MAX_JSON_KEYS:
        return True
    for _ in range(_SHAPES):
        end = outline.find(b"]") + 1
        if not end:
            return True
        shape = outline[outline.rfind(b"[", 0, end) : end]
        if len(shape) > protocol.MAX_JSON_KEYS + len(b"[]"):
            return False
        outline = outline.replace(shape, b"")
    return False


def _is_flat(value: Json) -> bool:
    """Return whether the body of a message contains no objects or lists, and has few keys."""
    if not isinstance(value, dict) or len(value) > protocol.MAX_JSON_KEYS:
        return False
    for part in value.values():
        if isinstance(part, dict):
            if len(part) > protocol.MAX_JSON_KEYS or not _NESTED.isdisjoint(
                map(type, part.values())
            ):
                return False
        elif isinstance(part, list):
            return False
    return True


def _check_levels(value: Json, *, has_texts: bool) -> None:
    level = [value]
    for _ in range(protocol.MAX_JSON_DEPTH + 1):
        if has_texts:
            _check_texts(level)
        if _NESTED.isdisjoint(map(type, level)):
            # Often most values; this check needs no step for each part.
            return
        objects = [each for each in level if isinstance(each, dict)]
        if max(map(len, objects), default=0) > protocol.MAX_JSON_KEYS:
            why = f"an object has more than {protocol.MAX_JSON_KEYS} keys"
            raise BadMessageError(why, Code.TOO_LARGE)
        if has_texts:
            _check_texts(chain.from_iterable(objects))
        lists = [each for each in level if isinstance(each, list)]
        level = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
    raise BadMessageError(f"JSON is nested deeper than {protocol.MAX_JSON_DEPTH}", Code.TOO_LARGE)


def _check_texts(values: Iterable[Json]) -> None:
    for value in values:
        if isinstance(value, str) and len(value) > protocol.MAX_JSON_TEXT:
            why = f"a text is longer than {protocol.MAX_JSON_TEXT} characters"
            raise BadMessageError(why, Code.TOO_LARGE)


def check_large(text: bytes | bytearray, body: JsonObject) -> None:
    """Refuse a body in chunks with too much nesting, or too many parts.

    Its texts and objects may be larger than those of a message.

    Args:
        text: The JSON as bytes.
        body: The same JSON as dictionaries and lists.

    Raises:
        BadMessageError: A limit is exceeded; the code is 413.
    """
    _check_parts(text)
    level: list[Json] = [body]
    # The message around the body is one level.
    for _ in range(protocol.MAX_JSON_DEPTH):
        if _NESTED.isdisjoint(map(type, level)):
            return
        objects = (each for each in level if isinstance(each, dict))
        lists = (each for each in level if isinstance(each, list))
        level = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
    raise BadMessageError(f"JSON is nested deeper than {protocol.MAX_JSON_DEPTH}", Code.TOO_LARGE)


def _check_parts(text: bytes | bytearray) -> None:
    if text.count(b"{") + text.count(b"[") > TRANSFER_PARTS:
        why = f"the body has more than {TRANSFER_PARTS} opening brackets"
        raise BadMessageError(why, Code.TOO_LARGE)


def read_large(text: bytes | bytearray) -> JsonObject:
    """Read the JSON object of a body that came in chunks.

    Raises:
        BadMessageError: 400: the text is no JSON object; 413: a limit is exceeded.
    """
    # Check before its objects take memory.
    _check_parts(text)
    body = _parse(text)
    if not isinstance(body, dict):
        raise BadMessageError("a body is a JSON object")
    check_large(text, body)
    return body


_DIGEST: Final = 12
"""Characters of the digest of a bad line: enough to recognise the line in a log."""

_ROOMY: Final = 1024
"""Size in bytes from which an encoded line is copied, as orjson may allocate twice its size."""


@attrs.frozen(slots=True)
class BadLine:
    """A line that is not a message.

    Attributes:
        raw: Size and digest of the line, for traces and logs; never its text.
        answer: The refusal to send back; None: the line names no sender, or is an answer.
        replacement: Message for the requester in place of a malformed answer; None: the line is
            no final answer with readable id and addresses.
    """

    raw: str
    error: BadMessageError
    answer: Message | None = None
    replacement: Message | None = None

    @property
    def items(self) -> "tuple[Message | BadLine, ...]":
        """This object, followed by the replacement of a malformed answer, if any."""
        return (self,) if self.replacement is None else (self, self.replacement)


def decode_frame(frame: bytes, stamp: Stamp = NOBODY) -> list[Message | BadLine]:
    """Read the lines of a frame; skip blank lines; a bad line does not affect others.

    A malformed answer is followed by its replacement. All lines after the first `FRAME_MESSAGES`
    count as one bad line.

    Args:
        frame: The frame.
        stamp: Identity of the sender of its messages.
    """
    if b"\n" not in frame:
        return [*decode_items(frame, stamp)] if frame and not frame.isspace() else []
    lines = [line for line in frame.split(b"\n") if line and not line.isspace()]
    read = [item for line in lines[: protocol.FRAME_MESSAGES] for item in decode_items(line, stamp)]
    if len(lines) > protocol.FRAME_MESSAGES:
        rest = b"\n".join(lines[protocol.FRAME_MESSAGES :])
        reason = f"a frame holds more than {protocol.FRAME_MESSAGES} messages"
        read.append(BadLine(_summary(rest), BadMessageError(reason, Code.TOO_LARGE)))
    return read


def decode_items(line: bytes, stamp: Stamp = NOBODY) -> tuple[Message | BadLine, ...]:
    """Read one line; a malformed answer is followed by its replacement.

    Args:
        line: The line.
        stamp: Identity of the sender of the message.
    """
    item = decode_line(line, stamp)
    return (item,) if isinstance(item, Message) else item.items


def decode_line(line: bytes, stamp: Stamp = NOBODY) -> Message | BadLine:
    """Read one message from a line, or from a frame that is one message.

    Args:
        line: The line.
        stamp: Identity of the sender of the message.
    """
    message = read_plain(line, stamp)
    if message is not None:
        return message
    raw: Json = None
    try:
        raw = _parse(line)
        return normalise(_object(line, raw, protocol.IDENTITY_BYTES if stamp.is_read else 0), stamp)
    except BadMessageError as error:
        return _bad_line(line, raw, error)


_BEGIN: Final = b'{"id":'
_BODY: Final = b',"body":{'
_ID_END: Final = len(_BEGIN) + 17
"""Last possible index of the comma after the id."""
_ZERO, _COMMA, _END = b"0,}"

_ENVELOPE: Final = 512
"""Maximum bytes of an envelope that is cached: the text between id and body."""


def read_plain(line: bytes, stamp: Stamp) -> Message | None:
    """Read a line that has exactly the form of `encode`, as most lines have.

    Type, sender and receiver come from a cache, and only the body is parsed. The result is that of
    `decode_line`.

    Args:
        line: The line.
        stamp: Identity of the sender of the message.

    Returns:
        The message; None: the line has another form, or is no message.
    """
    comma = line.find(b",", len(_BEGIN), _ID_END)
    if comma < 0:
        return None
    digits = line[len(_BEGIN) : comma]
    # Errors elsewhere are detected when the envelope or the body is parsed.
    if not (digits.isdigit() and digits[0] != _ZERO and line.startswith(_BEGIN)):
        return None
    start = line.find(_BODY, comma, comma + _ENVELOPE)
    if start <= comma or line[-1] != _END or len(line) > protocol.MAX_MESSAGE_BYTES:
        return None
    envelope = _envelope_in(line[comma + 1 : start])
    if envelope is None:
        return None
    try:
        # The brackets of the message enclose it, so any valid JSON here is the whole body.
        body = orjson.loads(memoryview(line)[start + len(_BODY) - 1 : -1])
        if not _has_few_parts(line) and (len(line) > protocol.MAX_JSON_TEXT or not _is_flat(body)):
            check_size(line, {"body": body})
    except (orjson.JSONDecodeError, BadMessageError):
        return None
    return with_envelope(int(digits), envelope, body, stamp)


@lru_cache(maxsize=4096)
def _envelope_in(text: bytes) -> Envelope | None:
    """Parse the text between id and body; the result is cached, as peers repeat this text."""
    try:
        raw: Json = orjson.loads(b"{%b}" % text)
    except orjson.JSONDecodeError:
        return None
    return read_envelope(raw) if isinstance(raw, dict) else None


def decode_object(line: bytes, raw: JsonObject, stamp: Stamp = NOBODY) -> Message | BadLine:
    """Read the message in a JSON object that `read_object` has returned.

    Args:
        line: The line.
        raw: The parsed object.
        stamp: Identity of the sender of the message.
    """
    try:
        return normalise(raw, stamp)
    except BadMessageError as error:
        return _bad_line(line, raw, error)


def read_object(line: bytes) -> JsonObject:
    """Parse any JSON object, and check its size.

    Raises:
        BadMessageError: The line is not a JSON object, or larger than a message may be.
    """
    return _object(line, _parse(line))


def glance(line: bytes) -> JsonObject:
    """Parse a JSON object without limits, to detect the dialect of a peer; empty: no object."""
    try:
        raw = _parse(line)
    except BadMessageError:
        return {}
    return raw if isinstance(raw, dict) else {}


def _parse(line: bytes | bytearray) -> Json:
    try:
        raw: Json = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadMessageError(f"this is no JSON: {exc.msg}") from exc
    return raw


def _object(line: bytes, raw: Json, more: int = 0) -> JsonObject:
    if len(line) > protocol.MAX_MESSAGE_BYTES + more:
        raise BadMessageError(f"larger than {protocol.MAX_MESSAGE_BYTES} bytes", Code.TOO_LARGE)
    if not isinstance(raw, dict):
        raise BadMessageError("a message is a JSON object")
    check_size(line, raw)
    return raw


def _summary(line: bytes) -> str:
    return f"{len(line)} bytes, sha256 {sha256(line).hexdigest()[:_DIGEST]}"


def _bad_line(line: bytes, raw: Json, error: BadMessageError) -> BadLine:
    # A traceback refers to its stack frames, and these to the bad line: a reference cycle.
    error.__traceback__ = error.__cause__ = error.__context__ = None
    answer, replacement = _answers(_head(line) if raw is None else raw, error)
    return BadLine(_summary(line), error, answer, replacement)


_HEAD_PART: Final = re.compile(
    rb'"(id|type|from|to|code)"[ \t\r\n]*:[ \t\r\n]*(?:"([^"\\]*)"|([0-9]{1,16}))'
    rb'|"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]',
    re.DOTALL,
)
"""Matches a field of an envelope or a code with its value, any other text, or a bracket."""

_IN_BODY: Final = 2
_OPENING, _CLOSING = frozenset({b"{", b"["}), frozenset({b"}", b"]"})


def _head(line: bytes) -> JsonObject:
    """Return the fields of the envelope, and the code, that can be read in a line of invalid JSON.

    So a request with an error in its body, such as half a character, can still be answered.
    """
    head: JsonObject = {}
    depth = 0
    for part in _HEAD_PART.finditer(line, 0, protocol.MAX_MESSAGE_BYTES):
        name, text, number = part.groups()
        if part[0] in _OPENING:
            depth += 1
        elif part[0] in _CLOSING:
            depth -= 1
            if depth == 0:
                break
        elif name == b"code":
            if depth == _IN_BODY and number is not None:
                head["body"] = {"code": int(number)}
        elif name is not None and depth == 1:
            head[name.decode()] = int(number) if text is None else text.decode(errors="replace")
    return head


def _answers(raw: Json, error: BadMessageError) -> tuple[Message | None, Message | None]:
    """Return the refusal of a bad request, or else the replacement of a bad answer, if possible."""
    if not isinstance(raw, dict):
        return None, None
    to = raw.get("to")
    ends: JsonObject = {
        "id": raw.get("id"),
        "type": MessageType.READ.value,
        "from": raw.get("from"),
        "to": to[0] if isinstance(to, list) and to else to,
    }
    try:
        message = normalise(ends)
    except BadMessageError:
        return None, None
    kind = raw.get("type")
    if not isinstance(kind, str) or kind.lower() != MessageType.RESPONSE:
        return refuse(message, error.code, error.reason), None
    body = raw.get("body")
    code = body.get("code") if isinstance(body, dict) else None
    is_whole = isinstance(code, int | float) and code % 1 == 0
    is_provisional = is_whole and code in range(FIRST_CODE, FIRST_FINAL)
    return None, None if is_provisional else malformed_answer(message, error.reason)


def encode(message: Message, dialect: Dialect | None = None) -> bytes:
    """Return one message as one line, without its end.

    Args:
        message: The message.
        dialect: Dialect of a peer of the upstream implementation, which gets the body unchanged;
            None: the peer uses normal form, and the sender's identity is written into the body.

    Raises:
        BadMessageError: 500: the body is not JSON; 413: the line is larger than
            `MAX_FRAME_BYTES`. A message from a frame never raises it.
    """
    try:
        line = _plain(message) if dialect is None else orjson.dumps(emit(message, dialect))
    except TypeError as exc:
        raise BadMessageError(f"its body is no JSON: {exc}", Code.INTERNAL) from exc
    if len(line) > protocol.MAX_FRAME_BYTES:
        raise BadMessageError(f"larger than {protocol.MAX_FRAME_BYTES} bytes", Code.TOO_LARGE)
    return line if dialect is None or len(line) < _ROOMY else bytes(memoryview(line))


def unstamped_line(line: bytes, identity: SenderIdentity | None) -> bytes:
    """Return the line of a message without the identity of its sender.

    Args:
        line: The line, in normal form.
        identity: The identity of the message.
    """
    if identity is None:
        return line
    end = len(line) - len(_entry(identity))
    return b"%b}}" % line[: end - (line[end - 1] == _COMMA)]


def most_bytes(message: Message) -> int:
    """Return the maximum size of the encoded line of a message; its identity is extra."""
    identity = message.identity
    # Add the comma before the entry; its last bytes end body and message.
    return protocol.MAX_MESSAGE_BYTES + (0 if identity is None else len(_entry(identity)) - 1)


def _plain(message: Message) -> bytes:
    """Return a message in normal form as a line.

    Addresses and identity are encoded once, and copied into the lines, which is much cheaper than
    to encode them each time. The identity is the last entry of the body.
    """
    body, identity = message.body, message.identity
    text = orjson.dumps(body if IDENTITY not in body else without_identity(body))
    begin = b'{"id":%d,' % message.id
    ends = _text(message.type), _text(message.from_), _text(message.to)
    envelope = b'"type":%b,"from":%b,"to":%b,"body":' % ends
    if identity is None:
        return b"".join((begin, envelope, text, b"}"))
    comma = b"" if text == b"{}" else b","
    return b"".join((begin, envelope, text[:-1], comma, _entry(identity)))


_text: Final = lru_cache(maxsize=8192)(orjson.dumps)
"""Encodes an address, or a type, as JSON; the results are cached."""


@lru_cache(maxsize=4096)
def _entry(identity: SenderIdentity) -> bytes:
    """Return the JSON of an identity as the last field of a body, with the two final braces."""
    return orjson.dumps({IDENTITY: write_sender(identity)})[1:] + b"}"


def frames(messages: Iterable[bytes]) -> list[bytes]:
    """Join encoded messages, in order, to as few frames as the limits permit."""
    made: list[list[bytes]] = [[]]
    size = 0
    for line in messages:
        if made[-1] and (
            len(made[-1]) == protocol.FRAME_MESSAGES or size + len(line) > protocol.MAX_FRAME_BYTES
        ):
            made.append([])
            size = 0
        made[-1].append(line)
        size += len(line) + 1
    return list(map(b"\n".join, filter(None, made)))
