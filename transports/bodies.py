"""Bodies of messages, between free JSON and the classes of `specs.body`.

Two converters with the same strict rules: a fast one, and a slow one that reads
a refused body again to say which field is wrong (MEASURED A3).
"""

import re
from typing import Final, TypeVar

import attrs
from cattrs import BaseValidationError, transform_error

from specs import body as bodies
from specs.errors import BadMessageError
from specs.field import WIRE
from specs.jsonvalue import JsonObject
from specs.message import Message
from specs.reply_code import Code
from transports.converter import make_body_converter

__all__ = ["read_body", "write_body"]

B = TypeVar("B")

MAX_REASONS: Final = 3
"""Wrong fields named in one refusal; a body may hold hundreds."""

_FAST: Final = make_body_converter(detailed_validation=False)
_SLOW: Final = make_body_converter(detailed_validation=True)

_WIRE_NAMES: Final = {
    field.name: str(field.metadata[WIRE])
    for kind in vars(bodies).values()
    if isinstance(kind, type) and attrs.has(kind)
    for field in attrs.fields(kind)
    if WIRE in field.metadata
}
"""What fields are called on the wire where that is not their own name."""


def read_body(message: Message, kind: type[B]) -> B:
    """Read a message's body; keys the class does not know are let be.

    Raises:
        BadMessageError: A field is missing, of the wrong type or out of range;
            the text names it.
    """
    try:
        return _FAST.structure(message.body, kind)
    except (BadMessageError, KeyError, TypeError, ValueError) as exc:
        raise _explained(message.body, kind, exc) from exc


def write_body(body: attrs.AttrsInstance) -> JsonObject:
    """Write a body with its names on the wire; what is `None` is left out."""
    written: JsonObject = _FAST.unstructure(body)
    return written


def _explained(body: JsonObject, kind: type[B], error: Exception) -> BadMessageError:
    """Say which field of a refused body is wrong, by reading it again slowly."""
    told = str(error)
    try:
        _SLOW.structure(body, kind)
    except BaseValidationError as exc:
        told = "; ".join(map(_placed, transform_error(exc, "body", _tell)[:MAX_REASONS]))
    code = error.code if isinstance(error, BadMessageError) else Code.MALFORMED
    return BadMessageError(told, code)


def _tell(error: BaseException, _kind: type[object] | None) -> str:
    if isinstance(error, KeyError):
        return " is missing"
    return f": {error}" if isinstance(error, BadMessageError) else f" {error}"


def _placed(text: str) -> str:
    """Turn cattrs' `what @ where` into `where what`, with the names on the wire."""
    what, _, where = text.rpartition(" @ ")
    return re.sub(r"\w+", lambda found: _WIRE_NAMES.get(found[0], found[0]), where) + what
