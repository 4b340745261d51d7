"""Writing, strict reading and schemas of attrs classes as values of messages.

A value is read without any conversion: an unknown key, a missing key, and a value of another type
are refused, and the refusal names the place, such as `value.items[2].title`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    get_args,
    get_origin,
)

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override

from actors.kit.supervision.supervisor import Crash
from actors.runtime.objects.live_value import to_plain
from specs.errors import BadMessageError
from specs.json_schema import describe, field_texts
from specs.jsonvalue import Json, JsonObject
from specs.schema.field import is_required
from specs.schema.shape import describe_value

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
"""Names for the evaluation of annotations, as the aliases `Json` and `JsonInput` are texts."""

ANY_JSON: Final[tuple[object, ...]] = (
    object,
    # The values of `Json` and `JsonInput`.
    dict[str, object] | list[object] | str | int | float | bool | None,
    Mapping[str, object] | Sequence[object] | str | int | float | bool | None,
)
"""Annotations of a value that may be any JSON."""

_UNIONS: Final = (UnionType, Union)
_MOST_KEYS: Final = 3
"""Maximum number of missing keys, and of unknown keys, that a refusal names."""
_MOST_WORDS: Final = 500
"""Maximum number of characters of an error of a validator, which may quote the value."""

_Hook: TypeAlias = Callable[[Any, Any], Any]  # type: ignore[explicit-any] # as cattrs has it
_MakeHook: TypeAlias = Callable[[Any, Any], _Hook]  # type: ignore[explicit-any]

T = TypeVar("T")


def plain(value: object) -> object:
    """Return the plain value of a live value or of an attrs instance."""
    if attrs.has(type(value)):
        written: object = _CONVERTER.unstructure(value)
        return written
    return to_plain(value)


def read_value(value: Json, kind: object) -> object:
    """Read the value of a message into an annotated type; stop at the first error.

    Args:
        value: The value.
        kind: The annotation, which `Shapes` can describe.

    Raises:
        BadMessageError: 400: the value does not obey the annotation; the error names the place.
    """
    result: object = None
    # The validators of an application raise anything.
    with Crash() as crash, _place("value"):
        result = _CONVERTER.structure(value, kind)  # type: ignore[arg-type] # an annotation
    match crash.error:
        case None:
            return result
        case _FlawError() as flaw:
            raise BadMessageError(flaw.words) from flaw
        case error:
            raise BadMessageError(f"value: {_words_of(error)}"[:_MOST_WORDS]) from error


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


# ---- reading


class _FlawError(ValueError):
    """A value does not obey its annotation.

    Attributes:
        place: The known steps of the path to the flaw, from the inside to the outside.
        why: The reasons.
    """

    def __init__(self, *why: str) -> None:
        super().__init__("; ".join(why))
        self.place: list[str] = []
        self.why = why

    @property
    def words(self) -> str:
        """The reasons, each with the place in front."""
        return "; ".join("".join((*reversed(self.place), why)) for why in self.why)


@contextmanager
def _place(place: str) -> Iterator[None]:
    """Add a step of the path to each error that is raised in the context."""
    try:
        yield
    except (ValueError, TypeError) as exc:
        raise _at_place(exc, place) from exc


def _at_place(error: ValueError | TypeError, place: str) -> _FlawError:
    words = f": {_words_of(error)}"[:_MOST_WORDS]
    flaw = error if isinstance(error, _FlawError) else _FlawError(words)
    flaw.place.append(place)
    return flaw


def _words_of(error: Exception) -> str:
    """Return the text of an error, without the objects that validators of attrs add."""
    first: object = error.args[0] if error.args else None
    return first if isinstance(first, str) else str(error)


def _make_plain(kind: type, word: str) -> Callable[[object, object], object]:
    """Return a reader for values of a plain type, without conversion."""

    def read(value: object, wanted: object) -> object:
        if _is_enumeration(wanted):  # of an Enum of texts or numbers
            return _read_word(value, wanted)
        if kind in (int, float) and isinstance(value, bool):
            raise TypeError(f"must be {word}, not {describe_value(value)}")
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind is float and isinstance(value, int):
            return float(value)
        if not isinstance(value, kind):
            raise TypeError(f"must be {word}, not {describe_value(value)}")
        return value

    return read


def _check_kind(make: _MakeHook, kinds: tuple[type, ...], word: str) -> _MakeHook:
    """Return a factory of hooks that first check the type of a JSON value."""

    def factory(kind: type, converter: Converter) -> _Hook:
        inner = make(kind, converter)

        def read(value: object, wanted: object) -> object:
            if not isinstance(value, kinds):
                raise TypeError(f"must be {word}, not {describe_value(value)}")
            read: object = inner(value, wanted)
            return read

        return read

    return factory


def _read_word(value: object, kind: object) -> object:
    """Read a member of an enumeration, or one of several literals."""
    words = _members(kind)
    for word in words:
        if type(word) is type(value) and word == value:
            return kind(value) if isinstance(kind, type) else value
    raise ValueError(f"must be one of {', '.join(map(repr, words))}, not {describe_value(value)}")


def _members(kind: object) -> tuple[object, ...]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(each.value for each in kind)
    return get_args(kind)


def _is_enumeration(kind: object) -> bool:
    if get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and issubclass(kind, Enum)


def _is_class(kind: object) -> bool:
    return isinstance(kind, type) and attrs.has(kind)


def keys_of(kind: type[attrs.AttrsInstance]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the required keys of an object of a class, and all its permitted keys.

    Args:
        kind: The class.
    """
    names = {
        field.alias or field.name: is_required(field) for field in attrs.fields(kind) if field.init
    }
    return frozenset(name for name, needed in names.items() if needed), frozenset(names)


def _make_object(kind: type[attrs.AttrsInstance], converter: Converter) -> _Hook:
    needed, known = keys_of(kind)
    places = {
        field.name: override(struct_hook=_make_field(field.alias or field.name, converter))
        for field in attrs.fields(kind)
        if field.init
    }
    inner = make_dict_structure_fn(
        kind,
        converter,
        _cattrs_use_alias=True,
        _cattrs_detailed_validation=False,
        **places,  # type: ignore[arg-type] # no field is called _cattrs_...
    )

    def read(value: Mapping[str, object], wanted: object) -> object:
        if not needed <= value.keys() <= known:
            raise _FlawError(*_missing(needed - value.keys()), *_unknown(value.keys() - known))
        return inner(value, wanted)

    return read


def _missing(keys: frozenset[str]) -> Iterator[str]:
    for key in sorted(keys)[:_MOST_KEYS]:
        yield f".{key}: it is missing"


def _unknown(keys: set[str]) -> Iterator[str]:
    if keys:
        some = ", ".join(map(describe_value, sorted(keys)[:_MOST_KEYS]))
        yield f": the key {some}{' and others' if len(keys) > _MOST_KEYS else ''} is unknown"


def _make_field(name: str, converter: Converter) -> _Hook:
    def read(value: object, kind: object) -> object:
        with _place(f".{name}"):
            return converter.structure(value, kind)  # type: ignore[arg-type] # an annotation

    return read


def _make_list(kind: object, converter: Converter) -> _Hook:
    part = get_args(kind)[0]
    make = get_origin(kind)

    def read(value: Sequence[object], _: object) -> object:
        parts: list[object] = []
        try:
            parts.extend(converter.structure(each, part) for each in value)
        except (ValueError, TypeError) as exc:
            raise _at_place(exc, f"[{len(parts)}]") from exc
        return parts if make is list else tuple(parts)

    return read


def _make_mapping(kind: object, converter: Converter) -> _Hook:
    part = get_args(kind)[1]

    def read(value: Mapping[str, object], _: object) -> object:
        parts: dict[str, object] = {}
        for key, each in value.items():
            with _place(f"[{describe_value(key)}]"):
                parts[key] = converter.structure(each, part)
        return parts

    return read


def _is_generic(origin: type) -> Callable[[object], bool]:
    return lambda kind: get_origin(kind) is origin


def _converter() -> Converter:
    made = Converter(use_alias=True, detailed_validation=False)
    for kind, word in (
        (str, "text"),
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (NoneType, "null"),
    ):
        made.register_structure_hook(kind, _make_plain(kind, word))
    made.register_structure_hook_func(lambda kind: kind in ANY_JSON, lambda value, _: value)
    made.register_structure_hook_func(_is_enumeration, _read_word)
    for is_such, make, kinds, word in (
        (_is_class, _make_object, (dict,), "an object"),
        (_is_generic(list), _make_list, (list, tuple), "a list"),
        (_is_generic(tuple), _make_list, (list, tuple), "a list"),
        (_is_generic(dict), _make_mapping, (dict,), "an object"),
    ):
        made.register_structure_hook_factory(is_such, _check_kind(make, kinds, word))
    return made


_CONVERTER: Final = _converter()


# ---- schemas


class Shapes:
    """The JSON Schemas of annotations, and of the attrs classes in them.

    Attributes:
        defs: Schemas of the classes, by name.
    """

    def __init__(self) -> None:
        self.defs: dict[str, Json] = {}
        self._kinds: dict[str, type] = {}

    def schema(self, kind: object, where: str) -> JsonObject:
        """Return the schema of an annotation; add the schemas of its classes to `defs`.

        Args:
            kind: The annotation.
            where: The place of the annotation, for the error.

        Raises:
            TypeError: No JSON can be read into such a type.
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
        if _is_enumeration(kind) and all(isinstance(word, str | int) for word in _members(kind)):
            return {"enum": [word for word in _members(kind) if isinstance(word, str | int)]}
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
            "description": describe(kind),
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
