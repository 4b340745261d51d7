"""State machines of a P2P connection, as each of its two runtimes sees it (page 03, section 3.1).

Each link has one entity in each of the two runtimes: key `<own R>|<remote R>|requester|<PQ>` or
`<own R>|<remote R>|handler|<PC>`. Both follow the same table (P2P-08..P2P-16, I-P1, I-P2, S0, S2);
the events that trigger a transition differ between the two, and are named in each row.

* `failed` is final, and so is `disconnected` once neither runtime tries any more: a new
  attempt is a new link with a new key, beginning at `[*]` (I-P3, C-15..C-17).
* A lost link becomes `live` again by the same pair of Connection objects (t7), or, if that
  needs a new offer and answer, through `in-progress` (t8). If the peer is gone for good,
  t6 is the end (t9).
* If both runtimes have requested a link at the same time, the requester that loses the
  tie-break yields: it dials nothing and waits. It fails when the other link is live, and
  continues if that link fails (P2P-27, I-P20).
* Both runtimes may miss that the other has gone. So each wait for an answer has a deadline,
  and an idle link is checked by pings.

In addition to its connection, each runtime has a machine for its attempts to open the transport
(`link_dialling`, same key). The requester dials from the beginning and, when no candidate is left,
asks the peer once in each round to dial. The handler dials only when it is asked to. While the link
is live or yields, neither dials. The protocol pages describe the actions (P2P-12, P2P-16, P2P-27);
the machine is an addition of this project.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a P2P connection at one of its two runtimes."""

    CREATED = "created"
    IN_PROGRESS = "in-progress"
    YIELDING = "yielding"
    LIVE = "live"
    FAILED = "failed"
    DISCONNECTED = "disconnected"


class Trigger(StrEnum):
    """Event that changes the state of a P2P connection."""

    STARTED = "started"
    OBJECT_RETURNED = "object-returned"
    REFUSED = "refused"
    ESTABLISHED = "established"
    ESTABLISH_FAILED = "establish-failed"
    CLOSED = "closed"
    REESTABLISHED = "reestablished"
    RENEGOTIATED = "renegotiated"
    YIELDED = "yielded"
    RESUMED = "resumed"


_STARTED: Final = "t1: the requester asks for its Connection object, or the handler is invited"
_RETURNED: Final = "t2: the sync manager has made the own Connection object"
_REFUSED: Final = "t3: object or invitation is refused, a policy denies, or the tie-break is lost"
_LIVE: Final = "t4: the link is open in both directions"
_FAILED: Final = "t5: the transport failed, 10 s are over, or the peer deleted its object"
_CLOSED: Final = "t6, t9: the link was closed, a ping was not answered, or the peer has gone"
_AGAIN: Final = "t7: the link is open again, by the same Connection objects"
_ROUND: Final = "t8: the link needs a new offer and answer"
_YIELDS: Final = "the link that the smaller runtime requested is being set up"
_RESUMES: Final = "the link that this one yielded to has failed"
_LOST: Final = "the link that this one yielded to is live, or refused with 409, or 10 s are over"
_SINCE: Final = "the link must open; the time counts from `created`"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,               Trigger.STARTED,          State.CREATED,      _STARTED,  "syncher.create() invoked"),
    Transition(State.CREATED,      Trigger.OBJECT_RETURNED,  State.IN_PROGRESS,  _RETURNED, "connection data object returned by syncher.create()"),
    Transition(State.CREATED,      Trigger.REFUSED,          State.FAILED,       _REFUSED,  "syncher.create() error e.g. not authorised"),
    Transition(State.IN_PROGRESS,  Trigger.ESTABLISHED,      State.LIVE,         _LIVE,     "connection established"),
    Transition(State.IN_PROGRESS,  Trigger.ESTABLISH_FAILED, State.FAILED,       _FAILED,   "connection establishment failed"),
    Transition(State.LIVE,         Trigger.CLOSED,           State.DISCONNECTED, _CLOSED,   "connection closed"),
    Transition(State.DISCONNECTED, Trigger.REESTABLISHED,    State.LIVE,         _AGAIN,    "connection reestablished"),
    Transition(State.DISCONNECTED, Trigger.RENEGOTIATED,     State.IN_PROGRESS,  _ROUND,    origin=Origin.EXTENSION),
    Transition(State.IN_PROGRESS,  Trigger.YIELDED,          State.YIELDING,     _YIELDS,   origin=Origin.EXTENSION),
    Transition(State.YIELDING,     Trigger.RESUMED,          State.IN_PROGRESS,  _RESUMES,  origin=Origin.EXTENSION),
    Transition(State.YIELDING,     Trigger.ESTABLISH_FAILED, State.FAILED,       _LOST,     origin=Origin.EXTENSION),
)
# fmt: on

P2P_CONNECTION: Final = Table(
    name="p2p_connection",
    owner="P2P requester stub; P2P handler stub, one per requester",
    key="<own R>|<remote R>|requester or handler|<link>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.FAILED, State.DISCONNECTED}),
    deadlines=(
        Deadline(State.CREATED, "P2P_TIMEOUT", Trigger.REFUSED, "the object must be made"),
        Deadline(State.IN_PROGRESS, "P2P_TIMEOUT", Trigger.ESTABLISH_FAILED, _SINCE),
        Deadline(State.YIELDING, "P2P_TIMEOUT", Trigger.ESTABLISH_FAILED, _SINCE),
        Deadline(
            State.LIVE, "PONG_TIMEOUT", Trigger.CLOSED, "counted from a ping, until it is answered"
        ),
    ),
    meanings={
        State.CREATED: "The set-up has begun; this end's Connection object is being made.",
        State.IN_PROGRESS: "Offer and answer are exchanged, and candidates are tried.",
        State.YIELDING: "The other runtime's request wins; this link fails as soon as that one is live.",
        State.LIVE: "The link is open both ways and carries messages.",
        State.FAILED: "This attempt is over; the next attempt is a new link.",
        State.DISCONNECTED: "The link is lost or closed; it may become live again.",
    },
    drawn_in="p2p-connection-state-machine.png",
    claims=(
        "I-P1",
        "I-P2",
        "I-P3",
        "I-P4",
        "I-P5",
        "I-P6",
        "I-P13",
        "I-P14",
        "I-P19",
        "I-P20",
        "I-S4",
    ),
)
"""State machine of a P2P connection at one of its two runtimes."""


class DialState(StrEnum):
    """State of one runtime's attempts to dial the other."""

    IDLE = "idle"
    READY = "ready"
    DIALLING = "dialling"
    PLEADED = "pleaded"
    DIALLING_LATE = "dialling-late"
    ENDED = "ended"


class DialTrigger(StrEnum):
    """Event that changes the state of dialling."""

    ROUND = "round"
    DIAL = "dial"
    DIAL_FAILED = "dial-failed"
    PLEAD = "plead"
    STOP = "stop"
    END = "end"


_OURS: Final = Origin.EXTENSION
_BEGINS: Final = "t1, t7, t8: the requester may dial; or the peer asks to be dialled"
_INVITED: Final = "t1: the handler is invited, and dials only if it is asked to"
_DIAL: Final = "the best candidate that was not tried in this round is dialled"
_NEXT: Final = "this candidate does not open; the next one is tried"
_PLEAD: Final = "no candidate is left; the requester asks the peer to dial"
_STOP: Final = "t4, t7: the link is live, yields or begins anew, or the handler has no candidate"
_NO_MORE: Final = "t3, t5, t9: the link is over"

# fmt: off
_DIAL_ROWS: Final = (
    Transition(None,                    DialTrigger.ROUND,       DialState.READY,         _BEGINS,  origin=_OURS),
    Transition(None,                    DialTrigger.STOP,        DialState.IDLE,          _INVITED, origin=_OURS),
    Transition(None,                    DialTrigger.END,         DialState.ENDED,         _NO_MORE, origin=_OURS),
    Transition(DialState.IDLE,          DialTrigger.ROUND,       DialState.READY,         _BEGINS,  origin=_OURS),
    Transition(DialState.IDLE,          DialTrigger.END,         DialState.ENDED,         _NO_MORE, origin=_OURS),
    Transition(DialState.READY,         DialTrigger.ROUND,       DialState.READY,         _BEGINS,  origin=_OURS),
    Transition(DialState.READY,         DialTrigger.DIAL,        DialState.DIALLING,      _DIAL,    origin=_OURS),
    Transition(DialState.READY,         DialTrigger.PLEAD,       DialState.PLEADED,       _PLEAD,   origin=_OURS),
    Transition(DialState.READY,         DialTrigger.STOP,        DialState.IDLE,          _STOP,    origin=_OURS),
    Transition(DialState.READY,         DialTrigger.END,         DialState.ENDED,         _NO_MORE, origin=_OURS),
    Transition(DialState.DIALLING,      DialTrigger.ROUND,       DialState.DIALLING,      _BEGINS,  origin=_OURS),
    Transition(DialState.DIALLING,      DialTrigger.DIAL_FAILED, DialState.READY,         _NEXT,    origin=_OURS),
    Transition(DialState.DIALLING,      DialTrigger.STOP,        DialState.IDLE,          _STOP,    origin=_OURS),
    Transition(DialState.DIALLING,      DialTrigger.END,         DialState.ENDED,         _NO_MORE, origin=_OURS),
    Transition(DialState.PLEADED,       DialTrigger.ROUND,       DialState.READY,         _BEGINS,  origin=_OURS),
    Transition(DialState.PLEADED,       DialTrigger.DIAL,        DialState.DIALLING_LATE, _DIAL,    origin=_OURS),
    Transition(DialState.PLEADED,       DialTrigger.STOP,        DialState.IDLE,          _STOP,    origin=_OURS),
    Transition(DialState.PLEADED,       DialTrigger.END,         DialState.ENDED,         _NO_MORE, origin=_OURS),
    Transition(DialState.DIALLING_LATE, DialTrigger.DIAL_FAILED, DialState.PLEADED,       _NEXT,    origin=_OURS),
    Transition(DialState.DIALLING_LATE, DialTrigger.STOP,        DialState.IDLE,          _STOP,    origin=_OURS),
    Transition(DialState.DIALLING_LATE, DialTrigger.END,         DialState.ENDED,         _NO_MORE, origin=_OURS),
)
# fmt: on

LINK_DIALLING: Final = Table(
    name="link_dialling",
    owner="P2P requester stub; P2P handler stub, one per requester",
    key="<own R>|<remote R>|requester or handler|<link>",
    states=DialState,
    triggers=DialTrigger,
    rows=_DIAL_ROWS,
    may_end=frozenset({DialState.ENDED}),
    extension_ends=frozenset({DialState.ENDED}),
    deadlines=(
        Deadline(DialState.IDLE, None, None, "`p2p_connection` has the deadlines"),
        Deadline(DialState.READY, None, None, "`p2p_connection` has the deadlines"),
        Deadline(DialState.DIALLING, None, None, "each attempt ends by itself"),
        Deadline(DialState.PLEADED, None, None, "`p2p_connection` has the deadlines"),
        Deadline(DialState.DIALLING_LATE, None, None, "each attempt ends by itself"),
    ),
    meanings={
        DialState.IDLE: "This end dials nothing; candidates of the peer are only noted.",
        DialState.READY: "A round has begun; this end waits for a candidate that it can dial.",
        DialState.DIALLING: "A candidate is being dialled.",
        DialState.PLEADED: "The peer was asked to dial; a candidate that comes late is dialled too.",
        DialState.DIALLING_LATE: "A candidate that came after the plea is being dialled.",
        DialState.ENDED: "This end is over; a link that opens after that is closed.",
    },
    drawn_in="protocol page 05",
    claims=("I-P6", "I-P20"),
)
"""State machine of one runtime's attempts to dial the other for a P2P connection."""
