"""A runtime's subscription of an address at a message node (protocol page 03, section 3.3).

One entity per address and runtime (MN-14..MN-17, M-01..M-05, M-35, M-37, M-44, I-M5..I-M7): what
is sent to the address is delivered to the runtime as well. It ends when the runtime
unsubscribes, when its session is over, or when the address is released.
"""

from enum import StrEnum, unique
from typing import Final

from fsm.table import Deadline, Table, Transition

__all__ = ["NODE_SUBSCRIPTION", "State", "Trigger"]


@unique
class State(StrEnum):
    """Whether the runtime is delivered what goes to the address."""

    ACTIVE = "active"
    REMOVED = "removed"


@unique
class Trigger(StrEnum):
    """What moves a subscription."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    SESSION_OVER = "session-over"
    ADDRESS_RELEASED = "address-released"


_ACTIVE: Final = "3.3 MN subscription: subscribe"
_REMOVED: Final = "3.3 MN subscription: unsubscribe"
_SESSION: Final = "3.3 MN subscription: its session closed or expired"
_ADDRESS: Final = "3.3 MN subscription: the address was released"

# fmt: off
_ROWS: Final = (
    Transition(None,         Trigger.SUBSCRIBE,        State.ACTIVE,  _ACTIVE),
    Transition(State.ACTIVE, Trigger.UNSUBSCRIBE,      State.REMOVED, _REMOVED),
    Transition(State.ACTIVE, Trigger.SESSION_OVER,     State.REMOVED, _SESSION),
    Transition(State.ACTIVE, Trigger.ADDRESS_RELEASED, State.REMOVED, _ADDRESS),
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
    deadlines=(Deadline(State.ACTIVE, None, None, "it lives as long as its session"),),
    meanings={
        State.ACTIVE: "The runtime is delivered what is sent to the address.",
        State.REMOVED: "Nothing more of it is sent to the runtime.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-M3", "I-M5", "I-M6", "I-M7"),
)
"""A runtime's subscription of an address at a message node."""
