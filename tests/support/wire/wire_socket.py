"""The client's end of a WebSocket on a real socket, written by hand (RFC 6455).

No code of the node and none of its libraries: what is sent stands here, and a frame may
be as wrong as a test wants it.
"""

import struct
from urllib.parse import urlsplit

import attrs
import trio

from tests.support.wire.raw_websocket import head

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_CHUNK = 65_536


class Refused(Exception):  # noqa: N818 - what a node did, no fault
    """The handshake was answered with something else than 101."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


class Left(Exception):  # noqa: N818 - what a node did, no fault
    """The node closed the link; `code` None: without a word."""

    def __init__(self, code: int | None, reason: str = "") -> None:
        super().__init__(f"{code} {reason}")
        self.code = code
        self.reason = reason


def masked(data: bytes, mask: bytes = b"\x01\x02\x03\x04") -> bytes:
    """Mask the data of a frame, all at once."""
    key = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(key)).to_bytes(len(data))


def frame_of(data: bytes, opcode: int = TEXT, fin: int = 0x80) -> bytes:
    """Return a masked frame of a client."""
    return head(opcode, len(data), fin) + masked(data)


def handshake_of(url: str, subprotocol: str | None, **headers: str) -> bytes:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if subprotocol is not None:
        lines.append(f"Sec-WebSocket-Protocol: {subprotocol}")
    return "\r\n".join([*lines, "", ""]).encode()


@attrs.define
class FrameReader:
    """Takes bytes of a server and gives frames: opcode, data."""

    buffer: bytearray = attrs.field(factory=bytearray)

    def next(self) -> tuple[int, bytes] | None:
        """Return the next whole frame; None: more bytes are needed."""
        if len(self.buffer) < 2:
            return None
        size, start = self.buffer[1] & 0x7F, 2
        if size >= 126:
            form, start = ("!H", 4) if size == 126 else ("!Q", 10)
            if len(self.buffer) < start:
                return None
            (size,) = struct.unpack_from(form, self.buffer, 2)
        if len(self.buffer) < start + size:
            return None
        opcode, data = self.buffer[0] & 0x0F, bytes(self.buffer[start : start + size])
        del self.buffer[: start + size]
        return opcode, data


@attrs.define
class WireSocket:
    """A WebSocket that is open; pings of the protocol below are answered."""

    stream: trio.SocketStream
    reader: FrameReader
    _sending: trio.Lock = attrs.field(factory=trio.Lock)

    async def send(self, text: bytes) -> None:
        await self.send_bytes(frame_of(text))

    async def send_bytes(self, raw: bytes) -> None:
        """Send bytes as they are, whatever they mean."""
        async with self._sending:
            await self.stream.send_all(raw)

    async def receive(self) -> bytes:
        """Return the next text.

        Raises:
            Left: There is none, and will be none.
        """
        while True:
            found = self.reader.next()
            if found is None:
                await self._more()
                continue
            opcode, data = found
            if opcode == CLOSE:
                await self._bye(data)
            if opcode == PING:
                await self.send_bytes(frame_of(data, PONG))
            if opcode == TEXT:
                return data

    async def _more(self) -> None:
        try:
            piece = await self.stream.receive_some(_CHUNK)
        except trio.BrokenResourceError as exc:
            raise Left(None) from exc
        if not piece:
            raise Left(None)
        self.reader.buffer += piece

    async def _bye(self, data: bytes) -> None:
        code = int.from_bytes(data[:2]) if data else None
        with trio.move_on_after(1):
            await self._echo(data)
        raise Left(code, data[2:].decode())

    async def _echo(self, data: bytes) -> None:
        try:
            await self.send_bytes(frame_of(data, CLOSE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def to_its_end(self) -> None:
        """Hear what comes until the node leaves; raises `Left`."""
        while True:
            await self.receive()

    def hang_up(self) -> None:
        """Be gone without a word, at once, also where everything is being cancelled."""
        self.stream.socket.close()

    async def abandon(self) -> None:
        """Be gone without a word."""
        await trio.aclose_forcefully(self.stream)


async def open_wire(url: str, subprotocol: str | None = None, **headers: str) -> WireSocket:
    """Connect.

    Raises:
        Refused: The node does not take us in.
    """
    parts = urlsplit(url)
    stream = await trio.open_tcp_stream(parts.hostname or "", parts.port or 80)
    try:
        return WireSocket(stream, await _shaken(stream, handshake_of(url, subprotocol, **headers)))
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise


async def _shaken(stream: trio.SocketStream, request: bytes) -> FrameReader:
    """Ask for a WebSocket; return what has come behind the answer."""
    await stream.send_all(request)
    reader = FrameReader()
    while b"\r\n\r\n" not in reader.buffer:
        piece = await stream.receive_some(_CHUNK)
        if not piece:
            break
        reader.buffer += piece
    answer, _, rest = bytes(reader.buffer).partition(b"\r\n\r\n")
    status = answer.split(b" ", 2)[1] if answer else b"0"
    if status != b"101":
        raise Refused(int(status), rest.decode(errors="replace"))
    reader.buffer[:] = rest
    return reader
