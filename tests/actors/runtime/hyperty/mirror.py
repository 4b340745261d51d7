"""A hyperty that answers with values of every kind, in a module that another process can import."""

import math
from datetime import datetime
from decimal import Decimal
from enum import Enum

from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from specs.limits.protocol import MAX_JSON_DEPTH, MAX_JSON_KEYS, MAX_JSON_TEXT, MAX_MESSAGE_BYTES

LARGEST = 1_048_576
"""Bytes that a body may have in the runtimes of these tests."""


class Colour(Enum):
    """What JSON does not know."""

    RED = 1 + 1j


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


def endless():
    value = []
    value.append(value)
    return value


NO_JSON = {
    "set": {1 + 1j},
    "object": object(),
    "nan": [math.nan],
    "infinity": {"a": -math.inf},
    "decimal": Decimal("NaN"),
    "time": datetime(2026, 1, 1),  # noqa: DTZ001 - it is refused
    "enum": Colour.RED,
    "key": {"a": {1: 2}},
    "half a character": ["\ud800"],
    "half a key": {"\udfff": 1},
    "beyond 64 bits": 2**64,
    "below 64 bits": -(2**63) - 1,
    "too deep": nested(MAX_JSON_DEPTH - 1),
    "endless": endless(),
}
"""Refused with 500, or `ValueError`: no wire carries it."""

TOO_LARGE = {"over the limit of chunks": "x" * LARGEST}
"""Refused with 413."""

IN_CHUNKS = {
    "long": ["x" * 1000] * (MAX_MESSAGE_BYTES // 1000),
    "nearly a message": ["x" * 1000] * ((MAX_MESSAGE_BYTES - 3000) // 1000),
    "a long text": "x" * (MAX_JSON_TEXT + 1),
    "a long name": {"x" * (MAX_JSON_TEXT + 1): 1},
    "many names": {str(number): number for number in range(MAX_JSON_KEYS + 1)},
    "several chunks": ['"é\\\U0001f600' * 1000] * 20,
}
"""Too large for a message, so that they travel in chunks (P2P-21)."""

GOOD = {
    "deep": nested(MAX_JSON_DEPTH - 2),
    "a text": "x" * MAX_JSON_TEXT,
    "names": {str(number): number for number in range(MAX_JSON_KEYS)},
    "large": ["x" * 1000] * 59,
    "bounds": [2**64 - 1, -(2**63), 1.5e308, 5e-324, -0.0],
    "texts": ["", "\0", "\x7f", "\u2028", "é", "\U0001f600", '"', "\\"],
    "empty": {"": {}, "a": []},
    **IN_CHUNKS,
}
"""Taken by all."""

CODES = {**dict.fromkeys(NO_JSON, 500), **dict.fromkeys(TOO_LARGE, 413), **dict.fromkeys(GOOD, 200)}
BAD = {**NO_JSON, **TOO_LARGE}


class Mirror(Hyperty):
    """Does with values what it is asked, and keeps what it can."""

    def __init__(self):
        self.kept = []
        self.number = 0

    @override
    async def on_request(self, message):
        self.number += 1
        match message.body["value"]:
            case {"give": name}:
                return {**BAD, **GOOD}[name]
            case {"send": name, "to": to}:
                return await self.sent(to, {**BAD, **GOOD}[name])
            case {"fail": _}:
                raise RuntimeError("secret of the inside")
            case {"spoil": value}:
                # What was kept and given before is changed, and what has just come.
                for each in (*self.kept, value):
                    each.append("spoilt")
                self.kept.append(value)
                return value
            case {"number": _}:
                return self.number
            case {"kept": _}:
                return self.kept
            case value:
                return value

    async def sent(self, to, value):
        try:
            answer = await self.request(to, value)
        except ValueError as exc:
            return type(exc).__name__
        return answer.code
