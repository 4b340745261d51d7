"""One room of a foreign domain's stub, as the table of foreign domains knows it."""

import math
from collections import deque
from typing import final

import attrs

from fsm.cores.foreign_terms import Effect, Refuse, Renew
from fsm.cores.node_session_terms import Parcel
from fsm.engine import Entity
from fsm.machines.stub_deployment import STUB_DEPLOYMENT
from specs.address import status_of
from specs.limits import (
    OUTBOX_BYTES,
    REPLY_TIMEOUT,
    ROOM_COOL_DOWN,
    ROOM_OUTSTANDING,
    ROOM_RESTARTS,
    ROOM_SECONDS,
    STUB_QUEUE,
)
from specs.message import Message, instance_id, request_id
from specs.reply_code import Code

__all__ = ["ForeignPast", "ForeignRoom"]


@final
@attrs.define(slots=True)
class ForeignPast:
    """What is remembered of a domain beyond one room.

    Attributes:
        rooms: How many there were.
        token: Of the session that the last stub had.
        crashes: When rooms crashed lately.
        until: Until when nothing is tried.
        why: Because of what.
    """

    rooms: int = 0
    token: str | None = None
    crashes: deque[float] = attrs.field(factory=deque)
    until: float = -math.inf
    why: str = ""

    def rest(self, until: float, why: str) -> None:
        """Leave the domain alone for a while."""
        self.until, self.why = until, why

    def keep(self, domain: str, token: str) -> list[Effect]:
        """Keep the token of a session; another one than before means another session."""
        known, self.token = self.token, token
        return [] if known is None or known == token else [Renew(domain)]

    def crashed(self, why: str, now: float) -> None:
        """Count a crash; after too many the domain rests."""
        while self.crashes and self.crashes[0] <= now - ROOM_SECONDS:
            self.crashes.popleft()
        self.crashes.append(now)
        if len(self.crashes) > ROOM_RESTARTS:
            self.crashes.clear()
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
        self._asked: dict[str, tuple[float, Message]] = {}

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

    # ---- what was handed in and may still be answered

    def ask(self, request: Message, now: float) -> None:
        """Remember a request that was handed in, as long as its sender waits."""
        asked = self._asked
        for mid, (until, _) in list(asked.items()):
            if until > now and len(asked) < ROOM_OUTSTANDING:
                break
            del asked[mid]
        asked[instance_id(request)] = (now + REPLY_TIMEOUT, request)

    def forget(self, request: Message) -> None:
        """Forget a request that was answered in another way."""
        self._asked.pop(instance_id(request), None)

    def asked(self, answer: Message) -> Message | None:
        """Return the request that a message answers, if it was handed in; the final ends it."""
        if not answer.is_response:
            return None
        mid = request_id(answer)
        _, request = self._asked.get(mid, (0.0, None))
        if answer.is_final:
            self._asked.pop(mid, None)
        return request

    def unanswered(self, why: str) -> list[Refuse]:
        """Refuse all requests whose answers cannot come by this room any more."""
        asked, self._asked = self._asked, {}
        return [Refuse(request, Code.UNAVAILABLE, why) for _, request in asked.values()]

    # ---- what it says

    def is_about_itself(self, message: Message) -> bool:
        """Say whether the stub speaks as itself: its status, or an answer to a command."""
        to_status = message.to == status_of(self.stub)
        return message.from_ == self.stub and (to_status or message.is_response)

    def has_brought(self, message: Message) -> bool:
        """Say whether a message crossed this stub last."""
        return message.via[-1:] == (self.stub,)
