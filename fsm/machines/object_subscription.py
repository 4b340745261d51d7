"""An observer's subscription of a data object (protocol page 03, section 3.3).

One entity per object and observer (SYN-10..SYN-12, SYN-20, SYN-22, M-38, M-39, M-43, M-47): the
sync manager of the reporter keeps it. An observer that was invited is accepted unasked;
of any other the reporter is asked, and its silence is a refusal. An object that goes
ends it: who was active is told first (SC-34).
"""

from enum import StrEnum, unique
from typing import Final

from fsm.table import Deadline, Table, Transition

__all__ = ["OBJECT_SUBSCRIPTION", "State", "Trigger"]


@unique
class State(StrEnum):
    """Whether the observer is told of changes."""

    REQUESTED = "requested"
    ACTIVE = "active"
    REFUSED = "refused"
    REMOVED = "removed"


@unique
class Trigger(StrEnum):
    """What moves a subscription."""

    REQUEST = "request"
    ACCEPT = "accept"
    REFUSE = "refuse"
    UNSUBSCRIBE = "unsubscribe"
    OBJECT_DELETED = "object-deleted"


_REQUEST: Final = "3.3 data-object subscription: request"
_ACCEPT: Final = "3.3 data-object subscription: invited, or the reporter said yes"
_REFUSE: Final = "3.3 data-object subscription: the reporter said no, or nothing"
_LEAVE: Final = "3.3 data-object subscription: unsubscribed"
_DELETED: Final = "3.3 data-object subscription: object deleted"
_GONE: Final = "page 08, nothing after delete: an object that is no more admits nobody"
_LEFT: Final = "page 04: who leaves before the decision is not admitted"

# fmt: off
_ROWS: Final = (
    Transition(None,            Trigger.REQUEST,        State.REQUESTED, _REQUEST),
    Transition(State.REQUESTED, Trigger.ACCEPT,         State.ACTIVE,    _ACCEPT),
    Transition(State.REQUESTED, Trigger.REFUSE,         State.REFUSED,   _REFUSE),
    Transition(State.REQUESTED, Trigger.UNSUBSCRIBE,    State.REFUSED,   _LEFT),
    Transition(State.REQUESTED, Trigger.OBJECT_DELETED, State.REFUSED,   _GONE),
    Transition(State.ACTIVE,    Trigger.UNSUBSCRIBE,    State.REMOVED,   _LEAVE),
    Transition(State.ACTIVE,    Trigger.OBJECT_DELETED, State.REMOVED,   _DELETED),
)
# fmt: on

OBJECT_SUBSCRIPTION: Final = Table(
    name="object_subscription",
    owner="sync manager of the reporter's runtime",
    key="<object>|<observer>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.REFUSED, State.REMOVED}),
    deadlines=(
        Deadline(State.REQUESTED, "REPLY_TIMEOUT", Trigger.REFUSE, "the reporter must decide"),
        Deadline(State.ACTIVE, None, None, "it lasts until the observer leaves or the object goes"),
    ),
    meanings={
        State.REQUESTED: "The reporter is being asked.",
        State.ACTIVE: "The observer holds a snapshot and is told of every change.",
        State.REFUSED: "The observer was not admitted; it may ask again.",
        State.REMOVED: "The observer is told nothing more.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-D4", "I-D6", "I-D7", "I-D8", "I-D9"),
)
"""An observer's subscription of a data object."""
