"""A requester and a receiver: every request ends once, by one answer (I-T2, I-T4, I-T6).

Participants: `fsm.bus.transactions` on the asking side, where requests are sent again, and its
`OutstandingCore` on the side of a component that may crash before it has answered (R11). What may
happen: any message is lost or comes twice, an answer is late, provisional, or never comes; the
component crashes, and the router answers for it; the request is given up.
"""

import math
from collections.abc import Hashable
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.bus.transactions import OutstandingCore, Terms, TransactionsCore
from fsm.engine import Step
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Never,
    Place,
    Plan,
    Situation,
    UnsafeError,
)
from specs.message import Message, MessageType
from specs.reply_code import FIRST_FINAL, Code

ASKER: Final = "asker"
COMPONENT: Final = "component"

_ASKER: Final = "hyperty://a.ex/h"
_ASKED: Final = "hyperty://b.ex/h"
_REQUEST: Final = Message(1, MessageType.READ, _ASKER, _ASKED, {})


@final
@attrs.frozen(slots=True)
class Sent:
    """The request, or an answer to it.

    Attributes:
        code: Of an answer; 0: the request.
    """

    code: int = 0

    @override
    def __str__(self) -> str:
        """Describe it in words."""
        return f"answer {self.code}" if self.code else "request"


def _answer(code: int) -> Message:
    return Message(1, MessageType.RESPONSE, _ASKED, _ASKER, {"code": code})


@final
class AskerPlace(Host):
    """The sender of requests.

    Attributes:
        ends: How often its request has ended.
        is_begun: Whether it has asked.
    """

    def __init__(self) -> None:
        super().__init__()
        self.core: TransactionsCore[None] = TransactionsCore()
        self.ends = 0
        self.is_begun = False

    @override
    def deadline(self) -> float:
        return self.core.deadline()

    @override
    def time_over(self) -> None:
        for again in self.core.repeated(self.now):
            self._step(again.step)
            self.send("asked", Sent())
        for over in self.core.overdue(self.now):
            self._end(over.step)

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case "ask":
                self.is_begun = True
                self._step(self.core.open(_REQUEST, None, self.now, Terms(attempts=2)))
                self.send("asked", Sent())
            case "give up":
                ended = self.core.give_up(_REQUEST, "given up")
                if ended is not None:
                    self._end(ended.step)
            case Sent(code):
                result = self.core.answered(_answer(code), self.now)
                if result.is_last:
                    self._end(result.step)
                else:
                    self._step(result.step)
                if result.transaction is not None and self.ends > 1:
                    raise UnsafeError("a request has two final answers (I-T2)")
            case _:
                raise TypeError(happened)

    def _step(self, step: Step | None) -> None:
        self.moved([step])

    def _end(self, step: Step | None) -> None:
        self._step(step)
        self.ends += 1


@final
class ComponentPlace(Host):
    """The router in front of a component, and the component.

    Attributes:
        core: What the component has been handed, and has not answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.core = OutstandingCore()

    @property
    def is_asked(self) -> bool:
        """True if the component has a request."""
        return self.core.knows(_REQUEST)

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Sent():
                self.core.ask(_REQUEST, self.now)
            case int(code):
                asked = self.core.asked(_answer(code))
                if asked is None:
                    raise UnsafeError("an answer belongs to no request (I-T5)")
                self.send("answers", Sent(code))
                if code < FIRST_FINAL and not self.is_asked:
                    raise UnsafeError("a provisional answer ends a request (I-T4)")
                if code >= FIRST_FINAL and self.is_asked:
                    raise UnsafeError("a request is answered, and waits for its answer (I-T4)")
            case "crash":
                for _ in self.core.unanswered():
                    self.send("answers", Sent(Code.UNAVAILABLE))
            case _:
                raise TypeError(happened)


def _asker(now: Situation) -> AskerPlace:
    return now.at(ASKER, AskerPlace)


def _is_asked(now: Situation) -> bool:
    return now.at(COMPONENT, ComponentPlace).is_asked


def _compose(bounds: Bounds) -> Composition:
    return Composition(
        name="transaction",
        about="A request, its repeats, and its answers.",
        places=(Place(ASKER, AskerPlace), Place(COMPONENT, ComponentPlace)),
        channels=(Channel("asked", ASKER, COMPONENT), Channel("answers", COMPONENT, ASKER)),
        events=(
            Event("a request is sent", ASKER, "ask"),
            Event(
                "the request is given up",
                ASKER,
                "give up",
                when=lambda now: len(_asker(now).core) > 0,
            ),
            Event("the component is at work", COMPONENT, int(Code.TRYING), when=_is_asked),
            Event("the component answers", COMPONENT, int(Code.OK), when=_is_asked, budget=2),
            Event("the component crashes", COMPONENT, "crash", when=_is_asked, is_fault=True),
        ),
        never=(
            Never("A request ends twice.", "I-T2", (ASKER,), lambda now: _asker(now).ends > 1),
            Never(
                "A request that is open has no deadline.",
                "I-T6",
                (ASKER,),
                lambda now: len(_asker(now).core) > 0 and _asker(now).deadline() == math.inf,
            ),
        ),
        ends=(
            End("no request was made", (ASKER,), lambda now: not _asker(now).is_begun),
            End(
                "the request has ended",
                (ASKER,),
                lambda now: _asker(now).ends == 1 and not len(_asker(now).core),
            ),
        ),
        bounds=bounds,
        horizon=0.0,
    )


TRANSACTION: Final = Plan("transaction", _compose, Bounds(losses=1, duplicates=1, channel=2))
"""With one message lost, and one that comes twice."""
