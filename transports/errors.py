"""The errors of links, with one class for each party that has to act.

ProtoflyError
├─ LocalServerError        there is no local NATS server: install one
└─ LinkError
   ├─ LinkClosedError      this end closed it: stop using it
   ├─ LinkBrokenError      the other end left, or the network failed
   │  ├─ FrameTooLargeError  the other end (receive) or this one (send) broke the size limit
   │  └─ FrameTooSlowError   the other end took too long for one frame
   ├─ DialError            no listener answers, or this end is refused: try later or elsewhere
   └─ ListenError          this address cannot be listened on: choose another
"""

import re
from enum import Enum
from typing import Final, final

from specs.errors import ProtoflyError
from specs.limits.protocol import FRAME_TIMEOUT, MAX_FRAME_BYTES


class CloseReason(Enum):
    """Reasons to close a link in order; the values are WebSocket close codes (RFC 6455)."""

    DONE = 1000
    GOING_AWAY = 1001
    REFUSED = 1008
    TOO_LARGE = 1009
    INTERNAL = 1011
    SLOW_CONSUMER = 1013

    @property
    def reason(self) -> str:
        """The name of the reason in lower case, such as `going-away`."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def read(cls, code: int) -> "CloseReason":
        """Return the reason for a close code that a peer has sent; `DONE` for an unknown code."""
        try:
            return cls(code)
        except ValueError:
            return cls.DONE


class LinkError(ProtoflyError, public=True):
    """Base of the errors of links; never raised itself."""


@final
class LinkClosedError(LinkError, public=True):
    """This end has already closed the link or listener.

    Attributes:
        link: Name of the link, or address of the listener.
    """

    def __init__(self, link: str) -> None:
        super().__init__(f"{link} was closed by this end")
        self.link = link


class LinkBrokenError(LinkError, public=True):
    """The other end is gone; the link cannot be used any more.

    Attributes:
        close_reason: Reason of an orderly close by the other end; None: it vanished.
    """

    def __init__(self, link: str, reason: str, close_reason: CloseReason | None = None) -> None:
        super().__init__(f"{link} is broken: {reason}")
        self.link = link
        self.reason = reason
        self.close_reason = close_reason


@final
class FrameTooLargeError(LinkBrokenError, public=True):
    """A frame is larger than `MAX_FRAME_BYTES`.

    From `send`: the frame of this end was not sent, and the link still works.
    From `receive`: after a frame of the peer, nothing more can be received; frames sent now may
    still arrive, so the caller notifies the peer, then closes with `TOO_LARGE`.
    """

    def __init__(self, link: str) -> None:
        super().__init__(link, f"a frame is larger than {MAX_FRAME_BYTES} bytes")


class FrameTooSlowError(LinkBrokenError):
    """A frame did not end within `FRAME_TIMEOUT` seconds; the caller closes with `REFUSED`."""

    def __init__(self, link: str) -> None:
        super().__init__(link, f"a frame took longer than {FRAME_TIMEOUT:g} s")


_EVERYWHERE: Final = re.compile(r"(?:[a-z]+://)?(?P<host>0\.0\.0\.0|\[::\])(?=[:/]|$)")


class DialError(LinkError, public=True):
    """No link to an address could be opened.

    The reason says so if the address is a wildcard for listening, which cannot be dialled.
    """

    def __init__(self, address: str, reason: str) -> None:
        if (match := _EVERYWHERE.match(address)) is not None:
            reason = f"{reason}; {match['host']} stands for all addresses of a machine, dial one"
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


@final
class CertificateError(DialError, public=True):
    """The certificate of a server is not accepted for the address that was dialled."""


@final
class ListenError(LinkError, public=True):
    """An address cannot be listened on."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"cannot listen on {where}: {reason}")
        self.where = where
        self.reason = reason


class LocalServerError(ProtoflyError):
    """There is no local NATS server, or it does not start.

    Args:
        reason: The reason, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
