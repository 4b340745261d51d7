"""Control of the WebRTC process of a network, which runs `aiortc`, from Trio tasks.

The process is started when it is first needed, and ends with its network. Each connection has two
socket pairs to the process. So backpressure, cancellation and closing work as for links over Unix
sockets; if the process dies, these links break.
"""

import itertools
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import orjson
import trio
from typing_extensions import override

from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.limits.webrtc import MAX_ICE_CANDIDATES, WEBRTC_PEERS, WEBRTC_START
from transports.errors import DialError, LinkError
from transports.link import ChannelEnd, ChannelTerms, Kind, Link, Upgrade
from transports.socket_link import StreamLink
from transports.sockets import open_background
from transports.webrtc.extra import NO_WEBRTC, is_webrtc_installed
from transports.webrtc.memory import write_terms

_ROOT: Final = Path(__file__).resolve().parents[2]
_MAIN: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from transports.webrtc.worker import main; main()"
)


def _wrap(end: socket.socket, kind: Kind, name: str) -> StreamLink:
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(end))
    return StreamLink((kind, name, Upgrade()), stream)


class _End(ChannelEnd):
    """One end of a data channel, which the WebRTC process negotiates."""

    def __init__(self, signalling: Link, frames: Link) -> None:
        self._signalling = signalling
        self._frames = frames
        self._found, candidates = trio.open_memory_channel[str](MAX_ICE_CANDIDATES)
        super().__init__(candidates)
        self._telling = trio.Lock()
        self._is_described = trio.Event()
        self._is_decided = trio.Event()
        self._is_open = False
        self._is_taken = False

    async def describe(self) -> None:
        """Wait until the WebRTC process has sent the session description of this end.

        Raises:
            DialError: The process does not answer, or has ended.
        """
        with trio.move_on_after(WEBRTC_START):
            await self._is_described.wait()
        if not self.sdp:
            raise DialError(Kind.WEBRTC, "the process of WebRTC does not answer")

    async def listen(self) -> None:
        """Process the messages of the WebRTC process about this end, until they end."""
        with self._found:
            with suppress(LinkError):
                while True:
                    self._take(await self._signalling.receive())
            self._is_described.set()
            self._is_decided.set()

    def _take(self, frame: bytes) -> None:
        match orjson.loads(frame):
            case {"sdp": str(sdp)}:
                self.sdp = sdp
                self._is_described.set()
            case {"ice": str(candidate)}:
                with suppress(trio.WouldBlock, trio.BrokenResourceError):
                    self._found.send_nowait(candidate)
                if not candidate:
                    self._found.close()
            case _:
                self._is_open = True
                self._is_decided.set()

    @override
    async def answered(self, sdp: str) -> None:
        await self._tell("answer", sdp)

    @override
    async def hear(self, candidate: str) -> None:
        await self._tell("ice", candidate)

    async def _tell(self, name: str, value: str) -> None:
        async with self._telling:
            with suppress(LinkError):  # `opened` reports it
                await self._signalling.send(orjson.dumps({name: value}))

    @override
    async def opened(self) -> Link:
        await self._is_decided.wait()
        if not self._is_open or self._is_taken:
            raise DialError(Kind.WEBRTC, "the data channel does not open")
        self._is_taken = True
        return self._frames


class WebRtcProcess:
    """Starts the WebRTC process when it is first needed, and opens data channels in it.

    Args:
        nursery: Runs the task that watches the process, and ends the process if cancelled.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery: Final = nursery
        self._numbers: Final = itertools.count(1)
        self._starting: Final = trio.Lock()
        self._control: socket.socket | None = None
        self._count = 0

    @asynccontextmanager
    async def negotiate(self, terms: ChannelTerms) -> AsyncIterator[ChannelEnd]:
        """Open one end of a data channel (see `Network.negotiate`).

        Raises:
            DialError: There is no WebRTC here, or the process fails.
        """
        if self._count >= WEBRTC_PEERS:
            raise DialError(Kind.WEBRTC, f"{WEBRTC_PEERS} connections are open")
        self._count += 1
        try:
            end, signalling, frames = await self._begin_end()
            try:
                async with open_background() as nursery:
                    nursery.start_soon(end.listen)
                    await signalling.send(write_terms(terms))
                    await end.describe()
                    yield end
            except LinkError as exc:
                if isinstance(exc, DialError):
                    raise
                raise DialError(Kind.WEBRTC, "the process of WebRTC has ended") from exc
            finally:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(signalling)
                    await trio.aclose_forcefully(frames)
        finally:
            self._count -= 1

    async def _begin_end(self) -> tuple[_End, Link, Link]:
        number = next(self._numbers)
        ours, theirs = zip(socket.socketpair(), socket.socketpair(), strict=True)
        try:
            await self._hand_over([their.fileno() for their in theirs])
        except BaseException:
            for our in ours:
                our.close()
            raise
        finally:
            for their in theirs:
                their.close()
        signalling = _wrap(ours[0], Kind.UNIX, f"{Kind.WEBRTC}-{number}-signalling")
        frames = _wrap(ours[1], Kind.WEBRTC, f"{Kind.WEBRTC}-{number}")
        return _End(signalling, frames), signalling, frames

    async def _hand_over(self, descriptors: list[int]) -> None:
        async with self._starting:
            # It may have died just now.
            for _ in range(2):
                control = self._control or await self._start_process()
                try:
                    socket.send_fds(control, [b"\n"], descriptors)
                except OSError:
                    self._control = None
                else:
                    return
        raise DialError(Kind.WEBRTC, "the process of WebRTC does not answer")

    async def _start_process(self) -> socket.socket:
        if not is_webrtc_installed():
            raise DialError(Kind.WEBRTC, NO_WEBRTC)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
        command = [sys.executable, "-I", "-c", _MAIN, str(_ROOT)]
        try:
            # It ends with its pipe, and not by a Ctrl-C that is meant for its parent.
            process = await trio.lowlevel.open_process(
                command, stdin=theirs, env={}, start_new_session=True
            )
        except OSError as exc:
            ours.close()
            raise DialError(Kind.WEBRTC, "the process of WebRTC cannot be started") from exc
        finally:
            theirs.close()
        self._control = ours
        self._nursery.start_soon(self._watch, process, ours)
        return ours

    async def _watch(self, process: trio.Process, control: socket.socket) -> None:
        """Wait until the process ends; if cancelled, end the process."""
        try:
            await process.wait()
        finally:
            control.close()
            if self._control is control:
                self._control = None
            with trio.CancelScope(shield=True):
                with trio.move_on_after(2 * GOODBYE_TIMEOUT):
                    await process.wait()
                process.kill()
                await process.wait()
