"""Connection of a message node's protostub (protocol page 03, section 3.2).

One entity per stub: key is the stub's URL. The stub owns it (STB-03..STB-09, I-S1,
I-S2): constructed by its deployment, connected by its first message or on demand, and
after a lost link connected again in place, by re-opening its session with the node.

The drawing has no way from `created` to `failed`; the protocol pages allow it, as in
the P2P machine: the stub was built, but connecting is impossible (C-17, I-S1). A stub
that is undeployed before it ever connected takes the same way.
"""

from enum import StrEnum, unique
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition

__all__ = ["STUB_CONNECTION", "State", "Trigger"]


@unique
class State(StrEnum):
    """How far a stub's connection to its node is."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    LIVE = "live"
    FAILED = "failed"
    DISCONNECTED = "disconnected"


@unique
class Trigger(StrEnum):
    """What moves a stub's connection."""

    CONSTRUCTED = "constructed"
    CONNECT = "connect"
    CONNECT_IMPOSSIBLE = "connect-impossible"
    ESTABLISHED = "established"
    ESTABLISH_FAILED = "establish-failed"
    CLOSED = "closed"
    REESTABLISHED = "reestablished"


_BUILT: Final = "3.2 Connection: constructor"
_CONNECT: Final = "3.2 Connection: connect()"
_IMPOSSIBLE: Final = "3.2: constructor ok, connect impossible"
_LIVE: Final = "3.2 Connection: session open"
_FAILED: Final = "3.2 Connection: refused, or T_open over"
_CLOSED: Final = "3.2 Connection: link lost, or disconnect()"
_AGAIN: Final = "3.2 Connection: session re-opened"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,               Trigger.CONSTRUCTED,        State.CREATED,      _BUILT,      "protostub constructor is executed"),
    Transition(State.CREATED,      Trigger.CONNECT,            State.IN_PROGRESS,  _CONNECT,    "protostub.connect() invoked"),
    Transition(State.CREATED,      Trigger.CONNECT_IMPOSSIBLE, State.FAILED,       _IMPOSSIBLE, origin=Origin.EXTENSION),
    Transition(State.IN_PROGRESS,  Trigger.ESTABLISHED,        State.LIVE,         _LIVE,       "connection established"),
    Transition(State.IN_PROGRESS,  Trigger.ESTABLISH_FAILED,   State.FAILED,       _FAILED,     "connection establishment failed"),
    Transition(State.LIVE,         Trigger.CLOSED,             State.DISCONNECTED, _CLOSED,     "connection closed"),
    Transition(State.DISCONNECTED, Trigger.REESTABLISHED,      State.LIVE,         _AGAIN,      "connection reestablished"),
)
# fmt: on

STUB_CONNECTION: Final = Table(
    name="stub_connection",
    owner="node stub of the runtime",
    key="<stub>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.FAILED, State.DISCONNECTED}),
    deadlines=(
        Deadline(State.CREATED, None, None, "its first message connects it; none may ever come"),
        Deadline(State.IN_PROGRESS, "OPEN_TIMEOUT", Trigger.ESTABLISH_FAILED, "session must open"),
        Deadline(
            State.LIVE, "PONG_TIMEOUT", Trigger.CLOSED, "counted from a ping, until it is answered"
        ),
    ),
    meanings={
        State.CREATED: "The stub is built and not yet connected.",
        State.IN_PROGRESS: "The link is dialled and the session being opened.",
        State.LIVE: "The session is open and carries messages.",
        State.FAILED: "The stub could not connect; a retry is a new stub.",
        State.DISCONNECTED: "The link is lost or closed; messages wait for the re-open.",
    },
    drawn_in="protostub state machine (Connection region)",
    claims=("I-S1", "I-S2", "I-S4", "I-S5", "I-S8", "I-S9", "I-S10"),
)
"""The connection of a message node's protostub."""
