"""A network whose P2P listeners can move for good, and whose links can break at one end only."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio
from typing_extensions import override

from transports.errors import CloseReason, DialError, LinkBrokenError, LinkError
from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    PROTOFLY_V1,
    Gate,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
)
from transports.memory import MemoryNetwork

P2P_DOOR = "/p2p"


class Line(Link):
    """A link that may be cut; one that is deaf never tells that it is gone."""

    def __init__(self, link: Link) -> None:
        super().__init__(link.kind, link.name, link.upgrade)
        self.is_deaf = False
        self._link = link
        self._is_cut = False

    @property
    @override
    def peer_certificate(self) -> bytes | None:
        return self._link.peer_certificate

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        try:
            await self._link.send_many(frames)
        except LinkError:
            if self.is_deaf:
                return
            raise self._seen() from None

    @override
    async def receive(self) -> bytes:
        try:
            return await self._link.receive()
        except LinkError:
            if self.is_deaf:
                await trio.sleep_forever()
            raise self._seen() from None

    def _seen(self) -> LinkBrokenError:
        return LinkBrokenError(self.name, "cut" if self._is_cut else "gone")

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        await self._link.aclose(close_reason)

    async def cut(self) -> None:
        self._is_cut = True
        await trio.aclose_forcefully(self._link)


class _Listener(Listener):
    def __init__(self, listener: Listener, lines: list[Line]) -> None:
        super().__init__(listener.address)
        self._listener = listener
        self._lines = lines

    @override
    async def accept(self) -> Link:
        line = Line(await self._listener.accept())
        self._lines.append(line)
        return line


class MovingNetwork(Network):
    """Another network, the P2P listeners of which can be found where they were no more.

    Attributes:
        dialled: Ends of P2P links that were dialled, in order.
        accepted: Those that were accepted.
        places: Where P2P links were ever listened for, in order.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._lost: set[str] = set()
        self.dialled: list[Line] = []
        self.accepted: list[Line] = []
        self.places: list[str] = []

    def move(self) -> None:
        """Let nobody reach any place again where P2P links are listened for now."""
        self._lost |= set(self.places)

    async def cut(self) -> None:
        """Break every P2P link."""
        for line in [*self.dialled, *self.accepted]:
            await line.cut()

    @override
    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        place = address.removesuffix(P2P_DOOR)
        if place in self._lost:
            raise DialError(address, "nobody is there any more")
        link = await self._network.dial(kind, address, subprotocol, tls)
        if place not in self.places:
            return link
        line = Line(link)
        self.dialled.append(line)
        return line

    @override
    @asynccontextmanager
    async def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AsyncIterator[Listener]:
        async with self._network.listen(kind, where, paths, gate) as listener:
            if P2P_DOOR not in paths:
                yield listener
                return
            self.places.append(listener.address)
            yield _Listener(listener, self.accepted)


@asynccontextmanager
async def moving_in_memory() -> AsyncIterator[MovingNetwork]:
    await trio.lowlevel.checkpoint()
    yield MovingNetwork(MemoryNetwork())
