"""Pairs of linked ends over every transport, for tests of what they all keep."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import attrs
import trio

from actors.testing.chaos.network import ChaosNetwork
from tests.support.runtime.channels import HOST, Channels, open_shared_network
from tests.support.wire.certificates import Certificates
from transports.errors import LinkError
from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    FRAMED,
    PROTOFLY_V1,
    Everybody,
    Kind,
    Link,
    Network,
)
from transports.memory import MemoryNetwork
from transports.sockets import open_background
from transports.system import open_system_network
from transports.webrtc.extra import is_webrtc_installed

PATH = "/link?name=alice%20b"
"""Path and query every test dials where there are any."""


@attrs.frozen
class Place:
    """A network, and somewhere to listen on it."""

    network: Network
    kind: Kind
    where: str

    def dialled(self, listening: str) -> str:
        """Return what to dial to reach a listener's address."""
        return listening + PATH if self.kind is Kind.WEBSOCKET else listening


@attrs.frozen
class Pair:
    """Both ends of one link."""

    dialler: Link
    acceptor: Link

    def ends(self, sender: str) -> tuple[Link, Link]:
        """Return the sending and the receiving end."""
        ends = (self.dialler, self.acceptor)
        return ends if sender == "dialler" else ends[::-1]


def place_on(network: Network, kind: Kind, directory: Path) -> Place:
    return Place(network, kind, str(directory / "s") if kind is Kind.UNIX else "127.0.0.1:0")


@asynccontextmanager
async def open_place(name: str, directory: Path) -> AsyncIterator[Place]:
    """Open the network a parameter such as `memory-tcp` or `system-unix` names."""
    family, _, kind = name.partition("-")
    if kind == Kind.WEBRTC:
        opening = open_shared_network if family == "system" else in_memory
        async with opening() as network, open_background() as nursery:
            channels = Channels(_exposed(family, network), nursery)
            yield Place(channels, Kind.WEBRTC, HOST)
        return
    if family in {"memory", "chaos_memory"}:
        yield place_on(_exposed(family, MemoryNetwork()), Kind(kind), directory)
        return
    certificates = Certificates(directory) if family == "tls" else None
    tls = None if certificates is None else certificates.dialler
    async with open_system_network(tls) as system:
        network = system if certificates is None else Encrypted(system, certificates)
        yield place_on(_exposed(family, network), Kind(kind), directory)


@asynccontextmanager
async def in_memory() -> AsyncIterator[MemoryNetwork]:
    yield MemoryNetwork()


def _exposed(family: str, network: Network) -> Network:
    """Return a network as it is, or as a party of one has it in which nothing is wrong."""
    if not family.startswith("chaos"):
        return network
    return ChaosNetwork(network, Random(1)).end("all")  # noqa: S311 - chance, no secret


@asynccontextmanager
async def leaving_together(*links: Link) -> AsyncIterator[None]:
    """Close links at once, so that none waits in vain for the goodbye of another."""
    try:
        yield
    finally:
        async with trio.open_nursery() as nursery:
            for link in links:
                nursery.start_soon(link.aclose)


@asynccontextmanager
async def open_pair(place: Place) -> AsyncIterator[Pair]:
    async with place.network.listen(place.kind, place.where) as listener:
        dialler = await place.network.dial(place.kind, place.dialled(listener.address))
        acceptor = await listener.accept()
        async with leaving_together(dialler, acceptor):
            yield Pair(dialler, acceptor)


async def drain(link: Link) -> list[bytes]:
    """Receive until the link ends, then close it; return what came."""
    came: list[bytes] = []
    try:
        while True:
            came.append(await link.receive())
    except LinkError:
        await link.aclose()
        return came


class Encrypted(Network):
    """The network of the system, whose WebSocket listeners speak TLS."""

    def __init__(self, network: Network, certificates: Certificates) -> None:
        self._network = network
        self._certificates = certificates

    async def dial(self, kind, address, subprotocol=PROTOFLY_V1, tls=None):
        return await self._network.dial(kind, address, subprotocol, tls)

    def listen(self, kind, where, paths=DEFAULT_PATHS, gate=EVERYBODY):
        terms = Everybody() if gate is EVERYBODY else gate
        terms.tls = self._certificates.listener
        return self._network.listen(kind, where, paths, terms)


FAMILIES = ("memory", "system", "chaos_memory", "chaos_system")

PLACES = [*(f"{family}-{kind}" for family in FAMILIES for kind in FRAMED), "tls-websocket"]
"""Every transport that is dialled, by the names `open_place` understands."""

CHANNELS = ["memory-webrtc", "chaos_memory-webrtc"]
"""Data channels, which are negotiated."""
if is_webrtc_installed():
    CHANNELS.append("system-webrtc")
