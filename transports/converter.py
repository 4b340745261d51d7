"""How cattrs reads and writes bodies: by wire names, each value checked by its class.

The classes refuse what is wrong themselves. So a value is handed to them as it
stands in the JSON; only objects that have a class of their own are read first.
"""

from collections.abc import Callable
from typing import TypeAlias, cast

import attrs
from cattrs.gen import (  # type: ignore[attr-defined] # cattrs forgot to export the first
    AttributeOverride,
    make_dict_structure_fn,
    make_dict_unstructure_fn,
    override,
)
from cattrs.preconf.orjson import OrjsonConverter, make_converter

from specs.schema.field import shape_at, wire_name
from specs.schema.shape import Anything, Free, Many, Maybe, Part, Shape

__all__ = ["make_body_converter"]

_Read: TypeAlias = Callable[[object, type[object]], object]
_Write: TypeAlias = Callable[[object], object]
_Class: TypeAlias = type[attrs.AttrsInstance]


def make_body_converter() -> OrjsonConverter:
    """Make a converter for the classes of `specs.bodies.body`.

    Reading raises `KeyError` where a field is missing, and what the class
    raises: neither says where in the body it was.
    """
    converter = make_converter(
        detailed_validation=False,
        prefer_attrib_converters=True,
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
            _cattrs_prefer_attrib_converters=True,
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
    """Return how one field is read and written; free JSON must not be walked through."""
    holds = shape_at(field)
    is_free = isinstance(holds.of if isinstance(holds, Maybe) else holds, Anything | Free)
    return override(
        omit_if_default=field.default is None,
        rename=wire_name(field),
        struct_hook=_as_is if isinstance(holds, Anything) else read,
        unstruct_hook=_same if is_free else None,
    )


def _part(holds: Shape) -> type[attrs.AttrsInstance] | None:
    """Return the class of a field's objects, or of its elements; None if it has none."""
    match holds:
        case Part(kind):
            return kind
        case Many(of) | Maybe(of):
            return _part(of)
        case _:
            return None


def _part_reader(converter: OrjsonConverter, kind: _Class | None) -> _Read | None:
    """Return what reads objects into a class and leaves the rest to the field's own check."""
    if kind is None:
        return None
    read_one: _Read = converter.get_structure_hook(kind)

    def read(value: object, _: type[object]) -> object:
        if isinstance(value, dict):
            return read_one(value, kind)
        if isinstance(value, list):
            return [read(one, kind) for one in value]
        return value

    return read


def _as_is(value: object, _: type[object]) -> object:
    return value


def _same(value: object) -> object:
    return value
