"""The lines a demonstrating process prints: what really happened to it, as JSON."""

import os
import sys
from enum import StrEnum
from typing import Final, final

import attrs
import orjson

from actors.cli.output import say
from actors.demo.act import Beat
from specs.jsonvalue import Json, JsonObject

__all__ = ["SCHEMA", "Line", "What", "read_line", "tell"]

SCHEMA: Final = "demo"
"""Name of the shape of these lines."""

_READY: Final = "protofly.ready/1"


class What(StrEnum):
    """What a line tells."""

    READY = "ready"
    ACT = "act"
    STEP = "step"
    DETAIL = "detail"
    NOTE = "note"
    ROW = "row"
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
        fields: Everything else the line carries.
        beat: Which step of the demonstration it shows, if any.
    """

    who: str
    what: What
    text: str
    fields: JsonObject = attrs.field(factory=dict)
    beat: Beat | None = None


def tell(who: str, what: What, text: str, beat: Beat | None = None, **fields: Json) -> None:
    """Print a line; if nobody reads any more, be silent from now on."""
    try:
        say(SCHEMA, who=who, what=what, text=text, beat=beat, **fields)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_line(who: str, raw: bytes) -> Line | None:
    """Read a line of a child; a ready line too. None: it is no such line."""
    try:
        fields: Json = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    if fields.get("schema") == _READY:
        return Line(who, What.READY, f"ready: {fields.get('url')}", fields, Beat.SERVES)
    what, text, beat = (fields.get(name) for name in ("what", "text", "beat"))
    if not isinstance(text, str) or what not in set(What):
        return None
    return Line(who, What(str(what)), text, fields, _beat(beat))


def _beat(name: Json) -> Beat | None:
    return Beat(name) if isinstance(name, str) and name in set(Beat) else None
