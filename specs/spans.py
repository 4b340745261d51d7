"""Messages as spans of OpenTelemetry: ids, kinds and status, live and of recorded traces.

A message and its answers are a trace of OpenTelemetry. Each process that they crossed has a span.
All ids are derived from names, so that processes that know nothing of each other agree on them.
"""

import json
import re
from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from typing import Final

import attrs

from specs.jsonvalue import Json
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS

TRACEPARENT: Final = "traceparent"
"""Key of a body: the span that a message belongs to, as W3C Trace Context writes it."""

_TRACE_ID: Final = 32
_SPAN_ID: Final = 16
_FORM: Final = re.compile("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


class SpanKind(IntEnum):
    """Part of a process in a message; source: opentelemetry-proto, trace.proto, SpanKind."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class SpanStatus(IntEnum):
    """Outcome of a message; source: trace.proto, Status.StatusCode."""

    UNSET = 0
    OK = 1
    ERROR = 2


@attrs.frozen
class SpanPlace:
    """Ids of a span and of its parent, in hexadecimal digits; `parent` is empty for a root."""

    trace: str
    span: str
    parent: str = ""


def place_of(request: str, process: tuple[str, str] | None) -> SpanPlace:
    """Return the place of the span of a process among those of a message.

    Args:
        request: Id of the message, or of the request that an answer is for.
        process: Run and name of the process; None: it sent the message, and has the root.
    """
    trace, root = _identity(_TRACE_ID, request), _identity(_SPAN_ID, request)
    if process is None:
        return SpanPlace(trace, root)
    return SpanPlace(trace, _identity(_SPAN_ID, request, *process), root)


def _identity(length: int, *names: str) -> str:
    return sha256(json.dumps(names).encode()).hexdigest()[:length]


def kind_of(*, is_root: bool, is_passed_on: bool) -> SpanKind:
    """Return the kind of a span: the sender is a client, a process that forwards is neither."""
    if is_root:
        return SpanKind.CLIENT
    return SpanKind.INTERNAL if is_passed_on else SpanKind.SERVER


def status_of(codes: Iterable[int]) -> SpanStatus:
    """Return the status of a message from the codes of its answers, in order."""
    final = [code for code in codes if code >= FIRST_FINAL]
    if not final:
        return SpanStatus.UNSET
    return SpanStatus.OK if final[-1] <= LAST_SUCCESS else SpanStatus.ERROR


def read_traceparent(value: Json) -> tuple[str, str] | None:
    """Return the ids of trace and span in a `traceparent`; None: it is invalid.

    Source: W3C Trace Context, section 3.2.
    """
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    version, trace, span, rest = match.groups()
    is_invalid = version == "ff" or (version == "00" and rest) or not int(trace, 16)
    return None if is_invalid or not int(span, 16) else (trace, span)
