"""The network as a process has it that can die: then nothing leaves it and nothing enters."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from transports.errors import DialError
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


class MortalNetwork(Network):
    """Another network, until `is_dead` is set; who sets it cuts the links that are open."""

    def __init__(self, network: Network) -> None:
        self.is_dead = False
        self._network = network

    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        if self.is_dead:
            await trio.lowlevel.checkpoint()
            raise DialError(address, "this process is dead")
        link = await self._network.dial(kind, address, subprotocol, tls)
        await self._bury(link)
        return link

    async def _bury(self, link: Link) -> None:
        if self.is_dead:
            await trio.aclose_forcefully(link)
            raise DialError(link.name, "this process is dead")

    @asynccontextmanager
    async def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AsyncIterator[Listener]:
        async with self._network.listen(kind, where, paths, gate) as listener:
            yield _MortalListener(listener, self)


class _MortalListener(Listener):
    def __init__(self, listener: Listener, network: MortalNetwork) -> None:
        super().__init__(listener.address)
        self._listener = listener
        self._network = network

    async def accept(self) -> Link:
        link = await self._listener.accept()
        while self._network.is_dead:
            await trio.aclose_forcefully(link)
            link = await self._listener.accept()
        return link
