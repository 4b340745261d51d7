"""The messages a node stub holds: waiting for the session, or not yet with the link."""

from collections import deque
from typing import final

from fsm.effects import Dropped
from fsm.session.stub_client_io import Effect, Queued, Refuse, Released, Write
from specs.limits.protocol import OUTBOX_MESSAGES, STUB_QUEUE
from specs.message import Message
from specs.reply_code import Code, DropReason

__all__ = ["StubOutbox", "refused"]


@final
class StubOutbox:
    """Two queues in order of arrival, both bounded (STB-17, I-S9)."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._unwritten: deque[Message] = deque()

    def __len__(self) -> int:
        """How many messages wait for the session."""
        return len(self._waiting)

    def has_room(self) -> bool:
        """Whether one more message may wait for the session."""
        return len(self._waiting) < STUB_QUEUE

    def wait(self, message: Message) -> list[Effect]:
        """Let a message wait for the session."""
        self._waiting.append(message)
        return [Queued(message)]

    def write(self, message: Message) -> list[Effect]:
        """Give a message to the link, unless that has too many already."""
        if len(self._unwritten) >= OUTBOX_MESSAGES:
            return [refused(message, Code.TOO_LARGE, f"{OUTBOX_MESSAGES} messages wait already")]
        self._unwritten.append(message)
        return [Write(message)]

    def written(self, count: int) -> None:
        """Forget the oldest messages given to the link: it has sent them."""
        for _ in range(min(count, len(self._unwritten))):
            self._unwritten.popleft()

    def unwritable(self, message: Message) -> None:
        """Forget a message that no link can take."""
        if message in self._unwritten:
            self._unwritten.remove(message)

    def flush(self) -> list[Effect]:
        """Give all that waits to the link, oldest first."""
        waiting, self._waiting = self._waiting, deque()
        effects: list[Effect] = []
        for message in waiting:
            self._unwritten.append(message)
            effects += [Released(message), Write(message)]
        return effects

    def keep(self) -> list[Effect]:
        """Take back what the link did not send before it broke; it waits first."""
        kept: list[Effect] = [Queued(message) for message in self._unwritten]
        self._waiting.extendleft(reversed(self._unwritten))
        self._unwritten.clear()
        return kept

    def refuse(self, why: str, code: Code = Code.UNAVAILABLE) -> list[Effect]:
        """Refuse all that waits."""
        waiting, self._waiting = self._waiting, deque()
        effects: list[Effect] = []
        for message in waiting:
            effects += [Released(message), refused(message, code, why)]
        return effects


def refused(message: Message, code: Code, why: str) -> Refuse | Dropped:
    """Return what becomes of a message that cannot be sent: only requests are answered."""
    if message.is_request:
        return Refuse(message, code, why)
    over = code is Code.TOO_LARGE
    return Dropped(message, DropReason.OVERFLOW if over else DropReason.SESSION_GONE)
