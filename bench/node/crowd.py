"""Many light peers of one node process: raw sockets, frames by hand, nothing more than needed.

A mask of zeros is a valid mask and leaves the text as it is, so that thousands of peers
take little of the machine that the node is to be measured on.
"""

import os
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, final
from urllib.parse import quote

import attrs
import orjson
import trio

DOMAIN: Final = "a.example"
UNLIMITED: Final = (
    "--message-rate", "none", "--handshake-rate", "none", "--max-unauthenticated", "none",
    "--max-unauthenticated-per-host", "none",
)  # fmt: skip
"""Options of a node whose peers all sit on one machine, and hurry."""

_MASK: Final = bytes(4)
_LAST: Final = 0x80
_MASKED: Final = 0x80
_TWO_BYTES: Final = 126
_SHORT_HEAD: Final = 2
_HEADS: Final = {_TWO_BYTES: 4, 127: 10}
"""Bytes of a head by what stands where the length would; else `_SHORT_HEAD`."""

_PING, _PONG, _CLOSE = 9, 10, 8
_SCHEDULED: Final = 2
"""The clock of all threads of a process, beside its number (`clock_getcpuclockid(3)`)."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class CrowdError(Exception):
    """The run was not as it was to be measured."""


def raise_file_limit() -> None:
    """Let this process, and what it starts, have as many sockets as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def processor_time(pid: int) -> float:
    """Return the seconds of CPU that a process has taken so far, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | _SCHEDULED)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@final
@attrs.define
class Crowded:
    """A node process.

    Attributes:
        site: Where it serves HTTP; empty: nowhere.
        complaints: Lines of its log, each with the time at which it came.
        children: Its processes, each a node (`--processes`); empty: it is the node itself.
    """

    process: trio.Process
    place: tuple[str, int]
    site: str = ""
    complaints: list[tuple[float, str]] = attrs.field(factory=list)
    children: tuple[int, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """The processes that are nodes."""
        return self.children or (self.process.pid,)

    def memory(self) -> int:
        """Return the bytes of memory that the nodes have."""
        sizes = (Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in self.nodes)
        return sum(map(int, sizes)) * _PAGE

    def cpu(self) -> float:
        """Return the seconds of CPU that the nodes have taken so far."""
        return sum(map(processor_time, self.nodes))

    def waited(self) -> float:
        """Return the seconds in which it would have run, but others had the processors."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9

    async def listen(self) -> None:
        """Keep what it says on stderr."""
        rest = b""
        if self.process.stderr is None:
            return
        async for data in self.process.stderr:
            *lines, rest = (rest + bytes(data)).split(b"\n")
            self.complaints += [(time.perf_counter(), line.decode()) for line in lines]


@asynccontextmanager
async def quiet_node(*options: str, code: Path | None = None) -> AsyncIterator[Crowded]:
    """Run a node that serves all wire forms.

    Args:
        options: Options of the command.
        code: The folder of another version of the project; None: this one.
    """
    command = (sys.executable, "-m", "actors", "node", "--domain", DOMAIN, "--allow-legacy")
    process = await trio.lowlevel.open_process(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=code,
        env=os.environ if code is None else os.environ | {"PYTHONPATH": str(code)},
    )
    try:
        line = b""
        while process.stdout is not None and not line.endswith(b"\n"):
            piece = await process.stdout.receive_some()
            if not piece:
                raise CrowdError("the node ended before it was ready")
            line += piece
        ready = orjson.loads(line)
        host, port = ready["url"].removeprefix("ws://").partition("/")[0].split(":")
        node = Crowded(process, (host, int(port)), ready.get("http_url") or "")
        node.children = tuple(one["pid"] for one in ready.get("processes", ()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.listen)
            yield node
            nursery.cancel_scope.cancel()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


@final
class Peer:
    """One connection.

    Args:
        name: Name of its runtime.
        source: Address of this machine that it comes from.
        receive_bytes: What the system may receive before it is read; None: as usual.
    """

    def __init__(
        self, name: str, source: str = "127.0.0.1", receive_bytes: int | None = None
    ) -> None:
        self.runtime = f"hyperty-runtime://{DOMAIN}/{name}"
        self.closed_by: bytes | None = None
        self.token: str | None = None
        self._socket = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._source = source
        self._buffer = bytearray()
        if receive_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)

    async def connect(self, place: tuple[str, int]) -> None:
        """Open the TCP connection."""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self._socket.bind((self._source, 0))
        await self._socket.connect(place)

    async def knock(self, target: str, *headers: str, end: str = "") -> None:
        """Ask for a WebSocket; the request has no end but what is given."""
        lines = (
            f"GET {target} HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", *headers,
        )  # fmt: skip
        await self.write("\r\n".join((*lines, end)).encode())

    async def upgrade(self, target: str, *headers: str) -> None:
        """Do the handshake.

        Raises:
            CrowdError: It was refused.
        """
        await self.knock(target, *headers, end="\r\n")
        while b"\r\n\r\n" not in self._buffer:
            await self._read()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise CrowdError(head.partition(b"\r\n")[0].decode())
        self._buffer = bytearray(rest)

    async def be_plain(self, place: tuple[str, int]) -> None:
        """Come as upstream's plain stub: the session is in the URL."""
        await self.connect(place)
        await self.upgrade(f"/stub/connect?runtimeURL={quote(self.runtime, '')}")

    async def be_ours(self, place: tuple[str, int]) -> None:
        """Come by `/link` and open a session, or the one that `token` is of.

        Raises:
            CrowdError: It was refused.
        """
        await self.connect(place)
        await self.upgrade("/link", "Sec-WebSocket-Protocol: protofly.v1")
        opening = {
            "id": 1, "type": "execute", "from": f"{self.runtime}/protostub/1",
            "to": f"domain://msg-node.{DOMAIN}/session",
            "body": {"method": "open", "params": {"runtimeURL": self.runtime}},
        }  # fmt: skip
        if self.token is not None:
            params = {"runtimeURL": self.runtime, "token": self.token}
            opening["body"] = {"method": "re-open", "params": params}
        await self.send(orjson.dumps(opening))
        answer = orjson.loads(await self.receive())
        if answer["body"]["code"] != HTTPStatus.OK:
            raise CrowdError(f"no session: {answer['body']}")
        self.token = answer["body"]["value"]["sessionToken"]

    async def send(self, text: bytes, opcode: int = 1) -> None:
        """Send a frame."""
        await self.write(self.framed(text, opcode))

    @staticmethod
    def framed(text: bytes, opcode: int = 1) -> bytes:
        """Return a frame as it is written."""
        size = len(text)
        if size < _TWO_BYTES:
            head = struct.pack("!BB", _LAST | opcode, _MASKED | size)
        else:
            head = struct.pack("!BBH", _LAST | opcode, _MASKED | _TWO_BYTES, size)
        return head + _MASK + text

    def plain_socket(self) -> socket.socket:
        """Return another handle on the connection, which blocks: without tasks."""
        plain = socket.socket(fileno=os.dup(self._socket.fileno()))
        plain.setblocking(True)  # noqa: FBT003 - the standard library's own way
        return plain

    async def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        while data:
            data = data[await self._socket.send(data) :]

    async def receive(self) -> bytes:
        """Return the next message; pings are answered.

        Raises:
            CrowdError: There is none any more.
        """
        while True:
            opcode, text = await self._frame()
            if opcode == _PING:
                await self.send(text, _PONG)
            elif opcode == _CLOSE:
                self.closed_by = text
                raise CrowdError(f"closed with {text!r}")
            elif opcode != _PONG:
                return text

    async def _frame(self) -> tuple[int, bytes]:
        while (frame := _take_frame(self._buffer)) is None:
            await self._read()
        return frame

    async def _read(self) -> None:
        self._buffer += await self.read_bytes()

    async def read_bytes(self) -> bytes:
        """Read bytes as they are.

        Raises:
            CrowdError: There are none any more.
        """
        try:
            data = await self._socket.recv(65_536)
        except OSError as exc:
            raise CrowdError(str(exc)) from exc
        if not data:
            raise CrowdError("hung up on")
        return data

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self._socket.close()


def _take_frame(buffer: bytearray) -> tuple[int, bytes] | None:
    """Take the first frame out of what a server sent; None: it is not all there."""
    if len(buffer) < _SHORT_HEAD:
        return None
    start = _HEADS.get(buffer[1], _SHORT_HEAD)
    if len(buffer) < start:
        return None
    size = buffer[1] if start == _SHORT_HEAD else int.from_bytes(buffer[2:start], "big")
    if len(buffer) < start + size:
        return None
    frame = buffer[0] & 0x0F, bytes(buffer[start : start + size])
    del buffer[: start + size]
    return frame
