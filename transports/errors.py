"""What can go wrong with a link, split by who must act.

ProtoflyError
└─ LinkError
   ├─ LinkClosedError      we closed it: stop using it
   ├─ LinkBrokenError      they left, or the network did
   │  ├─ FrameTooLargeError  they (receive) or we (send) broke the size limit
   │  └─ FrameTooSlowError   they took too long for one frame
   ├─ DialError            nobody there, or not for us: try later or elsewhere
   └─ ListenError          this place cannot be listened on: choose another
"""

from enum import Enum
from typing import final

from specs.errors import ProtoflyError
from specs.limits.protocol import FRAME_TIMEOUT, MAX_FRAME_BYTES

__all__ = [
    "DialError",
    "Farewell",
    "FrameTooLargeError",
    "FrameTooSlowError",
    "LinkBrokenError",
    "LinkClosedError",
    "LinkError",
    "ListenError",
]


@final
class Farewell(Enum):
    """Why an end leaves in good order; the values are WebSocket close codes (RFC 6455)."""

    DONE = 1000
    GOING_AWAY = 1001
    REFUSED = 1008
    TOO_LARGE = 1009
    INTERNAL = 1011
    SLOW_CONSUMER = 1013

    @property
    def reason(self) -> str:
        """The text that goes with the code."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def read(cls, code: int) -> "Farewell":
        """Return what a peer's code means; a foreign one only tells that it meant to leave."""
        try:
            return cls(code)
        except ValueError:
            return cls.DONE


class LinkError(ProtoflyError):
    """Root of this layer's errors; never raised itself."""


@final
class LinkClosedError(LinkError):
    """This end, or the listener, was closed by us: the caller is late.

    Attributes:
        link: Name of the link, or address of the listener.
    """

    def __init__(self, link: str) -> None:
        super().__init__(f"{link} was closed by this end")
        self.link = link


class LinkBrokenError(LinkError):
    """The other end is gone; the link is of no more use.

    Attributes:
        link: Name of the link.
        reason: What was seen, as half a sentence.
        farewell: Why the other end left in good order; None if it vanished.
    """

    def __init__(self, link: str, reason: str, farewell: Farewell | None = None) -> None:
        super().__init__(f"{link} is broken: {reason}")
        self.link = link
        self.reason = reason
        self.farewell = farewell


@final
class FrameTooLargeError(LinkBrokenError):
    """A frame is over `MAX_FRAME_BYTES`.

    From `send`: the fault is ours, nothing was sent, the link lives on.
    From `receive`: the fault is theirs, nothing more can be received; what is
    sent now may still arrive, so tell them, then close with `TOO_LARGE`.
    """

    def __init__(self, link: str) -> None:
        super().__init__(link, f"a frame is larger than {MAX_FRAME_BYTES} bytes")


@final
class FrameTooSlowError(LinkBrokenError):
    """A frame did not end within `FRAME_TIMEOUT`: the fault is theirs, close with `REFUSED`."""

    def __init__(self, link: str) -> None:
        super().__init__(link, f"a frame took longer than {FRAME_TIMEOUT:g} s")


@final
class DialError(LinkError):
    """No link could be opened.

    Attributes:
        address: What was dialled.
        reason: Why not, as half a sentence.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


@final
class ListenError(LinkError):
    """Nobody can be awaited there.

    Attributes:
        where: The place asked for.
        reason: Why not, as half a sentence.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"cannot listen on {where}: {reason}")
        self.where = where
        self.reason = reason
