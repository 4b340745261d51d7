"""State machine of a runtime's session at a message node (protocol page 03, section 3.3, S4).

The session outlives the link on which it was opened: a lost link detaches the session. Within T_gc
the runtime may re-open it with its token and finds everything unchanged (MN-04..MN-08, M-14..M-17,
I-M1..I-M4, I-M12). `closed` and `expired` are final: another open request gets a new session, which
is a new entity with another key. A session is `expired` only after T_gc without a link: a node that
stops closes its detached sessions. If several nodes serve the domain, a session ends as `moved`
when another node takes it over: the runtime keeps what it owns.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a session."""

    OPEN = "open"
    DETACHED = "detached"
    CLOSED = "closed"
    EXPIRED = "expired"
    MOVED = "moved"


class Trigger(StrEnum):
    """Event that changes the state of a session."""

    OPENED = "opened"
    LINK_LOST = "link-lost"
    REOPENED = "reopened"
    CLOSE = "close"
    EXPIRE = "expire"
    MOVE = "move"


_OPENED: Final = "a runtime opens the session"
_LOST: Final = "the link is lost, or a ping was not answered"
_AGAIN: Final = "the runtime opens the session again, with its token"
_CLOSE: Final = "the runtime or the node closes the session"
_EXPIRE: Final = "the session was detached for 10 minutes"
_LEAVES: Final = "the node itself stops, so no runtime can resume the session"
_MOVES: Final = "another node of the domain has the session"

# fmt: off
_ROWS: Final = (
    Transition(None,           Trigger.OPENED,    State.OPEN,     _OPENED),
    Transition(State.OPEN,     Trigger.LINK_LOST, State.DETACHED, _LOST),
    Transition(State.DETACHED, Trigger.REOPENED,  State.OPEN,     _AGAIN),
    Transition(State.OPEN,     Trigger.CLOSE,     State.CLOSED,   _CLOSE),
    Transition(State.DETACHED, Trigger.EXPIRE,    State.EXPIRED,  _EXPIRE),
    Transition(State.DETACHED, Trigger.CLOSE,     State.CLOSED,   _LEAVES, origin=Origin.EXTENSION),
    Transition(State.DETACHED, Trigger.MOVE,      State.MOVED,    _MOVES,  origin=Origin.EXTENSION),
)
# fmt: on

SESSION: Final = Table(
    name="session",
    owner="session manager of the message node",
    key="<MN>|<R>, then |<n> for the n-th history",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.CLOSED, State.EXPIRED, State.MOVED}),
    extension_ends=frozenset({State.MOVED}),
    deadlines=(
        Deadline(
            State.OPEN,
            "PONG_TIMEOUT",
            Trigger.LINK_LOST,
            "counted from a ping, until it is answered",
        ),
        Deadline(State.DETACHED, "SESSION_IDLE", Trigger.EXPIRE, "the runtime must come back"),
    ),
    meanings={
        State.OPEN: "The runtime has a link; its messages are routed.",
        State.DETACHED: "The link is lost; addresses, subscriptions and messages are kept.",
        State.CLOSED: "Runtime or node closed it; what the session owned is released.",
        State.EXPIRED: "The runtime did not come back; what the session owned is released.",
        State.MOVED: "Another node of the domain has the session, and all that it owns.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-M1", "I-M2", "I-M3", "I-M4", "I-M12", "I-A7"),
)
"""State machine of a runtime's session at a message node."""
