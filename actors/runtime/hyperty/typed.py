"""Writing, strict reading and schemas of attrs classes and dataclasses as values of messages.

A value is read strictly: an unknown key, a missing key, and a value of another type are refused,
and the refusal names the place, such as `value.items[2].title`. Types that JSON does not have, such
as `datetime`, are texts of one form each.
"""

import dataclasses
import inspect
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from actors.kit.supervision.supervisor import Crash
from actors.runtime.objects.live_value import to_plain
from fsm.sync.value.json import NotJsonError
from specs.errors import BadMessageError
from specs.json_schema import describe, field_texts
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_JSON_TEXT
from specs.schema.shape import END, describe_value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Sendable: TypeAlias = (
    "Mapping[str, Sendable] | Sequence[Sendable] | AbstractSet[Sendable] | attrs.AttrsInstance"
    " | DataclassInstance | Enum | str | int | float | bool | datetime | date | time | timedelta"
    " | Decimal | UUID | bytes | None"
)
"""Input of hyperties: JSON that may contain instances of attrs classes and dataclasses, sets,
members of enumerations, and values of `TEXTS`."""

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
    """Return the JSON value of a live value, an instance, or a value that is sent as text.

    Raises:
        NotJsonError: A date and time has no time zone, a time of day has one, or a number is not
            finite.
    """
    kind: type = type(value)
    write = _writer(kind)
    return to_plain(value) if write is None else write(value)


@lru_cache(maxsize=1024)
def _writer(kind: type) -> Callable[[object], object] | None:
    """Return what writes values of a type; None: they are JSON, or no value of messages."""
    if is_class(kind):
        return _CONVERTER.unstructure
    if issubclass(kind, set | frozenset):
        return _write_set
    if issubclass(kind, Enum):
        return _write_member
    return next((TEXTS[base].write for base in kind.__mro__ if base in TEXTS), None)


def _write_set(value: object) -> object:
    # In an order that does not depend on the process.
    return sorted(cast("AbstractSet[object]", value), key=lambda part: repr(plain(part)))


def _write_member(value: object) -> object:
    word: object = cast("Enum", value).value
    return word if isinstance(word, str | int) else value


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
        kind: An attrs class, a dataclass, or another type of values such as `list[Item]`.

    Raises:
        TypeError: No JSON can be read into `kind`.
        BadMessageError: The value has unknown keys, misses some, or has values of other types;
            the error names the places.
    """
    Shapes().schema(kind, "read_as")
    return cast("T", read_value(value, kind))


# ---- types that are sent as text


@attrs.frozen
class TextForm:
    """The text by which values of a type are sent.

    Attributes:
        word: What the text is, for refusals.
        pattern: What the whole text must match before `read` is called.
        read: Returns the value of a text, or raises ValueError.
        write: Returns the text of a value.
        schema: JSON Schema of the text, beside its type.
    """

    word: str
    pattern: re.Pattern[str]
    read: Callable[[str], object]
    write: Callable[[object], str]
    schema: JsonObject


def _write_datetime(value: object) -> str:
    moment = cast("datetime", value)
    offset = moment.utcoffset()
    if offset is None:
        raise NotJsonError("", "a datetime needs a time zone, such as datetime.now(UTC)")
    # RFC 3339 has no seconds in an offset; those of local mean times have some.
    return (
        moment if offset % timedelta(minutes=1) == _ZERO else moment.astimezone(UTC)
    ).isoformat()


def _write_time(value: object) -> str:
    if cast("time", value).tzinfo is not None:
        raise NotJsonError("", "a time of day has no time zone; send a datetime")
    return cast("time", value).isoformat()


def _write_duration(value: object) -> str:
    length = abs(cast("timedelta", value))
    minutes, seconds = divmod(length.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    parts = (
        f"{length.days}D" if length.days else "",
        "T" if length.seconds or fraction or not length.days else "",
        f"{hours}H" if hours else "",
        # RFC 3339 has no seconds after hours without minutes.
        f"{minutes}M" if minutes or (hours and (seconds or fraction)) else "",
        f"{seconds}{fraction}S" if seconds or fraction or not length else "",
    )
    return ("-P" if length != value else "P") + "".join(parts)


def _read_duration(text: str) -> timedelta:
    """Read a duration that matches `_DURATION`.

    Raises:
        OverflowError: It has more than 999,999,999 days.
    """
    match = _DURATION.fullmatch(text)
    parts = {key: float(part) for key, part in match.groupdict("0").items()} if match else {}
    return -timedelta(**parts) if text.startswith("-") else timedelta(**parts)


def _write_decimal(value: object) -> str:
    number = cast("Decimal", value)
    if not number.is_finite():
        raise NotJsonError("", f"{value} is no finite number")
    if abs(number.adjusted()) > MAX_JSON_TEXT:
        raise NotJsonError("", f"{number!r:.60} has too many digits")
    return f"{value:f}"


def _write_bytes(value: object) -> str:
    return b64encode(cast("bytes", value)).decode()


_ZERO: Final = timedelta()
_DECIMAL: Final = r"-?[0-9]+(\.[0-9]+)?"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
_DURATION: Final = re.compile(
    r"-?P(?=.)((?P<weeks>\d{1,9})W)?((?P<days>\d{1,9})D)?"
    r"(T(?=.)((?P<hours>\d{1,12})H)?((?P<minutes>\d{1,12})M)?"
    r"((?P<seconds>\d{1,15}(\.\d+)?)S)?)?",
    re.ASCII,
)

TEXTS: Final[Mapping[type, TextForm]] = {
    datetime: TextForm(
        "a date and time with a time zone, such as 2026-01-31T12:00:00Z",
        re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})"),
        datetime.fromisoformat,
        _write_datetime,
        {"format": "date-time"},
    ),
    date: TextForm(
        "a date such as 2026-01-31",
        re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
        date.fromisoformat,
        str,
        {"format": "date"},
    ),
    time: TextForm(
        "a time of day without a time zone, such as 09:30:00",
        re.compile(_TIME),
        time.fromisoformat,
        _write_time,
        # The format `time` of JSON Schema needs a time zone.
        {"pattern": f"^{_TIME}{END}"},
    ),
    timedelta: TextForm(
        "a duration in weeks, days, hours, minutes and seconds, such as P1DT2H30M",
        _DURATION,
        _read_duration,
        _write_duration,
        {"format": "duration"},
    ),
    Decimal: TextForm(
        "a text with a decimal number, such as '12.50'",
        re.compile(_DECIMAL),
        Decimal,
        _write_decimal,
        {"pattern": f"^{_DECIMAL}{END}"},
    ),
    UUID: TextForm(
        "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
        re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
        UUID,
        str,
        {"format": "uuid"},
    ),
    bytes: TextForm(
        "bytes as base64 (RFC 4648)",
        re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
        b64decode,
        _write_bytes,
        {"contentEncoding": "base64"},
    ),
}
"""Types of Python that are sent as text, and how."""


def _read_text(value: object, kind: type) -> object:
    """Read a value of one of `TEXTS`."""
    form = TEXTS[kind]
    if isinstance(value, str) and form.pattern.fullmatch(value):
        try:
            return form.read(value)
        except (ValueError, OverflowError):
            pass
    raise TypeError(f"must be {form.word}, not {describe_value(value)}")


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


def is_class(kind: object) -> bool:
    """Return whether a type is an attrs class or dataclass, or a generic one with parameters."""
    made = get_origin(kind) or kind
    return isinstance(made, type) and (attrs.has(made) or dataclasses.is_dataclass(made))


def _classes_of(kind: object) -> tuple[type, ...]:
    """Return the classes of a union of several; empty: a type is no such union."""
    if get_origin(kind) not in _UNIONS:
        return ()
    classes = tuple(each for each in get_args(kind) if each is not NoneType)
    return classes if len(classes) > 1 and all(map(is_class, classes)) else ()


def _tags_of(kind: object) -> tuple[str, dict[object, type]]:
    """Return the key that tells the classes of a union apart, and the class by its value.

    The key is a field of all classes, a Literal with other words in each of them.

    Raises:
        TypeError: The classes have no such field.
    """
    classes = _classes_of(kind)
    words = [
        {
            field.key: _members(field.kind)
            for field in _fields_of(each)
            if _is_enumeration(field.kind)
        }
        for each in classes
    ]
    for key in words[0]:
        by_word = {
            word: each
            for each, fields in zip(classes, words, strict=True)
            for word in fields.get(key, ())
        }
        if all(key in fields for fields in words) and len(by_word) == sum(
            len(fields[key]) for fields in words
        ):
            return key, by_word
    names = ", ".join(each.__name__ for each in classes)
    raise TypeError(f"{names} need a field of the type Literal, with other words in each of them")


@attrs.frozen
class _Field:
    """A field of an attrs class or of a dataclass, as objects of JSON have it.

    Attributes:
        name: Name of the attribute.
        key: Key in the object.
        kind: Its annotation.
        is_required: Whether the object must have the key.
    """

    name: str
    key: str
    kind: object
    is_required: bool


def _raw_fields(made: Any) -> list[_Field]:  # type: ignore[explicit-any] # a class
    """Return the fields that the constructor takes; their annotations may be texts."""
    if attrs.has(made):
        return [
            _Field(
                field.name, field.alias or field.name, field.type, field.default is attrs.NOTHING
            )
            for field in attrs.fields(made)
            if field.init
        ]
    return [
        _Field(
            field.name,
            field.name,
            field.type,
            field.default is field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(made)
        if field.init
    ]


def _fields_of(kind: Any) -> list[_Field]:  # type: ignore[explicit-any] # a class
    """Return the fields of a class with their types; a generic class has its parameters.

    Raises:
        NameError: An annotation names nothing.
        TypeError: A type variable has two meanings.
    """
    made = get_origin(kind) or kind
    given = _variables_of(kind)
    _resolve_types(made)
    return [
        attrs.evolve(field, kind=_with_parameters(field.kind, given)) for field in _raw_fields(made)
    ]


def _resolve_types(made: Any) -> None:  # type: ignore[explicit-any] # a class
    """Evaluate the annotations of a class that are texts, in the class itself as attrs does.

    Raises:
        NameError: An annotation names nothing.
    """
    if attrs.has(made):
        attrs.resolve_types(made, localns=dict(NAMES))
    elif any(isinstance(field.type, str) for field in dataclasses.fields(made)):
        types = get_type_hints(made, localns=dict(NAMES), include_extras=True)
        for field in dataclasses.fields(made):
            field.type = types[field.name]


def _variables_of(kind: Any) -> dict[object, object]:  # type: ignore[explicit-any] # a class
    """Return the types of the type variables of a class and of its base classes.

    Raises:
        TypeError: A type variable has two meanings.
    """
    made = get_origin(kind) or kind
    given = dict(zip(getattr(made, "__parameters__", ()), get_args(kind), strict=False))
    for base in vars(made).get("__orig_bases__", made.__bases__):
        if base in (object, Generic) or get_origin(base) is Generic:
            continue
        for variable, meaning in _variables_of(_with_parameters(base, given)).items():
            if given.setdefault(variable, meaning) != meaning:
                raise TypeError(f"{variable} has two meanings in {made.__name__}")
    return given


def _with_parameters(kind: Any, given: Mapping[object, object]) -> object:  # type: ignore[explicit-any] # an annotation
    """Return an annotation with types in the place of the variables of a generic class."""
    if isinstance(kind, TypeVar):
        return given.get(kind, kind)
    parameters = getattr(kind, "__parameters__", ())
    if get_origin(kind) is None or not parameters:
        return kind
    return kind[tuple(given.get(each, each) for each in parameters)]


def keys_of(kind: type) -> tuple[frozenset[str], frozenset[str]]:
    """Return the required keys of an object of a class, and all its permitted keys.

    Args:
        kind: The class.
    """
    fields = _raw_fields(get_origin(kind) or kind)
    needed = frozenset(field.key for field in fields if field.is_required)
    return needed, frozenset(field.key for field in fields)


def _make_object(kind: type, converter: Converter) -> _Hook:
    needed, known = keys_of(kind)
    places = {
        field.name: override(struct_hook=_make_field(field, converter))
        for field in _fields_of(kind)
    }
    inner: _Hook = make_dict_structure_fn(
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


def _make_writer(kind: Any, converter: Converter) -> Callable[[Any], object]:  # type: ignore[explicit-any] # see _Hook
    # cattrs would evaluate the annotations without `NAMES`, and for good.
    _resolve_types(get_origin(kind) or kind)
    return make_dict_unstructure_fn(kind, converter, _cattrs_use_alias=True)


def _missing(keys: frozenset[str]) -> Iterator[str]:
    for key in sorted(keys)[:_MOST_KEYS]:
        yield f".{key}: it is missing"


def _unknown(keys: set[str]) -> Iterator[str]:
    if keys:
        some = ", ".join(map(describe_value, sorted(keys)[:_MOST_KEYS]))
        yield f": the key {some}{' and others' if len(keys) > _MOST_KEYS else ''} is unknown"


def _make_field(field: _Field, converter: Converter) -> _Hook:
    def read(value: object, _: object) -> object:
        with _place(f".{field.key}"):
            return converter.structure(value, field.kind)  # type: ignore[arg-type] # an annotation

    return read


def _make_list(kind: object, converter: Converter) -> _Hook:
    part = get_args(kind)[0]
    make = cast("Callable[[list[object]], object]", get_origin(kind))

    def read(value: Sequence[object], _: object) -> object:
        parts: list[object] = []
        try:
            parts.extend(converter.structure(each, part) for each in value)
        except (ValueError, TypeError) as exc:
            raise _at_place(exc, f"[{len(parts)}]") from exc
        return make(parts)

    return read


def _make_set(kind: object, converter: Converter) -> _Hook:
    inner = _make_list(kind, converter)

    def read(value: Sequence[object], wanted: object) -> object:
        parts = inner(value, wanted)
        if len(parts) < len(value):
            raise ValueError("has the same element twice")
        return parts

    return read


def _make_union(kind: object, converter: Converter) -> _Hook:
    """Return a reader of objects of several classes, which one of their keys tells apart."""
    key, classes = _tags_of(kind)
    is_optional = NoneType in get_args(kind)

    def read(value: object, _: object) -> object:
        if value is None and is_optional:
            return None
        if not isinstance(value, dict):
            raise TypeError(f"must be an object, not {describe_value(value)}")
        if key not in value:
            raise _FlawError(f".{key}: it is missing")
        word = value[key]
        made = classes.get(word) if isinstance(word, str | int) else None
        if made is None:
            words = ", ".join(map(repr, classes))
            raise _FlawError(f".{key}: must be one of {words}, not {describe_value(word)}")
        result: object = converter.structure(value, made)
        return result

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
    for sent_as_text in TEXTS:
        made.register_structure_hook(sent_as_text, _read_text)
    for is_such, make, kinds, word in (
        (is_class, _make_object, (dict,), "an object"),
        (_is_generic(list), _make_list, (list, tuple), "a list"),
        (_is_generic(tuple), _make_list, (list, tuple), "a list"),
        (_is_generic(dict), _make_mapping, (dict,), "an object"),
        (_is_generic(set), _make_set, (list, tuple), "a list"),
        (_is_generic(frozenset), _make_set, (list, tuple), "a list"),
    ):
        made.register_structure_hook_factory(is_such, _check_kind(make, kinds, word))
    made.register_structure_hook_factory(lambda kind: bool(_classes_of(kind)), _make_union)
    made.register_unstructure_hook_factory(is_class, _make_writer)
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
        self._kinds: dict[str, object] = {}

    def schema(self, kind: object, where: str) -> JsonObject:
        """Return the schema of an annotation; add the schemas of its classes to `defs`.

        Args:
            kind: The annotation.
            where: The place of the annotation, for the error.

        Raises:
            TypeError: No JSON can be read into such a type.
        """
        origin = get_origin(kind)
        if kind in ANY_JSON:
            return {}
        if origin is Annotated:
            return self.schema(get_args(kind)[0], where)
        if origin in _UNIONS:
            return self._union(kind, where)
        return self._container(kind, where) or self._simple(kind, where)

    def _container(self, kind: object, where: str) -> JsonObject | None:
        """Return the schema of a list, tuple, set or dictionary; None: a type is none of them."""
        origin, args = get_origin(kind), get_args(kind)
        if origin in (list, set, frozenset) or (origin is tuple and args[1:] == (...,)):
            unique: JsonObject = {} if origin in (list, tuple) else {"uniqueItems": True}
            if unique and not _is_hashable(args[0]):
                raise TypeError(f"{where}: {_name_of(args[0])} is not hashable: no set can have it")
            return {"type": "array", "items": self.schema(args[0], where), **unique}
        if origin is dict and args[0] is str:
            return {"type": "object", "additionalProperties": self.schema(args[1], where)}
        return None

    def _simple(self, kind: object, where: str) -> JsonObject:
        if _is_enumeration(kind) and all(isinstance(word, str | int) for word in _members(kind)):
            return {"enum": [word for word in _members(kind) if isinstance(word, str | int)]}
        if isinstance(kind, type) and kind in _TYPES:
            return {"type": _TYPES[kind]}
        if isinstance(kind, type) and kind in TEXTS:
            return {"type": "string", **TEXTS[kind].schema}
        if is_class(kind):
            return self._class(kind, where)
        name = getattr(kind, "__name__", repr(kind))
        raise TypeError(
            f"{where}: no JSON is read into {name}; a value is text, bool, int, float, None, Json, "
            "datetime, date, time, timedelta, Decimal, UUID, bytes, an attrs class, a dataclass, "
            "an Enum or Literal, or a list, tuple[..., ...], set, frozenset, dict[str, ...] or "
            "'... | None' of these, or a union of classes"
        )

    def _union(self, kind: object, where: str) -> JsonObject:
        parts = get_args(kind)
        null: JsonObject = {"type": "null"}
        if parts[1:] == (NoneType,):
            return {"anyOf": [self.schema(parts[0], where), null]}
        if not _classes_of(kind):
            return self._simple(kind, where)
        try:
            key, _ = _tags_of(kind)
        except (NameError, TypeError) as exc:
            raise TypeError(f"{where}: {exc}") from exc
        schemas: list[Json] = [self.schema(part, where) for part in parts]
        return {"oneOf": schemas, "required": [key]}

    def _class(self, kind: object, where: str) -> JsonObject:
        name = _name_of(kind)
        if self._kinds.setdefault(name, kind) != kind:
            raise TypeError(f"{where}: two classes have the name {name}")
        if name not in self.defs:
            self.defs[name] = {}  # a class may have parts of its own kind
            self.defs[name] = self._object(kind, where)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, kind: object, where: str) -> JsonObject:
        name = _name_of(kind)
        try:
            fields = _fields_of(kind)
        except (NameError, TypeError) as exc:
            raise TypeError(f"{where}: an annotation of {name}: {exc}") from exc
        made = cast("type", get_origin(kind) or kind)
        _check_constructor(made, {field.key for field in fields}, where)
        texts = field_texts(made)
        properties: JsonObject = {}
        for field in fields:
            at = f"{where}: {name}.{field.name}"
            properties[field.key] = {**self.schema(field.kind, at), **texts.get(field.name, {})}
        required: list[Json] = [field.key for field in fields if field.is_required]
        # Python writes the docstring of a dataclass that has none.
        has_text = not (made.__doc__ or "").startswith(f"{made.__name__}(")
        return {
            "title": name,
            "description": describe(made) if has_text else "",
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }


def _check_constructor(made: type, keys: set[str], where: str) -> None:
    """Refuse a class whose constructor needs more than its fields, such as an `InitVar`."""
    for parameter in inspect.signature(made).parameters.values():
        is_needed = parameter.default is parameter.empty and parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if is_needed and parameter.name not in keys:
            raise TypeError(f"{where}: {made.__name__} needs {parameter.name}, which is no field")


def _is_hashable(kind: object) -> bool:
    origin = get_origin(kind)
    if kind in ANY_JSON or getattr(origin or kind, "__hash__", None) is None:
        return False
    parts = () if origin is Literal or is_class(kind) else get_args(kind)
    return all(part is ... or _is_hashable(part) for part in parts)


def _name_of(kind: object) -> str:
    """Return the name of a type in a schema, such as `Page_list_Order` for `Page[list[Order]]`."""
    if get_origin(kind) is not None:
        return "_".join(map(_name_of, (get_origin(kind), *get_args(kind))))
    name = kind.__name__ if isinstance(kind, type) else getattr(kind, "_name", None) or str(kind)
    return re.sub(r"\W+", "_", name)


_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}
