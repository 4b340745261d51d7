"""The contract of a two-way pipe of frames, whatever carries it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

import attrs
import trio
from trio.abc import AsyncResource
from typing_extensions import override

from specs.limits.protocol import MAX_FRAME_BYTES
from transports.errors import Farewell, FrameTooLargeError

if TYPE_CHECKING:
    from transports.gate import Guest

__all__ = ["FRAMED", "PROTOFLY_V1", "Kind", "Link", "Listener", "Upgrade"]

PROTOFLY_V1: Final = "protofly.v1"
"""WebSocket subprotocol of our own ends: a frame is lines, a line is a message."""

_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})


@final
class Kind(StrEnum):
    """What carries a link; of those that keep frames, the words P2P candidates use on the wire."""

    WEBSOCKET = "websocket"
    TCP = "tcp"
    UNIX = "unix"
    STREAM = "stream"
    """TCP as it is: no frames, for protocols that have their own way to tell where they end."""


FRAMED: Final = (Kind.WEBSOCKET, Kind.TCP, Kind.UNIX)
"""The kinds whose frames arrive as they were sent: what our own protocols go over."""


@attrs.frozen(slots=True)
class Upgrade:
    """What the dialling end asked for when it came.

    Attributes:
        path: Path of the WebSocket URL, percent-decoded; other kinds have the default.
        query: Its query, decoded; of a repeated name the first value.
        subprotocol: The subprotocol both ends agreed on, or None.
    """

    path: str = "/link"
    query: Mapping[str, str] = _NO_QUERY
    subprotocol: str | None = None


class Link(AsyncResource, ABC):
    """An ordered two-way pipe of frames between two ends.

    A frame is UTF-8 text of at most `MAX_FRAME_BYTES`; it arrives whole, once
    and in order, or not at all, and what is lost is always the end of what was
    sent. A link of kind `STREAM` carries bytes: what is received is the next of
    them, at least one, cut anywhere; an end that hangs up has left as `DONE`,
    whatever it meant. One task may send while another receives. Always keep a task
    receiving: only a receiver notices that the peer has left or asks whether
    this end is alive.

    Attributes:
        kind: What carries it.
        name: Unique in this network, for traces and logs.
        upgrade: What the dialling end asked for.
        guest: How it counts at the gate it came through; None: there was none.
        heard_at: Trio time of the last sign of life, or when this end began to listen.
    """

    __slots__ = ("guest", "heard_at", "kind", "name", "upgrade")

    def __init__(self, kind: Kind, name: str, upgrade: Upgrade) -> None:
        self.kind: Final = kind
        self.name: Final = name
        self.upgrade: Final = upgrade
        self.guest: Guest | None = None
        self.heard_at = trio.current_time()

    @property
    def host(self) -> str:
        """Where the other end is, as the system says; empty: on no host, or it is gone."""
        return ""

    def unread(self) -> int:
        """How many of the frames being sent the peer has surely not read.

        Kinds whose peers acknowledge nothing know of none.
        """
        return 0

    async def send(self, frame: bytes) -> None:
        """Send one frame; see `send_many`."""
        await self.send_many((frame,))

    @abstractmethod
    async def send_many(self, frames: Sequence[bytes]) -> None:
        """Send frames in order, in as few writes as the transport allows.

        Waits while the peer does not read (backpressure). Returning means that
        the frames are on their way, not that they arrived.

        Cancelled: each of the frames arrives or not, and the link may be broken.

        Raises:
            FrameTooLargeError: One is over the limit: our fault; none was sent.
            LinkBrokenError: The other end is gone.
            LinkClosedError: This end was closed by us.
            trio.BusyResourceError: Another task is sending: our bug.
        """

    def _check_sizes(self, frames: Sequence[bytes]) -> None:
        """Raise `FrameTooLargeError` if one of `frames` is over the limit."""
        if any(len(frame) > MAX_FRAME_BYTES for frame in frames):
            raise FrameTooLargeError(self.name)

    @abstractmethod
    async def receive(self) -> bytes:
        """Return the next frame.

        Frames sent before an orderly farewell all come before the error. Frames
        that came together are returned without a checkpoint between them.

        Cancelled: no frame was lost.

        Raises:
            LinkBrokenError: No more frames: the other end is gone; its
                `farewell` says whether it left in good order.
            FrameTooLargeError: The peer broke the limit: nothing more can be
                received, but it may still be told so.
            LinkClosedError: This end was closed by us.
            trio.BusyResourceError: Another task is receiving: our bug.
        """

    def ping(self) -> None:
        """Ask the other end for a sign of life, which `heard_at` will show.

        Never waits: a question that cannot be written now goes out with what is sent next.
        Kinds that know no pings ask nothing.
        """

    async def rest(self, seconds: float) -> None:
        """Let the peer wait, as one that sends too much; what it asks of the link is answered.

        Cancelled: no frame was lost.
        """
        await trio.sleep(seconds)

    @abstractmethod
    @override
    async def aclose(self, farewell: Farewell = Farewell.DONE) -> None:
        """Leave in good order: what was sent arrives, then the farewell.

        Takes at most `GOODBYE_TIMEOUT`; idempotent; may be called while other
        tasks send or receive, they get `LinkClosedError`.

        Cancelled: closed all the same, but by force; the peer may see a break.
        """


class Listener(ABC):
    """The end that is dialled.

    Handshakes run in tasks of the listener, each at most `HANDSHAKE_TIMEOUT`; a
    bad one is answered and forgotten. Links that were accepted live on when
    their listener closes.

    Attributes:
        address: What a dialler dials: `ws://127.0.0.1:4123` (append the path),
            `127.0.0.1:4123`, or the path of a Unix socket.
    """

    __slots__ = ("address",)

    def __init__(self, address: str) -> None:
        self.address: Final = address

    @abstractmethod
    async def accept(self) -> Link:
        """Return the next link that is ready to use.

        Cancelled: no link was lost.

        Raises:
            LinkClosedError: The listener was closed by us.
        """
