"""Checks of the types of arguments of the public API, and conversion of paths."""

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Final, TypeAlias, cast, get_args, get_origin

import attrs

from specs.limits.protocol import ANSWER_WITHIN_MOST

PathInput: TypeAlias = str | PathLike[str]
"""Path of a file or folder, as a caller of the public API passes it."""

_Field: TypeAlias = "attrs.Attribute[object]"

_WORDS: Final[dict[object, str]] = {
    str: "text (str)",
    Path: "a path (str or os.PathLike)",
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    bytes: "bytes",
}


def check_type(value: object, kinds: tuple[type, ...], what: str) -> None:
    """Raise an error if an argument has none of the expected types.

    Args:
        value: The argument.
        kinds: Expected types.
        what: Name of the argument, for people.

    Raises:
        TypeError: The argument has another type.
    """
    is_number = float in kinds and isinstance(value, int)
    is_truth = isinstance(value, bool) and bool not in kinds and object not in kinds
    if is_truth or not (isinstance(value, kinds) or is_number):
        wanted = " or ".join(_WORDS.get(kind, kind.__name__) for kind in kinds)
        # The value itself may be a secret.
        raise TypeError(f"{what} must be {wanted}, not {type(value).__name__}")


def check_text(value: object, what: str) -> None:
    """Raise an error if an argument is not a text.

    Args:
        value: The argument.
        what: Name of the argument, for people.

    Raises:
        TypeError: The argument is not a text.
    """
    if not isinstance(value, str):
        check_type(value, (str,), what)


def check_attribute(value: object) -> None:
    """Raise an error if an argument is neither None nor the dotted path of an attribute.

    Args:
        value: The argument.

    Raises:
        TypeError: The argument is neither a text nor None.
        ValueError: The argument is an empty text.
    """
    check_type(value, (str, NoneType), "attribute")
    if value == "":
        raise ValueError("attribute is a dotted path, and an empty one names nothing")


def check_texts(values: object, what: str) -> None:
    """Raise an error if an argument is not a collection of texts.

    Args:
        values: The argument.
        what: Name of the argument, for people.

    Raises:
        TypeError: It is a single text, or an element is not a text.
    """
    is_several = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    if not is_several:
        raise TypeError(f"{what} must be several texts, such as a list, not {_kind_of(values)}")
    for each in cast("Iterable[object]", values):
        check_text(each, f"each of {what}")


def _kind_of(value: object) -> str:
    return type(value).__name__


def as_path(given: PathInput, what: str = "the path") -> Path:
    """Convert an argument of the public API to a path.

    Args:
        given: The path.
        what: Name of the argument, for people.

    Raises:
        TypeError: It is neither a text nor an `os.PathLike`.
    """
    kind: object = given
    if not isinstance(kind, str | PathLike):
        check_type(kind, (Path,), what)
    return Path(given)


def as_path_or_none(given: PathInput | None) -> Path | None:
    """Return a path, or None; an attrs converter for a field that `type_checked` checks."""
    return Path(given) if isinstance(given, str | PathLike) else given


def as_domain(given: str) -> str:
    """Return a domain name in lower case; an attrs converter that leaves other types unchanged."""
    kind: object = given
    return kind.lower() if isinstance(kind, str) else given


def as_paths(given: Iterable[PathInput]) -> tuple[Path, ...]:
    """Return several paths; an attrs converter.

    Raises:
        TypeError: It is a single path, or an element is not a path.
    """
    if isinstance(given, str | PathLike) or not isinstance(given, Iterable):
        raise TypeError(f"files must be several paths, such as a list, not {_kind_of(given)}")
    return tuple(as_path(each, "each of files") for each in given)


def type_checked(owner: type, fields: list[_Field]) -> list[_Field]:
    """Add a validator to each field of an attrs class that refuses values of a wrong type.

    An attrs `field_transformer`. Annotations that are strings or protocols are not checked.

    Args:
        owner: The class.
        fields: Its fields.
    """
    return [_check_field(owner, field) for field in fields]


def _check_field(owner: type, field: _Field) -> _Field:
    check = _check_of(f"{owner.__name__}.{field.name}", field.type)
    if check is None:
        return field
    also = () if field.validator is None else (field.validator,)
    return field.evolve(validator=attrs.validators.and_(check, *also))


_Check: TypeAlias = Callable[[object, "_Field", object], None]


def _check_of(name: str, kind: object) -> _Check | None:
    """Return the validator of a field; None: its annotation cannot be checked."""
    parts = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    kinds = tuple(get_origin(part) or part for part in parts)
    if not all(
        isinstance(each, type) and not getattr(each, "_is_protocol", False) for each in kinds
    ):
        return None
    types = cast("tuple[type, ...]", kinds)
    elements = _element_of(kind)

    def check(_: object, __: _Field, value: object) -> None:
        check_type(value, types, name)
        if elements is not None:
            for each in cast("Iterable[object]", value):
                check_type(each, (elements,), f"each of {name}")

    return check


def _element_of(kind: object) -> type | None:
    """Return the type of the elements of a tuple or set type; None: the type is neither."""
    args = get_args(kind)
    is_such = get_origin(kind) in {tuple, frozenset} and isinstance(args[0], type)
    return args[0] if is_such else None


def check_answer_within(seconds: float, name: str = "answer_within") -> None:
    """Refuse a time that no request may have.

    Raises:
        TypeError: It is no number.
        ValueError: It is not above 0, or above `ANSWER_WITHIN_MOST`.
    """
    check_type(seconds, (int, float), name)
    if not 0 < seconds <= ANSWER_WITHIN_MOST:
        most = f"{ANSWER_WITHIN_MOST:g}"
        raise ValueError(f"{name} must be above 0 and at most {most} seconds, not {seconds}")
