"""State machine of a runtime's subscription to an address at a message node (page 03, section 3.3).

Each pair of address and runtime has one entity (MN-14..MN-17, M-01..M-05, M-35, M-37, M-44,
I-M5..I-M7): messages to the address are delivered to the runtime as well. The subscription ends
when the runtime unsubscribes, when its session is over, or when the address is released.

The drawing has no consent. If the address is a part of another session's object, the subscription
is set before the object's owner was asked (SC-30): it is held, and nothing is delivered, until the
owner consents. A refusal removes it; after leaving or expulsion (M-43, M-45) it is held (S3). When
the lease of the last observer is over, it is held, too, and then removed.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a subscription at the node."""

    HELD = "held"
    ACTIVE = "active"
    REMOVED = "removed"


class Trigger(StrEnum):
    """Event that changes the state of a subscription."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    SESSION_OVER = "session-over"
    ADDRESS_RELEASED = "address-released"
    HOLD = "hold"
    CONSENT = "consent"
    WITHDRAW = "withdraw"
    REFUSE = "refuse"
    EXPIRE = "expire"


_ACTIVE: Final = "the runtime subscribes"
_REMOVED: Final = "the runtime unsubscribes"
_SESSION: Final = "the session of the runtime was closed or has expired"
_ADDRESS: Final = "the address was released"

_HELD: Final = "the path is set before the owner is asked for its consent"
_AGREED: Final = "the owner consents, or no consent is needed"
_LEFT: Final = "no hyperty of the runtime observes any more"
_REFUSED: Final = "the owner refuses"
_EXPIRED: Final = "the owner reports that the last observer there has not renewed its lease"

_EXTRA: Final = Origin.EXTENSION

# fmt: off
_ROWS: Final = (
    Transition(None,         Trigger.SUBSCRIBE,        State.ACTIVE,  _ACTIVE),
    Transition(State.ACTIVE, Trigger.UNSUBSCRIBE,      State.REMOVED, _REMOVED),
    Transition(State.ACTIVE, Trigger.SESSION_OVER,     State.REMOVED, _SESSION),
    Transition(State.ACTIVE, Trigger.ADDRESS_RELEASED, State.REMOVED, _ADDRESS),
    Transition(None,         Trigger.HOLD,             State.HELD,    _HELD,    origin=_EXTRA),
    Transition(State.HELD,   Trigger.CONSENT,          State.ACTIVE,  _AGREED,  origin=_EXTRA),
    Transition(State.ACTIVE, Trigger.WITHDRAW,         State.HELD,    _LEFT,    origin=_EXTRA),
    Transition(State.HELD,   Trigger.REFUSE,           State.REMOVED, _REFUSED, origin=_EXTRA),
    Transition(State.HELD,   Trigger.EXPIRE,           State.REMOVED, _EXPIRED, origin=_EXTRA),
    Transition(State.HELD,   Trigger.UNSUBSCRIBE,      State.REMOVED, _REMOVED, origin=_EXTRA),
    Transition(State.HELD,   Trigger.SESSION_OVER,     State.REMOVED, _SESSION, origin=_EXTRA),
    Transition(State.HELD,   Trigger.ADDRESS_RELEASED, State.REMOVED, _ADDRESS, origin=_EXTRA),
)
# fmt: on

NODE_SUBSCRIPTION: Final = Table(
    name="node_subscription",
    owner="subscription manager of the message node",
    key="<address>|<R>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.REMOVED}),
    deadlines=(
        Deadline(State.HELD, None, None, "the owner may be asked as long as the session lives"),
        Deadline(State.ACTIVE, None, None, "it lives as long as its session"),
    ),
    meanings={
        State.HELD: "The path is set, and nothing is delivered: the owner has not consented.",
        State.ACTIVE: "The runtime is delivered what is sent to the address.",
        State.REMOVED: "The runtime gets nothing more that is sent to the address.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-M3", "I-M5", "I-M6", "I-M7"),
)
"""State machine of a runtime's subscription to an address at a message node."""
