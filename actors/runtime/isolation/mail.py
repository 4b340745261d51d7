"""What goes in and out of a sandbox of a runtime: whoever asked it is answered, come what may."""

from typing import Final, final

import trio

from actors.kit.counting.counters import Counters
from actors.kit.supervision.delivery import Delivery
from actors.pipe.host import HandInResult, SandboxHost
from actors.pipe.said import Said, Word
from actors.runtime.bus.mini_bus import MiniBusPort
from fsm.bus.transactions import OutstandingCore
from specs.errors import BadMessageError
from specs.limits.foreign_code import HYPERTY_REQUESTS
from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, refuse
from specs.reply_code import Code, DropReason
from transports.codec import encode

__all__ = ["RoomMail"]

_TOO_LARGE: Final = f"larger than {MAX_MESSAGE_BYTES} bytes"


@final
class RoomMail:
    """The mail of one sandbox; part of its keeper's task."""

    def __init__(
        self, port: MiniBusPort, counters: Counters, keeper: SandboxHost[Delivery]
    ) -> None:
        self._port = port
        self._counters = counters
        self._keeper = keeper
        self._handed = OutstandingCore()
        self._asking = 0

    # ---- in

    async def deliver(self, message: Message) -> None:
        """Hand a message in, or refuse it."""
        if self._port.url in message.via:
            self._drop(message, DropReason.LOOP)
            return
        try:
            line = encode(message)
        except BadMessageError as exc:
            await self.refuse(message, exc.code, exc.reason)
            return
        match self._keeper.hand(line):
            case HandInResult.TAKEN:
                if message.is_request:
                    self._handed.ask(message, trio.current_time())
            case HandInResult.FULL:
                await self.refuse(message, Code.TOO_LARGE, "its sandbox has no room")
            case HandInResult.TOO_LARGE:
                await self.refuse(message, Code.TOO_LARGE, _TOO_LARGE)
            case HandInResult.GONE:
                await self.refuse(message, Code.UNAVAILABLE, "its sandbox is not there")

    async def refuse(self, message: Message, code: Code, why: str) -> None:
        """End a message that was on its way in: a request is answered, anything else counted."""
        self._handed.forget(message)
        if message.is_request:
            await self._port.post(refuse(message, code, why))
        else:
            is_full = code is Code.TOO_LARGE
            self._drop(message, DropReason.OVERFLOW if is_full else DropReason.NO_TARGET)

    async def lost(self, message: Message) -> None:
        """Refuse what went in and found no place, if it really went in."""
        if not message.is_request or self._handed.knows(message):
            await self.refuse(message, Code.TOO_LARGE, "its sandbox has no room")

    # ---- out

    def answered(self, message: Message) -> bool:
        """Note an answer; tell whether, from the right place, it is to what was handed in."""
        request = self._handed.asked(message)
        return request is not None and request.to == message.from_

    async def ask(self, message: Message) -> None:
        """Have a request sent whose final answer is to be handed in."""
        if self._asking >= HYPERTY_REQUESTS:
            self.answer(refuse(message, Code.TOO_LARGE, "too many requests are open"))
        elif message.is_request:
            self._asking += 1
            self._keeper.spawn(self._ask, message)

    async def _ask(self, message: Message) -> None:
        try:
            answer = await self._port.request(message)
            await self._keeper.tell(_handed_in(message, answer))
        finally:
            self._asking -= 1

    def answer(self, answer: Message) -> None:
        """Hand in a short answer to what came from there, at once.

        Raises:
            BadMessageError: It is too large, or cannot be written.
        """
        self._keeper.say(_hand(answer))

    def _drop(self, message: Message, reason: DropReason) -> None:
        self._counters.drop(reason, message, self._port.url)

    # ---- the end

    async def give_up(self, why: str) -> None:
        """Answer whoever still waits: the sandbox is no more."""
        for request in self._handed.unanswered():
            await self._port.post(refuse(request, Code.UNAVAILABLE, why))


def _handed_in(request: Message, answer: Message) -> Said:
    """Return how an answer is handed in, or that it cannot be: who answers ends nobody."""
    try:
        return _hand(answer)
    except BadMessageError as exc:
        return _hand(refuse(request, exc.code, exc.reason))


def _hand(answer: Message) -> Said:
    """Return how an answer is handed in.

    Raises:
        BadMessageError: It is too large, or cannot be written.
    """
    line = encode(answer)
    if len(line) > MAX_MESSAGE_BYTES:
        raise BadMessageError(_TOO_LARGE, Code.TOO_LARGE)
    return Said(Word.HAND, rest=line)
