"""JSON values of data objects: checked copies (SYN-01, I-D4) and schemas (CAT-05, M-32).

A value is copied when a caller passes it in, so that the caller cannot change the object without a
write, and checked, so that each peer reads exactly what was written.

A schema is a JSON Schema of draft 4 or later. Everything that a schema refers to must be part of
the schema itself: nothing is ever fetched. A schema is compiled once; the compiler is imported when
the first schema is compiled.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, final

import attrs

from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.limits.sync import DEFINITION_BYTES, SCHEMA_WORDS, VALUE_DEPTH

Steps: TypeAlias = tuple[str | int, ...]
"""Path in a value: a tuple of keys of objects and indices of lists."""

_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1


@attrs.frozen(slots=True)
class Flaw:
    """Reason why a value is not permitted as the value of an object.

    Attributes:
        path: Dotted path of the part with the flaw; empty: the whole value.
        why: The reason, as half a sentence.
    """

    path: str
    why: str


Unpack: TypeAlias = Callable[[object], object]
"""Function that returns the plain value of a wrapper, and any other value unchanged."""


@final
class NotJsonError(ProtoflyError, ValueError, public=True):
    """Error: a value cannot be written as JSON and read again unchanged.

    Attributes:
        flaw: The path in the value, and the reason.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.flaw = Flaw(path, why)


def dotted_path(steps: Steps) -> str:
    """Return a path as text, with its keys and indices separated by dots."""
    return ".".join(map(str, steps))


def as_json(value: object, at: Steps, unpack: Unpack, depth: int = VALUE_DEPTH) -> Json:
    """Return a copy of a value as JSON: plain dictionaries, lists, texts and numbers.

    Any mapping with texts as keys becomes a dictionary, any sequence a list.

    Args:
        value: The value.
        at: Path of the value; its length counts towards `depth`.
        unpack: Called for each part of the value.
        depth: Largest permitted nesting.

    Raises:
        NotJsonError: A part of the value is no JSON, or is nested too deep.
    """
    value = unpack(value)
    if isinstance(value, Mapping):
        _check_depth(at, depth)
        return {
            _name(key, at): as_json(each, (*at, str(key)), unpack, depth)
            for key, each in value.items()
        }
    if _is_array(value):
        _check_depth(at, depth)
        return [as_json(each, (*at, number), unpack, depth) for number, each in enumerate(value)]
    return _plain(value, at)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    if isinstance(value, list | tuple):
        return True
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _check_depth(at: Steps, depth: int) -> None:
    if len(at) >= depth:
        raise NotJsonError(dotted_path(at), f"it is nested deeper than {depth}")


def _name(key: object, at: Steps) -> str:
    if not isinstance(key, str):
        raise NotJsonError(dotted_path(at), f"{_kind(key)} cannot name an attribute")
    return _text(key, at)


def _plain(value: object, at: Steps) -> Json:
    match value:
        case None | bool():
            return value
        case int() if _LEAST <= value <= _MOST:
            return int(value)
        case float() if isfinite(value):
            return float(value)
        case str():
            return _text(value, at)
        case int():
            raise NotJsonError(dotted_path(at), "the number has more than 64 bits")
        case _:
            raise NotJsonError(dotted_path(at), f"{_kind(value)} is no JSON")


def _text(value: str, at: Steps) -> str:
    if has_half_characters(value):
        raise NotJsonError(dotted_path(at), HALF)
    return str.__str__(value)


HALF: Final = "there is half a character in the text"


def has_half_characters(text: str) -> bool:
    """Return whether a text has a surrogate (half of a UTF-16 pair), which no message may have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _kind(value: object) -> str:
    text = f" {value}" if isinstance(value, float) else ""
    return f"a value of type {type(value).__name__}{text}"


def json_size(value: Json) -> int:
    """Return the number of bytes of a value that is written as JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode(errors="surrogatepass"))


def unsendable(value: Json, at: Steps = ()) -> Flaw | None:
    """Return why no message can contain a value, apart from its total size, or None.

    Args:
        value: A value, or a part of one.
        at: Path of the value; its length counts towards the nesting.
    """
    if isinstance(value, str):
        return text_flaw(value, at)
    if not isinstance(value, dict | list):
        return None
    if len(at) >= VALUE_DEPTH:
        return Flaw(dotted_path(at), f"it is nested deeper than {VALUE_DEPTH}")
    if isinstance(value, list):
        flaws = (unsendable(each, (*at, number)) for number, each in enumerate(value))
        return next(filter(None, flaws), None)
    if len(value) > MAX_JSON_KEYS:
        return Flaw(dotted_path(at), f"an object has at most {MAX_JSON_KEYS} attributes")
    flaws = (text_flaw(key, at) or unsendable(each, (*at, key)) for key, each in value.items())
    return next(filter(None, flaws), None)


def text_flaw(text: str, at: Steps = ()) -> Flaw | None:
    """Return why no message can contain a text, or None if a message can."""
    if len(text) > MAX_JSON_TEXT:
        return Flaw(dotted_path(at), f"a text has at most {MAX_JSON_TEXT} characters")
    return Flaw(dotted_path(at), HALF) if has_half_characters(text) else None


if TYPE_CHECKING:
    from jsonschema_rs import Validator


_VALUE: Final = "it"
"""Word that stands for a value in error messages, since the value itself may be long."""

_COMPILED: Final = 64
"""Number of compiled schemas that a process keeps in memory."""


class NoSchemaError(ProtoflyError):
    """Refusal of a definition that is no JSON Schema: the path of the mistake, and the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"the definition is no JSON Schema: {f'{path}: ' if path else ''}{why}")


@attrs.frozen(slots=True)
class ObjectSchema:
    """Compiled JSON Schema against which values are checked; `compile_schema` makes it."""

    _validator: "Validator"

    def flaw(self, value: Json) -> Flaw | None:
        """Return the first flaw of a value, or None if the value obeys the schema."""
        from jsonschema_rs import ValidationError  # noqa: PLC0415 - see above

        try:
            self._validator.validate(value)
        except ValidationError as exc:
            return Flaw(dotted_path(tuple(exc.instance_path)), _cut(exc.message))
        return None


def compile_schema(definition: JsonObject) -> ObjectSchema:
    """Return a JSON Schema in compiled form, against which values can be checked.

    Raises:
        NoSchemaError: The definition is no schema, is too large, or refers to other documents.
    """
    if json_size(definition) > DEFINITION_BYTES:
        raise NoSchemaError("", f"it has more than {DEFINITION_BYTES} bytes")
    return _compile(json.dumps(definition, sort_keys=True))


@lru_cache(_COMPILED)
def _compile(definition: str) -> ObjectSchema:
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - see above

    try:
        validator = validator_for(json.loads(definition), offline=True, mask=_VALUE)
    except ValidationError as exc:
        raise NoSchemaError(dotted_path(tuple(exc.instance_path)), _cut(exc.message)) from exc
    except ValueError as exc:
        raise NoSchemaError("", _cut(str(exc))) from exc
    return ObjectSchema(validator)


def _cut(sentence: str) -> str:
    line = " ".join(sentence.split())
    return line if len(line) <= SCHEMA_WORDS else f"{line[:SCHEMA_WORDS]}..."
