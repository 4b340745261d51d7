"""The lines a demonstrating process prints: what really happened to it, as JSON."""

from enum import StrEnum
from typing import Final, final

import attrs
import orjson

from actors.commands.output import say
from specs.jsonvalue import Json, JsonObject

__all__ = ["SCHEMA", "Line", "What", "read_line", "tell"]

SCHEMA: Final = "demo"
"""Name of the shape of these lines."""


class What(StrEnum):
    """What a line tells."""

    READY = "ready"
    STEP = "step"
    NOTE = "note"
    FIGURES = "figures"
    VERDICT = "verdict"
    DONE = "done"


@final
@attrs.frozen
class Line:
    """One line.

    Attributes:
        who: Name of the process.
        what: What it tells.
        text: The same in words.
        fields: Everything the line carries.
    """

    who: str
    what: What
    text: str
    fields: JsonObject


def tell(who: str, what: What, text: str, **fields: Json) -> None:
    """Print a line."""
    say(SCHEMA, who=who, what=what, text=text, **fields)


def read_line(who: str, raw: bytes) -> Line | None:
    """Read a line of a child; a ready line too. None: it is no such line."""
    try:
        fields: Json = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    if fields.get("schema") == "protofly.ready/1":
        ready = f"{fields.get('role')} ready at {fields.get('url')}"
        return Line(who, What.READY, ready, fields)
    what, text = fields.get("what"), fields.get("text")
    if not isinstance(text, str) or not isinstance(what, str) or what not in set(What):
        return None
    return Line(who, What(what), text, fields)
