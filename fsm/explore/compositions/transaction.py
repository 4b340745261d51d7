"""Composition of a requester and a receiver: every request ends once, by one answer.

Claims I-T2, I-T4 and I-T6. Participants: `fsm.bus.transactions` on the requesting side, where
requests are sent again, and its `OutstandingCore` on the side of a component that may crash before
it has answered (R11). Faults and events: any message is lost or comes twice, an answer is late,
provisional, or never comes; the component crashes, and the router answers for it; the router
refuses the request, or its requester gives it up and tells the component.
"""

import math
from typing import Final

from typing_extensions import override

from fsm.bus import transactions
from fsm.engine import Step
from fsm.explore import composition as plan
from fsm.explore.composition import Call, Condition, Event, UnsafeError
from specs.message import GIVEN_UP, Message, MessageType
from specs.reply_code import FIRST_FINAL, Code

ASKER: Final = "asker"
COMPONENT: Final = "component"

_REQUEST: Final = Message(1, MessageType.READ, "hyperty://a.ex/h", "hyperty://b.ex/h", {})
_GIVEN_UP: Final = Message(
    2, MessageType.CREATE, _REQUEST.from_, f"{_REQUEST.to}/events", {GIVEN_UP: _REQUEST.id}
)


def _answer(code: int) -> Message:
    return Message(1, MessageType.RESPONSE, _REQUEST.to, _REQUEST.from_, {"code": code})


class Asker(plan.Host):
    """Requester that sends one request.

    Attributes:
        ends: Number of times its request has ended.
        is_begun: Whether it has sent its request.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.core: transactions.TransactionsCore[None] = transactions.TransactionsCore()
        self.ends = 0
        self.is_begun = False

    @override
    def time_over(self) -> None:
        for repeat in self.core.repeated(self.now):
            self.steps([repeat.step])
            self.send(COMPONENT, "request")
        for expiry in self.core.overdue(self.now):
            self._end(expiry.step)

    def begin(self) -> None:
        self.is_begun = True
        terms = transactions.Terms(attempts=2)
        self.steps([self.core.open(_REQUEST, None, self.now, terms)])
        self.send(COMPONENT, "request")

    def refuse(self) -> None:
        ended = self.core.give_up(_REQUEST, "refused")
        if ended is not None:
            self._end(ended.step)

    def cancel(self) -> None:
        ended = self.core.abandon((_REQUEST.from_, _REQUEST.to, _REQUEST.id))
        if ended is not None:
            self._end(ended.step)
            self.send(COMPONENT, "give_up")

    def answer(self, code: int) -> None:
        result = self.core.answered(_answer(code), self.now)
        self.steps([result.step])
        self.ends += result.is_last
        if result.transaction is not None and self.ends > 1:
            raise UnsafeError("a request has two final answers (I-T2)")

    def _end(self, step: Step | None) -> None:
        self.steps([step])
        self.ends += 1


class Component(plan.Host):
    """Router with a component behind it, which answers requests or crashes.

    Attributes:
        requests: The requests that the component was given and has not answered.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.requests = transactions.OutstandingCore()

    @property
    def is_asked(self) -> bool:
        return self.requests.knows(_REQUEST)

    def request(self) -> None:
        self.requests.ask(_REQUEST, self.now)

    def give_up(self) -> None:
        self.requests.end_given_up(_GIVEN_UP)

    def reply(self, code: int) -> None:
        if self.requests.asked(_answer(code)) is None:
            raise UnsafeError("an answer belongs to no request (I-T5)")
        self.send(ASKER, "answer", code)
        if code < FIRST_FINAL and not self.is_asked:
            raise UnsafeError("a provisional answer ends a request (I-T4)")
        if code >= FIRST_FINAL and self.is_asked:
            raise UnsafeError("a request is answered, and waits for its answer (I-T4)")

    def crash(self) -> None:
        for _ in self.requests.unanswered():
            self.send(ASKER, "answer", int(Code.UNAVAILABLE))


def _is_asked(component: Component) -> bool:
    return component.is_asked


TRANSACTION: Final = plan.Composition(
    name="transaction",
    places={ASKER: Asker, COMPONENT: Component},
    channels=tuple(plan.both_ways(ASKER, COMPONENT)),
    events=(
        Event("a request is sent", ASKER, "begin"),
        Event("the router refuses it", ASKER, "refuse", lambda asker: len(asker.core) > 0),
        Event("the requester gives it up", ASKER, "cancel", lambda asker: len(asker.core) > 0),
        Event("the component is at work", COMPONENT, Call("reply", (100,)), _is_asked),
        Event("the component answers", COMPONENT, Call("reply", (200,)), _is_asked, 2),
        Event("the component crashes", COMPONENT, "crash", _is_asked, is_fault=True),
    ),
    never=(
        Condition("A request ends twice (I-T2).", (ASKER,), lambda asker: asker.ends > 1),
        Condition(
            "A request that is open has no deadline (I-T6).",
            (ASKER,),
            lambda asker: len(asker.core) > 0 and asker.deadline() == math.inf,
        ),
    ),
    ends=(
        Condition("no request was made", (ASKER,), lambda asker: not asker.is_begun),
        Condition(
            "the request has ended", (ASKER,), lambda asker: asker.ends == 1 and not len(asker.core)
        ),
    ),
    bounds=plan.Bounds(losses=1, duplicates=1, channel=2),
    horizon=0.0,
)
"""Composition: a request, its repeats, and its answers."""
