"""The delegation of a data object: the end that gives it, and the end that takes it (SYN-26).

The node is the arbiter (I-D1). The old reporter's end stops writing, offers the address at
the node to the new reporter, and transfers the whole object. The new reporter's end takes
the address at the node, which moves it with its paths in one step, and only then writes. An
offer that is taken back cannot be taken any more, and an offer that was taken cannot be
taken back: the node says which it was. So until the node has answered, the old end writes
nothing: at most one of the two is ever a writer, for any lost, repeated or late message, and
whichever end crashes.
"""

from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.engine import Entity, Step
from fsm.machines.sync.delegation import (
    OBJECT_DELEGATION,
    OBJECT_TAKE_OVER,
    State,
    TakeOver,
    TakeOverTrigger,
    Trigger,
)
from specs.bodies.sync import DataObject
from specs.limits.sync import HAND_OVER_GRACE, HAND_OVER_PAUSE
from specs.reply_code import LAST_SUCCESS, Code

__all__ = [
    "AddressClaimed",
    "AddressOffered",
    "AddressTaken",
    "AddressWithdrawn",
    "Answered",
    "Begun",
    "DelegationCore",
    "DelegationEffect",
    "DelegationInput",
    "Dropped",
    "GivenAway",
    "HandedOver",
    "Kept",
    "Left",
    "ObjectHanded",
    "OfferDropped",
    "OtherAsked",
    "Passed",
    "TakeOverCore",
    "TakeOverEffect",
    "TookOver",
    "Watcher",
]


@final
@attrs.frozen(slots=True)
class Watcher:
    """An observer, and the sync manager that asked for it.

    Attributes:
        lease: Seconds for which its subscription is granted; None: it lasts.
    """

    observer: str
    manager: str
    lease: int | None = None


@final
@attrs.frozen(slots=True)
class HandedOver:
    """The state of an object at its reporter's end.

    Attributes:
        thing: The object, version included.
        watchers: Its observers.
        authorised: The allowed observers.
        public: Whether all observers are allowed.
        expelled: The observers that are not allowed even then.
    """

    thing: DataObject
    watchers: tuple[Watcher, ...] = ()
    authorised: tuple[str, ...] = ()
    public: bool = False
    expelled: tuple[str, ...] = ()


# --- what happens -----------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Begun:
    """The delegation begins."""


@final
@attrs.frozen(slots=True)
class Answered:
    """The last request was answered, or got no answer (408).

    Attributes:
        code: Below 300: success.
        is_here: Whether the component that answered lives in the same runtime.
    """

    code: int
    why: str = ""
    is_here: bool = False


@final
@attrs.frozen(slots=True)
class Left:
    """The runtime shuts down, in any state of the delegation."""


DelegationInput: TypeAlias = Begun | Answered | Left


# --- what is to be done -----------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class OtherAsked:
    """Ask the other hyperty whether it takes the object."""


@final
@attrs.frozen(slots=True)
class Passed:
    """The other hyperty lives in the same runtime: make it the reporter, in one step."""


@final
@attrs.frozen(slots=True)
class AddressOffered:
    """Write no more; offer the address at the node to the new reporter."""


@final
@attrs.frozen(slots=True)
class ObjectHanded:
    """Send the object to the other runtime, which then takes the address."""


@final
@attrs.frozen(slots=True)
class AddressWithdrawn:
    """Take the offer back at the node, which answers with the owner of the address.

    Attributes:
        pause: Seconds to wait before.
    """

    pause: float = 0.0


@final
@attrs.frozen(slots=True)
class OfferDropped:
    """Take the offer back, too, if it was noted; for any answer of the node."""


@final
@attrs.frozen(slots=True)
class AddressClaimed:
    """The node has lost its state, and the address has no owner there: claim it."""


@final
@attrs.frozen(slots=True)
class Kept:
    """The delegation has failed; the old reporter writes on and gets the reason."""

    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class GivenAway:
    """The object is not reported here any more.

    Attributes:
        code: OK: the other hyperty reports it; else its fate is not known.
    """

    code: Code = Code.OK
    why: str = ""


@final
@attrs.frozen(slots=True)
class AddressTaken:
    """Take the address at the node.

    Attributes:
        pause: Seconds to wait before.
    """

    pause: float = 0.0


@final
@attrs.frozen(slots=True)
class TookOver:
    """The address is ours: report the object, with its next version."""


@final
@attrs.frozen(slots=True)
class Dropped:
    """The object stays with the old reporter."""

    code: Code
    why: str


DelegationEffect: TypeAlias = (
    Step
    | OtherAsked
    | Passed
    | AddressOffered
    | OfferDropped
    | ObjectHanded
    | AddressWithdrawn
    | AddressClaimed
    | Kept
    | GivenAway
)

TakeOverEffect: TypeAlias = Step | AddressTaken | TookOver | Dropped

_FINAL_NO: Final = frozenset(
    {Code.MALFORMED, Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.NOT_FOUND, Code.CONFLICT}
    | {Code.GONE, Code.TOO_LARGE}
)
"""The codes by which a node decides; any other decides nothing."""

_LEAVING: Final = "the runtime leaves"
_CODES: Final = frozenset(Code)


@final
class DelegationCore:
    """The end that gives: one attempt to delegate one object to one hyperty.

    Args:
        url: Address of the object.
        to: The new reporter.
        number: Number of the attempt; rises by one with each of this object.
    """

    def __init__(self, url: str, to: str, number: int) -> None:
        self.url: Final = url
        self.to: Final = to
        self.number: Final = number
        self._entity = Entity(OBJECT_DELEGATION, f"{url}|{to}|{number}")
        self._why = Kept(Code.INTERNAL, "")
        self._forgotten = 0.0
        self._is_claiming = False

    @property
    def state(self) -> State | None:
        """The state of the role; None: it was not begun."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def may_write(self) -> bool:
        """True if the old reporter writes."""
        return self.state in {None, State.ASKED, State.KEPT}

    @property
    def is_over(self) -> bool:
        """True if it is decided which hyperty reports the object."""
        return self.state is not None and self._entity.may_end

    @property
    def is_forgotten(self) -> bool:
        """True if the node has lost the address meanwhile, with its paths."""
        return self._forgotten > 0.0

    @property
    def patience(self) -> float:
        """Seconds to wait for an answer."""
        return self._entity.patience

    def feed(self, happened: DelegationInput) -> list[DelegationEffect]:
        """Take an input; return the effects, in order. Inputs after the end are ignored."""
        if self.is_over:
            return []
        match happened:
            case Begun():
                return [self._entity.step(Trigger.ASK), OtherAsked()]
            case Answered():
                return self._answered(happened)
            case Left():
                return self._leave()
            case _:
                assert_never(happened)

    def _answered(self, answer: Answered) -> list[DelegationEffect]:
        is_yes = answer.code <= LAST_SUCCESS
        match self.state:
            case State.ASKED:
                return self._agreed(answer) if is_yes else self._refused(answer)
            case State.OFFERED if is_yes:
                return [self._entity.step(Trigger.NOTED), ObjectHanded()]
            case State.OFFERED:
                # An end without the object does not take its address.
                return [OfferDropped(), *self._refused(answer)]
            case State.HANDING if is_yes:
                return [self._entity.step(Trigger.TAKEN), GivenAway()]
            case State.DOUBTFUL:
                return self._settled(answer)
            case _:
                self._why = _kept(answer)
                return [self._entity.step(Trigger.DOUBT, answer.why), AddressWithdrawn()]

    def _agreed(self, answer: Answered) -> list[DelegationEffect]:
        if answer.is_here:
            return [self._entity.step(Trigger.PASS), Passed()]
        return [self._entity.step(Trigger.AGREE), AddressOffered()]

    def _refused(self, answer: Answered) -> list[DelegationEffect]:
        return [self._entity.step(Trigger.REFUSE, answer.why), _kept(answer)]

    # --- doubt ----------------------------------------------------------------------------

    def _settled(self, answer: Answered) -> list[DelegationEffect]:
        """Believe the node, and it alone."""
        if answer.code <= LAST_SUCCESS:
            return [self._entity.step(Trigger.STAYS, self._why.why), self._why]
        is_claiming, self._is_claiming = self._is_claiming, False
        if answer.code == Code.GONE:
            return [self._entity.step(Trigger.TAKEN), GivenAway()]
        if is_claiming and answer.code in _FINAL_NO:
            return self._lose(Code.GONE, "the node has given the object to another end")
        if answer.code == Code.NOT_FOUND:
            return self._unknown()
        self._forgotten = 0.0
        return self._again(answer.why)

    def _unknown(self) -> list[DelegationEffect]:
        """The node has forgotten all: the end that took the address before must claim it first."""
        if self._forgotten < HAND_OVER_GRACE:
            self._forgotten += HAND_OVER_PAUSE
            return self._again("the node has forgotten it")
        self._is_claiming = True
        return [self._entity.step(Trigger.AGAIN, "it was not taken"), AddressClaimed()]

    def _again(self, why: str) -> list[DelegationEffect]:
        return [self._entity.step(Trigger.AGAIN, why), AddressWithdrawn(HAND_OVER_PAUSE)]

    def _leave(self) -> list[DelegationEffect]:
        match self.state:
            case None:
                return []
            case State.ASKED | State.OFFERED:
                return self._refused(Answered(Code.GONE, _LEAVING))
            case State.DOUBTFUL:
                return self._lose(Code.GONE, _LEAVING)
            case _:
                doubt = self._entity.step(Trigger.DOUBT, _LEAVING)
                return [doubt, *self._lose(Code.GONE, _LEAVING)]

    def _lose(self, code: Code, why: str) -> list[DelegationEffect]:
        return [self._entity.step(Trigger.LOSE, why), GivenAway(code, why)]


@final
class TakeOverCore:
    """The end that takes: one object that is delegated, whole.

    Args:
        url: Address of the object.
        to: The new reporter, a hyperty of this runtime.
        number: Number of the attempt, as the old reporter's end counts.
    """

    def __init__(self, url: str, to: str, number: int) -> None:
        self.url: Final = url
        self.to: Final = to
        self.number: Final = number
        self._entity = Entity(OBJECT_TAKE_OVER, f"{url}|{to}|{number}")

    @property
    def state(self) -> TakeOver | None:
        """True if the object is reported here; None: it was not begun."""
        state = self._entity.state
        return None if state is None else TakeOver(state)

    @property
    def may_write(self) -> bool:
        """True if the new reporter writes."""
        return self.state is TakeOver.TAKEN

    @property
    def is_over(self) -> bool:
        """True if it is decided which hyperty reports the object."""
        return self.state is not None and self._entity.may_end

    def feed(self, happened: DelegationInput) -> list[TakeOverEffect]:
        """Take an input; return the effects, in order. Inputs after the end are ignored."""
        if self.is_over:
            return []
        match happened:
            case Begun():
                return [self._entity.step(TakeOverTrigger.TAKE), AddressTaken()]
            case Answered(code) if code <= LAST_SUCCESS:
                return [self._entity.step(TakeOverTrigger.GRANT), TookOver()]
            case Answered(code, why) if code in _FINAL_NO:
                return self._drop(_code(code), why)
            case Answered(_, why):
                step = self._entity.step(TakeOverTrigger.AGAIN, why)
                return [step, AddressTaken(HAND_OVER_PAUSE)]
            case Left():
                return self._drop(Code.GONE, _LEAVING) if self.state is not None else []
            case _:
                assert_never(happened)

    def _drop(self, code: Code, why: str) -> list[TakeOverEffect]:
        return [self._entity.step(TakeOverTrigger.DENY, why), Dropped(code, why)]


def _kept(answer: Answered) -> Kept:
    return Kept(_code(answer.code), answer.why)


def _code(code: int) -> Code:
    return Code(code) if code in _CODES else Code.INTERNAL
