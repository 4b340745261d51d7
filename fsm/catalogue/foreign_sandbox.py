"""One room of a foreign domain's stub, as the table of foreign domains knows it."""

import math
from collections import deque
from typing import final

import attrs

from fsm.bus.outstanding import HandedCore
from fsm.catalogue.foreign_io import Effect, Refuse, Renew
from fsm.engine import Entity
from fsm.limits.crash_count import CrashCount
from fsm.machines.stub_deployment import STUB_DEPLOYMENT
from fsm.session.node_session_io import Parcel
from specs.addresses.address import status_of
from specs.limits.protocol import OUTBOX_BYTES, ROOM_COOL_DOWN, STUB_QUEUE
from specs.message import Message
from specs.reply_code import Code

__all__ = ["ForeignPast", "ForeignRoom"]


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
        """Leave the domain alone for a while."""
        self.until, self.why = until, why

    def keep(self, domain: str, token: str) -> list[Effect]:
        """Keep the token of a session; another one than before means another session."""
        known, self.token = self.token, token
        return [] if known is None or known == token else [Renew(domain)]

    def crashed(self, why: str, now: float) -> None:
        """Count a crash; after too many the domain rests."""
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
