"""The program of the WebRTC process: `aiortc` on an asyncio event loop.

Standard input is a socket by which the process gets two sockets for each connection: one for the
signalling, one for frames. Both have the format of a link over a Unix socket. A connection ends
when one of its sockets is closed, and the process when its standard input is closed.
"""

import asyncio
import logging
import resource
import signal
import socket
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import orjson
from aioice import Candidate, Connection, TransportPolicy
from aiortc import (
    RTCCertificate,
    RTCDataChannel,
    RTCDataChannelParameters,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    RTCIceGatherer,
    RTCIceParameters,
    RTCIceTransport,
    RTCSctpCapabilities,
    RTCSctpTransport,
)
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate
from typing_extensions import override

from specs.bodies.sdp import Description, read_description, write_description
from specs.limits import webrtc
from specs.limits.protocol import GOODBYE_TIMEOUT, MAX_FRAME_BYTES
from transports.errors import CloseReason
from transports.webrtc import memory

_HEAD: Final = 4
_FAREWELL: Final = 0xFFFF_0000
"""The same value as for a link over a Unix socket (`transports.socket_link`)."""

_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - read here, not listened on
_LABEL: Final = "protofly"
_PROTOCOL: Final = "protofly.v1"
_ICE: Final = "candidate:"
_DTLS: Final = "sha-256"


class _Pipe:
    """Reader and writer of frames on one of the sockets of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes | CloseReason:
        """Return the next frame, or the reason for which the other end closes.

        Raises:
            EOFError: The other end is gone.
        """
        head = int.from_bytes(await self._reader.readexactly(_HEAD), "big")
        if head >= _FAREWELL:
            return CloseReason.read(head & 0xFFFF)
        return await self._reader.readexactly(head)

    async def tell(self, name: str, value: str) -> None:
        """Write a signalling message: an object with one name and value."""
        await self.write(orjson.dumps({name: value}))

    async def write(self, frame: bytes) -> None:
        """Write a frame, and wait until the socket has space."""
        self._writer.write(len(frame).to_bytes(_HEAD, "big") + frame)
        await self._writer.drain()

    def refuse_size(self) -> None:
        """Write a length that the reader refuses, to report that a frame is too large."""
        self._writer.write((MAX_FRAME_BYTES + 1).to_bytes(_HEAD, "big"))

    def end(self, reason: CloseReason) -> None:
        """Write the close reason, and close the writing side."""
        self._writer.write((_FAREWELL | reason.value).to_bytes(_HEAD, "big"))
        self._writer.write_eof()

    def close(self) -> None:
        """Close the socket; data that was written before is still sent."""
        self._writer.close()


async def _open_pipe(end: socket.socket) -> _Pipe:
    reader, writer = await asyncio.open_connection(sock=end, limit=webrtc.CHANNEL_CREDIT)
    return _Pipe(reader, writer)


class _Ice(Connection):
    """ICE connection that reports each candidate when found, and uses configured addresses only."""

    def __init__(self, terms: memory.WorkerTerms, signalling: _Pipe) -> None:
        super().__init__(
            ice_controlling=terms.offer is None,
            turn_username=terms.turn_username,
            turn_password=terms.turn_password,
            turn_ssl=terms.turn_tls,
            turn_transport=terms.turn_transport,
            transport_policy=TransportPolicy.RELAY if terms.relay_only else TransportPolicy.ALL,
        )
        self._terms = terms
        self._signalling = signalling

    @override
    async def get_component_candidates(
        self, component: int, addresses: list[str], timeout: int = webrtc.ICE_SERVER_TIMEOUT
    ) -> list[Candidate]:
        terms, hosts = self._terms, list[str]()
        if not terms.relay_only:
            is_everywhere = terms.host in _EVERYWHERE
            hosts = [*addresses, "127.0.0.1"] if is_everywhere else [terms.host]
        candidates = await super().get_component_candidates(component, hosts)
        await self._report(candidates)
        if terms.stun_server is None and terms.turn_server is None:
            return candidates
        self.stun_server, self.turn_server = terms.stun_server, terms.turn_server
        asking = hosts if terms.stun_server is not None else []
        more = await super().get_component_candidates(component, asking, webrtc.ICE_SERVER_TIMEOUT)
        others = [each for each in more if each.type != "host"]
        await self._report(others)
        return [*candidates, *others]

    async def _report(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if candidate.related_address is not None:
                # Hide the own address behind a NAT.
                candidate.related_address, candidate.related_port = "0.0.0.0", 9  # noqa: S104 - said only
            await self._signalling.tell("ice", f"{_ICE}{candidate.to_sdp()}")

    @override
    def data_received(self, data: bytes, component: int) -> None:
        # Anybody can send to the socket; the queue of the library has no bound.
        if self._queue.qsize() < webrtc.ICE_DATAGRAMS:
            super().data_received(data, component)


class _Gatherer(RTCIceGatherer):
    """Adapter that makes `aiortc` use an `_Ice` connection."""

    def __init__(self, connection: _Ice) -> None:
        super().__init__(iceServers=[])
        self._connection = connection


class _Stack:
    """The protocol stack of one connection: ICE, DTLS, SCTP and the data channel."""

    def __init__(self, terms: memory.WorkerTerms, signalling: _Pipe) -> None:
        self._terms = terms
        self._signalling = signalling
        self.connection = _Ice(terms, signalling)
        pem = terms.certificate.encode()
        key = load_pem_private_key(pem, None)
        if not isinstance(key, EllipticCurvePrivateKey):
            raise TypeError("the key of DTLS is not on an elliptic curve")
        own = RTCCertificate(key, load_pem_x509_certificate(pem))
        self._ice = RTCIceTransport(_Gatherer(self.connection))
        self._dtls = RTCDtlsTransport(self._ice, [own])
        self._sctp = RTCSctpTransport(self._dtls)
        parameters = RTCDataChannelParameters(
            label=_LABEL, protocol=_PROTOCOL, negotiated=True, id=0
        )
        self.channel = RTCDataChannel(self._sctp, parameters)
        self.channel.bufferedAmountLowThreshold = webrtc.CHANNEL_BUFFER_LOW
        self.is_open = asyncio.Event()
        self.is_gone = asyncio.Event()
        self.channel.on("open", self.is_open.set)
        self.channel.on("close", self.is_gone.set)
        self._ice.on("statechange", self._notice_state)
        self._dtls.on("statechange", self._notice_state)
        # The peer has no business to open another channel.
        self._sctp.on("datachannel", lambda _: self.is_gone.set())

    def _notice_state(self) -> None:
        if {self._ice.state, self._dtls.state} & {"failed", "closed"}:
            self.is_gone.set()

    @property
    def sdp(self) -> str:
        """The session description of this end."""
        ice = self._ice.iceGatherer.getLocalParameters()
        prints = self._dtls.getLocalParameters().fingerprints
        own = next(each for each in prints if each.algorithm == _DTLS)
        description = Description(
            ice.usernameFragment or "",
            ice.password or "",
            f"{_DTLS} {own.value}",
            self._sctp.port,
            MAX_FRAME_BYTES,
        )
        return write_description(description, "offer" if self._terms.offer is None else "answer")

    async def connect(self, remote: asyncio.Future[str]) -> None:
        """Gather candidates, then open the data channel when the peer's description is known.

        Raises:
            ConnectionError: The peer cannot be reached, or has another certificate.
        """
        await self._ice.iceGatherer.gather()
        await self._signalling.tell("ice", "")
        other = read_description(await remote, "answer" if self._terms.offer is None else "offer")
        await self._ice.start(RTCIceParameters(other.user, other.password))
        if self._ice.state != "completed":
            raise ConnectionError("no pair of candidates works")
        value = other.fingerprint.removeprefix(f"{_DTLS} ")
        await self._dtls.start(RTCDtlsParameters([RTCDtlsFingerprint(_DTLS, value)]))
        if self._dtls.state != "connected":
            raise ConnectionError("the peer does not prove its certificate")
        await self._sctp.start(RTCSctpCapabilities(other.max_message), other.port)
        await self.is_open.wait()
        await self._signalling.tell("open", "")

    async def close(self) -> None:
        """Close all layers of the connection, within a time limit."""
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(GOODBYE_TIMEOUT):
                await self._sctp.stop()
                await self._dtls.stop()
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(GOODBYE_TIMEOUT):
                await self._ice.stop()


class _Peer:
    """One connection: transfers frames between its socket and its data channel."""

    def __init__(self, terms: memory.WorkerTerms, signalling: _Pipe, frames: _Pipe) -> None:
        self._signalling = signalling
        self._frames = frames
        self._core = memory.ChannelCore()
        self._stack = _Stack(terms, signalling)
        self._inbox: deque[memory.Frame | CloseReason | memory.BadChannelError] = deque()
        self._is_last = False
        self._is_offended = asyncio.Event()
        self._wake = asyncio.Event()
        self._may_send = asyncio.Event()
        self._remote: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if terms.offer is not None:
            self._remote.set_result(terms.offer)
        self._stack.channel.on("message", self._receive)
        self._stack.channel.on("bufferedamountlow", self._may_send.set)

    async def run(self) -> None:
        """Transfer frames until one side ends the connection."""
        await self._signalling.tell("sdp", self._stack.sdp)
        connect = asyncio.ensure_future(self._stack.connect(self._remote))
        others = [
            asyncio.ensure_future(each)
            for each in (
                self._take_signals(),
                self._write_frames(),
                self._read_frames(),
                self._is_offended.wait(),
            )
        ]
        first = asyncio.FIRST_COMPLETED
        try:
            done, _ = await asyncio.wait([connect, *others], return_when=first)
            if done == {connect} and connect.exception() is None:
                await asyncio.wait(others, return_when=first)
        finally:
            jobs = (connect, *others)
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            await self._stack.close()

    async def _take_signals(self) -> None:
        while not isinstance(frame := await self._signalling.read(), CloseReason):
            match orjson.loads(frame):
                case {"answer": str(sdp)}:
                    self._remote.set_result(sdp)
                case {"ice": ""}:
                    # A peer that hides its addresses is known by its checks only, which may
                    # come later: who set the connection up decides how long (RFC 8863).
                    pass
                case {"ice": str(text)}:
                    with suppress(ValueError):  # malformed
                        candidate = Candidate.from_sdp(text.removeprefix(_ICE))
                        await self._stack.connection.add_remote_candidate(candidate)
                case _:
                    return

    # --- in -----------------------------------------------------------------------------------

    def _receive(self, part: memory.Part) -> None:
        if self._is_last:
            return  # an application that reads slowly is to collect nothing more
        try:
            what: memory.Frame | CloseReason | memory.BadChannelError | None = self._core.receive(
                part
            )
        except memory.BadChannelError as exc:
            what = exc
        self._is_last = isinstance(what, CloseReason | memory.BadChannelError)
        if isinstance(what, memory.BadChannelError) and what.reason is not CloseReason.TOO_LARGE:
            self._stack.channel.send(memory.ChannelCore.farewell(what.reason))
            self._is_offended.set()
        elif what is None:
            self._may_send.set()  # it was a credit, perhaps
        else:
            self._inbox.append(what)
            self._wake.set()

    async def _write_frames(self) -> None:
        gone = asyncio.ensure_future(self._stack.is_gone.wait())
        gone.add_done_callback(lambda _: self._wake.set())
        try:
            while self._inbox or not self._stack.is_gone.is_set():
                if not self._inbox:
                    self._wake.clear()
                    await self._wake.wait()
                elif not await self._pass_on(self._inbox.popleft()):
                    return
        finally:
            gone.cancel()

    async def _pass_on(self, what: memory.Frame | CloseReason | memory.BadChannelError) -> bool:
        """Write a received frame or close reason to the socket; return whether more may come."""
        match what:
            case (data, size):
                await self._frames.write(data)
                credit = self._core.acknowledge(size)
                if credit is not None and self._stack.channel.readyState == "open":
                    self._stack.channel.send(credit)
                return True
            case CloseReason():
                self._frames.end(what)
            case memory.BadChannelError():
                self._frames.refuse_size()
        await asyncio.Event().wait()  # the application is told, and closes
        return False

    # --- out ----------------------------------------------------------------------------------

    async def _read_frames(self) -> None:
        await self._stack.is_open.wait()
        while not isinstance(frame := await self._frames.read(), CloseReason):
            for part in self._core.parts(frame):
                await self._send(part)
        self._stack.channel.send(memory.ChannelCore.farewell(frame))
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_TIMEOUT):
                await self._stack.is_gone.wait()

    async def _send(self, part: memory.Part) -> None:
        size, channel = memory.size_of(part), self._stack.channel
        while not self._core.may_send(size) or channel.bufferedAmount > webrtc.CHANNEL_BUFFER:
            self._may_send.clear()
            await self._may_send.wait()
        self._core.count_sent(size)
        channel.send(part)


async def _serve_one(descriptors: list[int]) -> None:
    ends = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    for end in ends:
        end.setblocking(False)  # noqa: FBT003 - the standard library's signature
    signalling, frames = [await _open_pipe(end) for end in ends]
    try:
        begin = await signalling.read()
        if not isinstance(begin, CloseReason):
            await _Peer(memory.read_terms(begin), signalling, frames).run()
    finally:
        frames.close()
        signalling.close()


async def _serve(control: socket.socket) -> None:
    """Serve connections until the control socket ends."""
    loop = asyncio.get_running_loop()
    # Errors that peers cause are not logged: they could fill a disk.
    loop.set_exception_handler(lambda _loop, _context: None)
    peers = set[asyncio.Task[None]]()
    is_over = asyncio.Event()

    def ready() -> None:
        data, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not data:
            loop.remove_reader(control)
            is_over.set()
            return
        task = loop.create_task(_serve_one(descriptors))
        peers.add(task)
        task.add_done_callback(peers.discard)

    loop.add_reader(control, ready)
    await is_over.wait()
    left = tuple(peers)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def main() -> None:
    """Run the WebRTC process: limit its resources, and serve the socket on standard input."""
    logging.disable()
    for each in (signal.SIGINT, signal.SIGTERM):
        # Signals are meant for the parent process, which still closes its links by this process.
        signal.signal(each, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (webrtc.WEBRTC_MEMORY, webrtc.WEBRTC_MEMORY))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = (
        webrtc.WEBRTC_FILES if most == resource.RLIM_INFINITY else min(most, webrtc.WEBRTC_FILES)
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    with socket.socket(fileno=0) as control:
        control.setblocking(False)  # noqa: FBT003 - the standard library's signature
        asyncio.run(_serve(control))
