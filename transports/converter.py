"""How cattrs reads and writes bodies: strict, by wire names, free JSON left as it is."""

from collections.abc import Callable
from typing import Final, TypeAlias, get_args, get_origin

import attrs
from cattrs.gen import (  # type: ignore[attr-defined] # cattrs forgot to export the first
    AttributeOverride,
    make_dict_structure_fn,
    make_dict_unstructure_fn,
    override,
)
from cattrs.preconf.orjson import OrjsonConverter, make_converter

from specs.field import WIRE
from specs.jsonvalue import Json, JsonObject

__all__ = ["make_body_converter"]

_Read: TypeAlias = Callable[[Json, type[object]], object]
_Write: TypeAlias = Callable[[object], Json]
_Class: TypeAlias = type[attrs.AttrsInstance]


def make_body_converter(*, detailed_validation: bool) -> OrjsonConverter:
    """Make a converter for the classes of `specs.body`.

    Args:
        detailed_validation: As in cattrs: slower, but errors tell where.
    """
    converter = make_converter(
        detailed_validation=detailed_validation, unstruct_collection_overrides={tuple: list}
    )
    for kind, words in _WORDS.items():
        converter.register_structure_hook(kind, _strict(kind, words))
    converter.register_structure_hook_factory(_is_tuple, _tuple_reader(converter))
    converter.register_structure_hook_factory(attrs.has, _class_reader(converter))
    converter.register_unstructure_hook_factory(attrs.has, _class_writer(converter))
    return converter


_WORDS: Final[dict[type[object], str]] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def _strict(kind: type[object], words: str) -> _Read:
    """Take a primitive of exactly this kind: cattrs would turn `5` into `"5"`."""
    taken = (int, float) if kind is float else (kind,)

    def read(value: Json, _: type[object]) -> object:
        if not isinstance(value, taken) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"must be {words}, not {_kind_of(value)}")
        return value

    return read


def _kind_of(value: Json) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else repr(value)[:40]


def _is_tuple(kind: type[object]) -> bool:
    return get_origin(kind) is tuple


def _tuple_reader(converter: OrjsonConverter) -> Callable[[type[object]], _Read]:
    def make(kind: type[object]) -> _Read:
        element = get_args(kind)[0]
        as_list = converter.get_structure_hook(list[element])  # type: ignore[valid-type]

        def read(value: Json, _: type[object]) -> object:
            if not isinstance(value, list):
                raise TypeError(f"must be a list, not {_kind_of(value)}")
            return tuple(as_list(value, list))

        return read

    return make


def _class_reader(converter: OrjsonConverter) -> Callable[[_Class], _Read]:
    def make(kind: _Class) -> _Read:
        fields = make_dict_structure_fn(
            kind,
            converter,
            _cattrs_detailed_validation=converter.detailed_validation,
            **_overrides(kind),  # type: ignore[arg-type] # no field is called _cattrs_...
        )

        def read(value: Json, _: type[object]) -> object:
            return fields(_object(value, kind), kind)

        return read

    return make


def _class_writer(converter: OrjsonConverter) -> Callable[[_Class], _Write]:
    def make(kind: _Class) -> _Write:
        overrides = _overrides(kind)
        return make_dict_unstructure_fn(kind, converter, **overrides)  # type: ignore[arg-type] # see above

    return make


def _overrides(kind: _Class) -> dict[str, AttributeOverride]:
    """Return how each field of a class is read and written."""
    return {field.name: _override(field) for field in attrs.fields(kind)}


def _override(field: "attrs.Attribute[object]") -> AttributeOverride:
    rename, leave_out = field.metadata.get(WIRE), field.default is None
    read = _free_reader(field.type)
    if read is None:
        return override(omit_if_default=leave_out, rename=rename)
    return override(omit_if_default=leave_out, rename=rename, struct_hook=read, unstruct_hook=_same)


def _free_reader(kind: object) -> _Read | None:
    """Return how free JSON is read, which cattrs must not walk through; None for the rest."""
    origins = {get_origin(one) for one in get_args(kind)}
    if kind == Json or origins >= {dict, list}:  # as written, or as cattrs resolved it
        return _as_is
    if get_origin(kind) is dict:
        return _object
    return _optional_object if dict in origins else None


def _as_is(value: Json, _: type[object]) -> Json:
    return value


def _same(value: Json) -> Json:
    return value


def _object(value: Json, _: type[object]) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"must be an object, not {_kind_of(value)}")
    return value


def _optional_object(value: Json, kind: type[object]) -> JsonObject | None:
    return None if value is None else _object(value, kind)
