"""State machine of an observer's copy of a data object (protocol page 03, section 3.3).

Each pair of object and observer has one entity (SYN-11..SYN-17, M-36..M-41, M-47, I-D3..I-D5,
I-D8). No change is applied before the snapshot; a change that comes earlier is kept. Then changes
are applied strictly version by version: the next one is applied, an older one is ignored, and a
version that is too high shows that a change was lost: the copy is stale until the whole object was
read again.

A runtime's registry has a copy of each remote registry's list that it follows over a direct link
(P2P-23..26, SC-18, I-C3). Such a list has no versions, and its link loses nothing: changes that
come before the list are kept, later ones are applied at once, and the copy ends with the link.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition, unless, when


class State(StrEnum):
    """State of a copy."""

    SYNCING = "syncing"
    LIVE = "live"
    STALE = "stale"
    DELETED = "deleted"


class Trigger(StrEnum):
    """Event that changes the state of a copy."""

    OBSERVE = "observe"
    SNAPSHOT = "snapshot"
    RECALLED = "recalled"
    CHANGED = "changed"
    READ_FAILED = "read-failed"
    GIVEN_UP = "given-up"
    DELETED = "deleted"


class Condition(StrEnum):
    """Condition on a change's version, compared with the copy's."""

    GAP = "gap"
    """A version between the copy's and the change's is missing."""


_OBSERVE: Final = "the observer subscribes"
_SNAPSHOT: Final = "the snapshot of the object came"
_RECALLED: Final = "the stored value is shown until the object has been read"
_EARLY: Final = "a change that comes before the object has been read is kept"
_APPLY: Final = "the next version is applied, an older one is not"
_GAP: Final = "a version is missing"
_READ: Final = "the object has been read"
_LATE: Final = "the object may be read at any time, and an answer may come late"
_AGAIN: Final = "the read failed; it is repeated until it succeeds"
_DELETED: Final = "the reporter deleted the object"
_REFUSED: Final = "the subscription was refused, or the observer leaves"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,          Trigger.OBSERVE,     State.SYNCING, _OBSERVE),
    Transition(State.SYNCING, Trigger.SNAPSHOT,    State.LIVE,    _SNAPSHOT),
    Transition(State.SYNCING, Trigger.RECALLED,    State.STALE,   _RECALLED, origin=Origin.EXTENSION),
    Transition(State.SYNCING, Trigger.CHANGED,     State.SYNCING, _EARLY, origin=Origin.EXTENSION),
    Transition(State.SYNCING, Trigger.GIVEN_UP,    State.DELETED, _REFUSED),
    Transition(State.SYNCING, Trigger.DELETED,     State.DELETED, _DELETED),
    Transition(State.LIVE,    Trigger.CHANGED,     State.LIVE,    _APPLY, origin=Origin.EXTENSION, guard=unless(Condition.GAP)),
    Transition(State.LIVE,    Trigger.CHANGED,     State.STALE,   _GAP,   guard=when(Condition.GAP)),
    Transition(State.LIVE,    Trigger.SNAPSHOT,    State.LIVE,    _LATE,  origin=Origin.EXTENSION),
    Transition(State.LIVE,    Trigger.GIVEN_UP,    State.DELETED, _REFUSED),
    Transition(State.LIVE,    Trigger.DELETED,     State.DELETED, _DELETED),
    Transition(State.STALE,   Trigger.SNAPSHOT,    State.LIVE,    _READ),
    Transition(State.STALE,   Trigger.CHANGED,     State.STALE,   _EARLY, origin=Origin.EXTENSION),
    Transition(State.STALE,   Trigger.READ_FAILED, State.STALE,   _AGAIN, origin=Origin.EXTENSION),
    Transition(State.STALE,   Trigger.GIVEN_UP,    State.DELETED, _REFUSED),
    Transition(State.STALE,   Trigger.DELETED,     State.DELETED, _DELETED),
)
# fmt: on

OBSERVER_COPY: Final = Table(
    name="observer_copy",
    owner="syncher of the component that observes; registry, of what lives elsewhere",
    key="<object>|<observer>",
    states=State,
    triggers=Trigger,
    conditions=Condition,
    rows=_ROWS,
    may_end=frozenset({State.DELETED}),
    deadlines=(
        Deadline(State.SYNCING, "REPLY_TIMEOUT", Trigger.GIVEN_UP, "the snapshot must come"),
        Deadline(State.LIVE, None, None, "it follows the object for as long as there is one"),
        Deadline(State.STALE, "REPLY_TIMEOUT", Trigger.READ_FAILED, "the read must be answered"),
    ),
    meanings={
        State.SYNCING: "The subscription is under way; changes wait for the snapshot.",
        State.LIVE: "The copy is the object as of its version.",
        State.STALE: "A change is missing; the whole object is being read.",
        State.DELETED: "There is nothing to copy any more.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-D3", "I-D4", "I-D5", "I-D7", "I-D8", "I-D12"),
)
"""State machine of an observer's copy of a data object."""
