"""Rows as messages of a JetStream stream, which is a key-value bucket for the tools of NATS.

A key is a subject: its segments are tokens, and characters that tokens of buckets must not have
are escaped. A revision is the number of a message in the stream.
"""

import base64
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

import orjson

from specs.limits.engine import NATS_MARK_LIFE
from transports.engine.contract import Put, Row
from transports.nats.client import Request
from transports.nats.errors import NatsError
from transports.nats.wire import Delivery, headers

__all__ = [
    "NANO",
    "Json",
    "bucket_of",
    "error_of",
    "node_subject",
    "number_in",
    "part_of",
    "pattern_of",
    "put_request",
    "read_json",
    "row_of",
    "stored_row",
    "stream_terms",
    "subject_of",
]

Json: TypeAlias = Mapping[str, object]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
NANO: Final = 1_000_000_000
_EXPECTED: Final = b"Nats-Expected-Last-Subject-Sequence"
_LASTS: Final = b"Nats-TTL"
_DELETION: Final = (b"KV-Operation", b"DEL")
_MARKS: Final = (b"KV-Operation: DEL", b"KV-Operation: PURGE", b"Nats-Marker-Reason:")


def bucket_of(group: str) -> str:
    """Return the name of the bucket of a group: letters, digits, `-` and `_`."""
    escaped = re.sub(r"[^A-Za-z0-9.-]", lambda found: f"_x{ord(found[0]):X}_", group)
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


def subject_of(bucket: str, key: str) -> bytes:
    """Return the subject of a row."""
    return b"$KV.%b.%b" % (bucket.encode(), _tokens(key.split("/")))


def pattern_of(bucket: str, prefix: str) -> bytes:
    """Return the pattern of the subjects of rows whose keys begin with a prefix."""
    if not prefix:
        return b"$KV.%b.>" % bucket.encode()
    return subject_of(bucket, prefix[:-1]) + b".>"


def node_subject(bucket: str, node: str) -> bytes:
    """Return the subject of the inbox of a node."""
    return b"protofly.%b.%b" % (bucket.encode(), _token(node).encode())


def _key(bucket: str, subject: str) -> str:
    name = subject.removeprefix(f"$KV.{bucket}.")
    if "=" not in name:
        return name.replace(".", "/")
    return "/".join(map(_segment, name.split(".")))


def put_request(bucket: str, put: Put, expected: int | None) -> Request:
    """Return the request that makes a write.

    Args:
        bucket: The bucket.
        put: The write.
        expected: Number of the last message of its subject, mark of a deletion or not; 0: there is
            none; None: any.
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
    return Row(_key(bucket, delivery.subject.decode(errors="replace")), value, revision)


def stored_row(bucket: str, found: Json) -> Row:
    """Return the row in a message that was asked for."""
    message = part_of(found, "message")
    head = base64.b64decode(str(message.get("hdrs", "")))
    value = None if _is_mark(head) else base64.b64decode(str(message.get("data", "")))
    return Row(_key(bucket, str(message.get("subject"))), value, number_in(message, "seq"))


def _is_mark(head: bytes) -> bool:
    return bool(head) and any(mark in head for mark in _MARKS)


def stream_terms(bucket: str, first: int, replicas: int) -> Json:
    """Return the settings of the stream of a bucket.

    Args:
        bucket: Name of the bucket.
        first: Revision of its first row.
        replicas: How many servers keep it.
    """
    return {
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": 1,
        "num_replicas": replicas,
        "first_seq": first,
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": int(NATS_MARK_LIFE * NANO),
    }


def read_json(delivery: Delivery) -> Json:
    """Return the answer of JetStream.

    Raises:
        NatsError: It is none.
    """
    try:
        found = orjson.loads(delivery.payload)
    except orjson.JSONDecodeError as exc:
        raise NatsError("JetStream does not answer") from exc
    if not isinstance(found, dict):
        raise NatsError("JetStream does not answer")
    return found


def error_of(found: Json) -> tuple[int, str] | None:
    """Return number and sentence of the error that JetStream answers with; None: no error."""
    if "error" not in found:
        return None
    error = part_of(found, "error")
    return number_in(error, "err_code"), str(error.get("description", "error"))


def part_of(found: Json, name: str) -> Json:
    """Return an object in an answer.

    Raises:
        NatsError: There is none.
    """
    part = found.get(name)
    if not isinstance(part, dict):
        raise NatsError(f"JetStream answers without {name}")
    return part


def number_in(found: Json, name: str) -> int:
    """Return a number in an answer.

    Raises:
        NatsError: There is none.
    """
    number = found.get(name)
    if not isinstance(number, int):
        raise NatsError(f"JetStream answers without {name}")
    return number
