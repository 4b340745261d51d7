"""Simulated data channels in memory, and the parts of real ones that need no WebRTC library.

The file contains the settings for the WebRTC process, the flow control on a data channel, and
channels in memory for tests. A simulated end opens when both ends have the description of the
other, one of them knows an address of the other, and both descriptions name the right certificates.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final, TypeAlias

import attrs
import orjson
import trio
from typing_extensions import override

from specs.bodies.sdp import Description, read_description, read_ice, write_description
from specs.bodies.session import IceServer
from specs.errors import BadMessageError
from specs.limits import webrtc
from specs.limits.protocol import MAX_FRAME_BYTES
from transports.errors import CloseReason, DialError
from transports.link import ChannelEnd, ChannelTerms, Kind, Link

# The settings of one connection, as they are written to the WebRTC process.

_URL: Final = re.compile(
    r"(stun|turns?):(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9.-]{1,253}))(?::([0-9]{1,5}))?"
    r"(?:\?transport=(udp|tcp))?\Z"
)
_PORTS: Final = {"stun": 3478, "turn": 3478, "turns": 5349}
_MOST: Final = 65_535


@attrs.frozen(slots=True)
class WorkerTerms:
    """Settings for one end of a data channel, as `aiortc` needs them.

    Attributes:
        certificate: Certificate of DTLS and its private key, in PEM form.
        host: Address at which the end has its sockets; a wildcard: all of this machine.
        offer: The session description that the end answers; None: the end makes the offer.
        relay_only: Whether the end uses only the candidates of the TURN server.
        stun_server: Host and port of the server of STUN; None: there is none.
        turn_server: Host and port of the server of TURN; None: there is none.
    """

    certificate: str = attrs.field(repr=False)
    host: str
    offer: str | None = None
    relay_only: bool = False
    stun_server: tuple[str, int] | None = None
    turn_server: tuple[str, int] | None = None
    turn_username: str | None = None
    turn_password: str | None = attrs.field(default=None, repr=False)
    turn_tls: bool = False
    turn_transport: str = "udp"


def _read(servers: Iterable[IceServer]) -> Iterable[tuple[str, tuple[str, int], str, IceServer]]:
    """Yield the usable servers, with scheme, address and transport; skip unknown forms of URLs."""
    for server in servers:
        for url in server.urls:
            match = _URL.match(url)
            if match is None:
                continue
            scheme, port = match[1], int(match[4] or _PORTS[match[1]])
            transport = match[5] or ("tcp" if scheme == "turns" else "udp")
            if 0 < port <= _MOST and (scheme, transport) != ("turns", "udp"):
                yield scheme, (match[2] or match[3], port), transport, server


def write_terms(terms: ChannelTerms) -> bytes:
    """Encode the settings of one end of a data channel for the WebRTC process."""
    worker = WorkerTerms(terms.certificate.pem.decode(), terms.host, terms.offer, terms.relay_only)
    for scheme, place, transport, server in reversed(tuple(_read(terms.servers))):
        if scheme == "stun":
            worker = attrs.evolve(worker, stun_server=place)
        else:
            worker = attrs.evolve(
                worker,
                turn_server=place,
                turn_username=server.username,
                turn_password=server.credential,
                turn_tls=scheme == "turns",
                turn_transport=transport,
            )
    return orjson.dumps(attrs.asdict(worker))


def read_terms(written: bytes) -> WorkerTerms:
    """Decode the settings that `write_terms` has encoded."""
    words = orjson.loads(written)
    for name in ("stun_server", "turn_server"):
        words[name] = None if words[name] is None else tuple(words[name])
    return WorkerTerms(**words)


# The protocol on a data channel: chunks of frames, credits and close messages, without I/O.

_MORE: Final = 0
_LAST: Final = 1
_CREDIT: Final = 2
_FAREWELL: Final = 3
_NUMBER: Final = 4
_CODE: Final = 2
_ROUND: Final = 1 << 32

Part: TypeAlias = str | bytes
"""One message of a data channel: a text, or bytes whose first byte is the kind."""


class BadChannelError(Exception):
    """The peer has violated the protocol on a data channel.

    Attributes:
        reason: Close reason for the peer.
    """

    def __init__(self, why: str, reason: CloseReason = CloseReason.REFUSED) -> None:
        super().__init__(why)
        self.reason = reason


Frame: TypeAlias = tuple[bytes, int]
"""A received frame, and its size as counted by the flow control."""


def size_of(part: Part) -> int:
    """Return the size of a message of the channel in bytes."""
    return len(part.encode()) if isinstance(part, str) else len(part)


class ChannelCore:
    """Flow control and framing at one end of a data channel, without I/O."""

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
        if len(frame) <= webrtc.CHANNEL_MESSAGE:
            try:
                yield frame.decode()
            except UnicodeDecodeError:
                pass
            else:
                return
        step = webrtc.CHANNEL_MESSAGE - 1
        last = (len(frame) - 1) // step
        for number in range(last + 1):
            head = _LAST if number == last else _MORE
            yield bytes((head,)) + frame[number * step : (number + 1) * step]

    def may_send(self, size: int) -> bool:
        """Return whether the peer's window has room for a message of `size` bytes."""
        return self._sent + size - self._credited <= webrtc.CHANNEL_WINDOW

    def count_sent(self, size: int) -> None:
        """Count a message that was sent."""
        self._sent += size

    @staticmethod
    def farewell(reason: CloseReason) -> bytes:
        """Return the message that closes the channel for a reason."""
        return bytes((_FAREWELL,)) + reason.value.to_bytes(_CODE, "big")

    # --- in -------------------------------------------------------------------------------

    def receive(self, part: Part) -> Frame | CloseReason | None:
        """Process a message of the peer; return a complete frame, a close reason, or None.

        Messages after a close message, or after a violation, are ignored.

        Raises:
            BadChannelError: The peer has violated the protocol.
        """
        if self._is_over:
            return None
        try:
            what = self._read(part)
        except BadChannelError:
            self._end()
            raise
        if isinstance(what, CloseReason):
            self._end()
        elif what is not None:
            self._waiting += 1
        return what

    def _end(self) -> None:
        self._is_over = True
        self._chunks.clear()

    def _read(self, part: Part) -> Frame | CloseReason | None:
        if self._waiting >= webrtc.CHANNEL_FRAMES:
            raise BadChannelError("too many frames of the data channel are not taken")
        if isinstance(part, str):
            return self._text(part.encode())
        if not part or len(part) > webrtc.CHANNEL_MESSAGE:
            raise BadChannelError("a message of the data channel has no bytes, or too many")
        match part[0]:
            case 0x00 | 0x01:
                return self._chunk(part)
            case 0x02 if len(part) == 1 + _NUMBER:
                self._credit(int.from_bytes(part[1:], "big"))
                return None
            case 0x03 if len(part) == 1 + _CODE:
                return CloseReason.read(int.from_bytes(part[1:], "big"))
            case _:
                raise BadChannelError("a message of the data channel is none of ours")

    def _text(self, frame: bytes) -> Frame:
        if len(frame) > webrtc.CHANNEL_MESSAGE or self._in_frame:
            raise BadChannelError("a text on the data channel is too long, or within a frame")
        self._count(len(frame))
        return frame, len(frame)

    def _chunk(self, part: bytes) -> Frame | None:
        self._count(len(part))
        self._chunks += memoryview(part)[1:]
        self._in_frame += len(part)
        if len(self._chunks) > MAX_FRAME_BYTES:
            raise BadChannelError("a frame is too large", CloseReason.TOO_LARGE)
        if part[0] == _MORE:
            return None
        frame = bytes(self._chunks), self._in_frame
        self._chunks.clear()
        self._in_frame = 0
        return frame

    def _count(self, size: int) -> None:
        self._received += size
        if self._received - self._granted > webrtc.CHANNEL_WINDOW:
            raise BadChannelError("the peer sends more than it has credit for")

    def _credit(self, taken: int) -> None:
        added = (taken - self._credited) % _ROUND
        if self._credited + added > self._sent:
            raise BadChannelError("the peer grants credit for what was not sent")
        self._credited += added

    def acknowledge(self, size: int) -> bytes | None:
        """Count bytes that were read; return the credit message to send now, or None."""
        self._taken += size
        self._waiting -= 1
        if self._taken - self._granted < webrtc.CHANNEL_CREDIT:
            return None
        self._granted = self._taken
        return bytes((_CREDIT,)) + (self._taken % _ROUND).to_bytes(_NUMBER, "big")


_PORT: Final = 50_000


class _MemoryEnd(ChannelEnd):
    """One end of a simulated data channel, and what it knows about the other end."""

    def __init__(self, number: int, terms: ChannelTerms, channels: "MemoryChannels") -> None:
        sender, candidates = trio.open_memory_channel[str](2)
        super().__init__(candidates)
        digest = hashlib.sha256(terms.certificate.der).digest()
        self.is_offering: Final = terms.offer is None
        self.own: Final = Description(
            f"end{number:04}", f"{number:022}", f"sha-256 {digest.hex(':').upper()}"
        )
        self.sdp = write_description(self.own, "offer" if self.is_offering else "answer")
        self.port: Final = _PORT + number
        self.heard: Final[set[int]] = set()
        self.remote: Description | None = None
        self.link: Link | None = None
        self._channels: Final = channels
        self._is_decided: Final = trio.Event()
        self._is_taken = False
        if not terms.relay_only:
            sender.send_nowait(f"candidate:1 1 udp 1 {terms.host} {self.port} typ host")
        sender.send_nowait("")
        sender.close()

    def take_description(self, sdp: str, kind: str) -> None:
        """Store the description of the other end; an unreadable one ends this end."""
        try:
            self.remote = read_description(sdp, kind)
        except BadMessageError:
            self.decide(None)
        self._channels.connect(self)

    def decide(self, link: Link | None) -> None:
        """End the negotiation: the end gets its link, or fails (None)."""
        self.link = link
        self._is_decided.set()

    @property
    def is_decided(self) -> bool:
        """True if the negotiation has ended, with a link or without."""
        return self._is_decided.is_set()

    @override
    async def answered(self, sdp: str) -> None:
        await trio.lowlevel.checkpoint()
        self.take_description(sdp, "answer")

    @override
    async def hear(self, candidate: str) -> None:
        await trio.lowlevel.checkpoint()
        with suppress(BadMessageError):
            address = read_ice(candidate)
            if address is not None:
                self.heard.add(address.port)
                self._channels.connect(self)

    @override
    async def opened(self) -> Link:
        await self._is_decided.wait()
        if self.link is None or self._is_taken:
            raise DialError(Kind.WEBRTC, "the data channel does not open")
        self._is_taken = True
        return self.link


class MemoryChannels:
    """The simulated data channels of one network in memory.

    Args:
        wire: Makes a link; returns the end that offered, and the other one.
    """

    def __init__(self, wire: Callable[[], tuple[Link, Link]]) -> None:
        self._wire: Final = wire
        self._ends: Final[dict[str, _MemoryEnd]] = {}
        self._numbers: Final = count(1)

    @asynccontextmanager
    async def negotiate(self, terms: ChannelTerms) -> AsyncIterator[ChannelEnd]:
        """Open one end (see `Network.negotiate`)."""
        end = _MemoryEnd(next(self._numbers), terms, self)
        self._ends[end.own.user] = end
        try:
            await trio.lowlevel.checkpoint()
            if terms.offer is not None:
                end.take_description(terms.offer, "offer")
            yield end
        finally:
            del self._ends[end.own.user]
            if end.link is not None:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(end.link)

    def connect(self, end: _MemoryEnd) -> None:
        """Connect an end with the one that it describes, if their negotiation is complete."""
        here = end.remote
        other = None if here is None else self._ends.get(here.user)
        back = None if other is None else other.remote
        if here is None or other is None or back is None or back.user != end.own.user:
            return
        is_reached = end.port in other.heard or other.port in end.heard
        if not is_reached or end.is_decided or other.is_decided:
            return
        refusing = [
            each
            for each, remote, two in ((end, here, other), (other, back, end))
            if remote.fingerprint != two.own.fingerprint
        ]
        for each in refusing:
            each.decide(None)
        if not refusing:
            links = self._wire()
            for each in (end, other):
                each.decide(links[0 if each.is_offering else 1])
