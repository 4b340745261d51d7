"""State machine of an observer's subscription of a data object (protocol page 03, section 3.3).

Each pair of object and observer has one entity (SYN-10..SYN-12, SYN-20, SYN-22, M-38, M-39, M-43,
M-47) in the sync manager of the reporter. An observer that was invited is accepted without asking
the reporter. The reporter decides about any other observer; if it does not answer, the observer is
refused. The deletion of the object ends the subscription: an active observer is notified first
(SC-34).

The last message of an observer may be lost, and it may end without one. So a subscription is
granted as a lease: it lasts some seconds from its beginning or its last renewal. An observer of
upstream's form knows no leases and gets none: its subscription lasts until it leaves.

A runtime's registry has a subscription of each remote registry that follows its entries over a
direct link (P2P-23..26, M-08..M-10, SC-18, I-C1, I-C5). Then the list of entries is the object, and
the registry its reporter. It is accepted when the link becomes live, and ends with the link.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a subscription at the reporter."""

    REQUESTED = "requested"
    ACTIVE = "active"
    REFUSED = "refused"
    REMOVED = "removed"


class Trigger(StrEnum):
    """Event that changes the state of a subscription."""

    REQUEST = "request"
    ACCEPT = "accept"
    REFUSE = "refuse"
    UNSUBSCRIBE = "unsubscribe"
    OBJECT_DELETED = "object-deleted"
    RENEW = "renew"
    EXPIRE = "expire"


_REQUEST: Final = "an observer asks to subscribe"
_ACCEPT: Final = "the observer was invited, or the reporter admits it"
_REFUSE: Final = "the reporter refuses, or does not answer in time"
_LEAVE: Final = "the observer unsubscribes, or is removed"
_DELETED: Final = "the object was deleted"
_GONE: Final = "the object was deleted, so it admits no observer"
_LEFT: Final = "an observer that leaves before the decision is not admitted"

_RENEWED: Final = "the observer's sync manager renews the lease"
_EXPIRED: Final = "the lease was not renewed in time"

_OURS: Final = Origin.EXTENSION

# fmt: off
_ROWS: Final = (
    Transition(None,            Trigger.REQUEST,        State.REQUESTED, _REQUEST),
    Transition(State.REQUESTED, Trigger.ACCEPT,         State.ACTIVE,    _ACCEPT),
    Transition(State.REQUESTED, Trigger.REFUSE,         State.REFUSED,   _REFUSE),
    Transition(State.REQUESTED, Trigger.UNSUBSCRIBE,    State.REFUSED,   _LEFT),
    Transition(State.REQUESTED, Trigger.OBJECT_DELETED, State.REFUSED,   _GONE),
    Transition(State.ACTIVE,    Trigger.UNSUBSCRIBE,    State.REMOVED,   _LEAVE),
    Transition(State.ACTIVE,    Trigger.OBJECT_DELETED, State.REMOVED,   _DELETED),
    Transition(State.ACTIVE,    Trigger.RENEW,          State.ACTIVE,    _RENEWED, origin=_OURS),
    Transition(State.ACTIVE,    Trigger.EXPIRE,         State.REMOVED,   _EXPIRED, origin=_OURS),
)
# fmt: on

OBJECT_SUBSCRIPTION: Final = Table(
    name="object_subscription",
    owner="sync manager of the reporter's runtime; its registry, of what lives there",
    key="<object>|<observer>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.REFUSED, State.REMOVED}),
    deadlines=(
        Deadline(State.REQUESTED, "REPLY_TIMEOUT", Trigger.REFUSE, "the reporter must decide"),
        Deadline(State.ACTIVE, "LEASE", Trigger.EXPIRE, "a lease must be renewed"),
    ),
    meanings={
        State.REQUESTED: "The reporter is being asked.",
        State.ACTIVE: "The observer holds a snapshot and is notified of every change.",
        State.REFUSED: "The observer was not admitted; it may ask again.",
        State.REMOVED: "The observer is not notified any more.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-D4", "I-D6", "I-D7", "I-D8", "I-D9"),
)
"""State machine of an observer's subscription of a data object."""
