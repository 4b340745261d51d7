"""State machines of a message node's protostub: its connection and its link (page 03, section 3.2).

Each stub has one entity: key is the stub's URL. The stub owns it (STB-03..STB-09, I-S1, I-S2): it
is constructed by its deployment and connected by its first message or on demand. After a lost link
it connects again, by re-opening its session with the node. A session that another login has taken
over, or that its node refuses for another lasting reason, is over for good: the stub fails from
`disconnected`, and refuses all messages with that reason.

The drawing has no row from `created` to `failed`; the protocol pages allow it, as in the P2P
machine: the stub was built, but connecting is impossible (C-17, I-S1). The same row applies to a
stub that is undeployed before it ever connected.

A second machine, `node_link`, describes the stub's link and the session on it, as the stub sees
them. The link is dialled and the session opened while the connection is `in-progress` or
`disconnected`; the node may first require a proof of the runtime's key. While the connection is
`live`, the session is open, pinged or being closed. The protocol pages describe the actions
(STB-06, STB-17, M-14..M-17); the machine is an addition of this project.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a stub's connection to its node."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    LIVE = "live"
    FAILED = "failed"
    DISCONNECTED = "disconnected"


class Trigger(StrEnum):
    """Event that changes the state of a stub's connection."""

    CONSTRUCTED = "constructed"
    CONNECT = "connect"
    CONNECT_IMPOSSIBLE = "connect-impossible"
    ESTABLISHED = "established"
    ESTABLISH_FAILED = "establish-failed"
    CLOSED = "closed"
    REESTABLISHED = "reestablished"
    ENDED = "ended"


_BUILT: Final = "the stub is constructed"
_CONNECT: Final = "the stub connects"
_IMPOSSIBLE: Final = "the stub is constructed but cannot connect"
_LIVE: Final = "the session is open"
_FAILED: Final = "the node refused the session, or did not open it in time"
_CLOSED: Final = "the link is lost, or the stub disconnects"
_AGAIN: Final = "the session is open again"
_ENDED: Final = "the node refuses the session for good, so nothing is tried again"

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
    Transition(State.DISCONNECTED, Trigger.ENDED,              State.FAILED,       _ENDED,      origin=Origin.EXTENSION),
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
        State.FAILED: "The stub could not connect, or has lost its session for good.",
        State.DISCONNECTED: "The link is lost or closed; messages wait for the re-open.",
    },
    drawn_in="protostub state machine (Connection region)",
    claims=("I-S1", "I-S2", "I-S4", "I-S5", "I-S8", "I-S9", "I-S10"),
)
"""State machine of the connection of a message node's protostub."""


class LinkState(StrEnum):
    """State of the link of a stub and of the session on it."""

    DIALLING = "dialling"
    OPENING = "opening"
    PROVING = "proving"
    RENEWING = "renewing"
    OPEN = "open"
    PINGING = "pinging"
    PAUSED = "paused"
    CLOSING = "closing"
    ENDED = "ended"


class LinkTrigger(StrEnum):
    """Event that changes the state of a stub's link."""

    DIAL = "dial"
    DIALLED = "dialled"
    CHALLENGED = "challenged"
    ASKED_ANEW = "asked-anew"
    SESSION_OPENED = "session-opened"
    SESSION_EMPTIED = "session-emptied"
    RENEWED = "renewed"
    PING = "ping"
    HEARD = "heard"
    LOST = "lost"
    CLOSE = "close"
    END = "end"


_OURS: Final = Origin.EXTENSION
_DIAL: Final = "the stub connects, or connects again"
_STANDS: Final = "the link is open; the stub opens the session, on each link anew"
_SESSION: Final = "the node has opened the session, or resumed it by its token"
_EMPTIED: Final = "the node has the session, and has forgotten what belonged to it"
_RENEWED: Final = "the node has again what belonged to the session"
_PROVE: Final = "the node requires a proof of the runtime's key"
_FORGOTTEN: Final = "the node has no such session, so the stub opens another one"
_PING: Final = "nothing was received for a while"
_HEARD: Final = "a frame was received, which answers the ping"
_LINK_LOST: Final = "the link is lost or not answered; it is dialled again after a pause"
_GOODBYE: Final = "the stub closes the session"
_OVER: Final = "the stub was refused, gave up, or disconnects for good"

# fmt: off
_LINK_ROWS: Final = (
    Transition(None,               LinkTrigger.DIAL,           LinkState.DIALLING, _DIAL,      origin=_OURS),
    Transition(None,               LinkTrigger.END,            LinkState.ENDED,    _OVER,      origin=_OURS),
    Transition(LinkState.DIALLING, LinkTrigger.DIALLED,        LinkState.OPENING,  _STANDS,    origin=_OURS),
    Transition(LinkState.DIALLING, LinkTrigger.LOST,           LinkState.PAUSED,   _LINK_LOST, origin=_OURS),
    Transition(LinkState.DIALLING, LinkTrigger.END,            LinkState.ENDED,    _OVER,      origin=_OURS),
    Transition(LinkState.OPENING,  LinkTrigger.SESSION_OPENED, LinkState.OPEN,     _SESSION,   origin=_OURS),
    Transition(LinkState.OPENING,  LinkTrigger.SESSION_EMPTIED, LinkState.RENEWING, _EMPTIED,  origin=_OURS),
    Transition(LinkState.OPENING,  LinkTrigger.CHALLENGED,     LinkState.PROVING,  _PROVE,     origin=_OURS),
    Transition(LinkState.OPENING,  LinkTrigger.LOST,           LinkState.PAUSED,   _LINK_LOST, origin=_OURS),
    Transition(LinkState.OPENING,  LinkTrigger.END,            LinkState.ENDED,    _OVER,      origin=_OURS),
    Transition(LinkState.PROVING,  LinkTrigger.SESSION_OPENED, LinkState.OPEN,     _SESSION,   origin=_OURS),
    Transition(LinkState.PROVING,  LinkTrigger.SESSION_EMPTIED, LinkState.RENEWING, _EMPTIED,  origin=_OURS),
    Transition(LinkState.PROVING,  LinkTrigger.ASKED_ANEW,     LinkState.OPENING,  _FORGOTTEN, origin=_OURS),
    Transition(LinkState.PROVING,  LinkTrigger.LOST,           LinkState.PAUSED,   _LINK_LOST, origin=_OURS),
    Transition(LinkState.PROVING,  LinkTrigger.END,            LinkState.ENDED,    _OVER,      origin=_OURS),
    Transition(LinkState.RENEWING, LinkTrigger.RENEWED,        LinkState.OPEN,     _RENEWED,   origin=_OURS),
    Transition(LinkState.RENEWING, LinkTrigger.LOST,           LinkState.PAUSED,   _LINK_LOST, origin=_OURS),
    Transition(LinkState.RENEWING, LinkTrigger.CLOSE,          LinkState.CLOSING,  _GOODBYE,   origin=_OURS),
    Transition(LinkState.OPEN,     LinkTrigger.PING,           LinkState.PINGING,  _PING,      origin=_OURS),
    Transition(LinkState.OPEN,     LinkTrigger.LOST,           LinkState.PAUSED,   _LINK_LOST, origin=_OURS),
    Transition(LinkState.OPEN,     LinkTrigger.CLOSE,          LinkState.CLOSING,  _GOODBYE,   origin=_OURS),
    Transition(LinkState.PINGING,  LinkTrigger.HEARD,          LinkState.OPEN,     _HEARD,     origin=_OURS),
    Transition(LinkState.PINGING,  LinkTrigger.LOST,           LinkState.PAUSED,   _LINK_LOST, origin=_OURS),
    Transition(LinkState.PINGING,  LinkTrigger.CLOSE,          LinkState.CLOSING,  _GOODBYE,   origin=_OURS),
    Transition(LinkState.PAUSED,   LinkTrigger.DIAL,           LinkState.DIALLING, _DIAL,      origin=_OURS),
    Transition(LinkState.PAUSED,   LinkTrigger.END,            LinkState.ENDED,    _OVER,      origin=_OURS),
    Transition(LinkState.CLOSING,  LinkTrigger.END,            LinkState.ENDED,    _OVER,      origin=_OURS),
)
# fmt: on

NODE_LINK: Final = Table(
    name="node_link",
    owner="node stub of the runtime",
    key="<stub>",
    states=LinkState,
    triggers=LinkTrigger,
    rows=_LINK_ROWS,
    may_end=frozenset({LinkState.ENDED}),
    extension_ends=frozenset({LinkState.ENDED}),
    deadlines=(
        Deadline(LinkState.DIALLING, None, None, "each attempt ends by itself"),
        Deadline(
            LinkState.OPENING, "OPEN_TIMEOUT", LinkTrigger.LOST, "session must open on each link"
        ),
        Deadline(LinkState.PROVING, "OPEN_TIMEOUT", LinkTrigger.LOST, "as for the first request"),
        Deadline(
            LinkState.RENEWING, "PONG_TIMEOUT", LinkTrigger.LOST, "counted from what was heard last"
        ),
        Deadline(
            LinkState.OPEN, "PING_PERIOD", LinkTrigger.PING, "counted from what was heard last"
        ),
        Deadline(LinkState.PINGING, "PONG_TIMEOUT", LinkTrigger.LOST, "a frame must come"),
        Deadline(LinkState.PAUSED, None, None, "pauses double; the stub counts the attempts"),
        Deadline(
            LinkState.CLOSING, "GOODBYE_TIMEOUT", LinkTrigger.END, "the close must be answered"
        ),
    ),
    meanings={
        LinkState.DIALLING: "A link to the node is being dialled; messages wait.",
        LinkState.OPENING: "The link is open, the session is being opened or re-opened; messages wait.",
        LinkState.PROVING: "The runtime has proven its key and asked again; messages wait.",
        LinkState.RENEWING: (
            "The session is open; the runtime claims what the node has forgotten; messages wait."
        ),
        LinkState.OPEN: "The session is open; messages go at once.",
        LinkState.PINGING: "The node was asked for a sign of life; messages go at once.",
        LinkState.PAUSED: "There is no link; the next one is dialled after a pause.",
        LinkState.CLOSING: "The session is being closed; messages are refused.",
        LinkState.ENDED: "The stub has no link and dials no further one; messages are refused.",
    },
    drawn_in="protocol page 03, sections 3.2 and 3.3",
    claims=("I-S8", "I-S9", "I-S10"),
)
"""State machine of a protostub's link to its node, and of the session on the link."""
