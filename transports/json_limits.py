"""How much JSON one message may be (RELIABILITY L4)."""

from typing import Final

from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits import MAX_JSON_DEPTH, MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.reply_code import Code

__all__ = ["check_size"]

_OPENERS: Final = (b"{", b"[")


def check_size(text: bytes, value: Json) -> None:
    """Refuse what is nested too deep, or holds too many keys or too long a text.

    Args:
        text: The JSON as it came; it bounds what can be in it, so that most
            messages need no closer look.
        value: What it says.

    Raises:
        BadMessageError: One limit is broken; the code is 413.
    """
    is_surely_small = (
        len(text) <= MAX_JSON_TEXT
        and sum(map(text.count, _OPENERS)) <= MAX_JSON_DEPTH
        and text.count(b":") <= MAX_JSON_KEYS
    )
    if not is_surely_small:
        _look(value)


def _look(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [part for one in level for part in _parts(one)]
    if any(isinstance(one, dict | list) for one in level):
        raise BadMessageError(f"JSON is nested deeper than {MAX_JSON_DEPTH}", Code.TOO_LARGE)
    for one in level:
        _parts(one)


def _parts(value: Json) -> list[Json]:
    """Return what a value is made of, after a check of its own size."""
    if isinstance(value, dict):
        if len(value) > MAX_JSON_KEYS:
            raise BadMessageError(f"an object has more than {MAX_JSON_KEYS} keys", Code.TOO_LARGE)
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, str) and len(value) > MAX_JSON_TEXT:
        raise BadMessageError(f"a text is longer than {MAX_JSON_TEXT} characters", Code.TOO_LARGE)
    return []
