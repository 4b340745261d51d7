"""Conversion of message bodies between JSON values and the classes of `specs.bodies`.

cattrs reads and writes the fields by their names on the wire. The classes check their values
themselves, so values are passed unchanged; only objects with a class of their own are read
first. A refused body is read a second time, to name the wrong field and its position (MEASURED A3).
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias, TypeVar, cast

import attrs
from cattrs.fns import identity
from cattrs.gen import (  # type: ignore[attr-defined] # cattrs forgot to export the first
    AttributeOverride,
    make_dict_structure_fn,
    make_dict_unstructure_fn,
    override,
)
from cattrs.preconf.orjson import OrjsonConverter, make_converter

from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import Code
from specs.schema.field import is_required, shape_at, wire_name
from specs.schema.shape import Anything, Free, Many, Maybe, Part, Shape

_Read: TypeAlias = Callable[[object, type[object]], object]
_Write: TypeAlias = Callable[[object], object]
_Class: TypeAlias = type[attrs.AttrsInstance]


def make_body_converter() -> OrjsonConverter:
    """Make a converter for the classes of `specs.bodies`.

    Reading raises `KeyError` for a missing field, and the errors of the class for a wrong value;
    neither names the position of the field in the body.
    """
    converter = make_converter(
        detailed_validation=False,
        unstruct_collection_overrides={tuple: list},
    )
    converter.register_structure_hook_factory(attrs.has, _reader(converter))
    converter.register_unstructure_hook_factory(attrs.has, _writer(converter))
    return converter


def _reader(converter: OrjsonConverter) -> Callable[[_Class], _Read]:
    def make(kind: _Class) -> _Read:
        overrides = {
            field.name: _override(field, _part_reader(converter, _part(shape_at(field))))
            for field in attrs.fields(kind)
        }
        read = make_dict_structure_fn(
            kind,
            converter,
            _cattrs_detailed_validation=False,
            **overrides,  # type: ignore[arg-type] # no field is called _cattrs_...
        )
        return cast("_Read", read)

    return make


def _writer(converter: OrjsonConverter) -> Callable[[_Class], _Write]:
    def make(kind: _Class) -> _Write:
        overrides = {field.name: _override(field, None) for field in attrs.fields(kind)}
        return make_dict_unstructure_fn(kind, converter, **overrides)  # type: ignore[arg-type] # see above

    return make


def _override(field: "attrs.Attribute[object]", read: _Read | None) -> AttributeOverride:
    """Return the settings for cattrs to read and write one field; free JSON is not converted."""
    holds = shape_at(field)
    is_free = isinstance(holds.of if isinstance(holds, Maybe) else holds, Anything | Free)
    return override(
        omit_if_default=field.default is None,
        rename=wire_name(field),
        struct_hook=read or _as_is,
        unstruct_hook=identity if is_free else None,
    )


def _part(holds: Shape) -> type[attrs.AttrsInstance] | None:
    """Return the body class of the objects in a field or list; None: the field has no objects."""
    match holds:
        case Part(kind):
            return kind
        case Many(of) | Maybe(of):
            return _part(of)
        case _:
            return None


def _part_reader(converter: OrjsonConverter, kind: _Class | None) -> _Read | None:
    """Return a function that converts objects to a class, and leaves other values unchanged."""
    if kind is None:
        return None
    read_one: _Read = converter.get_structure_hook(kind)

    def read(value: object, _: type[object]) -> object:
        if isinstance(value, dict):
            return read_one(value, kind)
        if isinstance(value, list):
            return [read(each, kind) for each in value]
        return value

    return read


def _as_is(value: object, _: type[object]) -> object:
    return value


B = TypeVar("B", bound=attrs.AttrsInstance)

MAX_REASONS: Final = 3
"""Maximum number of wrong fields that one error names; a body may have hundreds."""

_CONVERTER: Final = make_body_converter()


def read_body(message: Message, kind: type[B]) -> B:
    """Read the body of a message; unknown keys are ignored.

    Raises:
        BadMessageError: A field is missing, of the wrong type or out of range; the text names it.
    """
    return read_object(message.body, kind, "body")


def read_object(content: JsonObject, kind: type[B], where: str) -> B:
    """Read a JSON object that has a class; unknown keys are ignored.

    Raises:
        BadMessageError: A field is missing, of the wrong type or out of range; the text names it.
    """
    try:
        return _CONVERTER.structure(content, kind)
    except (BadMessageError, KeyError) as exc:
        raise _explain(content, kind, exc, where) from exc


def write_body(body: attrs.AttrsInstance) -> JsonObject:
    """Convert an instance of a body class to a JSON object, without fields that are `None`."""
    fields: JsonObject = _CONVERTER.unstructure(body)
    return fields


def _explain(body: JsonObject, kind: type[B], error: Exception, where: str) -> BadMessageError:
    """Return an error that names the wrong fields of a body, or the violated rule."""
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
            for number, each in enumerate(value):
                yield from _wrong(each, part, f"{where}[{number}]")
        case _:
            yield from _reasons(value, holds, where)


def _reasons(value: Json, holds: Shape, where: str) -> Iterator[str]:
    try:
        holds.check(value, where)
    except BadMessageError as exc:
        yield exc.reason
