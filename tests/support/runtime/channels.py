"""Data channels between two ends of one process, as links that are dialled and accepted."""

import atexit
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from itertools import count

import trio

from actors.keys.certificate import make_channel_certificate
from transports.errors import DialError, LinkClosedError, ListenError
from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    PROTOFLY_V1,
    ChannelEnd,
    ChannelTerms,
    Link,
    Listener,
    Network,
)
from transports.system import SystemNetwork, open_system_network
from transports.webrtc.process import _MAIN, _ROOT

CERTIFICATE = make_channel_certificate()
HOST = "127.0.0.1"


@lru_cache(maxsize=1)
def _process() -> socket.socket:
    """Start a process of WebRTC that all tests of this process share; it ends with this one."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
    main = _MAIN.replace("; main()", "; print(flush=True); main()")
    command = [sys.executable, "-I", "-c", main, str(_ROOT)]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE)  # noqa: S603 - ours
    theirs.close()
    with process.stdout:
        process.stdout.readline()  # its modules are there: on a busy machine that takes long

    def end():
        ours.close()
        process.kill()
        process.wait()

    atexit.register(end)
    return ours


@contextmanager
def shared_process(network: SystemNetwork) -> Iterator[None]:
    """Let a network use the shared process: to start one takes longer than most tests."""
    with _process().dup() as control:
        network._webrtc._control = control
        yield


@asynccontextmanager
async def open_shared_network() -> AsyncIterator[SystemNetwork]:
    """Open the network of the system with the shared process of WebRTC."""
    async with open_system_network() as network:
        with shared_process(network):
            yield network


async def pass_on(source: ChannelEnd, target: ChannelEnd) -> None:
    """Give each candidate of one end to the other one."""
    async for candidate in source.candidates:
        await target.hear(candidate)


@asynccontextmanager
async def open_ends(network: Network, **terms) -> AsyncIterator[tuple[ChannelEnd, ChannelEnd]]:
    """Negotiate a data channel: the end that offers, and the one that answers."""
    offering = ChannelTerms(CERTIFICATE, HOST, **terms)
    async with network.negotiate(offering) as one, trio.open_nursery() as nursery:
        answering = ChannelTerms(CERTIFICATE, HOST, one.sdp, **terms)
        async with network.negotiate(answering) as other:
            await one.answered(other.sdp)
            nursery.start_soon(pass_on, one, other)
            nursery.start_soon(pass_on, other, one)
            yield one, other
        nursery.cancel_scope.cancel()


class _Listener(Listener):
    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.arrived, self._came = trio.open_memory_channel[Link](16)
        self.is_closed = False

    async def accept(self) -> Link:
        try:
            return await self._came.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
            raise LinkClosedError(self.address) from exc


class Channels(Network):
    """A network whose data channels are negotiated by the way, while a nursery is open."""

    is_system = True

    def __init__(self, network: Network, nursery: trio.Nursery) -> None:
        self._network = network
        self._nursery = nursery
        self._listeners: dict[str, _Listener] = {}
        self._numbers = count(1)

    async def dial(self, kind, address, subprotocol=PROTOFLY_V1, tls=None):
        listener = self._listeners.get(address)
        if listener is None:
            raise DialError(address, "cannot connect")
        return await self._nursery.start(self._open, listener)

    async def _open(self, listener, task_status):
        async with open_ends(self._network) as (one, other):
            link = await one.opened()
            await listener.arrived.send(await other.opened())
            task_status.started(link)
            await trio.sleep_forever()

    @asynccontextmanager
    async def listen(self, kind, where, paths=DEFAULT_PATHS, gate=EVERYBODY):
        address = where if where != HOST else f"channel-{next(self._numbers)}"
        if address in self._listeners:
            raise ListenError(where, "it is taken")
        listener = self._listeners[address] = _Listener(address)
        try:
            yield listener
        finally:
            del self._listeners[address]
            await listener.arrived.aclose()
