"""The interfaces of links, listeners and networks, which every transport implements."""

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from types import MappingProxyType, TracebackType
from typing import ClassVar, Final, TypeAlias, final

import attrs
import trio
from trio.abc import AsyncResource
from typing_extensions import override

from specs.bodies.session import IceServer
from specs.limits.protocol import ACCEPT_BATCH, HANDSHAKE_TIMEOUT, MAX_FRAME_BYTES
from specs.reply_code import TurnedAway
from transports.errors import CloseReason, DialError, FrameTooLargeError, ListenError
from transports.tls import OwnCertificate

# The gate of a listener admits or refuses connections before their handshake.


class Guest:
    """An accepted connection whose peer is not authenticated yet.

    The code that accepts the link calls `settle` when the peer is known; until then the connection
    has a deadline, and may be closed to make room for others.

    Attributes:
        host: Host of the peer; empty: the gate does not need the host.
        until: Trio time by which the peer must be known.
    """

    __slots__ = ("_leave", "host", "is_expelled", "until")

    def __init__(self, host: str = "") -> None:
        self.host: Final = host
        self.until: Final = trio.current_time() + HANDSHAKE_TIMEOUT
        self.is_expelled = False
        self._leave: Callable[[], None] | None = None

    def staying(self) -> trio.CancelScope:
        """Return a cancel scope for the task of the connection, cancelled by `expel`."""
        scope = trio.CancelScope()
        self.watch(scope.cancel)
        return scope

    @final
    def watch(self, leave: Callable[[], None]) -> None:
        """Set the function that `expel` calls to close the connection, in place of an earlier one.

        If `expel` was called before, the function is called at once.
        """
        self._leave = leave
        if self.is_expelled:
            leave()

    @final
    def expel(self) -> None:
        """Close the connection to make room for others."""
        self.is_expelled = True
        if self._leave is not None:
            self._leave()

    def settle(self) -> None:
        """Report to the gate that the peer is authenticated, or has left. Idempotent."""


class Gate(ABC):
    """Base of the rules by which a listener admits or refuses new connections.

    Attributes:
        origins: Web origins whose pages may connect; None: all.
        tls: TLS context of the connections; None: no TLS.
    """

    origins: frozenset[str] | None = None
    tls: ssl.SSLContext | None = None

    @abstractmethod
    def knock(self, host: str) -> Guest | None:
        """Admit a new connection; return None if its host connects too often.

        Args:
            host: Host of the peer, from the operating system; headers are not trusted.
        """

    def room(self) -> int:
        """Return how many connections may be accepted now; others wait in the system's queue."""
        return ACCEPT_BATCH

    @abstractmethod
    def turned_away(self, why: TurnedAway) -> None:
        """Count a connection that was not admitted."""


class Everybody(Gate):
    """Gate that admits every connection, for listeners whose peers authenticate in another way."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls

    @override
    def knock(self, host: str) -> Guest | None:
        return Guest()

    @override
    def turned_away(self, why: TurnedAway) -> None:
        """Do nothing: this gate counts no connections."""


EVERYBODY: Final[Gate] = Everybody()
"""The gate that admits every connection, without TLS."""


# The terms of one end of a data channel.


@attrs.frozen(slots=True)
class ChannelTerms:
    """Settings for one end of a WebRTC data channel.

    Attributes:
        certificate: Certificate of DTLS; its key is on the curve P-256.
        host: Local address of its sockets; a wildcard: all addresses of this machine.
        offer: Session description of the peer to answer; None: this end makes the offer.
        servers: Servers of STUN and TURN; the first one of each sort is used.
        relay_only: Whether only a server of TURN is used, so that no peer learns an address of
            this machine.
    """

    certificate: OwnCertificate
    host: str
    offer: str | None = None
    servers: tuple[IceServer, ...] = ()
    relay_only: bool = False


class Turn:
    """Context manager for an operation that only one task at a time may execute.

    A second task that enters the `with` block meanwhile gets `trio.BusyResourceError`, which shows
    a bug of this process, never of the peer.
    """

    __slots__ = ("_doing", "is_taken")

    def __init__(self, doing: str) -> None:
        self._doing: Final = doing
        self.is_taken = False

    def __enter__(self) -> None:
        if self.is_taken:
            raise trio.BusyResourceError(f"another task is already {self._doing}")
        self.is_taken = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_taken = False


PROTOFLY_V1: Final = "protofly.v1"
"""WebSocket subprotocol of Protofly: a frame consists of lines, and a line is a message."""

_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})


@final
class Kind(StrEnum):
    """Kinds of links, by their transport; P2P candidates contain some of the values."""

    WEBSOCKET = "websocket"
    TCP = "tcp"
    UNIX = "unix"
    STREAM = "stream"
    """Plain TCP without frames, for protocols with delimiters of their own."""
    WEBRTC = "webrtc"
    """A data channel of WebRTC, which is negotiated, not dialled."""


FRAMED: Final = (Kind.WEBSOCKET, Kind.TCP, Kind.UNIX)
"""The kinds of links that are dialled and carry whole frames; sessions use these."""

DIRECT: Final = (*FRAMED, Kind.WEBRTC)
"""The kinds of direct links between runtimes."""


@attrs.frozen(slots=True)
class Upgrade:
    """Path, query and subprotocol that the dialling end requests when it opens a link.

    Attributes:
        path: Path of the WebSocket URL, percent-decoded; other kinds have the default.
        query: Query of the URL, decoded; of a repeated name the first value.
        subprotocol: The agreed subprotocol; None: there is none.
    """

    path: str = "/link"
    query: Mapping[str, str] = _NO_QUERY
    subprotocol: str | None = None


class Link(AsyncResource, ABC):
    """An ordered bidirectional pipe of frames between two ends.

    A frame is UTF-8 text of at most `MAX_FRAME_BYTES` bytes. It arrives whole, once and in order,
    or not at all; after a lost frame, no later one arrives. A link of kind `STREAM` carries
    bytes: `receive` returns the next bytes, at least one, cut anywhere; an end that hangs up has
    always closed with `DONE`. One task may send while another receives. Keep a task receiving: only
    a receiver notices that the peer has left or asks whether this end is alive.

    Attributes:
        kind: Transport of the link.
        name: Name, unique in this network, for traces and logs.
        upgrade: Request of the dialling end.
        guest: The accepted connection as the gate of the listener knows it; None: no gate.
        heard_at: Trio time at which the peer last sent something, or this end began to listen.
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
        """Host of the other end, from the operating system; empty: unknown, or disconnected."""
        return ""

    @property
    def peer_certificate(self) -> bytes | None:
        """Certificate that the other end has proven by TLS, in DER form; None: no certificate."""
        return None

    def unread(self) -> int:
        """Return how many of the sent frames the peer has certainly not read.

        The result is 0 for transports without acknowledgements.
        """
        return 0

    async def send(self, frame: bytes) -> None:
        """Send one frame; errors as of `send_many`.

        If cancelled, the frame may or may not arrive, and the link may be broken.
        """
        await self.send_many((frame,))

    @abstractmethod
    async def send_many(self, frames: Sequence[bytes]) -> None:
        """Send frames in order, in as few writes as the transport allows.

        Wait while the peer does not read (backpressure). After the return the frames are in
        transit; they may not have arrived.

        If cancelled, each frame may or may not arrive, and the link may be broken.

        Raises:
            FrameTooLargeError: A frame is over the limit; none was sent.
            LinkBrokenError: The other end is gone.
            LinkClosedError: This end was closed.
            trio.BusyResourceError: Another task is sending, which is a bug.
        """

    @property
    def is_clear(self) -> bool:
        """Whether `write_now` may be called: no bytes wait to be written, and no task writes.

        Always False for kinds that cannot write without waiting.
        """
        return False

    def write_now(self, frames: Sequence[bytes]) -> bool:
        """Send frames without waiting; only while the link `is_clear`.

        Returns:
            Whether all bytes are written. If not, the link has accepted the frames all the same:
            `send_many` without frames waits until the rest is written, or raises an error.

        Raises:
            FrameTooLargeError: A frame is over the limit; none was sent.
        """
        return self.write_wrapped(self.wrapped(frames))

    def wrapped(self, frames: Sequence[bytes]) -> bytes:
        """Encode frames as bytes for `write_wrapped` of any link of this class.

        Raises:
            FrameTooLargeError: A frame is over the limit.
        """
        self._check_sizes(frames)
        return b"".join(frames)

    def write_wrapped(self, data: bytes) -> bool:
        """Send frames that `wrapped` has encoded, as `write_now` does.

        Returns:
            Whether all bytes are written.
        """
        del data
        raise trio.WouldBlock

    def _check_sizes(self, frames: Sequence[bytes]) -> None:
        """Raise `FrameTooLargeError` if one of `frames` is over the limit."""
        if max(map(len, frames), default=0) > MAX_FRAME_BYTES:
            raise FrameTooLargeError(self.name)

    @abstractmethod
    async def receive(self) -> bytes:
        """Return the next frame.

        All frames that were sent before an orderly close are returned before the error. Frames
        that arrived together are returned without a checkpoint between them.

        If cancelled, no frame is lost.

        Raises:
            LinkBrokenError: No more frames: the other end is gone; `close_reason` says whether it
                closed in order.
            FrameTooLargeError: The peer exceeded the limit; nothing more can be received, but
                it may still be notified.
            LinkClosedError: This end was closed.
            trio.BusyResourceError: Another task is receiving, which is a bug.
        """

    def arrived(self) -> bytes | None:
        """Return another frame that has already arrived; None: there is none.

        Only the receiving task may call it, between two calls of `receive` or of `fill`.
        """
        return None

    # Receiving without a waiting task: one task waits for many links together.

    @property
    def descriptor(self) -> int | None:
        """Descriptor of the socket, which is readable when `fill` can read something.

        None: this kind delivers frames by `receive` only.
        """
        return None

    def fill(self) -> None:
        """Read the arrived bytes, without waiting, so that `arrived` returns their frames.

        Nothing is read while frames wait: after these are taken, call this method again, even if
        the descriptor is not readable. Answers that the protocol requires are written as far as
        there is room; the rest is `unwritten`. Errors are raised by `check_readable` only.
        """

    def check_readable(self) -> None:
        """Raise the error that `receive` would raise, if no frames wait and none can arrive."""

    @property
    def has_arrived(self) -> bool:
        """Whether `arrived` returns a frame."""
        return False

    @property
    def unwritten(self) -> int:
        """Number of bytes that wait to be written; `send_many(())` waits until they are."""
        return 0

    @property
    def frame_due(self) -> float | None:
        """Trio time by which the frame that is being received must be complete; None: no frame."""
        return None

    def ping(self) -> None:
        """Send a ping to the other end, whose answer sets `heard_at`.

        This never waits: a ping that cannot be written now is sent with the next frame. Kinds
        without pings do nothing.
        """

    async def rest(self, seconds: float) -> None:
        """Receive nothing for a while from a peer that sends too much, but answer pings.

        If cancelled, no frame is lost.
        """
        await trio.sleep(seconds)

    async def say_goodbye(self, close_reason: CloseReason) -> bool:
        """Send the close reason, and go on receiving the frames that the other end sent before.

        `receive` returns these frames, and raises `LinkBrokenError` when the other end has closed,
        too. Nothing can be sent any more, and the link still has to be closed. Idempotent. A kind
        that cannot end one direction alone does nothing: its `aclose` sends the reason.

        If cancelled, the peer may see a break.

        Args:
            close_reason: Reason that the other end is sent.

        Returns:
            Whether this kind can end one direction alone.

        Raises:
            LinkBrokenError: The other end is gone.
            LinkClosedError: This end was closed.
        """
        del close_reason
        await trio.lowlevel.checkpoint()
        return False

    @abstractmethod
    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        """Close in order: sent frames arrive, then the reason. Idempotent.

        This takes at most `GOODBYE_TIMEOUT` seconds. Other tasks that send or receive get
        `LinkClosedError`.

        If cancelled, the link is closed by force, and the peer may see a break.
        """


class Listener(ABC):
    """Accepts links that peers dial to one address.

    Handshakes run in tasks of the listener, each for at most `HANDSHAKE_TIMEOUT` seconds; a bad
    one is answered and forgotten. Accepted links stay open when their listener closes.

    Attributes:
        address: Address for diallers: `ws://127.0.0.1:4123` (append the path), `127.0.0.1:4123`,
            or the path of a Unix socket.
    """

    __slots__ = ("address",)

    def __init__(self, address: str) -> None:
        self.address: Final = address

    @abstractmethod
    async def accept(self) -> Link:
        """Return the next link that is ready to use.

        If cancelled, no link is lost.

        Raises:
            LinkClosedError: The listener was closed.
        """


ServedPaths: TypeAlias = Mapping[str, str | None]
"""WebSocket paths that are served, each with the subprotocol that peers must ask for; None: they
need not ask for any. Other paths get HTTP 404, a missing subprotocol HTTP 400. Kinds without
paths ignore it.
"""

DEFAULT_PATHS: Final[ServedPaths] = MappingProxyType({"/link": PROTOFLY_V1})


class ChannelEnd(ABC):
    """One end of a WebRTC data channel that is being negotiated.

    Attributes:
        sdp: Session description of this end, offer or answer.
        candidates: Candidates of ICE of this end, as they are found; the empty text ends them.
    """

    def __init__(self, candidates: "trio.MemoryReceiveChannel[str]") -> None:
        self.sdp = ""
        self.candidates: Final = candidates

    @abstractmethod
    async def answered(self, sdp: str) -> None:
        """Set the session description with which the other end answers; callable once.

        If cancelled, the answer may not have been set, and this end cannot be used any more.
        """

    @abstractmethod
    async def hear(self, candidate: str) -> None:
        """Add a candidate of ICE of the other end; the empty text: there are no more.

        If cancelled, the candidate may not be added.
        """

    @abstractmethod
    async def opened(self) -> Link:
        """Wait until the data channel is open, and return its link, which the caller closes.

        If cancelled, no link is lost.

        Raises:
            DialError: The channel does not open.
        """


class Network(ABC):
    """Opens links to addresses and listens for links; a process uses one network for all links.

    Attributes:
        is_system: Whether the operating system makes its connections.
    """

    is_system: ClassVar[bool] = False
    no_listening: ClassVar[str] = "there is no network here"

    @abstractmethod
    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        """Open a link; takes at most `DIAL_TIMEOUT` seconds.

        Args:
            kind: Carrier of the link.
            address: `ws://host:port/path?query`, `host:port`, or the path of a socket.
            subprotocol: WebSocket subprotocol to ask for; None: for peers that expect none.
            tls: TLS context; None: `wss:` URLs are encrypted as the network is configured, and no
                other connections.

        If cancelled, nothing is left open.

        Raises:
            DialError: There is no listener, the peer refuses, or it does not answer in time.
        """

    def negotiate(self, terms: ChannelTerms) -> AbstractAsyncContextManager[ChannelEnd]:
        """Open one end of a data channel, which ends with its link at the end of the context.

        Args:
            terms: Terms of the end.

        If cancelled, nothing is left open.

        Raises:
            DialError: This network has no data channels, or cannot open one now.
        """
        del terms
        raise DialError(Kind.WEBRTC, "this network has no data channels")

    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        """Accept links while the returned context is open.

        Args:
            kind: Carrier of the links.
            where: `host:port`, where port 0 picks a free one; for Unix sockets the path.
            paths: WebSocket paths and subprotocols that are served.
            gate: Admits connections; only WebSockets from a host need its admission. Its `tls`
                applies to every kind.

        If cancelled, the listener is closed; links that were accepted stay open.

        Raises:
            ListenError: On entering: the address is in use or not allowed.
        """
        del kind, paths, gate
        raise ListenError(where, self.no_listening)
