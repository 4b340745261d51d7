"""What the fields of bodies have in common: names on the wire, addresses, limits."""

from collections.abc import Callable, Sequence, Sized
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from specs.address import canonical
from specs.errors import BadMessageError, BadUrlError
from specs.limits import MAX_LIST
from specs.reply_code import Code

if TYPE_CHECKING:
    import attrs

WIRE: Final = "wire"
"""Metadata key under which a field keeps its name on the wire."""

T = TypeVar("T")
N = TypeVar("N", int, float)


def wire(name: str) -> dict[str, str]:
    """Return the metadata of a field that has another name on the wire."""
    return {WIRE: name}


def address(value: str) -> str:
    """Return the canonical text of an address field (N12).

    Raises:
        BadMessageError: It is no address.
    """
    if not isinstance(value, str):
        raise BadMessageError(f"an address is text, not {type(value).__name__}")
    try:
        return canonical(value)
    except BadUrlError as exc:
        raise BadMessageError(str(exc)) from exc


def optional_address(value: str | None) -> str | None:
    """Return the canonical text of an address field that may be absent."""
    return None if value is None else address(value)


def addresses(value: Sequence[str]) -> tuple[str, ...]:
    """Return the canonical texts of a list of addresses."""
    return tuple(address(one) for one in value)


def optional_addresses(value: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the canonical texts of a list of addresses that may be absent."""
    return None if value is None else addresses(value)


def short(_: object, field: "attrs.Attribute[T]", value: T) -> None:
    """Refuse a list with too many elements; what is absent is short."""
    if isinstance(value, Sized) and len(value) > MAX_LIST:
        raise BadMessageError(f"{field.name} lists more than {MAX_LIST}", Code.TOO_LARGE)


def one_of(words: type[StrEnum]) -> "Callable[[object, attrs.Attribute[str], str], None]":
    """Return a validator that knows the words of a closed vocabulary."""
    known = frozenset(words)

    def check(_: object, field: "attrs.Attribute[str]", value: str) -> None:
        if value not in known:
            raise BadMessageError(f"{field.name} must be one of {', '.join(words)}")

    return check


def in_range(least: N, most: N) -> "Callable[[object, attrs.Attribute[N], N], None]":
    """Return a validator for a number between two limits, both allowed."""

    def check(_: object, field: "attrs.Attribute[N]", value: N) -> None:
        if isinstance(value, bool) or not least <= value <= most:
            raise BadMessageError(f"{field.name} must be >= {least} and <= {most}")

    return check
