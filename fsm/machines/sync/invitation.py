"""State machine of an invitation to observe a data object (protocol page 03, section 3.3).

Each pair of object and invited observer has one entity (SYN-04, SYN-05, M-33, M-34, I-D11): the
sync manager of the reporter keeps it from sending the invitation to the observer's final answer.
Silence is not a refusal here: the reporter is notified of the missing answer. Each provisional
answer restarts the timer.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Table, Transition


class State(StrEnum):
    """State of an invitation."""

    SENT = "sent"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TIMED_OUT = "timed-out"


class Trigger(StrEnum):
    """Event that changes the state of an invitation."""

    SEND = "send"
    PROVISIONAL = "provisional"
    ACCEPT = "accept"
    REFUSE = "refuse"
    SILENCE = "silence"
    OBJECT_DELETED = "object-deleted"


_SEND: Final = "the reporter's sync manager sends the invitation"
_TRYING: Final = "a provisional answer came"
_ACCEPT: Final = "the invited hyperty accepts"
_REFUSE: Final = "the invited hyperty refuses"
_SILENCE: Final = "no answer came in time"
_SINCE: Final = "counted from the invitation or the last provisional answer"
_GONE: Final = "the object was deleted, so it admits no observer"

# fmt: off
_ROWS: Final = (
    Transition(None,       Trigger.SEND,           State.SENT,      _SEND),
    Transition(State.SENT, Trigger.PROVISIONAL,    State.SENT,      _TRYING),
    Transition(State.SENT, Trigger.ACCEPT,         State.ACCEPTED,  _ACCEPT),
    Transition(State.SENT, Trigger.REFUSE,         State.REFUSED,   _REFUSE),
    Transition(State.SENT, Trigger.OBJECT_DELETED, State.REFUSED,   _GONE),
    Transition(State.SENT, Trigger.SILENCE,        State.TIMED_OUT, _SILENCE),
)
# fmt: on

INVITATION: Final = Table(
    name="invitation",
    owner="sync manager of the reporter's runtime",
    key="<object>|<observer>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.ACCEPTED, State.REFUSED, State.TIMED_OUT}),
    deadlines=(Deadline(State.SENT, "REPLY_TIMEOUT", Trigger.SILENCE, _SINCE),),
    meanings={
        State.SENT: "The observer was invited and has not decided yet.",
        State.ACCEPTED: "The observer accepted; it subscribes by itself.",
        State.REFUSED: "The observer does not want to, or cannot be asked any more.",
        State.TIMED_OUT: "No answer came.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-D8", "I-D9", "I-D11"),
)
"""State machine of an invitation to observe a data object."""
