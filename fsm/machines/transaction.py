"""State machine of a request and its answers, at the bus that opened it (protocol page 03, 3.3).

Each request has one entity (MSG-04..MSG-07, I-T1..I-T6): any number of provisional answers, then a
final answer, made by the receiver or, without a receiver, by the bus itself. A message of an object
to all observers is answered separately by each of their runtimes (C-81): the last of these answers
is the final one. If no answer comes in time, the bus answers 408; a later answer is never delivered
(I-T5). Each provisional answer restarts the timer, and so does each repetition of the same request,
if the requester wants that. A request that its requester gives up ends without an answer, at the
bus of the requester and at that of the receiver.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a transaction."""

    PENDING = "pending"
    FINAL = "final"
    TIMED_OUT = "timed-out"
    GIVEN_UP = "given-up"


class Trigger(StrEnum):
    """Event that changes the state of a transaction."""

    OPENED = "opened"
    PROVISIONAL = "provisional"
    ONE_ANSWERED = "one-answered"
    REPEATED = "repeated"
    ANSWERED = "answered"
    REFUSED = "refused"
    SILENCE = "silence"
    GIVEN_UP = "given-up"


_OPENED: Final = "the bus admits the request"
_TRYING: Final = "a provisional answer came"
_ONE: Final = "one of several receivers answered; each answers for itself"
_AGAIN: Final = "the same request is sent again, which waits anew"
_FINAL: Final = "the final answer came"
_REFUSED: Final = "there is no stub or receiver; the bus itself answers 404 or 503"
_SILENCE: Final = "no answer came for 15 s; the bus answers 408"
_GIVEN_UP: Final = "the requester no longer waits, and says so to the receiver"
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
    Transition(State.PENDING, Trigger.GIVEN_UP,     State.GIVEN_UP,  _GIVEN_UP, origin=Origin.EXTENSION),
)
# fmt: on

TRANSACTION: Final = Table(
    name="transaction",
    owner="Message BUS of the runtime",
    key="<from>|<to>|<id>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.FINAL, State.TIMED_OUT, State.GIVEN_UP}),
    extension_ends=frozenset({State.GIVEN_UP}),
    deadlines=(Deadline(State.PENDING, "REPLY_TIMEOUT", Trigger.SILENCE, _SINCE),),
    meanings={
        State.PENDING: "The request is on its way, or being worked on.",
        State.FINAL: "The final answer was given to the requester.",
        State.TIMED_OUT: "No answer came in time; a later one is dropped.",
        State.GIVEN_UP: "The requester was cancelled: nobody answers, and an answer is dropped.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-T1", "I-T2", "I-T3", "I-T4", "I-T5", "I-T6", "I-T8", "I-B4", "I-B12"),
)
"""State machine of a request and its answers."""
