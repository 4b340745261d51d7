"""The script of the demonstration: the expected lines of each process, in order, in seven acts.

Each process prints what really happened to it as lines of JSON; a line names the step of
the script that it shows.
"""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, final

import attrs
import orjson

from actors.cli.output import say
from specs.jsonvalue import Json, JsonObject

__all__ = ["ACTS", "SCHEMA", "Beat", "Line", "What", "first_act", "read_line", "report"]


class Beat(StrEnum):
    """Something that has to happen, as its line names it."""

    SERVES = "serves"
    UNREACHED = "unreached"
    NODE_STUB_DEPLOYED = "node-stub-deployed"
    NODE_STUB_LIVE = "node-stub-live"
    SESSION_OPENED = "session-opened"
    ALLOCATED = "allocated"
    REGISTERED = "registered"
    NO_LISTENER = "no-listener"
    RESOLVED_TO_NODE = "resolved-to-node"
    ANSWERED = "answered"
    REQUESTER_DEPLOYED = "requester-deployed"
    OBJECT_ALLOCATED = "object-allocated"
    LINK_STARTED = "link-started"
    LINK_SIGNALLED = "link-signalled"
    WRITTEN = "written"
    CANDIDATE = "candidate"
    READ = "read"
    DIALLED = "dialled"
    STATUS_EVENT = "status-event"
    LINK_LIVE = "link-live"
    ON_BUS = "on-bus"
    ON_MINIBUS = "on-minibus"
    ROW_SET = "row-set"
    ROW_LIVE = "row-live"
    MEASURED_BY_NODE = "measured-by-node"
    RESOLVED_TO_LINK = "resolved-to-link"
    MEASURED_BY_LINK = "measured-by-link"
    COMPARED = "compared"
    CUT = "cut"
    LINK_LOST = "link-lost"
    ROW_LOST = "row-lost"
    LINK_BACK = "link-back"
    CAUGHT_UP = "caught-up"
    RECKONED = "reckoned"
    LEAVES = "leaves"
    UNREGISTERED = "unregistered"
    ROW_GONE = "row-gone"
    OFF_BUS = "off-bus"
    OFF_MINIBUS = "off-minibus"
    RELEASED = "released"
    UNSUBSCRIBED = "unsubscribed"
    SESSION_CLOSED = "session-closed"
    NODE_STUB_LEFT = "node-stub-left"
    GONE = "gone"


@final
@attrs.frozen
class Act:
    """One point of the demonstration.

    Attributes:
        beats: What each process has to show, in its own order; other things may
            happen in between.
        beside: What it has to show too, in an order of its own: the protocol does not
            fix when this comes among the others.
        also: What belongs here too, but need not be seen, or not at a certain time.
        cue: Process and line that open the act; lines of others wait for it.
    """

    title: str
    beats: Mapping[str, tuple[Beat, ...]] = MappingProxyType({})
    beside: Mapping[str, tuple[Beat, ...]] = MappingProxyType({})
    also: frozenset[Beat] = frozenset()
    cue: tuple[str, Beat] | None = None


_ARRIVAL: Final = (
    Beat.UNREACHED,
    Beat.NODE_STUB_DEPLOYED,
    Beat.RESOLVED_TO_NODE,
    Beat.NODE_STUB_LIVE,
)
_WELCOME: Final = (Beat.SESSION_OPENED, Beat.ALLOCATED, Beat.REGISTERED)
_FAREWELL: Final = (Beat.UNREGISTERED, Beat.UNSUBSCRIBED, Beat.RELEASED, Beat.SESSION_CLOSED)

ACTS: Final = (
    Act(
        "Sessions, addresses, registration",
        {
            "node": (Beat.SERVES, *_WELCOME, *_WELCOME),
            "bob": (*_ARRIVAL, Beat.SERVES),
            "alice": (*_ARRIVAL, Beat.SERVES),
        },
    ),
    Act(
        "The first request, and what it takes to get there",
        {"alice": (Beat.NO_LISTENER, Beat.RESOLVED_TO_NODE, Beat.ANSWERED)},
    ),
    Act(
        "A link of their own: offer, answer, candidates",
        {
            "node": (Beat.OBJECT_ALLOCATED, Beat.OBJECT_ALLOCATED),
            "alice": (
                Beat.LINK_STARTED,
                Beat.WRITTEN,
                Beat.LINK_SIGNALLED,
                Beat.READ,
                Beat.DIALLED,
                Beat.LINK_LIVE,
                Beat.STATUS_EVENT,
                Beat.ROW_LIVE,
            ),
            "bob": (
                Beat.LINK_STARTED,
                Beat.READ,
                Beat.WRITTEN,
                Beat.LINK_SIGNALLED,
                Beat.LINK_LIVE,
                Beat.STATUS_EVENT,
                Beat.ON_BUS,
                Beat.ON_MINIBUS,
                Beat.ROW_LIVE,
            ),
        },
        also=frozenset({Beat.REQUESTER_DEPLOYED, Beat.CANDIDATE, Beat.STATUS_EVENT, Beat.ROW_SET}),
    ),
    Act(
        "The two routes compared",
        {
            "alice": (
                Beat.MEASURED_BY_NODE,
                Beat.RESOLVED_TO_LINK,
                Beat.MEASURED_BY_LINK,
                *(Beat.COMPARED,) * 4,
            )
        },
    ),
    Act(
        "The link is cut, and comes back",
        {
            "alice": (
                Beat.CUT,
                Beat.LINK_LOST,
                Beat.ROW_LOST,
                Beat.RESOLVED_TO_NODE,
                Beat.LINK_BACK,
                Beat.RESOLVED_TO_LINK,
                Beat.CAUGHT_UP,
                Beat.RECKONED,
            ),
            # Alice may dial again before Bob's registry has heard of the loss.
            "bob": (Beat.LINK_LOST, Beat.LINK_BACK),
        },
        beside={"bob": (Beat.ROW_LOST, Beat.ROW_LIVE)},
        cue=("alice", Beat.CUT),
    ),
    Act(
        "All processes leave in order",
        {
            "alice": (Beat.LEAVES, Beat.ROW_GONE, Beat.LINK_LOST, Beat.NODE_STUB_LEFT, Beat.GONE),
            "bob": (Beat.LINK_LOST, Beat.ROW_GONE, Beat.OFF_BUS, Beat.NODE_STUB_LEFT),
            "node": (*_FAREWELL, *_FAREWELL),
        },
        also=frozenset({Beat.OFF_MINIBUS}),
        cue=("alice", Beat.LEAVES),
    ),
    Act("The verdict on the three traces"),
)
"""The seven acts. The order within a process is the protocol's: SC-01, 04, 05, 09, 11,
13 for the first two, SC-16, 17, 20, 21 and I-P17 for the third, SC-25 for the fifth,
SC-28 for the sixth."""


def first_act(who: str, beat: Beat) -> int:
    """Return in which act a process may show something first; what none awaits fits any.

    Args:
        who: Name of the process.
        beat: Milestone of the act.
    """
    for number, act in enumerate(ACTS):
        shown = act.beats.get(who, ()) + act.beside.get(who, ())
        if beat in shown or beat in act.also:
            return number
    return 0


SCHEMA: Final = "demo"
"""Name of the shape of these lines."""

_READY: Final = "protofly.ready/1"


class What(StrEnum):
    """Kinds of lines."""

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
        beat: Which step of the demonstration it shows, if any.
    """

    who: str
    what: What
    text: str
    fields: JsonObject = attrs.field(factory=dict)
    beat: Beat | None = None


def report(who: str, what: What, text: str, beat: Beat | None = None, **fields: Json) -> None:
    """Print a line; if the reader has gone, print nothing from now on.

    Args:
        who: Name of the process.
        what: Kind of the line.
        text: The text.
        beat: Milestone of the act.
        **fields: Further fields of the line.
    """
    try:
        say(SCHEMA, who=who, what=what, text=text, beat=beat, **fields)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_line(who: str, raw: bytes) -> Line | None:
    """Read a line of a child; a ready line too. None: it is no such line.

    Args:
        who: Name of the process.
        raw: The bytes of the line.
    """
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
