"""RELIABILITY L4: what exceeds a limit is refused, however the rest of the JSON looks.

JSON by chance, near the limits, is measured part by part beside the check, which looks at its text.
"""

from collections import Counter
from random import Random

import orjson
import pytest

from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_JSON_DEPTH, MAX_JSON_KEYS, MAX_JSON_TEXT
from tests.support.chance import examples
from transports.codec import check_size

EXAMPLES = examples(1_500)
TEXTS = (
    "", "x", ":", "::", "{", "}", "[]", "{}", '"', '""', '":"', "\\", "\\\\", '\\"', '[":', "a:b",
    "}]", "\n", "\u2028", '{"a":[', '\\\\"', "\U0001f600",
)  # fmt: skip


def measured(value: Json) -> tuple[int, int, int]:
    """Return the nesting of JSON, the most keys of an object, and the longest text."""
    if isinstance(value, str):
        return 0, 0, len(value)
    if not isinstance(value, dict | list):
        return 0, 0, 0
    is_object = isinstance(value, dict)
    parts = [*value, *value.values()] if is_object else value
    depths, keys, texts = zip((0, 0, 0), *map(measured, parts), strict=True)
    return 1 + max(depths), max(*keys, len(value) if is_object else 0), max(texts)


def refusal(text: bytes, value: Json) -> str:
    """Return what the check objects to; empty: nothing."""
    try:
        check_size(text, value)
    except BadMessageError as exc:
        return f"{exc.code}: {exc.reason}"
    return ""


def text_of(dice: Random) -> str:
    """Return a text, often one that looks like JSON."""
    return "".join(dice.choices(TEXTS, k=dice.choice((0, 1, 1, 2, 5))))


def value_of(dice: Random, depth: int) -> Json:
    """Return JSON with not much in it."""
    size = dice.choice((0, 1, 2, 3))
    match dice.randrange(7) if depth else 6:
        case 0 | 1:
            return [value_of(dice, depth - 1) for _ in range(size)]
        case 2 | 3:
            return {text_of(dice): value_of(dice, depth - 1) for _ in range(size)}
        case 4:
            row: Json = {text_of(dice): 1, "b": []}
            return [row] * dice.choice((1, 20, 200))
        case 5:
            return dice.choice((None, 1, -1.5, True))
        case _:
            return text_of(dice)


def wrapped(dice: Random, value: Json, times: int) -> Json:
    """Return JSON within so many lists and objects, with something beside it."""
    for _ in range(times):
        beside = value_of(dice, 1)
        kinds: tuple[Json, ...] = (
            [value],
            [beside, value],
            {"k": value},
            {text_of(dice): beside, "k": value},
        )
        value = dice.choice(kinds)
    return value


def large_of(dice: Random) -> Json:
    """Return JSON that is near one of the limits, or beyond."""
    value = value_of(dice, 3)
    match dice.randrange(5):
        case 0:
            more = dice.choice((-1, 0, 1)) + MAX_JSON_KEYS
            value = {f"{text_of(dice)}{n}": value if n < 2 else n for n in range(more)}
        case 1:
            value = [value, "y" * (MAX_JSON_TEXT + dice.choice((-1, 0, 1)))]
        case 2:
            value = [{f"{text_of(dice)}{n}": n for n in range(keys)} for keys in range(40)]
    deep = dice.choice((1, 2, MAX_JSON_DEPTH - measured(value)[0] + dice.choice((-1, 0, 1))))
    return wrapped(dice, value, deep)


@pytest.mark.chance
def test_json_is_refused_exactly_if_one_of_its_parts_exceeds_a_limit():
    """Nesting, keys of one object, characters of one text."""
    dice = Random(11)  # noqa: S311 - chance, no secret
    seen: Counter[str] = Counter()
    for _ in range(EXAMPLES):
        value = large_of(dice)
        text = orjson.dumps(value)
        depth, keys, longest = measured(value)
        is_over = depth > MAX_JSON_DEPTH or keys > MAX_JSON_KEYS or longest > MAX_JSON_TEXT
        why = refusal(text, value)
        assert why[:3] == ("413" if is_over else ""), text[:2000]
        seen[why] += 1
    assert len(seen) == 4, seen
    assert min(seen.values()) > EXAMPLES / 40, seen
