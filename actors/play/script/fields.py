"""The fields of one line of a scenario file, read into a class by the types that it declares."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType, NoneType
from typing import Final, Literal, TypeVar, get_args, get_origin

import attrs

from actors.play.script.addresses import expanded
from actors.play.script.hop import Hop, Place, read_hop, read_place
from actors.play.script.steps import LOST, MACHINE_WORDS, Drop, Key, Machine
from actors.play.script.vocabulary import (
    Address,
    HypertyUrl,
    NodeUrl,
    ObjectUrl,
    ProcessUrl,
    RuntimeUrl,
)
from specs.addresses.address import canonical
from specs.dialects.normalise import normalise
from specs.errors import BadUrlError, ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import DropReason
from specs.schema.field import wire_name

__all__ = ["declared", "field_name", "nearest", "read_fields"]

T = TypeVar("T")

_LONGEST: Final = 30 * 86_400
"""Seconds that may pass at once (ours); sessions are pinged all the while."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word is nearest to an unknown one, as the end of a sentence.

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
    is_nullable = field.default is attrs.NOTHING and NoneType in get_args(field.type)
    if value is None and is_nullable:
        return None
    kind = declared(field)
    try:
        return _chosen(kind, value) if get_origin(kind) is Literal else _READERS[kind](value)
    except BadUrlError as error:
        raise ValueError(f"{name}: {error}") from error
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


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("must be a text")


def _texts(value: Json) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(map(str, value))
    raise ValueError("must be a list of texts")


def _pair(value: Json) -> tuple[str, ...]:
    ends = _texts(value)
    if len(ends) != len(("one", "other")):
        raise ValueError("must name two")
    return ends


def _mark(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("must be true or false")


def _whole(value: Json) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("must be a whole number from 1")
    return value


def _seconds(value: Json) -> float:
    if isinstance(value, bool | str | list | dict | None) or not 0 <= value <= _LONGEST:
        raise ValueError(f"must be a number of seconds up to {_LONGEST}: 30 days")
    return float(value)


def _object(value: Json) -> JsonObject:
    if isinstance(value, dict):
        return value
    raise ValueError("must be an object")


def _objects(value: Json) -> tuple[JsonObject, ...]:
    found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(found) != len(value):
        raise ValueError("must be a list of objects")
    return tuple(found)


def _address(value: Json) -> str:
    text = _text(value)
    canonical(text)
    return text


def _message(value: Json) -> Message:
    try:
        return normalise(_object(value))
    except ProtoflyError as error:
        raise ValueError(f"is no message: {error}") from error


def _drop(value: Json) -> str:
    """Read `loop: own stub already in via`: the reason, then words for people."""
    word = _text(value).partition(":")[0].strip()
    if word not in {*DropReason, LOST}:
        raise ValueError(f"must begin with one of {', '.join(DropReason)}, {LOST}")
    return word


def _key(value: Json) -> tuple[str, ...]:
    parts = value.split("|") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a text or a list of texts")
    return tuple(str(expanded(part)) for part in parts)


def _machine(value: Json) -> str:
    word = _text(value)
    if word not in MACHINE_WORDS:
        raise ValueError(f"must name a machine, not {word!r}; {nearest(word, MACHINE_WORDS)}")
    return MACHINE_WORDS[word]


_READERS: Final[Mapping[object, Callable[[Json], object]]] = MappingProxyType(
    {
        str: _text,
        bool: _mark,
        int: _whole,
        float: _seconds,
        Json: lambda value: value,
        JsonObject: _object,
        tuple[str, ...]: _texts,
        tuple[JsonObject, ...]: _objects,
        tuple[HypertyUrl, ...]: _texts,
        tuple[ProcessUrl, ProcessUrl]: _pair,
        Hop: lambda value: read_hop(_text(value)),
        Place: lambda value: read_place(_text(value)),
        Message: _message,
        Drop: _drop,
        Key: _key,
        Machine: _machine,
        Address: _address,
        RuntimeUrl: _address,
        NodeUrl: _address,
        ProcessUrl: _address,
        HypertyUrl: _address,
        ObjectUrl: _address,
    }
)
"""Readers of values, by the types of fields."""
