"""The fields of one line of a scenario file, read into a class by the types that it declares."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType, NoneType
from typing import Final, Literal, TypeVar, get_args, get_origin

import attrs

from specs.dialects.normalise import normalise
from specs.errors import BadMessageError, ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import DropReason
from specs.schema import shape
from specs.schema.field import wire_name
from specs.schema.shape import shape_of
from tests.conformance.play.script.addresses import expanded
from tests.conformance.play.script.hop import Hop, Place, read_hop, read_place
from tests.conformance.play.script.steps import LOST, MACHINE_WORDS, Drop, Key, Machine
from tests.conformance.play.script.vocabulary import (
    Address,
    HypertyUrl,
    NodeUrl,
    ObjectUrl,
    ProcessUrl,
    RuntimeUrl,
)

T = TypeVar("T")

_LONGEST: Final = 30 * 86_400
"""Seconds that may pass at once (ours); sessions are pinged all the while."""

_MOST: Final = 1_000_000
"""The largest number of a step, of a version or of addresses (ours)."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message that names the nearest known word.

    Args:
        word: The unknown word.
        known: Known words of the vocabulary.
    """
    words = sorted(map(str, known))
    alike = get_close_matches(word, words, n=1, cutoff=0.0)
    if not alike:
        return "there is none"
    return f"the nearest known is {alike[0]!r}"


def field_name(field: "attrs.Attribute[object]") -> str:
    """Return what a field is called in a file."""
    return wire_name(field).rstrip("_")


def read_fields(form: type[T], line: JsonObject) -> T:
    """Read the fields of a line, none of which may be left; a name that ends with _ is a remark.

    Args:
        form: The class of its word, whose fields are those of the line.
        line: The fields.

    Raises:
        ValueError: A field is unknown, missing or wrong; says what.
    """
    fields = {field_name(one): one for one in attrs.fields(form)}  # type: ignore[arg-type]
    for name in line:
        if name not in fields and not name.endswith("_"):
            near = nearest(name, fields)
            raise ValueError(f"unknown field {name}: {near}; end the name of a remark with _")
    values: dict[str, object] = {}
    for name, one in fields.items():
        if name in line:
            values[one.name] = _read_field(name, one, line[name])
        elif one.default is attrs.NOTHING:
            raise ValueError(f"{name} is missing")
    return form(**values)


def _read_field(name: str, field: "attrs.Attribute[object]", value: Json) -> object:
    if value is None and field.default is attrs.NOTHING and NoneType in get_args(field.type):
        return None
    kind = declared(field)
    try:
        if get_origin(kind) is Literal:
            return _chosen(kind, value)
        held = (_SHAPES.get(kind) or shape_of(kind)).check(value, name)
        meaning = _MEANINGS.get(kind)
        return held if meaning is None else meaning(held)
    except BadMessageError as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def declared(field: "attrs.Attribute[object]") -> object:
    """Return the type of a field if it is there."""
    kinds = [kind for kind in get_args(field.type) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(field.type) else field.type


def _chosen(kind: object, value: Json) -> object:
    choice = get_args(kind)
    if value not in choice:
        words = ", ".join(choice)
        raise ValueError(f"must be one of {words}; {nearest(str(value), choice)}")
    return choice[choice.index(value)]


def _pair(ends: object) -> object:
    if not isinstance(ends, tuple) or len(ends) != len(("one", "other")):
        raise ValueError("must name two")
    return ends


def _message(value: object) -> Message:
    try:
        return normalise(value if isinstance(value, dict) else {})
    except ProtoflyError as error:
        raise ValueError(f"is no message: {error}") from error


def _drop(text: object) -> str:
    """Read `loop: own stub already in via`: the reason, then words for people."""
    word = str(text).partition(":")[0].strip()
    if word not in {*DropReason, LOST}:
        raise ValueError(f"must begin with one of {', '.join(DropReason)}, {LOST}")
    return word


def _key(value: object) -> tuple[str, ...]:
    parts = value.split("|") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a text or a list of texts")
    return tuple(str(expanded(part)) for part in parts)


def _machine(word: object) -> str:
    if word not in MACHINE_WORDS:
        near = nearest(str(word), MACHINE_WORDS)
        raise ValueError(f"must name a machine, not {word!r}; {near}")
    return MACHINE_WORDS[str(word)]


_URLS: Final = (Address, RuntimeUrl, NodeUrl, ProcessUrl, HypertyUrl, ObjectUrl)
_ENDS: Final = tuple[ProcessUrl, ProcessUrl]

_SHAPES: Final[Mapping[object, shape.Shape]] = MappingProxyType(
    {
        int: shape.Whole(1, _MOST),
        float: shape.Number(0, _LONGEST),
        **dict.fromkeys(_URLS, shape.Address()),
        tuple[HypertyUrl, ...]: shape.Many(shape.Address()),
        _ENDS: shape.Many(shape.Address()),
        **dict.fromkeys((Hop, Place, Drop, Machine), shape.Text()),
        Message: shape.Free(),
        Key: shape.Anything(),
    }
)
"""Permitted values of the fields of a type, beyond the type itself."""

_MEANINGS: Final[Mapping[object, Callable[[object], object]]] = MappingProxyType(
    {
        Hop: lambda text: read_hop(str(text)),
        Place: lambda text: read_place(str(text)),
        Message: _message,
        Drop: _drop,
        Key: _key,
        Machine: _machine,
        _ENDS: _pair,
    }
)
"""What becomes of the value of a field of a type."""
