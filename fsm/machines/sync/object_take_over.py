"""The hand-over of a data object to another reporter, at the end that takes it (ours).

One entity per object, new reporter and attempt (SYN-26, M-54, I-D1): the sync manager of the
new reporter keeps it. It has the whole object before it asks the node for the address,
and writes only after the node has said yes; it asks until the node has answered.
"""

from enum import StrEnum, unique
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition

__all__ = ["OBJECT_TAKE_OVER", "State", "Trigger"]


@unique
class State(StrEnum):
    """The states of a take-over."""

    TAKING = "taking"
    TAKEN = "taken"
    DROPPED = "dropped"


@unique
class Trigger(StrEnum):
    """The triggers."""

    TAKE = "take"
    AGAIN = "again"
    GRANT = "grant"
    DENY = "deny"


_TAKE: Final = "ours: the object was handed over whole"
_AGAIN: Final = "ours: the node has not answered"
_GRANT: Final = "ours: the node has moved the address, and its paths, to this runtime"
_DENY: Final = "ours: the offer was taken back, or the runtime leaves"

_OURS: Final = Origin.EXTENSION

# fmt: off
_ROWS: Final = (
    Transition(None,         Trigger.TAKE,  State.TAKING,  _TAKE,  origin=_OURS),
    Transition(State.TAKING, Trigger.AGAIN, State.TAKING,  _AGAIN, origin=_OURS),
    Transition(State.TAKING, Trigger.GRANT, State.TAKEN,   _GRANT, origin=_OURS),
    Transition(State.TAKING, Trigger.DENY,  State.DROPPED, _DENY,  origin=_OURS),
)
# fmt: on

OBJECT_TAKE_OVER: Final = Table(
    name="object_take_over",
    owner="sync manager of the new reporter's runtime",
    key="<object>|<new reporter>|<number>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.TAKEN, State.DROPPED}),
    extension_ends=frozenset({State.TAKEN, State.DROPPED}),
    deadlines=(Deadline(State.TAKING, "REPLY_TIMEOUT", Trigger.AGAIN, "only the node knows"),),
    meanings={
        State.TAKING: "The object is here, and the node is asked for its address.",
        State.TAKEN: "This runtime reports the object.",
        State.DROPPED: "The object stays with its reporter.",
    },
    drawn_in="ours, for protocol page 05, delegation",
    claims=("I-D1", "I-D2"),
)
"""The hand-over of a data object, at the end that takes it."""
