"""How much JSON one message may be (RELIABILITY L4)."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_JSON_DEPTH, MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.reply_code import Code

__all__ = ["check_size"]

_OPENERS: Final = (b"{", b"[")
_NESTED: Final = frozenset({dict, list})


def check_size(text: bytes, value: Json) -> None:
    """Refuse what is nested too deep, or holds too many keys or too long a text.

    Args:
        text: The JSON as it came; it bounds what can be in it, so that most
            messages need no closer look.
        value: What it says, as it was read: in dictionaries and lists.

    Raises:
        BadMessageError: One limit is broken; the code is 413.
    """
    has_texts = len(text) > MAX_JSON_TEXT
    is_surely_small = (
        not has_texts
        and sum(map(text.count, _OPENERS)) <= MAX_JSON_DEPTH
        and text.count(b":") <= MAX_JSON_KEYS
    )
    if not is_surely_small:
        _look(value, has_texts=has_texts)


def _look(value: Json, *, has_texts: bool) -> None:
    level = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        if has_texts:
            _check_texts(level)
        if _NESTED.isdisjoint(map(type, level)):
            # Often most of it: this is asked without a look at each part.
            return
        objects = [one for one in level if isinstance(one, dict)]
        if max(map(len, objects), default=0) > MAX_JSON_KEYS:
            why = f"an object has more than {MAX_JSON_KEYS} keys"
            raise BadMessageError(why, Code.TOO_LARGE)
        if has_texts:
            _check_texts(chain.from_iterable(objects))
        lists = [one for one in level if isinstance(one, list)]
        level = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
    raise BadMessageError(f"JSON is nested deeper than {MAX_JSON_DEPTH}", Code.TOO_LARGE)


def _check_texts(values: Iterable[Json]) -> None:
    for one in values:
        if isinstance(one, str) and len(one) > MAX_JSON_TEXT:
            why = f"a text is longer than {MAX_JSON_TEXT} characters"
            raise BadMessageError(why, Code.TOO_LARGE)
