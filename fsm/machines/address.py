"""State machine of an allocated address (protocol page 03, section 3.3).

Each address has one entity: key is the address. It is allocated only once in the life of the node,
and belongs to the session for which it was allocated. When its owner releases it, or its session is
over, the node remembers it as released (MN-10..MN-12, M-18..M-20, I-A1..I-A7). Only the runtime
that had it can get it again, by a claim, when it has stored its state and comes back after its
session was over (RT-03, SYN-25). If several nodes serve the domain, the address may have been
released at another node.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of an address."""

    ALLOCATED = "allocated"
    RELEASED = "released"


class Trigger(StrEnum):
    """Event that changes the state of an address."""

    ALLOCATE = "allocate"
    RELEASE = "release"
    RECLAIM = "reclaim"


_ALLOCATE: Final = "the node grants a request for addresses"
_RELEASE: Final = "the address is freed, and the node remembers its last owner"
_RECLAIM: Final = "a runtime claims an address again that it had before"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,            Trigger.ALLOCATE, State.ALLOCATED, _ALLOCATE),
    Transition(State.ALLOCATED, Trigger.RELEASE,  State.RELEASED,  _RELEASE),
    Transition(State.RELEASED,  Trigger.RECLAIM,  State.ALLOCATED, _RECLAIM, origin=Origin.EXTENSION),
)
# fmt: on

ADDRESS: Final = Table(
    name="address",
    owner="address allocation of the message node",
    key="<address>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.RELEASED}),
    may_begin=frozenset({State.RELEASED}),
    deadlines=(Deadline(State.ALLOCATED, None, None, "it lives as long as its session"),),
    meanings={
        State.ALLOCATED: "The address belongs to a session and may stand in its messages.",
        State.RELEASED: "The address has no owner; only its last runtime can claim it.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-A1", "I-A2", "I-A3", "I-A5", "I-A6", "I-A7"),
)
"""State machine of an allocated address."""
