"""Shapes: the permitted values of a field, read once from its annotation.

A shape checks a value when a body is made, and the JSON Schema of the field is generated from it:
there is no second definition of a field's values.

`Annotated[str, Word(Operation)]` contains its shape; from a plain annotation (`str`, `tuple[str,
...]`, a body class, free JSON) the shape is derived.
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
"""The end of a pattern; Python's `$` alone would let a line end pass, unlike JSON Schema's."""

SHOWN: Final = 40
"""Largest number of characters of a wrong value in a refusal."""


_canonical: Final = lru_cache(maxsize=4096)(canonical)


@attrs.frozen(slots=True)
class Anything:
    """Free JSON of any type."""

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no JSON: it could not be sent unchanged."""
        if not is_json(value):
            raise BadMessageError(f"{where} must be JSON, not {describe_value(value)}")
        return value


@attrs.frozen(slots=True)
class Free:
    """A JSON object with keys of its own."""

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no object; its contents are free JSON."""
        if not isinstance(value, dict):
            raise BadMessageError(f"{where} must be an object, not {describe_value(value)}")
        if not is_json(value):
            raise BadMessageError(f"{where} must hold JSON only")
        return value


@attrs.frozen(slots=True)
class Text:
    """Text.

    Attributes:
        least: Least number of characters.
        pattern: Its pattern, a regular expression that JSON Schema knows.
        meaning: The pattern in words: "must be ...".
    """

    least: int = 0
    pattern: str | None = None
    meaning: str = ""

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no text of this kind."""
        if not isinstance(value, str):
            raise BadMessageError(f"{where} must be text, not {describe_value(value)}")
        if len(value) < self.least:
            raise BadMessageError(f"{where} must not be empty")
        if self.pattern is not None and re.search(self.pattern, value) is None:
            raise BadMessageError(f"{where} must be {self.meaning}, not {describe_value(value)}")
        return value


@attrs.frozen(slots=True)
class Address:
    """An address, kept as its canonical text (N12)."""

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
    """A word of a closed vocabulary.

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
    """A whole number between two limits, both allowed; JSON may write it `2.0`."""

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
    """A number between two limits, both allowed."""

    least: float
    most: float

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is no number within the limits."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise BadMessageError(f"{where} must be a number, not {describe_value(value)}")
        return within(value, self, where)


@attrs.frozen(slots=True)
class Truth:
    """True or false, or only one of the two."""

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
    """An object of another body class."""

    kind: type[attrs.AttrsInstance]

    def check(self, value: object, where: str) -> object:
        """Refuse a value that is not of the class; JSON is converted before."""
        if isinstance(value, self.kind):
            return value
        if isinstance(value, dict):
            raise BadMessageError(f"{where} must be of the class {self.kind.__name__}, not a dict")
        raise BadMessageError(f"{where} must be an object, not {describe_value(value)}")


@attrs.frozen(slots=True)
class Size:
    """The number of elements of a list, for the annotation of a tuple."""

    least: int
    most: int = MAX_LIST


@attrs.frozen(slots=True)
class Many:
    """A list, which is a tuple in the class."""

    of: "Shape"
    size: Size = Size(0)

    def check(self, value: object, where: str) -> object:
        """Return the elements as a tuple, each checked."""
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
        """Refuse a list of a length that is not allowed."""
        bound = max(MAX_LIST, self.size.most)
        if length > bound:
            raise BadMessageError(f"{where} lists more than {bound}", Code.TOO_LARGE)
        if length < self.size.least:
            raise BadMessageError(f"{where} must not be an empty list")
        if length > self.size.most:
            raise BadMessageError(f"{where} must not list more than {self.size.most}")


@attrs.frozen(slots=True)
class Maybe:
    """A value that may be absent; `null` counts as absent."""

    of: "Shape"

    def check(self, value: object, where: str) -> object:
        """Check a present value."""
        return None if value is None else self.of.check(value, where)


Shape: TypeAlias = (
    Anything | Free | Text | Address | Word | Whole | Number | Truth | Part | Many | Maybe
)
"""Any shape of a field."""

_MARKS: Final = (Text, Address, Whole, Number)
_UNIONS: Final = (UnionType, Union)
_PLAIN: Final[dict[object, Shape]] = {str: Text(), bool: Truth()}


def shape_of(annotation: object) -> Shape:
    """Return the shape of an annotation.

    Raises:
        SpecError: It says nothing that a body could hold; a number, for example,
            needs its limits.
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
    """Return a wrong value in words, for a refusal."""
    if isinstance(value, dict) or attrs.has(type(value)):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return "null" if value is None else repr(value)[:SHOWN]


def within(value: float, limits: Whole | Number, where: str) -> float:
    """Refuse a number beyond its limits."""
    if not limits.least <= value <= limits.most:
        raise BadMessageError(f"{where} must be >= {limits.least} and <= {limits.most}")
    return value
