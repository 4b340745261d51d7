"""A request and its answers, as the bus that opened it sees them (protocol page 03, 3.3).

One entity per request (MSG-04..MSG-07, I-T1..I-T6): any number of provisional answers,
then one final one, made by the receiver or, without a receiver, by the bus
itself. A message of an object to all observers is answered by each of their runtimes,
once, each for itself (C-81): the last of these answers is the final one. Silence ends it too: the bus makes the 408, and the real answer is late from then
on and never delivered (I-T5). Each provisional answer begins the wait anew, and so does each
time that the same request is sent once more, if the requester wants that.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """The states of a transaction."""

    PENDING = "pending"
    FINAL = "final"
    TIMED_OUT = "timed-out"


class Trigger(StrEnum):
    """The triggers of a transaction."""

    OPENED = "opened"
    PROVISIONAL = "provisional"
    ONE_ANSWERED = "one-answered"
    REPEATED = "repeated"
    ANSWERED = "answered"
    REFUSED = "refused"
    SILENCE = "silence"


_OPENED: Final = "the bus admits the request"
_TRYING: Final = "a provisional answer came"
_ONE: Final = "one of several receivers answered; each answers for itself"
_AGAIN: Final = "the same request is sent again, which waits anew"
_FINAL: Final = "the final answer came"
_REFUSED: Final = "there is no stub or receiver; the bus itself answers 404 or 503"
_SILENCE: Final = "no answer came for 15 s; the bus answers 408"
_SINCE: Final = "counted from the request or the last provisional answer"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,          Trigger.OPENED,       State.PENDING,   _OPENED),
    Transition(State.PENDING, Trigger.PROVISIONAL,  State.PENDING,   _TRYING),
    Transition(State.PENDING, Trigger.ONE_ANSWERED, State.PENDING,   _ONE,     origin=Origin.EXTENSION),
    Transition(State.PENDING, Trigger.REPEATED,     State.PENDING,   _AGAIN,   origin=Origin.EXTENSION),
    Transition(State.PENDING, Trigger.ANSWERED,     State.FINAL,     _FINAL),
    Transition(State.PENDING, Trigger.REFUSED,      State.FINAL,     _REFUSED, origin=Origin.EXTENSION),
    Transition(State.PENDING, Trigger.SILENCE,      State.TIMED_OUT, _SILENCE),
)
# fmt: on

TRANSACTION: Final = Table(
    name="transaction",
    owner="Message BUS of the runtime",
    key="<from>|<to>|<id>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.FINAL, State.TIMED_OUT}),
    deadlines=(Deadline(State.PENDING, "REPLY_TIMEOUT", Trigger.SILENCE, _SINCE),),
    meanings={
        State.PENDING: "The request is on its way, or being worked on.",
        State.FINAL: "The final answer was given to the requester.",
        State.TIMED_OUT: "No answer came in time; a later one is dropped.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-T1", "I-T2", "I-T3", "I-T4", "I-T5", "I-T6", "I-T8", "I-B4", "I-B12"),
)
"""A request and its answers."""
