"""State machine of a handler stub's controller for one requester (protocol page 03, section 3.3).

Each link of the handler has one entity: key is the link's address, PC (P2P-09, P2P-10, P2P-19,
I-P5, I-P8, I-P20). Its state describes the actions of the handler, while `p2p_connection` describes
the progress of the link: the controller observes the requester's offer, answers by an object of its
own, has an open link, and is closed for good. A link that is lost and comes back stays open.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Guard, Origin, Table, Transition, when


class State(StrEnum):
    """State of a controller."""

    OBSERVING = "observing"
    ANSWERING = "answering"
    OPEN = "open"
    CLOSED = "closed"


class Trigger(StrEnum):
    """Event that changes the state of a controller."""

    INVITED = "invited"
    ROW_REPORTED = "row-reported"
    ANSWER = "answer"
    LINK_OPEN = "link-open"
    OVER = "over"


class Condition(StrEnum):
    """Condition on the registry's entry for the remote runtime."""

    OWN_REQUEST = "own request"
    """The own runtime is also requesting a link to that runtime."""
    OWN_SMALLER = "own runtime smaller"
    """Our runtime's address is the smaller one, in byte order."""


_INVITED: Final = "the requester invites the handler, which observes the offer"
_ACCEPTS: Final = "no request of the own runtime wins over the invitation"
_SIMULTANEOUS_OPEN: Final = "the request of the own runtime wins; the invitation is answered 409"
_ANSWER: Final = "the handler has seen the offer and makes its answer object"
_OPEN: Final = "the link is open"
_CLOSED: Final = "the link is closed"
_FAILED: Final = "the link was not open in time, was refused or given up"
_WINS: Final = when(Condition.OWN_REQUEST, Condition.OWN_SMALLER)
_NO_REQUEST: Final = Guard(unless=frozenset({Condition.OWN_REQUEST}))
_LOSES: Final = when(Condition.OWN_REQUEST).but_not(Condition.OWN_SMALLER)

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,            Trigger.INVITED,   State.OBSERVING, _INVITED),
    Transition(State.OBSERVING, Trigger.ROW_REPORTED,  State.OBSERVING, _ACCEPTS, origin=Origin.EXTENSION, guard=_NO_REQUEST),
    Transition(State.OBSERVING, Trigger.ROW_REPORTED,  State.OBSERVING, _ACCEPTS, origin=Origin.EXTENSION, guard=_LOSES),
    Transition(State.OBSERVING, Trigger.ROW_REPORTED,  State.CLOSED,    _SIMULTANEOUS_OPEN,   origin=Origin.EXTENSION, guard=_WINS),
    Transition(State.OBSERVING, Trigger.ANSWER,    State.ANSWERING, _ANSWER),
    Transition(State.OBSERVING, Trigger.OVER,      State.CLOSED,    _FAILED,  origin=Origin.EXTENSION),
    Transition(State.ANSWERING, Trigger.LINK_OPEN, State.OPEN,      _OPEN),
    Transition(State.ANSWERING, Trigger.OVER,      State.CLOSED,    _FAILED,  origin=Origin.EXTENSION),
    Transition(State.OPEN,      Trigger.OVER,      State.CLOSED,    _CLOSED),
)
# fmt: on

HANDLER_CONTROLLER: Final = Table(
    name="handler_controller",
    owner="P2P handler stub, one per requester",
    key="<link>",
    states=State,
    triggers=Trigger,
    conditions=Condition,
    rows=_ROWS,
    may_end=frozenset({State.CLOSED}),
    deadlines=(
        Deadline(State.OBSERVING, "P2P_TIMEOUT", Trigger.OVER, "the offer must be seen"),
        Deadline(State.ANSWERING, "P2P_TIMEOUT", Trigger.OVER, "the link must open"),
        Deadline(State.OPEN, None, None, "`p2p_connection` ends it"),
    ),
    meanings={
        State.OBSERVING: "The requester's offer is being observed.",
        State.ANSWERING: "The answer is made and candidates are tried.",
        State.OPEN: "The link was open at least once and may come back if lost.",
        State.CLOSED: "This requester has no link at the handler any more.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-P5", "I-P8", "I-P17", "I-P20"),
)
"""State machine of a handler stub's controller for one requester."""
