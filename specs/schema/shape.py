"""Shapes: definitions of the permitted values of a field, made from the annotation of the field.

A shape checks a value when a body is made. The JSON Schema of the field is generated from the same
shape.

An annotation such as `Annotated[str, Text(least=1)]` contains the shape; from a plain annotation
(`str`, `tuple[str, ...]`, a body class, any JSON) the shape is derived.
"""

import re
from enum import StrEnum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, TypeAlias, Union, get_args, get_origin

import attrs

from specs.addresses.address import canonical
from specs.errors import BadMessageError, BadUrlError, SpecError
from specs.jsonvalue import is_json
from specs.limits.protocol import MAX_LIST
from specs.reply_code import Code

END: Final = r"$(?!\n)"
"""End of a regular expression; Python's `$` alone would permit a newline, unlike JSON Schema's."""

SHOWN: Final = 40
"""Largest number of characters of a wrong value that a refusal quotes."""


_canonical: Final = lru_cache(maxsize=4096)(canonical)


@attrs.frozen(slots=True)
class Anything:
    """Shape of a field for any JSON value."""

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no JSON, and so could not be sent unchanged."""
        if not is_json(value):
            raise BadMessageError(f"{where} must be JSON, not {describe_value(value)}")
        return value


@attrs.frozen(slots=True)
class Free:
    """Shape of a field for a JSON object with any keys."""

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no JSON object."""
        if not isinstance(value, dict):
            raise BadMessageError(f"{where} must be an object, not {describe_value(value)}")
        if not is_json(value):
            raise BadMessageError(f"{where} must hold JSON only")
        return value


@attrs.frozen(slots=True)
class Text:
    """Shape of a field for a text, which may have a minimum length and a pattern.

    Attributes:
        least: Minimum number of characters.
        pattern: Regular expression for the text, in the syntax of JSON Schema.
        meaning: The pattern in words, as the end of the sentence "The field must be ...".
    """

    least: int = 0
    pattern: str | None = None
    meaning: str = ""

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no text, is too short, or does not match the pattern."""
        if not isinstance(value, str):
            raise BadMessageError(f"{where} must be text, not {describe_value(value)}")
        if len(value) < self.least:
            raise BadMessageError(f"{where} must not be empty")
        if self.pattern is not None and re.search(self.pattern, value) is None:
            raise BadMessageError(f"{where} must be {self.meaning}, not {describe_value(value)}")
        return value


@attrs.frozen(slots=True)
class Address:
    """Shape of a field for an address, which is stored as its canonical text (N12)."""

    def check(self, value: object, where: str) -> object:
        """Return the canonical text of an address."""
        if not isinstance(value, str):
            raise BadMessageError(f"{where} must be text, not {describe_value(value)}")
        try:
            return _canonical(value)
        except BadUrlError as exc:
            raise BadMessageError(f"{where} {exc}") from exc


@attrs.frozen(slots=True)
class Word:
    """Shape of a field for a word of a closed vocabulary.

    Attributes:
        words: The vocabulary.
    """

    words: tuple[str, ...]

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no word of the vocabulary."""
        if not isinstance(value, str):
            raise BadMessageError(f"{where} must be text, not {describe_value(value)}")
        if value not in self.words:
            raise BadMessageError(f"{where} must be one of {', '.join(self.words)}")
        return str(value)


@attrs.frozen(slots=True)
class Whole:
    """Shape of a field for a whole number from `least` to `most`; JSON may write `2.0` for 2."""

    least: int
    most: int

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no whole number within the limits."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadMessageError(f"{where} must be a whole number, not {describe_value(value)}")
        return within(value, self, where)


@attrs.frozen(slots=True)
class Number:
    """Shape of a field for a number from `least` to `most`."""

    least: float
    most: float

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no number within the limits."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise BadMessageError(f"{where} must be a number, not {describe_value(value)}")
        return within(value, self, where)


@attrs.frozen(slots=True)
class Truth:
    """Shape of a field for true or false, or for only one of them (`only`)."""

    only: bool | None = None

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is not true or false, or not the permitted one."""
        if not isinstance(value, bool):
            raise BadMessageError(f"{where} must be true or false, not {describe_value(value)}")
        if self.only is not None and value is not self.only:
            raise BadMessageError(f"{where} must be {str(self.only).lower()}")
        return value


@attrs.frozen(slots=True)
class Part:
    """Shape of a field for an object that has a body class of its own (`kind`)."""

    kind: type[attrs.AttrsInstance]

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no instance of the class; JSON must be converted before."""
        if isinstance(value, self.kind):
            return value
        if isinstance(value, dict):
            raise BadMessageError(f"{where} must be of the class {self.kind.__name__}, not a dict")
        raise BadMessageError(f"{where} must be an object, not {describe_value(value)}")


@attrs.frozen(slots=True)
class Size:
    """Permitted number of elements of a list, for the annotation of a tuple."""

    least: int
    most: int = MAX_LIST


@attrs.frozen(slots=True)
class Many:
    """Shape of a field for a list, whose elements have the shape `of`; in Python a tuple."""

    of: "Shape"
    size: Size = Size(0)

    def check(self, value: object, where: str) -> object:
        """Check each element, and return the elements as a tuple."""
        if not isinstance(value, list | tuple):
            raise BadMessageError(f"{where} must be a list, not {describe_value(value)}")
        self.measure(len(value), where)
        check = self.of.check
        try:
            return tuple([check(each, where) for each in value])
        except BadMessageError:
            # Only now is the index of the wrong element needed.
            for number, each in enumerate(value):
                check(each, f"{where}[{number}]")
            raise

    def measure(self, length: int, where: str) -> None:
        """Refuse a list that is too long or too short."""
        bound = max(MAX_LIST, self.size.most)
        if length > bound:
            raise BadMessageError(f"{where} lists more than {bound}", Code.TOO_LARGE)
        if length < self.size.least:
            raise BadMessageError(f"{where} must not be an empty list")
        if length > self.size.most:
            raise BadMessageError(f"{where} must not list more than {self.size.most}")


@attrs.frozen(slots=True)
class Maybe:
    """Shape of a field that may be absent or null; a present value has the shape `of`."""

    of: "Shape"

    def check(self, value: object, where: str) -> object:
        """Check a value by the shape `of`, unless it is None."""
        return None if value is None else self.of.check(value, where)


Shape: TypeAlias = (
    Anything | Free | Text | Address | Word | Whole | Number | Truth | Part | Many | Maybe
)
"""All kinds of shapes of fields."""

_MARKS: Final = (Text, Address, Whole, Number)
_UNIONS: Final = (UnionType, Union)
_PLAIN: Final[dict[object, Shape]] = {str: Text(), bool: Truth()}


def shape_of(annotation: object) -> Shape:
    """Return the shape that the annotation of a field defines.

    Raises:
        SpecError: The annotation is of no known form; a number, for example, needs its limits.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape_of_annotation(args[0], args[1])
    if origin in _UNIONS and args[1:] == (NoneType,):
        return Maybe(shape_of(args[0]))
    if origin is tuple:
        return Many(shape_of(args[0]))
    if origin is Literal:
        return Truth(only=bool(args[0]))
    if origin is dict:
        return Free()
    return _simple(annotation)


def _shape_of_annotation(kind: object, annotated: object) -> Shape:
    if isinstance(annotated, Size):
        return Many(shape_of(get_args(kind)[0]), annotated)
    if isinstance(annotated, type) and issubclass(annotated, StrEnum):
        return Word(tuple(map(str, annotated)))
    if isinstance(annotated, _MARKS):
        return annotated
    raise SpecError(f"{annotated!r} does not say what a field holds")


def _simple(annotation: object) -> Shape:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and attrs.has(annotation):
        return Part(annotation)
    if isinstance(annotation, str):  # the alias Json, which names itself
        return Anything()
    raise SpecError(f"{annotation!r} does not say what a field holds")


def describe_value(value: object) -> str:
    """Return a short text about a wrong value, for the reason of a refusal."""
    if isinstance(value, dict) or attrs.has(type(value)):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return "null" if value is None else repr(value)[:SHOWN]


def within(value: float, limits: Whole | Number, where: str) -> float:
    """Return a number within the limits of a shape; refuse any other number."""
    if not limits.least <= value <= limits.most:
        raise BadMessageError(f"{where} must be >= {limits.least} and <= {limits.most}")
    return value
