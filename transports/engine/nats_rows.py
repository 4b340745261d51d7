"""Conversion of the rows and log entries of an engine to messages of JetStream streams, and back.

A key becomes a subject: its segments are tokens, with escapes for characters that tokens of buckets
must not have. A revision or position is the number of a message in its stream. The stream of rows
is a key-value bucket for the tools of NATS. The stream of logs has as many messages of a subject as
a log has units: an entry of several units comes after fillers, which readers skip.
"""

import base64
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

import attrs
import orjson

from specs.limits.engine import LOG_LIFE, LOG_UNITS, NATS_MARK_LIFE
from transports.engine.contract import Append, Put, Row
from transports.nats.client import Request
from transports.nats.wire import Delivery, NatsError, headers

Json: TypeAlias = Mapping[str, object]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
NANO: Final = 1_000_000_000
_EXPECTED: Final = b"Nats-Expected-Last-Subject-Sequence"
_LASTS: Final = b"Nats-TTL"
_DELETION: Final = (b"KV-Operation", b"DEL")
_FILLER_MARK: Final = b"Protofly-Filler"
_FILLER: Final = headers((_FILLER_MARK, b"1"))
_MARKS: Final = (b"KV-Operation: DEL", b"KV-Operation: PURGE", b"Nats-Marker-Reason:")


def bucket_of(group: str) -> str:
    """Return the name of the bucket of a group: letters, digits, `-` and `_`."""
    escaped = re.sub(r"[^A-Za-z0-9.-]", lambda match: f"_x{ord(match[0]):X}_", group)
    return f"protofly-{escaped.replace('.', '_')}"


def _token(segment: str) -> str:
    if _PLAIN.fullmatch(segment):
        return segment
    escaped = quote(segment, safe="").replace(".", "%2E").replace("~", "%7E")
    return escaped.replace("%", "=") or "="


def _segment(escaped: str) -> str:
    return "" if escaped == "=" else unquote(escaped.replace("=", "%"))


def _tokens(segments: Iterable[str]) -> bytes:
    return ".".join(map(_token, segments)).encode()


def _rows(bucket: str) -> bytes:
    return b"$KV.%b." % bucket.encode()


def _logs(bucket: str) -> bytes:
    return b"protofly.log.%b." % bucket.encode()


def subject_of(bucket: str, key: str) -> bytes:
    """Return the NATS subject of the row with a key."""
    return _rows(bucket) + _tokens(key.split("/"))


def pattern_of(bucket: str, prefix: str) -> bytes:
    """Return the NATS subject pattern for the rows whose keys begin with a prefix."""
    root = _rows(bucket)
    return b"%b%b.>" % (root, _tokens(prefix[:-1].split("/"))) if prefix else root + b">"


def log_subject(bucket: str, log: str) -> bytes:
    """Return the NATS subject of the entries of a log."""
    return _logs(bucket) + _tokens(log.split("/"))


def log_of(bucket: str, subject: bytes) -> str:
    """Return the name of the log whose entries have a NATS subject."""
    return _key(_logs(bucket), subject)


def log_pattern(bucket: str) -> bytes:
    """Return the NATS subject pattern for the entries of all logs."""
    return _logs(bucket) + b">"


def node_subject(bucket: str, node: str) -> bytes:
    """Return the NATS subject of payloads for a node."""
    return b"protofly.%b.%b" % (bucket.encode(), _token(node).encode())


def _key(root: bytes, subject: bytes) -> str:
    name = subject.removeprefix(root).decode(errors="replace")
    if "=" not in name:
        return name.replace(".", "/")
    return "/".join(map(_segment, name.split(".")))


def put_request(bucket: str, put: Put, expected: int | None) -> Request:
    """Return the message that writes or deletes a row.

    Args:
        bucket: Name of the bucket.
        put: The write.
        expected: Number that the last message of the subject must have, which may be the marker of
            a deletion; 0: there must be none; None: any.
    """
    pairs: list[tuple[bytes, bytes]] = []
    lasts = put.lasts
    if expected is not None:
        pairs.append((_EXPECTED, b"%d" % expected))
    if put.value is None:
        pairs.append(_DELETION)
        lasts = NATS_MARK_LIFE
    if lasts is not None:
        pairs.append((_LASTS, b"%d" % math.ceil(lasts)))
    head = headers(*pairs) if pairs else b""
    return Request(subject_of(bucket, put.key), put.value or b"", head)


def row_of(bucket: str, delivery: Delivery, revision: int) -> Row:
    """Return the row in a message that a consumer delivers."""
    value = None if _is_mark(delivery.headers) else delivery.payload
    return Row(_key(_rows(bucket), delivery.subject), value, revision)


def append_requests(bucket: str, append: Append) -> list[Request]:
    """Return the messages that add an entry to a log; the last one has the payload."""
    subject = log_subject(bucket, append.log)
    fillers = [Request(subject, b"", _FILLER)] * (append.units - 1)
    return [*fillers, Request(subject, append.payload)]


_NO_MESSAGE: Final = 10037
"""Number of the error of JetStream that no message has the subject (JSNoMessageFoundErr)."""


@attrs.frozen(slots=True)
class StoredMessage:
    """A message that is stored in a JetStream stream.

    Attributes:
        number: Number of the message in the stream.
        head: Headers of the message; empty: none.
    """

    subject: bytes
    number: int
    head: bytes
    payload: bytes = attrs.field(repr=False)

    @property
    def is_filler(self) -> bool:
        """Whether the message is a filler, which only occupies a unit of a log's space."""
        return _FILLER_MARK in self.head


def stored_message(answer: Json) -> StoredMessage | None:
    """Return the message in an answer of JetStream; None: there is none.

    Raises:
        NatsError: JetStream reports another error, or the answer has another form.
    """
    error = error_of(answer)
    if error is not None and error[0] == _NO_MESSAGE:
        return None
    if error is not None:
        raise NatsError(error[1])
    message = part_of(answer, "message")
    try:
        head, payload = (base64.b64decode(str(message.get(key, ""))) for key in ("hdrs", "data"))
    except ValueError as exc:
        raise NatsError(f"a field is no base64: {exc}") from exc
    subject = str(message.get("subject")).encode()
    return StoredMessage(subject, number_in(message, "seq"), head, payload)


def stored_row(bucket: str, message: StoredMessage) -> Row:
    """Return the row in a stored message."""
    value = None if _is_mark(message.head) else message.payload
    return Row(_key(_rows(bucket), message.subject), value, message.number)


def _is_mark(head: bytes) -> bool:
    return bool(head) and any(mark in head for mark in _MARKS)


def stream_terms(bucket: str, first: int, replicas: int) -> Json:
    """Return the settings of the stream that stores the rows of a group.

    Args:
        bucket: Name of the bucket.
        first: Revision of the first row.
        replicas: Number of servers that store the stream.
    """
    return {
        "name": f"KV_{bucket}",
        "subjects": [pattern_of(bucket, "").decode()],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": 1,
        "max_age": 0,
        "num_replicas": replicas,
        "first_seq": first,
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": int(NATS_MARK_LIFE * NANO),
    }


def log_terms(bucket: str, first: int, replicas: int) -> Json:
    """Return the settings of the stream that stores the logs of a group.

    Args:
        bucket: Name of the bucket of the group.
        first: Position of the first entry.
        replicas: Number of servers that store the stream.
    """
    return {
        "name": f"LOG_{bucket}",
        "subjects": [log_pattern(bucket).decode()],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "discard_new_per_subject": True,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": LOG_UNITS,
        "max_age": int(LOG_LIFE * NANO),
        "num_replicas": replicas,
        "first_seq": first,
    }


def read_json(delivery: Delivery) -> Json:
    """Parse the JSON object in an answer of JetStream.

    Raises:
        NatsError: The payload is no JSON object.
    """
    try:
        answer = orjson.loads(delivery.payload)
    except orjson.JSONDecodeError as exc:
        raise NatsError("JetStream does not answer") from exc
    if not isinstance(answer, dict):
        raise NatsError("JetStream does not answer")
    return answer


def error_of(answer: Json) -> tuple[int, str] | None:
    """Return number and text of the error in an answer of JetStream; None: no error."""
    if "error" not in answer:
        return None
    error = part_of(answer, "error")
    return number_in(error, "err_code"), str(error.get("description", "error"))


def part_of(answer: Json, name: str) -> Json:
    """Return the object with a name in an answer of JetStream.

    Raises:
        NatsError: There is no such object.
    """
    part = answer.get(name)
    if not isinstance(part, dict):
        raise NatsError(f"JetStream answers without {name}")
    return part


def number_in(answer: Json, name: str) -> int:
    """Return the number with a name in an answer of JetStream.

    Raises:
        NatsError: There is no such number.
    """
    number = answer.get(name)
    if not isinstance(number, int):
        raise NatsError(f"JetStream answers without {name}")
    return number
