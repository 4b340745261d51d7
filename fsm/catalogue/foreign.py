"""The foreign domains of a message node: one stub for each, in a sandbox process of its own.

The first message for a domain has its stub deployed; later messages wait, in order and
within bounds (MN-19, STB-11). If a sandbox cannot be started, or its stub cannot connect,
the domain rests for a while, and the waiting messages are answered 503 (STB-14). The crash
of a sandbox affects no other: requests that it has not answered are answered 503, and the
next message starts another sandbox, which resumes the session; after too many crashes the
domain rests (MN-20, R11). No stub's name is used twice (STB-15).

A stub reports its own status only, and forwards what it has stamped; the node checks each
forwarded message again, as if it came over the network (T16).
"""

import math
from collections import deque
from collections.abc import Container
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.bus.transactions import HandedCore
from fsm.effects import Dropped
from fsm.engine import Entity, Step
from fsm.limits.error_window import CrashCount
from fsm.machines.stub_connection import State
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, Trigger
from fsm.machines.stub_deployment import State as Deployment
from fsm.session.node_session_io import Parcel
from specs.addresses.address import is_below, status_of
from specs.limits.protocol import (
    OUTBOX_BYTES,
    PEER_OFFENCES,
    QUARANTINE,
    RETRY_COOL_DOWN,
    ROOM_COOL_DOWN,
    STUB_QUEUE,
)
from specs.message import Message
from specs.reply_code import Code, DropReason

__all__ = [
    "Answer",
    "Banish",
    "Effect",
    "End",
    "ForeignCore",
    "ForeignPast",
    "ForeignRoom",
    "Hand",
    "Input",
    "Leave",
    "OfRoom",
    "Open",
    "Pass",
    "Refuse",
    "Renew",
    "RoomFull",
    "RoomGone",
    "RoomKept",
    "RoomLost",
    "RoomMoved",
    "RoomReady",
    "RoomSpoke",
    "Send",
    "Tick",
]


# ---- inputs


@final
@attrs.frozen(slots=True)
class Send:
    """A message is for a foreign domain."""

    domain: str
    parcel: Parcel


@final
@attrs.frozen(slots=True)
class RoomReady:
    """The room of this stub is open, and the stub is in it."""

    stub: str


@final
@attrs.frozen(slots=True)
class RoomMoved:
    """The stub's connection is in another state now."""

    stub: str
    state: State
    why: str


@final
@attrs.frozen(slots=True)
class RoomSpoke:
    """The stub posted a message."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class RoomLost:
    """A message cannot be handed into the room, which is on its way in or out."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class RoomFull:
    """The room, or the way into it, has no place for a message."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class RoomKept:
    """The stub has a session that its successor may come back to."""

    stub: str
    token: str


@final
@attrs.frozen(slots=True)
class RoomGone:
    """The room is no more, or never came to be."""

    stub: str
    why: str


@final
@attrs.frozen(slots=True)
class Banish:
    """A domain has said too much that it had no right to: leave it alone (S14)."""

    domain: str


@final
@attrs.frozen(slots=True)
class Leave:
    """The node is going down."""


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline may have passed."""


OfRoom: TypeAlias = RoomReady | RoomMoved | RoomSpoke | RoomLost | RoomFull | RoomKept | RoomGone
"""What is told of one room."""

Input: TypeAlias = OfRoom | Send | Banish | Leave | Tick


# ---- effects


@final
@attrs.frozen(slots=True)
class Open:
    """Open a room for a stub; answer `RoomReady` or `RoomGone`.

    Attributes:
        token: Of a session that an earlier stub of the domain had; None: there is none.
    """

    stub: str
    domain: str
    token: str | None


@final
@attrs.frozen(slots=True)
class Hand:
    """Give a message to a stub in its room; answer `RoomFull` or `RoomLost` if that cannot be."""

    stub: str
    parcel: Parcel


@final
@attrs.frozen(slots=True)
class Pass:
    """A stub has brought a message: check it as if it came over the network."""

    domain: str
    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class Refuse:
    """Answer a request that does not reach the domain."""

    message: Message
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class Answer:
    """Answer, into the room, a request that a stub had no right to post."""

    stub: str
    message: Message
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class End:
    """End a room, whatever goes on in it; answer `RoomGone`."""

    stub: str
    why: str


@final
@attrs.frozen(slots=True)
class Renew:
    """Set again what is subscribed at the domain's node: it may have been forgotten."""

    domain: str


Effect: TypeAlias = Step | Open | Hand | Pass | Refuse | Answer | End | Renew | Dropped


@final
@attrs.define(slots=True)
class ForeignPast:
    """What is remembered of a domain beyond one room.

    Attributes:
        rooms: How many there were.
        token: Of the session that the last stub had.
        crashes: How often rooms crashed lately.
        until: Until when nothing is tried.
        why: Because of what.
    """

    rooms: int = 0
    token: str | None = None
    crashes: CrashCount = attrs.field(factory=CrashCount)
    until: float = -math.inf
    why: str = ""

    def rest(self, until: float, why: str) -> None:
        """Dial the domain no more for a while.

        Args:
            until: End of the pause, on the host's clock.
            why: Reason, for the log.
        """
        self.until, self.why = until, why

    def keep(self, domain: str, token: str) -> list[Effect]:
        """Keep the token of a session; a token other than before means a new session.

        Args:
            domain: The foreign domain.
            token: The session token.
        """
        known, self.token = self.token, token
        return [] if known is None or known == token else [Renew(domain)]

    def crashed(self, why: str, now: float) -> None:
        """Count a crash; after too many the domain is not dialled for a while.

        Args:
            why: Reason, for the log.
            now: Seconds on the host's clock.
        """
        if self.crashes.crashed(now):
            self.rest(now + ROOM_COOL_DOWN, f"its sandbox crashes again and again: {why}")


@final
class ForeignRoom:
    """A stub on its way into a room, or in it.

    Attributes:
        deployment: Its entity.
        state: How its connection stands; None: it has said nothing yet.
        why: Why it stands so.
        offences: What it posted without the right to, so far.
        is_ending: Whether it was told to end.
        handed: Requests that were handed in, and may still be answered.
    """

    def __init__(self, stub: str, domain: str) -> None:
        self.stub = stub
        self.domain = domain
        self.deployment = Entity(STUB_DEPLOYMENT, stub)
        self.state: str | None = None
        self.why = ""
        self.offences = 0
        self.is_ending = False
        self._waiting: deque[Parcel] = deque()
        self._bytes = 0
        self.handed = HandedCore()

    # ---- what waits for the deployment

    def wait(self, parcel: Parcel) -> bool:
        """Let a message wait; tell whether there was room."""
        size = len(parcel.line)
        if len(self._waiting) >= STUB_QUEUE or self._bytes + size > OUTBOX_BYTES:
            return False
        self._waiting.append(parcel)
        self._bytes += size
        return True

    def release(self) -> list[Parcel]:
        """Take out all that waits, oldest first."""
        waiting, self._waiting = list(self._waiting), deque()
        self._bytes = 0
        return waiting

    def unanswered(self, why: str) -> list[Refuse]:
        """Refuse all requests whose answers cannot come by this room any more."""
        return [Refuse(request, Code.UNAVAILABLE, why) for request in self.handed.unanswered()]

    # ---- what it says

    def is_about_itself(self, message: Message) -> bool:
        """Say whether the stub speaks as itself: its status, or an answer to a command."""
        to_status = message.to == status_of(self.stub)
        return message.from_ == self.stub and (to_status or message.is_response)

    def has_brought(self, message: Message) -> bool:
        """Say whether a message crossed this stub last."""
        return message.via[-1:] == (self.stub,)


_TOO_LATE: Final = "it took too long"
_BAD: Final = "it said too much that it had no right to"
_SENTENCE: Final = 200
_LEAVING: Final = "the node is going down"


@final
class ForeignCore:
    """One node's table of foreign domains.

    Args:
        node: The address of the node; its stubs are below it.
        domains: Those it may reach.
    """

    def __init__(self, node: str, domains: Container[str]) -> None:
        self._node = node
        self._domains = domains
        self._rooms: dict[str, ForeignRoom] = {}
        self._stubs: dict[str, ForeignRoom] = {}
        self._past: dict[str, ForeignPast] = {}
        self._deadlines: dict[str, float] = {}
        self._is_leaving = False

    def deadline(self) -> float:
        """Return when a `Tick` is due."""
        return min(self._deadlines.values(), default=math.inf)

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case Send(domain, parcel):
                return self._send(domain, parcel, now)
            case Tick():
                return self._tick(now)
            case Banish(domain):
                return self._banish(domain, now)
            case Leave():
                return self._leave()
            case _:
                room = self._stubs.get(happened.stub)
                return [] if room is None else self._of_room(room, happened, now)

    def _of_room(self, room: ForeignRoom, happened: OfRoom, now: float) -> list[Effect]:
        match happened:
            case RoomReady():
                return self._ready(room, now)
            case RoomMoved(_, state, why):
                return self._moved(room, state, why)
            case RoomSpoke(_, message):
                return self._spoke(room, message)
            case RoomLost(_, message) | RoomFull(_, message):
                room.handed.forget(message)
                is_full = isinstance(happened, RoomFull)
                code = Code.TOO_LARGE if is_full else Code.UNAVAILABLE
                why = "its stub has no room" if is_full else "its sandbox is not there"
                return [_refused(message, code, why)]
            case RoomKept(_, token):
                return self._past[room.domain].keep(room.domain, token)
            case RoomGone(_, why):
                return self._gone(room, why, now)
            case _:
                assert_never(happened)

    # ---- towards the domain

    def _send(self, domain: str, parcel: Parcel, now: float) -> list[Effect]:
        message = parcel.message
        if any(is_below(one, self._name(domain)) for one in message.via):
            return [Dropped(message, DropReason.LOOP)]
        why = self._why_not(domain, now)
        if why is not None:
            return [_refused(message, Code.UNAVAILABLE, f"no way to {domain}: {why}")]
        room = self._rooms.get(domain)
        if room is None:
            return self._open(domain, parcel, now)
        if room.deployment.state is Deployment.DEPLOYED:
            return [self._hand(room, parcel, now)]
        if room.wait(parcel):
            return []
        return [_refused(message, Code.TOO_LARGE, "too many messages wait for the stub already")]

    def _name(self, domain: str) -> str:
        return f"{self._node}/protostub/{domain}"

    def _why_not(self, domain: str, now: float) -> str | None:
        """Return why nothing can be sent to a domain now; None: it can."""
        if self._is_leaving:
            return _LEAVING
        if domain not in self._domains:
            return "it is not configured"
        room = self._rooms.get(domain)
        if room is not None:
            return room.why if room.is_ending else None
        past = self._past.get(domain)
        return past.why if past is not None and now < past.until else None

    def _open(self, domain: str, parcel: Parcel, now: float) -> list[Effect]:
        past = self._past.setdefault(domain, ForeignPast())
        past.rooms += 1
        name = self._name(domain)
        stub = name if past.rooms == 1 else f"{name}/{past.rooms}"
        room = self._rooms[domain] = self._stubs[stub] = ForeignRoom(stub, domain)
        room.wait(parcel)
        step = room.deployment.step(Trigger.LOAD)
        self._deadlines[stub] = now + room.deployment.patience
        return [step, Open(stub, domain, past.token)]

    def _hand(self, room: ForeignRoom, parcel: Parcel, now: float) -> Hand:
        if parcel.message.is_request:
            room.handed.ask(parcel.message, now)
        return Hand(room.stub, parcel)

    def _ready(self, room: ForeignRoom, now: float) -> list[Effect]:
        if room.deployment.state is not Deployment.DEPLOYING:
            return []
        del self._deadlines[room.stub]
        step = room.deployment.step(Trigger.LOADED)
        return [step, *(self._hand(room, parcel, now) for parcel in room.release())]

    # ---- from the domain

    def _moved(self, room: ForeignRoom, state: State, why: str) -> list[Effect]:
        room.state = state
        if state is not State.FAILED or room.is_ending:
            return []
        return [self._end(room, why or "it could not connect")]

    def _spoke(self, room: ForeignRoom, message: Message) -> list[Effect]:
        if room.is_about_itself(message):
            is_true = message.is_response or message.body.get("value") == room.state
            return [] if is_true else self._offended(room, message, DropReason.FORGED_STATUS)
        request = room.handed.asked(message)
        if room.has_brought(message):
            return [Pass(room.domain, room.stub, message)]
        if request is None and message.is_response:
            # An honest stub, too, answers what nobody waits for any more.
            return [Dropped(message, DropReason.UNMATCHED)]
        if request is None:
            return self._offended(room, message, DropReason.UNKNOWN_SOURCE)
        # The stub itself answers: whatever it could not do, here there is no way then.
        code = Code.TOO_LARGE if message.code == Code.TOO_LARGE else Code.UNAVAILABLE
        return [Refuse(request, code, f"no way to {room.domain}: {_why(message)}")]

    def _offended(self, room: ForeignRoom, message: Message, reason: DropReason) -> list[Effect]:
        """Refuse what a stub had no right to say; one that goes on so is ended."""
        room.offences += 1
        refusal: Effect = Dropped(message, reason)
        if message.is_request:
            why = "a stub speaks for its domain only"
            refusal = Answer(room.stub, message, Code.UNAUTHENTICATED, why)
        if room.offences < PEER_OFFENCES or room.is_ending:
            return [refusal]
        return [refusal, self._end(room, _BAD)]

    def _banish(self, domain: str, now: float) -> list[Effect]:
        self._past.setdefault(domain, ForeignPast()).rest(now + QUARANTINE, _BAD)
        room = self._rooms.get(domain)
        if room is None or room.is_ending:
            return []
        room.offences = PEER_OFFENCES
        return [self._end(room, _BAD)]

    def _end(self, room: ForeignRoom, why: str) -> End:
        room.is_ending = True
        room.why = why
        return End(room.stub, why)

    # ---- the end of a room

    def _gone(self, room: ForeignRoom, why: str, now: float) -> list[Effect]:
        del self._rooms[room.domain], self._stubs[room.stub]
        why = room.why or why
        steps: list[Effect] = []
        past = self._past[room.domain]
        if room.deployment.state is Deployment.DEPLOYING:
            steps = self._failed(room, why)
        if room.offences >= PEER_OFFENCES:
            past.rest(now + QUARANTINE, why)
        elif room.is_ending or room.deployment.state is not Deployment.DEPLOYED:
            past.rest(now + RETRY_COOL_DOWN, why)
        else:
            past.crashed(why, now)
            steps.append(Renew(room.domain))
        return [*room.unanswered(f"no way to {room.domain}: {why}"), *steps]

    def _failed(self, room: ForeignRoom, why: str) -> list[Effect]:
        """Note that a stub was not deployed, and tell whoever waited for it."""
        self._deadlines.pop(room.stub, None)
        told = f"no way to {room.domain}: {why}"
        waited = [_refused(one.message, Code.UNAVAILABLE, told) for one in room.release()]
        return [room.deployment.step(Trigger.LOAD_FAILED, why), *waited]

    def _tick(self, now: float) -> list[Effect]:
        late = [self._stubs[stub] for stub, until in self._deadlines.items() if until <= now]
        return [
            effect
            for room in late
            for effect in (*self._failed(room, _TOO_LATE), self._end(room, _TOO_LATE))
        ]

    def _leave(self) -> list[Effect]:
        """Let every room end; what becomes of what waits is said when it has."""
        self._is_leaving = True
        self._deadlines.clear()
        running = [room for room in self._rooms.values() if not room.is_ending]
        return [self._end(room, _LEAVING) for room in running]


def _why(answer: Message) -> str:
    why = answer.body.get("description")
    return why[:_SENTENCE] if isinstance(why, str) else "its stub gave no reason"


def _refused(message: Message, code: Code, why: str) -> Refuse | Dropped:
    """Return what becomes of a message that does not get there: only requests are answered."""
    if message.is_request:
        return Refuse(message, code, why)
    over = code is Code.TOO_LARGE
    return Dropped(message, DropReason.OVERFLOW if over else DropReason.SESSION_GONE)
