"""A whole network inside one process, under whatever clock runs."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from specs.limits.protocol import DIAL_TIMEOUT, LINK_BACKLOG
from transports.errors import DialError, LinkClosedError, ListenError
from transports.gate import EVERYBODY, Gate
from transports.link import PROTOFLY_V1, Kind, Link, Listener, Upgrade
from transports.memory_link import MemoryLink, Pattern, Wire
from transports.network import DEFAULT_DOORS, Doors, Network
from transports.urls import join_host_port, read_host_port, read_target, read_websocket_url

__all__ = ["MemoryNetwork"]

_FIRST_PORT: Final = 40_000
"""Where ports begin that are picked for port 0."""


@final
class _MemoryListener(Listener):
    """A bounded queue of links that were dialled."""

    __slots__ = ("_arrivals", "arrive", "doors")

    def __init__(self, address: str, doors: Doors) -> None:
        super().__init__(address)
        self.doors: Final = doors
        self.arrive, self._arrivals = trio.open_memory_channel[MemoryLink](LINK_BACKLOG)

    @override
    async def accept(self) -> Link:
        try:
            return await self._arrivals.receive()
        except (trio.ClosedResourceError, trio.EndOfChannel) as exc:
            raise LinkClosedError(self.address) from exc

    def close(self) -> None:
        """Refuse whoever comes, and who came and was not accepted."""
        self.arrive.close()
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._arrivals.receive_nowait().drop()
        self._arrivals.close()


@attrs.frozen
class _Weather:
    """How links to one address behave."""

    outward: Pattern
    back: Pattern


@final
class MemoryNetwork(Network):
    """Keeps the contract of real sockets without one, and breaks on demand.

    Attributes:
        wires: Every link ever dialled, in order, to inspect and to cut.
    """

    def __init__(self) -> None:
        self.wires: Final[list[Wire]] = []
        self._listeners: Final[dict[tuple[Kind, str], _MemoryListener]] = {}
        self._refused: Final[set[str]] = set()
        self._weather: Final[dict[str, _Weather]] = {}
        self._ports: Final = itertools.count(_FIRST_PORT)

    # -- faults ---------------------------------------------------------------

    def refuse(self, address: str) -> None:
        """Let dials to a listener's address fail from now on."""
        self._refused.add(address)

    def allow(self, address: str) -> None:
        """Take `refuse` back."""
        self._refused.discard(address)

    def disturb(self, address: str, outward: Pattern, back: Pattern) -> None:
        """Let links dialled to a listener's address from now on lose, double or delay frames.

        Args:
            address: The listener's address.
            outward: Becomes of frames from the dialler.
            back: Becomes of frames to the dialler.
        """
        self._weather[address] = _Weather(outward, back)

    def cut(self, link: Link) -> None:
        """Break a link abruptly, given either end: see `Wire.cut`."""
        for wire in self.wires:
            if link in {wire.dialler, wire.acceptor}:
                wire.cut()

    def open_wires(self, kind: Kind) -> list[Wire]:
        """Return the links of a kind that are open now, oldest first."""
        return [wire for wire in self.wires if wire.kind is kind and wire.is_open]

    # -- the contract ---------------------------------------------------------

    @override
    async def dial(
        self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1
    ) -> MemoryLink:
        await trio.lowlevel.checkpoint()
        listener, upgrade = self._find(kind, address, subprotocol)
        wire = Wire(kind, address, len(self.wires) + 1, upgrade)
        weather = self._weather.get(listener.address)
        if weather is not None:
            wire.dialler.pattern, wire.acceptor.pattern = weather.outward, weather.back
        with trio.move_on_after(DIAL_TIMEOUT) as patience:
            try:
                await listener.arrive.send(wire.acceptor)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
                raise DialError(address, "connection refused") from exc
        if patience.cancelled_caught:
            raise DialError(address, f"no answer within {DIAL_TIMEOUT:g} s")
        self.wires.append(wire)
        return wire.dialler

    def _find(
        self, kind: Kind, address: str, subprotocol: str | None
    ) -> tuple[_MemoryListener, Upgrade]:
        place, upgrade = address, Upgrade()
        if kind is Kind.WEBSOCKET:
            try:
                url = read_websocket_url(address)
                place, upgrade = url.server, read_target(url.target, subprotocol)
            except ValueError as exc:
                raise DialError(address, str(exc)) from exc
        listener = self._listeners.get((kind, place))
        if listener is None or place in self._refused:
            raise DialError(address, "connection refused")
        if kind is Kind.WEBSOCKET:
            upgrade = _admit(address, upgrade, listener.doors)
        return listener, upgrade

    @override
    @asynccontextmanager
    async def listen(
        self, kind: Kind, where: str, doors: Doors = DEFAULT_DOORS, gate: Gate = EVERYBODY
    ) -> AsyncIterator[Listener]:
        address = where if kind is Kind.UNIX else self._place(where)
        if kind is Kind.WEBSOCKET:
            address = f"ws://{address}"
        if (kind, address) in self._listeners:
            raise ListenError(where, "it is taken")
        listener = _MemoryListener(address, doors)
        self._listeners[kind, address] = listener
        try:
            await trio.lowlevel.checkpoint()
            yield listener
        finally:
            del self._listeners[kind, address]
            listener.close()

    def _place(self, where: str) -> str:
        try:
            host, port = read_host_port(where)
        except ValueError as exc:
            raise ListenError(where, str(exc)) from exc
        return join_host_port(host, port or next(self._ports))


def _admit(address: str, upgrade: Upgrade, doors: Doors) -> Upgrade:
    if upgrade.path not in doors:
        raise DialError(address, "refused with HTTP 404")
    wanted = doors[upgrade.path]
    if wanted is not None and upgrade.subprotocol != wanted:
        raise DialError(address, "refused with HTTP 400")
    return attrs.evolve(upgrade, subprotocol=wanted)
