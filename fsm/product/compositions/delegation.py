"""An object changes hands: two ends, a node between them, and networks that lose and repeat.

Participants: both cores of `fsm.sync.delegation`, and `fsm.registry.addresses` at the node.
Faults: any message is lost or comes twice; any answer is missing, or comes after it was
given up; either runtime crashes at any time, and the node then lets go of what it had; the new
one comes back, and knows nothing. In every case: never do two write, and a writing end owns the
address.

Left out, and why that is no loss:

* The parts of an object: one message hands it over. What is lost of several is lost of one.
* Both in one runtime: that is one step of one process.
* More attempts than one: an offer's number only ever rises, so that a later one is as new.
"""

import math
from abc import abstractmethod
from collections.abc import Hashable
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.effects import Refused
from fsm.machines.sync.delegation import OBJECT_TAKE_OVER, TakeOver
from fsm.product.composition import (
    Bounds,
    Channel,
    Composition,
    End,
    Event,
    Host,
    Medium,
    Never,
    Place,
    Plan,
    Situation,
    UnsafeError,
)
from fsm.registry import addresses as offers
from fsm.sync import delegation as handing
from specs.reply_code import Code

__all__ = ["DELEGATION", "NEW", "NODE", "OLD", "NodePlace"]

OLD: Final = "old"
NODE: Final = "node"
NEW: Final = "new"

_OBJECT: Final = "comm://a.ex/o"
_TO: Final = "hyperty://a.ex/h2"
_NUMBER: Final = 1


@final
@attrs.frozen(slots=True)
class Sent:
    """A message between two places.

    Attributes:
        what: What is asked, or the question that is answered.
        source: The sender.
        code: Of an answer; 0: it is a question.
        session: Of its runtime's sessions, the how many-th it came by.
    """

    what: str
    source: str
    code: int = 0
    session: int = 1

    @override
    def __str__(self) -> str:
        """The event in words."""
        return f"{self.what} {self.code or ''}".rstrip()


class _EndPlace(Host):
    """A runtime, and what waits there for an answer.

    Attributes:
        asked: What waits for an answer, or is asked after a pause; empty: nothing.
        is_down: Whether it has crashed, and has not come back.
    """

    name: str
    durations = frozenset({"_forgotten"})

    def __init__(self) -> None:
        super().__init__()
        self.asked = ""
        self.is_down = False
        self.session = 1
        self._target = ""
        self._until = math.inf
        self._patience = math.inf
        self._is_pausing = False

    @override
    def deadline(self) -> float:
        return math.inf if self.is_down else self._until

    def ask(self, what: str, target: str, patience: float, pause: float = 0.0) -> None:
        """Send a request, now or after a pause."""
        self.asked, self._target, self._patience = what, target, patience
        self._is_pausing = pause > 0.0
        if self._is_pausing:
            self._until = self.now + pause
        else:
            self._ask()

    def _ask(self) -> None:
        self._is_pausing = False
        self._until = self.now + self._patience
        self.post(self._target, self.asked)

    def post(self, target: str, what: str, code: int = 0) -> None:
        """Send an event or an answer to another place."""
        self.send(f"{self.name} to {target}", Sent(what, self.name, code, self.session))

    @override
    def time_over(self) -> None:
        if self._is_pausing:
            self._ask()
        else:
            self.answered(handing.Answered(Code.TIMEOUT, "no answer came"))

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case "crash":
                self.is_down = True
                self.forget()
                self.send(f"{self.name} is there", ("over", self.name))
            case "come back":
                self.is_down = False
                self.session += 1
                self.send(f"{self.name} is there", ("again", self.name))
            case Sent(_, source, _, session) if self.is_down or self._is_late(source, session):
                pass
            case Sent(what, _, code) if code:
                if what == self.asked and not self._is_pausing:
                    self.answered(handing.Answered(code))
            case _:
                self.take_own(happened)

    def _is_late(self, source: str, session: int) -> bool:
        """True if it was sent to a session that is over: what a node answers ends with it."""
        return source == NODE and session != self.session

    def answered(self, answer: handing.Answered) -> None:
        """Feed the core an answer, or that there is none."""
        self.asked, self._until = "", math.inf
        self.feed(answer)

    def forget(self) -> None:
        """Have nothing any more."""
        self.asked, self._until = "", math.inf

    @abstractmethod
    def feed(self, happened: handing.DelegationInput) -> None:
        """Feed the core."""

    @abstractmethod
    def take_own(self, happened: Hashable) -> None:
        """Take an input that only this end has."""


@final
class _OldPlace(_EndPlace):
    """The end that gives."""

    name = OLD

    def __init__(self) -> None:
        super().__init__()
        self.core = handing.DelegationCore(_OBJECT, _TO, _NUMBER)

    @property
    def writes(self) -> bool:
        """True if this end writes."""
        return not self.is_down and self.core.may_write

    @override
    def take_own(self, happened: Hashable) -> None:
        if happened != "begin":
            raise TypeError(happened)
        self.feed(handing.Begun())

    @override
    def feed(self, happened: handing.DelegationInput) -> None:
        for effect in self.core.feed(happened):
            self._do(effect)

    def _do(self, effect: handing.DelegationEffect) -> None:
        patience = self.core.patience
        match effect:
            case handing.OtherAsked():
                self.ask("forward", NEW, patience)
            case handing.AddressOffered():
                self.ask("offer", NODE, patience)
            case handing.ObjectHanded():
                self.ask("hand", NEW, patience)
            case handing.AddressWithdrawn(pause):
                self.ask("withdraw", NODE, patience, pause)
            case handing.AddressClaimed():
                self.ask("claim", NODE, patience)
            case handing.OfferDropped():
                self.post(NODE, "withdraw")
            case _:
                self.moved([effect])


@final
class _NewPlace(_EndPlace):
    """The end that takes; what it was once, it knows no more after a crash.

    Attributes:
        core: None: nothing was handed to it.
    """

    name = NEW

    def __init__(self) -> None:
        super().__init__()
        self.core: handing.TakeOverCore | None = None

    @property
    def writes(self) -> bool:
        """True if this end writes."""
        return not self.is_down and self.core is not None and self.core.may_write

    @override
    def forget(self) -> None:
        super().forget()
        self.core = None

    @override
    def take_own(self, happened: Hashable) -> None:
        match happened:
            case Sent("forward"):
                self.post(OLD, "forward", Code.OK)
            case Sent("hand"):
                self._handed()
            case _:
                raise TypeError(happened)

    def _handed(self) -> None:
        if self.core is None:
            self.core = handing.TakeOverCore(_OBJECT, _TO, _NUMBER)
            self.feed(handing.Begun())
        elif self.core.is_over:
            self._report()

    def _report(self) -> None:
        self.post(OLD, "hand", Code.OK if self.writes else Code.CONFLICT)

    @override
    def feed(self, happened: handing.DelegationInput) -> None:
        if self.core is None:
            return
        patience = OBJECT_TAKE_OVER.patience(TakeOver.TAKING)
        for effect in self.core.feed(happened):
            match effect:
                case handing.AddressTaken(pause):
                    self.ask("take", NODE, patience, pause)
                case handing.TookOver() | handing.Dropped():
                    self._report()
                case _:
                    self.moved([effect])


@final
class NodePlace(Host):
    """The node: the owner of the address, and the end to which it is offered.

    Attributes:
        owner: None: no end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.owner: str | None = OLD
        self.sessions = {OLD: 1, NEW: 1}
        self._offered_in = 0
        self._offers = offers.AddressOffers(self._owner_of)

    def _owner_of(self, _address: str) -> str | None:
        return self.owner

    @override
    def take(self, happened: Hashable) -> None:
        match happened:
            case Sent(what, source, _, session):
                if self.sessions.get(source) == session:
                    result = Sent(what, NODE, self._answer(what, source), session)
                    self.send(f"{NODE} to {source}", result)
            case ("over", str(runtime)):
                del self.sessions[runtime]
                self._offers.gone(runtime)
                if self.owner == runtime:
                    self.owner = None
                    self._offers.released(_OBJECT)
            case ("again", str(runtime)):
                self.sessions[runtime] = 2
            case _:
                raise TypeError(happened)

    def _answer(self, what: str, source: str) -> int:
        match what:
            case "offer":
                asked: offers.OfferInput = offers.Offer(_OBJECT, source, NEW, _NUMBER, _TO)
            case "withdraw":
                asked = offers.Withdraw(_OBJECT, source, _NUMBER)
            case "take":
                asked = offers.Take(_OBJECT, source, _NUMBER, _TO)
            case _:
                is_free = self.owner in {None, source}
                self.owner = source if is_free else self.owner
                return Code.OK if is_free else Code.FORBIDDEN
        result = self._offers.feed(asked)
        if what == "offer" and result is None:
            self._offered_in = self.sessions.get(NEW, 0)
        if isinstance(result, Refused):
            return result.code
        if isinstance(result, offers.Move):
            if self._offered_in not in {0, self.sessions[NEW]}:
                raise UnsafeError("an offer outlives the session that it was made to (I-A7)")
            self.owner = result.new
            self._offers.moved(result)
        return Code.OK


def _old(now: Situation) -> _OldPlace:
    return now.at(OLD, _OldPlace)


def _new(now: Situation) -> _NewPlace:
    return now.at(NEW, _NewPlace)


def _node(now: Situation) -> NodePlace:
    return now.at(NODE, NodePlace)


_EVENTS: Final = (
    Event(
        "the reporter hands its object over",
        OLD,
        "begin",
        when=lambda now: not _old(now).is_down and _old(now).core.state is None,
    ),
    Event("the old runtime crashes", OLD, "crash", is_fault=True),
    Event("the new runtime crashes", NEW, "crash", is_fault=True),
    Event("the new runtime comes back", NEW, "come back", when=lambda now: _new(now).is_down),
)


_NEVER: Final = (
    Never("Two write.", "I-D1", (OLD, NEW), lambda now: _old(now).writes and _new(now).writes),
    Never(
        "The old one writes, and is not the owner.",
        "I-D1",
        (OLD, NODE),
        lambda now: _old(now).writes and _node(now).owner != OLD,
    ),
    Never(
        "The new one writes, and is not the owner.",
        "I-D1",
        (NEW, NODE),
        lambda now: _new(now).writes and _node(now).owner != NEW,
    ),
)

_ENDS: Final = (
    End(
        "the old one writes",
        (OLD, NEW, NODE),
        lambda now: _old(now).writes and not _old(now).asked and _node(now).owner == OLD,
    ),
    End("the new one writes", (NEW, NODE), lambda now: _new(now).writes),
    End("the owner crashed", (NODE,), lambda now: _node(now).owner is None),
)


def compose(bounds: Bounds) -> Composition:
    """Put it together."""
    between = [(OLD, NODE), (NODE, OLD), (NEW, NODE), (NODE, NEW), (OLD, NEW), (NEW, OLD)]
    return Composition(
        name="delegation",
        about="A reporter hands its object to another runtime, and the node decides.",
        places=(Place(OLD, _OldPlace), Place(NODE, NodePlace), Place(NEW, _NewPlace)),
        channels=(
            *(Channel(f"{source} to {target}", source, target) for source, target in between),
            *(Channel(f"{one} is there", one, NODE, Medium.RELIABLE) for one in (OLD, NEW)),
        ),
        events=_EVENTS,
        never=_NEVER,
        ends=_ENDS,
        bounds=bounds,
        horizon=0.0,
    )


DELEGATION: Final = Plan("delegation", compose, Bounds(losses=1, duplicates=1, channel=1))
"""With one message lost, and one that comes twice."""
