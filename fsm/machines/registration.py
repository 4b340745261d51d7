"""State machine of a record in the domain registry (protocol page 03, section 3.3).

Each registered URL has one entity: key is the URL (REG-07..REG-09, M-21..M-24, SC-12, I-G1, I-G4).
A record usually arrives already live, without having been `created` first (SC-11): that transition
is an extension. When the session of its runtime ends, a live record becomes `disconnected`. A
record that was registered in upstream's form is `lasting` instead: it is live for all requesters,
and stays so, since upstream's registry is a separate server that does not learn of sessions (DESIGN
section 5). The runtime's last registration or update decides between the two. Without keep-alive
messages either becomes `disconnected` when it expires, and finally `dead` when no runtime has
resumed it for a long time. A record that never was live dies at once when its time is over or its
runtime leaves: no runtime can resume it. `created` and `dead` are never visible outside the
registry (C-57).
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a record in the domain registry."""

    CREATED = "created"
    LIVE = "live"
    LASTING = "lasting"
    DISCONNECTED = "disconnected"
    DEAD = "dead"


class Trigger(StrEnum):
    """Event that changes the state of a record."""

    CREATE = "create"
    CREATE_LIVE = "create-live"
    CREATE_LASTING = "create-lasting"
    SET_LIVE = "set-live"
    SET_LASTING = "set-lasting"
    DISCONNECT = "disconnect"
    BURY = "bury"


_CREATE: Final = "the registry makes the record"
_ARRIVES: Final = "the record of a hyperty arrives as live"
_LIVE: Final = "the runtime sets the status to live"
_GONE: Final = "the runtime unregisters it, or no keep-alive came in time"
_DEAD: Final = "the runtime did not come back in time"
_NEVER: Final = "the record never was live, and its runtime has left or is silent"
_LASTS: Final = "the last registration or update came in upstream's form"
_OURS: Final = "the last registration or update came in Protofly's form"
_KEPT: Final = "counted from the last keep-alive; a record may ask for less"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,               Trigger.CREATE,      State.CREATED,      _CREATE),
    Transition(None,               Trigger.CREATE_LIVE, State.LIVE,         _ARRIVES, origin=Origin.EXTENSION),
    Transition(None,               Trigger.CREATE_LASTING, State.LASTING,   _LASTS,   origin=Origin.EXTENSION),
    Transition(State.CREATED,      Trigger.SET_LIVE,    State.LIVE,         _LIVE),
    Transition(State.CREATED,      Trigger.SET_LASTING, State.LASTING,      _LASTS,   origin=Origin.EXTENSION),
    Transition(State.CREATED,      Trigger.BURY,        State.DEAD,         _NEVER,   origin=Origin.EXTENSION),
    Transition(State.LIVE,         Trigger.SET_LASTING, State.LASTING,      _LASTS,   origin=Origin.EXTENSION),
    Transition(State.LIVE,         Trigger.DISCONNECT,  State.DISCONNECTED, _GONE),
    Transition(State.LASTING,      Trigger.SET_LIVE,    State.LIVE,         _OURS,    origin=Origin.EXTENSION),
    Transition(State.LASTING,      Trigger.DISCONNECT,  State.DISCONNECTED, _GONE,    origin=Origin.EXTENSION),
    Transition(State.DISCONNECTED, Trigger.SET_LIVE,    State.LIVE,         _LIVE),
    Transition(State.DISCONNECTED, Trigger.SET_LASTING, State.LASTING,      _LASTS,   origin=Origin.EXTENSION),
    Transition(State.DISCONNECTED, Trigger.BURY,        State.DEAD,         _DEAD),
)
# fmt: on

REGISTRATION: Final = Table(
    name="registration",
    owner="domain registry of the message node",
    key="<URL>, then |<n> for the n-th history",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.LASTING, State.DISCONNECTED, State.DEAD}),
    # A run usually ends before a record is removed, and before a lasting record has expired.
    extension_ends=frozenset({State.LASTING, State.DISCONNECTED}),
    deadlines=(
        Deadline(State.CREATED, "REGISTRATION_EXPIRES", Trigger.BURY, "it must become live"),
        Deadline(State.LIVE, "REGISTRATION_EXPIRES", Trigger.DISCONNECT, _KEPT),
        Deadline(State.LASTING, "REGISTRATION_EXPIRES", Trigger.DISCONNECT, _KEPT),
        Deadline(State.DISCONNECTED, "REGISTRATION_GRAVE", Trigger.BURY, "it must come back"),
    ),
    meanings={
        State.CREATED: "The record exists; its status was not reported yet.",
        State.LIVE: "The named entity can be reached, and searches find the record.",
        State.LASTING: "As live, and the record stays live after the session of its runtime.",
        State.DISCONNECTED: "The named entity is away and may come back.",
        State.DEAD: "The named entity is gone for good.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-A7", "I-G1", "I-G3", "I-G4", "I-G5", "I-G6"),
)
"""State machine of a record in the domain registry."""
