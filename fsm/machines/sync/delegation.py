"""The hand-over of a data object to another reporter, at both ends (ours, SYN-26, M-54, I-D1).

One entity per object, new reporter and attempt, at each end.

The end that gives is kept by the sync manager of the reporter. From `offered` to its end there are
no writes here. Only the node decides whose the address is, so in doubt it is asked until it has
said so: no time being over makes this end a writer again.

The end that takes is kept by the sync manager of the new reporter. It has the whole object before
it asks the node for the address, and writes only after the node has said yes; it asks until the
node has answered.
"""

from enum import StrEnum, unique
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition

__all__ = [
    "OBJECT_DELEGATION",
    "OBJECT_TAKE_OVER",
    "State",
    "TakeOver",
    "TakeOverTrigger",
    "Trigger",
]

# --- the end that gives -----------------------------------------------------------------


@unique
class State(StrEnum):
    """The states of a delegation."""

    ASKED = "asked"
    OFFERED = "offered"
    HANDING = "handing"
    DOUBTFUL = "doubtful"
    GIVEN = "given"
    KEPT = "kept"
    LOST = "lost"


@unique
class Trigger(StrEnum):
    """The triggers."""

    ASK = "ask"
    AGREE = "agree"
    PASS = "pass"  # noqa: S105 - a word, no secret
    REFUSE = "refuse"
    NOTED = "noted"
    TAKEN = "taken"
    DOUBT = "doubt"
    AGAIN = "again"
    STAYS = "stays"
    LOSE = "lose"


_ASK: Final = "delegation asked for; confirmed by a forward"
_AGREE: Final = "forward answered 200: the reporter writes no more from here on"
_HERE: Final = "forward answered 200, and both live in one runtime"
_REFUSE: Final = "forward answered 4xx, or not at all"
_NOTED: Final = "ours: the node lets the other runtime take the address"
_NO_OFFER: Final = "ours: no object was handed over, so the address cannot be taken"
_TAKEN: Final = "ours: the other runtime has taken the address"
_DOUBT: Final = "ours: an answer is missing, or it is no: the offer is taken back"
_AGAIN: Final = "ours: the node has not said whose the address is"
_STAYS: Final = "ours: the node has taken the offer back"
_LOSE: Final = "ours: the address has no owner any more, or the runtime leaves"

_OURS: Final = Origin.EXTENSION

# fmt: off
_ROWS: Final = (
    Transition(None,           Trigger.ASK,    State.ASKED,    _ASK,    origin=_OURS),
    Transition(State.ASKED,    Trigger.PASS,   State.GIVEN,    _HERE,   origin=_OURS),
    Transition(State.ASKED,    Trigger.AGREE,  State.OFFERED,  _AGREE,  origin=_OURS),
    Transition(State.ASKED,    Trigger.REFUSE, State.KEPT,     _REFUSE, origin=_OURS),
    Transition(State.OFFERED,  Trigger.NOTED,  State.HANDING,  _NOTED,  origin=_OURS),
    Transition(State.OFFERED,  Trigger.REFUSE, State.KEPT,     _NO_OFFER, origin=_OURS),
    Transition(State.HANDING,  Trigger.TAKEN,  State.GIVEN,    _TAKEN,  origin=_OURS),
    Transition(State.HANDING,  Trigger.DOUBT,  State.DOUBTFUL, _DOUBT,  origin=_OURS),
    Transition(State.DOUBTFUL, Trigger.AGAIN,  State.DOUBTFUL, _AGAIN,  origin=_OURS),
    Transition(State.DOUBTFUL, Trigger.TAKEN,  State.GIVEN,    _TAKEN,  origin=_OURS),
    Transition(State.DOUBTFUL, Trigger.STAYS,  State.KEPT,     _STAYS,  origin=_OURS),
    Transition(State.DOUBTFUL, Trigger.LOSE,   State.LOST,     _LOSE,   origin=_OURS),
)
# fmt: on

OBJECT_DELEGATION: Final = Table(
    name="object_delegation",
    owner="sync manager of the reporter's runtime",
    key="<object>|<new reporter>|<number>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.GIVEN, State.KEPT, State.LOST}),
    extension_ends=frozenset({State.GIVEN, State.KEPT, State.LOST}),
    deadlines=(
        Deadline(State.ASKED, "REPLY_TIMEOUT", Trigger.REFUSE, "the other must decide"),
        Deadline(State.OFFERED, "REPLY_TIMEOUT", Trigger.REFUSE, "the node must answer"),
        Deadline(State.HANDING, "REPLY_TIMEOUT", Trigger.DOUBT, "the other must have taken it"),
        Deadline(State.DOUBTFUL, "REPLY_TIMEOUT", Trigger.AGAIN, "only the node knows"),
    ),
    meanings={
        State.ASKED: "The other hyperty is being asked; the reporter writes on.",
        State.OFFERED: "There are no writes; the node knows the hyperty that may take the address.",
        State.HANDING: "There are no writes here; the other runtime gets the object, and takes it.",
        State.DOUBTFUL: "There are no writes here; the offer is taken back, if it is not too late.",
        State.GIVEN: "The other hyperty reports the object.",
        State.KEPT: "All is as it was: the reporter writes on.",
        State.LOST: "The object is not this runtime's any more.",
    },
    drawn_in="ours, for protocol page 05, delegation",
    claims=("I-D1", "I-D2"),
)
"""The hand-over of a data object, at the end that gives it."""


# --- the end that takes -----------------------------------------------------------------


@unique
class TakeOver(StrEnum):
    """The states of a take-over."""

    TAKING = "taking"
    TAKEN = "taken"
    DROPPED = "dropped"


@unique
class TakeOverTrigger(StrEnum):
    """The triggers."""

    TAKE = "take"
    AGAIN = "again"
    GRANT = "grant"
    DENY = "deny"


_TAKE: Final = "ours: the object was handed over whole"
_ASK_AGAIN: Final = "ours: the node has not answered"
_GRANT: Final = "ours: the node has moved the address, and its paths, to this runtime"
_DENY: Final = "ours: the offer was taken back, or the runtime leaves"


# fmt: off
_TAKE_OVER_ROWS: Final = (
    Transition(None,            TakeOverTrigger.TAKE,  TakeOver.TAKING,  _TAKE,      origin=_OURS),
    Transition(TakeOver.TAKING, TakeOverTrigger.AGAIN, TakeOver.TAKING,  _ASK_AGAIN, origin=_OURS),
    Transition(TakeOver.TAKING, TakeOverTrigger.GRANT, TakeOver.TAKEN,   _GRANT,     origin=_OURS),
    Transition(TakeOver.TAKING, TakeOverTrigger.DENY,  TakeOver.DROPPED, _DENY,      origin=_OURS),
)
# fmt: on

OBJECT_TAKE_OVER: Final = Table(
    name="object_take_over",
    owner="sync manager of the new reporter's runtime",
    key="<object>|<new reporter>|<number>",
    states=TakeOver,
    triggers=TakeOverTrigger,
    rows=_TAKE_OVER_ROWS,
    may_end=frozenset({TakeOver.TAKEN, TakeOver.DROPPED}),
    extension_ends=frozenset({TakeOver.TAKEN, TakeOver.DROPPED}),
    deadlines=(
        Deadline(TakeOver.TAKING, "REPLY_TIMEOUT", TakeOverTrigger.AGAIN, "only the node knows"),
    ),
    meanings={
        TakeOver.TAKING: "The object is here, and the node is asked for its address.",
        TakeOver.TAKEN: "This runtime reports the object.",
        TakeOver.DROPPED: "The object stays with its reporter.",
    },
    drawn_in="ours, for protocol page 05, delegation",
    claims=("I-D1", "I-D2"),
)
"""The hand-over of a data object, at the end that takes it."""
