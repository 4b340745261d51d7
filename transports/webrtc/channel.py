"""Frames on a data channel: chunks, credits and farewells, without input and output.

A frame is one text message, or binary messages whose first byte says whether more follow. The
receiver of frames grants credits for what it has taken, as a data channel itself delivers
everything that comes (docs/p2p.md).
"""

from collections.abc import Iterator
from typing import Final, TypeAlias, final

import attrs

from specs.limits.protocol import MAX_FRAME_BYTES
from specs.limits.webrtc import (
    CHANNEL_CREDIT,
    CHANNEL_FRAMES,
    CHANNEL_MESSAGE,
    CHANNEL_WINDOW,
)
from transports.errors import CloseReason

_MORE: Final = 0
_LAST: Final = 1
_CREDIT: Final = 2
_FAREWELL: Final = 3
_NUMBER: Final = 4
_CODE: Final = 2
_ROUND: Final = 1 << 32

Part: TypeAlias = str | bytes
"""One message of a data channel."""


@final
class BadChannelError(Exception):
    """The peer has broken the rules of the channel.

    Attributes:
        reason: The reason to leave with.
    """

    def __init__(self, why: str, reason: CloseReason = CloseReason.REFUSED) -> None:
        super().__init__(why)
        self.reason = reason


@final
@attrs.frozen(slots=True)
class Frame:
    """A frame has arrived.

    Attributes:
        size: Bytes that are taken when it is read.
    """

    data: bytes
    size: int


@final
@attrs.frozen(slots=True)
class Farewell:
    """Nothing more comes, on purpose."""

    reason: CloseReason


def size_of(part: Part) -> int:
    """Return how many bytes a message of the channel has."""
    return len(part.encode()) if isinstance(part, str) else len(part)


@final
class ChannelCore:
    """One end of a data channel."""

    def __init__(self) -> None:
        self._sent = 0
        self._credited = 0
        self._received = 0
        self._taken = 0
        self._granted = 0
        self._chunks = bytearray()
        self._in_frame = 0
        self._waiting = 0
        self._is_over = False

    # --- out ------------------------------------------------------------------------------

    @staticmethod
    def parts(frame: bytes) -> Iterator[Part]:
        """Return the messages that carry a frame, in order."""
        if len(frame) <= CHANNEL_MESSAGE:
            try:
                yield frame.decode()
            except UnicodeDecodeError:
                pass
            else:
                return
        step = CHANNEL_MESSAGE - 1
        last = (len(frame) - 1) // step
        for number in range(last + 1):
            head = _LAST if number == last else _MORE
            yield bytes((head,)) + frame[number * step : (number + 1) * step]

    def may_send(self, size: int) -> bool:
        """Return whether the peer has room for a message of so many bytes."""
        return self._sent + size - self._credited <= CHANNEL_WINDOW

    def sent(self, size: int) -> None:
        """Count a message that was sent."""
        self._sent += size

    @staticmethod
    def farewell(reason: CloseReason) -> bytes:
        """Return the last message."""
        return bytes((_FAREWELL,)) + reason.value.to_bytes(_CODE, "big")

    # --- in -------------------------------------------------------------------------------

    def received(self, part: Part) -> Frame | Farewell | None:
        """Take a message; return what it completes, if anything.

        What comes after a farewell, or after a broken rule, is nothing.

        Raises:
            BadChannelError: The peer has broken the rules.
        """
        if self._is_over:
            return None
        try:
            what = self._read(part)
        except BadChannelError:
            self._end()
            raise
        if isinstance(what, Farewell):
            self._end()
        elif what is not None:
            self._waiting += 1
        return what

    def _end(self) -> None:
        self._is_over = True
        self._chunks.clear()

    def _read(self, part: Part) -> Frame | Farewell | None:
        if self._waiting >= CHANNEL_FRAMES:
            raise BadChannelError("too many frames of the data channel are not taken")
        if isinstance(part, str):
            return self._text(part.encode())
        if not part or len(part) > CHANNEL_MESSAGE:
            raise BadChannelError("a message of the data channel has no bytes, or too many")
        match part[0]:
            case 0x00 | 0x01:
                return self._chunk(part)
            case 0x02 if len(part) == 1 + _NUMBER:
                self._credit(int.from_bytes(part[1:], "big"))
                return None
            case 0x03 if len(part) == 1 + _CODE:
                return Farewell(CloseReason.read(int.from_bytes(part[1:], "big")))
            case _:
                raise BadChannelError("a message of the data channel is none of ours")

    def _text(self, frame: bytes) -> Frame:
        if len(frame) > CHANNEL_MESSAGE or self._in_frame:
            raise BadChannelError("a text on the data channel is too long, or within a frame")
        self._count(len(frame))
        return Frame(frame, len(frame))

    def _chunk(self, part: bytes) -> Frame | None:
        self._count(len(part))
        self._chunks += memoryview(part)[1:]
        self._in_frame += len(part)
        if len(self._chunks) > MAX_FRAME_BYTES:
            raise BadChannelError("a frame is too large", CloseReason.TOO_LARGE)
        if part[0] == _MORE:
            return None
        frame = Frame(bytes(self._chunks), self._in_frame)
        self._chunks.clear()
        self._in_frame = 0
        return frame

    def _count(self, size: int) -> None:
        self._received += size
        if self._received - self._granted > CHANNEL_WINDOW:
            raise BadChannelError("the peer sends more than it has credit for")

    def _credit(self, taken: int) -> None:
        added = (taken - self._credited) % _ROUND
        if self._credited + added > self._sent:
            raise BadChannelError("the peer grants credit for what was not sent")
        self._credited += added

    def taken(self, size: int) -> bytes | None:
        """Note that so many bytes were read; return the credit to send, if one is due."""
        self._taken += size
        self._waiting -= 1
        if self._taken - self._granted < CHANNEL_CREDIT:
            return None
        self._granted = self._taken
        return bytes((_CREDIT,)) + (self._taken % _ROUND).to_bytes(_NUMBER, "big")
