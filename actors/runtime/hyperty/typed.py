"""Values of attrs classes in messages: written as JSON, read strictly, and described by a schema.

A value is read without any conversion: an unknown key, a missing one, and a value of another type
are refused, and the refusal names the place, such as `value.items[2].title`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    final,
    get_args,
    get_origin,
)

import attrs
from cattrs import Converter, transform_error
from cattrs.cols import (
    homogenous_tuple_structure_factory,
    list_structure_factory,
    mapping_structure_factory,
)
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

from actors.runtime.objects.live_value import unpacked
from specs.errors import BadMessageError
from specs.json_schema import described, field_texts
from specs.jsonvalue import Json, JsonObject
from specs.schema.shape import shown

__all__ = ["ANY_JSON", "NAMES", "Sendable", "Shapes", "plain", "read_as", "read_value"]

Sendable: TypeAlias = (
    "Mapping[str, Sendable] | Sequence[Sendable] | attrs.AttrsInstance"
    " | str | int | float | bool | None"
)
"""Input of hyperties: JSON that may contain instances of attrs classes."""

NAMES: Final[Mapping[str, object]] = {
    "Json": object,
    "JsonInput": object,
    "JsonObject": dict[str, object],
    "Mapping": Mapping,
    "Sequence": Sequence,
}
"""Names that evaluated annotations may have: the aliases `Json` and `JsonInput` are texts."""

ANY_JSON: Final[tuple[object, ...]] = (
    object,
    # As `Json` and `JsonInput` evaluate.
    dict[str, object] | list[object] | str | int | float | bool | None,
    Mapping[str, object] | Sequence[object] | str | int | float | bool | None,
)
"""Annotations of a value that may be any JSON."""

_UNIONS: Final = (UnionType, Union)
_MOST_FLAWS: Final = 3
"""Maximum number of errors of one value that a refusal names."""

_Hook: TypeAlias = Callable[[Any, Any], Any]  # type: ignore[explicit-any] # as cattrs has it
_MakeHook: TypeAlias = Callable[[Any, Any], _Hook]  # type: ignore[explicit-any]

T = TypeVar("T")


def plain(value: object) -> object:
    """Return the plain value of a live one, or of an instance of an attrs class."""
    if attrs.has(type(value)):
        written: object = _CONVERTER.unstructure(value)
        return written
    return unpacked(value)


def read_value(value: Json, kind: object) -> object:
    """Read the value of a message.

    Args:
        value: The value.
        kind: The annotation that it must obey, one that `Shapes` describes.

    Raises:
        BadMessageError: 400: it does not obey; the error names the places.
    """
    try:
        return _CONVERTER.structure(value, kind)  # type: ignore[arg-type] # an annotation
    except (BaseValidationError, ValueError, TypeError) as exc:
        flaws = transform_error(exc, "value", _said)
        more = "; and others" if flaws[_MOST_FLAWS:] else ""
        raise BadMessageError("; ".join(map(_placed, flaws[:_MOST_FLAWS])) + more) from exc


def read_as(value: Json, kind: type[T]) -> T:
    """Read a value, such as that of an answer, into a class of attrs or another type.

    Args:
        value: The value.
        kind: An attrs class, or a type of JSON such as `str` or `list[Item]`.

    Raises:
        TypeError: No JSON can be read into `kind`.
        BadMessageError: The value has unknown keys, misses some, or has values of other types;
            the error names the places.
    """
    Shapes().schema(kind, "read_as")
    return cast("T", read_value(value, kind))


def _said(error: BaseException, _: type | None) -> str:
    """Return the errors of a value as the reason of a refusal."""
    if isinstance(error, ForbiddenExtraKeysError):
        keys = ", ".join(sorted(repr(key) for key in error.extra_fields))
        return f"the key {keys} is unknown"
    if isinstance(error, KeyError):
        return "it is missing"
    return str(error)


def _placed(flaw: str) -> str:
    """Return an error with its place in front."""
    why, _, place = flaw.rpartition(" @ ")
    return f"{place}: {why}"


# ---- reading


def _exactly(kind: type, word: str) -> Callable[[object, object], object]:
    """Return a reader for values of a plain type, without conversion."""

    def read(value: object, asked: object) -> object:
        if _is_words(asked):  # of an Enum of texts or numbers
            return _word(value, asked)
        if kind in (int, float) and isinstance(value, bool):
            raise TypeError(f"must be {word}, not {shown(value)}")
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind is float and isinstance(value, int):
            return float(value)
        if not isinstance(value, kind):
            raise TypeError(f"must be {word}, not {shown(value)}")
        return value

    return read


def _checked(make: _MakeHook, kinds: tuple[type, ...], word: str) -> _MakeHook:
    """Return a factory of hooks that first check the type of a JSON value."""

    def factory(kind: type, converter: Converter) -> _Hook:
        inner = make(kind, converter)

        def read(value: object, asked: object) -> object:
            if not isinstance(value, kinds):
                raise TypeError(f"must be {word}, not {shown(value)}")
            read: object = inner(value, asked)
            return read

        return read

    return factory


def _word(value: object, kind: object) -> object:
    """Read a word of an enumeration, or one of some literals."""
    words = _words(kind)
    for word in words:
        if type(word) is type(value) and word == value:
            return kind(value) if isinstance(kind, type) else value
    raise ValueError(f"must be one of {', '.join(map(repr, words))}, not {shown(value)}")


def _words(kind: object) -> tuple[object, ...]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(one.value for one in kind)
    return get_args(kind)


def _is_words(kind: object) -> bool:
    if get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and issubclass(kind, Enum)


def _is_class(kind: object) -> bool:
    return isinstance(kind, type) and attrs.has(kind)


def _make_object(kind: type[attrs.AttrsInstance], converter: Converter) -> _Hook:
    return make_dict_structure_fn(
        kind, converter, _cattrs_forbid_extra_keys=True, _cattrs_use_alias=True
    )


def _is_generic(origin: type) -> Callable[[object], bool]:
    return lambda kind: get_origin(kind) is origin


def _converter() -> Converter:
    made = Converter(forbid_extra_keys=True, use_alias=True)
    for kind, word in (
        (str, "text"),
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (NoneType, "null"),
    ):
        made.register_structure_hook(kind, _exactly(kind, word))
    made.register_structure_hook_func(lambda kind: kind in ANY_JSON, lambda value, _: value)
    made.register_structure_hook_func(_is_words, _word)
    for is_such, make, kinds, word in (
        (_is_class, _make_object, (dict,), "an object"),
        (_is_generic(list), list_structure_factory, (list, tuple), "a list"),
        (_is_generic(tuple), homogenous_tuple_structure_factory, (list, tuple), "a list"),
        (_is_generic(dict), mapping_structure_factory, (dict,), "an object"),
    ):
        made.register_structure_hook_factory(is_such, _checked(make, kinds, word))
    return made


_CONVERTER: Final = _converter()


# ---- describing


@final
class Shapes:
    """The JSON Schemas of annotations, and of the attrs classes in them.

    Attributes:
        defs: Schemas of the classes, by name.
    """

    def __init__(self) -> None:
        self.defs: dict[str, Json] = {}
        self._kinds: dict[str, type] = {}

    def schema(self, kind: object, where: str) -> JsonObject:
        """Return the schema of an annotation; those of its classes come to `defs`.

        Args:
            kind: The annotation.
            where: Where it stands, for the error.

        Raises:
            TypeError: JSON is not read into such a type.
        """
        origin, args = get_origin(kind), get_args(kind)
        if kind in ANY_JSON:
            return {}
        if origin is Annotated:
            return self.schema(args[0], where)
        if origin in _UNIONS and args[1:] == (NoneType,):
            return {"anyOf": [self.schema(args[0], where), {"type": "null"}]}
        if origin is list or (origin is tuple and args[1:] == (...,)):
            return {"type": "array", "items": self.schema(args[0], where)}
        if origin is dict and args[0] is str:
            return {"type": "object", "additionalProperties": self.schema(args[1], where)}
        return self._simple(kind, where)

    def _simple(self, kind: object, where: str) -> JsonObject:
        if _is_words(kind) and all(isinstance(word, str | int) for word in _words(kind)):
            return {"enum": [word for word in _words(kind) if isinstance(word, str | int)]}
        if isinstance(kind, type):
            if kind in _TYPES:
                return {"type": _TYPES[kind]}
            if attrs.has(kind):
                return self._class(kind, where)
        name = getattr(kind, "__name__", repr(kind))
        raise TypeError(
            f"{where}: no JSON is read into {name}; a value is text, bool, int, float, None, Json, "
            "an attrs class, an Enum or Literal, or a list, tuple[..., ...], dict[str, ...] or "
            "'... | None' of these"
        )

    def _class(self, kind: type[attrs.AttrsInstance], where: str) -> JsonObject:
        name = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"{where}: two attrs classes have the name {name}")
        if name not in self.defs:
            self.defs[name] = {}  # a class may have parts of its own kind
            self.defs[name] = self._object(kind, where)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, kind: type[attrs.AttrsInstance], where: str) -> JsonObject:
        try:
            attrs.resolve_types(kind, localns=dict(NAMES))
        except NameError as exc:
            raise TypeError(f"{where}: an annotation of {kind.__name__}: {exc}") from exc
        texts = field_texts(kind)
        fields = [field for field in attrs.fields(kind) if field.init]
        properties: JsonObject = {}
        for field in fields:
            at = f"{where}: {kind.__name__}.{field.name}"
            properties[field.alias or field.name] = {
                **self.schema(field.type, at),
                **texts.get(field.name, {}),
            }
        required: list[Json] = [
            field.alias or field.name for field in fields if field.default is attrs.NOTHING
        ]
        return {
            "title": kind.__name__,
            "description": described(kind),
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }


_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}
