"""Lightweight clients of a node for benches, with raw sockets and their own WebSocket frames.

Frames have a mask of zeros, which is valid and leaves the text unchanged. So thousands of clients
need little CPU on the machine on which the node is measured.
"""

import gc
import os
import resource
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

import orjson
import trio

from bench.report import BenchError
from bench.servers import DOMAIN

NODE: Final = f"domain://msg-node.{DOMAIN}"
ALLOCATION: Final = f"{NODE}/address-allocation"

_MASK: Final = bytes(4)
_LAST: Final = 0x80
_MASKED: Final = 0x80
_TWO_BYTES: Final = 126
_SHORT_HEAD: Final = 2
_HEADS: Final = {_TWO_BYTES: 4, 127: 10}
"""Size of a frame's header, by the value of its length field; others have `_SHORT_HEAD`."""

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_READ: Final = 65_536
_AT_ONCE: Final = 64
_ID: Final = 7
_PATIENCE: Final = 60.0

_Item = TypeVar("_Item")


def raise_file_limit() -> None:
    """Raise the limit of sockets for this process and its children as far as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def prepare_client() -> None:
    """Prepare this process for measurements: many sockets, and no pauses by garbage collection."""
    raise_file_limit()
    gc.disable()


async def at_once(do: Callable[[_Item], Awaitable[object]], items: Iterable[_Item]) -> None:
    """Call an async function with all items, a limited number at a time."""
    waiting = iter(items)

    async def some() -> None:
        for item in waiting:
            await do(item)

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(some)


def message(number: int, kind: str, from_: str, to: str, body: object) -> bytes:
    """Return a message as JSON text."""
    return orjson.dumps({"id": number, "type": kind, "from": from_, "to": to, "body": body})


def framed(text: bytes, opcode: int = _TEXT) -> bytes:
    """Encode a text as a WebSocket frame of a client."""
    size = len(text)
    if size < _TWO_BYTES:
        head = struct.pack("!BB", _LAST | opcode, _MASKED | size)
    else:
        head = struct.pack("!BBH", _LAST | opcode, _MASKED | _TWO_BYTES, size)
    return head + _MASK + text


def take_frame(buffer: bytearray) -> tuple[int, bytes] | None:
    """Remove the first frame from received bytes; return opcode and text; None: incomplete."""
    start = _HEADS.get(buffer[1], _SHORT_HEAD) if len(buffer) >= _SHORT_HEAD else _SHORT_HEAD
    if len(buffer) < start:
        return None
    size = buffer[1] if start == _SHORT_HEAD else int.from_bytes(buffer[2:start], "big")
    if len(buffer) < start + size:
        return None
    frame = buffer[0] & 0x0F, bytes(buffer[start : start + size])
    del buffer[: start + size]
    return frame


def pong_to(text: bytes) -> bytes | None:
    """Return the answer to a ping message of a node; None: the message is no ping."""
    if b'"type":"execute"' not in text:
        return None
    asked = orjson.loads(text)
    return message(asked["id"], "response", asked["to"], asked["from"], {"code": 200})


class Peer:
    """Client of a node with one connection.

    Args:
        name: Name of its runtime.
        source: Address of this machine from which the client connects.
        receive_bytes: Size of the socket's receive buffer; None: the system's default.
    """

    def __init__(
        self, name: str, source: str = "127.0.0.1", receive_bytes: int | None = None
    ) -> None:
        self.runtime = f"hyperty-runtime://{DOMAIN}/{name}"
        self.socket = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.buffer = bytearray()
        self._source = source
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)

    async def knock(self, place: tuple[str, int], target: str, *lines: str) -> None:
        """Connect, and send the request for a WebSocket, with further header lines."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self.socket.bind((self._source, 0))
        await self.socket.connect(place)
        head = (
            f"GET {target} HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", *lines,
        )  # fmt: skip
        await self.write("\r\n".join(head).encode())

    async def upgrade(self, place: tuple[str, int], target: str, *lines: str) -> None:
        """Connect, and complete the WebSocket handshake."""
        await self.knock(place, target, *lines, "\r\n")
        while b"\r\n\r\n" not in self.buffer:
            await self._read()
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise BenchError(head.partition(b"\r\n")[0].decode())
        self.buffer = bytearray(rest)

    async def be_plain(self, place: tuple[str, int]) -> None:
        """Connect in upstream's plain form, with the session in the URL."""
        await self.upgrade(place, f"/stub/connect?runtimeURL={quote(self.runtime, '')}")

    async def be_ours(self, place: tuple[str, int], token: str | None = None) -> None:
        """Connect by `/link`, and open a session, with a login token or without."""
        await self.upgrade(place, "/link", "Sec-WebSocket-Protocol: protofly.v1")
        params = {"runtimeURL": self.runtime} | ({"token": token} if token else {})
        body = {"method": "open", "params": params}
        await self.ask("execute", f"{self.runtime}/protostub/1", f"{NODE}/session", body)

    async def ask(self, kind: str, from_: str, to: str, body: object) -> dict:
        """Send a request, and return the body of its answer.

        Raises:
            BenchError: It was refused.
        """
        await self.send(message(_ID, kind, from_, to, body))
        while True:
            for line in (await self.receive()).split(b"\n"):
                answer = orjson.loads(line)
                if answer["type"] == "response" and answer["id"] == _ID:
                    if answer["body"]["code"] != HTTPStatus.OK:
                        raise BenchError(f"{kind} to {to}: {answer['body']}")
                    return answer["body"]

    async def allocate(self, scheme: str = "hyperty", count: int = 1) -> list[str]:
        """Let the node allocate addresses; in plain form this also begins the session."""
        body = {"scheme": scheme, "value": {"number": count}}
        answer = await self.ask("create", f"{self.runtime}/ua", ALLOCATION, body)
        return answer["value"]["allocated"]

    async def subscribe(self, url: str) -> None:
        """Subscribe to the changes of a public object."""
        body = {"resources": [f"{url}/changes"]}
        await self.ask("subscribe", f"{self.runtime}/sm", f"{NODE}/sm", body)

    async def send(self, text: bytes) -> None:
        """Send a text as one frame."""
        await self.write(framed(text))

    async def write(self, data: bytes) -> None:
        """Write bytes to the socket without encoding."""
        while data:
            data = data[await self.socket.send(data) :]

    async def receive(self) -> bytes:
        """Return the next message; pings are answered.

        Raises:
            BenchError: There is none any more.
        """
        while True:
            while (frame := take_frame(self.buffer)) is None:
                await self._read()
            opcode, text = frame
            if opcode == _CLOSE:
                raise BenchError(f"closed with {text!r}")
            if opcode == _PING:
                await self.write(framed(text, _PONG))
            elif (pong := pong_to(text)) is not None:
                await self.send(pong)
            elif opcode != _PONG:
                return text

    async def stay(self) -> None:
        """Read and discard all messages until the connection ends."""
        with suppress(BenchError, OSError):
            while True:
                await self.receive()

    async def _read(self) -> None:
        try:
            data = await self.socket.recv(_READ)
        except OSError as exc:
            raise BenchError(str(exc)) from exc
        if not data:
            raise BenchError("the connection has ended")
        self.buffer += data

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self.socket.close()


class Sockets:
    """Connections of many clients, which one poll reads and writes, without a task for each."""

    def __init__(self, peers: Sequence[Peer]) -> None:
        self._poll = select.epoll()
        self._ends: dict[int, tuple[socket.socket, bytearray]] = {}
        self._numbers: dict[Peer, int] = {}
        for peer in peers:
            end = socket.socket(fileno=os.dup(peer.socket.fileno()))
            end.settimeout(_PATIENCE)
            self._ends[end.fileno()] = end, peer.buffer
            self._numbers[peer] = end.fileno()
            self._poll.register(end, select.EPOLLIN)

    def close(self) -> None:
        """Stop polling; the connections stay open."""
        for end, _ in self._ends.values():
            end.close()
        self._poll.close()

    def send(self, peer: Peer, data: bytes) -> None:
        """Write frames."""
        self._ends[self._numbers[peer]][0].sendall(data)

    def receive(self) -> Iterator[tuple[int, bytes]]:
        """Wait for messages; yield each with the number of its connection. Pings are answered."""
        ready = self._poll.poll(_PATIENCE)
        if not ready:
            raise BenchError("nothing has come")
        for number, _ in ready:
            end, buffer = self._ends[number]
            data = end.recv(_READ)
            if not data:
                raise BenchError("a connection has ended")
            buffer += data
            while (frame := take_frame(buffer)) is not None:
                opcode, text = frame
                if opcode == _PING:
                    end.sendall(framed(text, _PONG))
                elif opcode == _TEXT:
                    for line in text.split(b"\n"):
                        pong = pong_to(line)
                        if pong is None:
                            yield number, line
                        else:
                            end.sendall(framed(pong))

    async def stay(self) -> None:
        """Read and discard messages, and answer pings, until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._poll.fileno())
            deque(self.receive(), maxlen=0)

    def flow(self, frames: Iterable[tuple[Peer, bytes, int]], window: int = 64) -> None:
        """Send frames until all their messages have arrived, with a limited number in transit.

        Args:
            frames: Sender, bytes, and number of messages of each frame.
            window: Maximum number of messages in transit.
        """
        under_way = 0
        for peer, data, count in frames:
            while under_way + count > window:
                under_way -= sum(1 for _ in self.receive())
            self.send(peer, data)
            under_way += count
        while under_way > 0:
            under_way -= sum(1 for _ in self.receive())

    def await_all(self, mark: bytes) -> float:
        """Wait until each connection has received a message with a mark; return the time."""
        waiting = set(self._ends)
        while waiting:
            waiting.difference_update(number for number, line in self.receive() if mark in line)
        return time.perf_counter()


@contextmanager
def polled(peers: Sequence[Peer]) -> Iterator[Sockets]:
    """Provide `Sockets` for the connections of clients while the context is open."""
    sockets = Sockets(peers)
    try:
        yield sockets
    finally:
        sockets.close()
