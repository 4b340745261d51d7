"""Bodies of messages, between free JSON and the classes of `specs.bodies.body`.

A body is read fast; one that is refused is gone through again, to say which
field is wrong and where it stands (MEASURED A3).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, TypeVar

import attrs

from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import Code
from specs.schema.field import is_required, shape_at, wire_name
from specs.schema.shape import Many, Maybe, Part, Shape
from transports.converter import make_body_converter

__all__ = ["read_body", "read_object", "write_body"]

B = TypeVar("B", bound=attrs.AttrsInstance)

MAX_REASONS: Final = 3
"""Wrong fields named in one refusal; a body may hold hundreds."""

_CONVERTER: Final = make_body_converter()


def read_body(message: Message, kind: type[B]) -> B:
    """Read a message's body; keys the class does not know are let be.

    Raises:
        BadMessageError: A field is missing, of the wrong type or out of range;
            the text names it.
    """
    return read_object(message.body, kind, "body")


def read_object(content: JsonObject, kind: type[B], where: str) -> B:
    """Read any object that has a class; keys the class does not know are let be.

    Args:
        content: The object.
        kind: Its class.
        where: What a refusal calls it.

    Raises:
        BadMessageError: As of `read_body`.
    """
    try:
        return _CONVERTER.structure(content, kind)
    except (BadMessageError, KeyError) as exc:
        raise _explained(content, kind, exc, where) from exc


def write_body(body: attrs.AttrsInstance) -> JsonObject:
    """Write a body with its names on the wire; what is `None` is left out."""
    written: JsonObject = _CONVERTER.unstructure(body)
    return written


def _explained(body: JsonObject, kind: type[B], error: Exception, where: str) -> BadMessageError:
    """Say which fields of a refused body are wrong; if each is right, which rule it breaks."""
    faults = list(islice(_faults(body, kind, where), MAX_REASONS))
    code = error.code if isinstance(error, BadMessageError) else Code.MALFORMED
    return BadMessageError("; ".join(faults) or f"{where}: {error}", code)


def _faults(body: JsonObject, kind: type[attrs.AttrsInstance], where: str) -> Iterator[str]:
    for field in attrs.fields(kind):
        name = wire_name(field)
        if name in body:
            yield from _wrong(body[name], shape_at(field), f"{where}.{name}")
        elif is_required(field):
            yield f"{where}.{name} is missing"


def _wrong(value: Json, holds: Shape, where: str) -> Iterator[str]:
    match holds:
        case Maybe(of):
            if value is not None:
                yield from _wrong(value, of, where)
        case Part(kind) if isinstance(value, dict):
            yield from _faults(value, kind, where)
        case Many(Part() as part) if isinstance(value, list):
            for number, one in enumerate(value):
                yield from _wrong(one, part, f"{where}[{number}]")
        case _:
            yield from _said(value, holds, where)


def _said(value: Json, holds: Shape, where: str) -> Iterator[str]:
    try:
        holds.check(value, where)
    except BadMessageError as exc:
        yield exc.reason
