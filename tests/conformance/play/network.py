"""The network of a scenario, in memory: the wires between processes, and their faults."""

import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import trio
from typing_extensions import override

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
from transports.memory import MemoryLink, MemoryNetwork, Wire

_LATENCY: Final = 0.01
"""Seconds a frame takes: what goes on inside a process is done before its peers hear of it."""

_GATHERING: Final = 0.2
"""Seconds until a runtime knows where it can be dialled for a link: long enough for the peer to
observe its object first, so that candidates come as changes of it."""

_OUTAGE: Final = 0.1
"""Seconds for which two whose link broke cannot dial each other."""


class ScenarioNetwork:
    """One network for all processes of a scenario; what breaks it names the ends of a link.

    Attributes:
        disturb: Returns what is left of a frame from one process to another; None: it is lost.
    """

    def __init__(self) -> None:
        self.disturb: Callable[[str, str, bytes], bytes | None] = lambda _one, _other, frame: frame
        self._network: Final = MemoryNetwork()
        self._held: Final[list[tuple[Wire, frozenset[str]]]] = []
        self._places: Final[dict[str, str]] = {}
        self._gone: Final[set[str]] = set()
        self._silent: Final[set[frozenset[str]]] = set()
        self._out: Final[dict[frozenset[str], float]] = {}

    def view(self, who: str) -> Network:
        """Return the network as one process has it."""
        return _View(self, who)

    def cut(self, one: str, other: str) -> bool:
        """Break the open wires between two, abruptly; return whether there were any.

        For a moment neither reaches the other: an end that dials again at once fails once.
        """
        self._out[frozenset({one, other})] = trio.current_time() + _OUTAGE
        wires = list(self._open(one, other))
        for wire in wires:
            wire.cut()
        return bool(wires)

    def silence(self, one: str, other: str) -> None:
        """Let nothing pass any more between two."""
        self._silent.add(frozenset({one, other}))
        for wire in self._open(one, other):
            _silence(wire)

    def lose(self, who: str) -> None:
        """Take a process off the network: its wires break, it reaches no other process."""
        self._gone.add(who)
        for wire, ends in self._held:
            if who in ends and wire.is_open:
                wire.cut()

    def wire(self, one: str, other: str) -> Wire | None:
        """Return the open wire between two, of several the youngest."""
        return next(iter(reversed(list(self._open(one, other)))), None)

    def _open(self, one: str, other: str) -> Iterator[Wire]:
        yield from (wire for wire, ends in self._held if wire.is_open and ends == {one, other})

    async def dial(
        self,
        who: str,
        kind: Kind,
        address: str,
        subprotocol: str | None,
        tls: ssl.SSLContext | None,
    ) -> Link:
        there = next((at for place, at in self._places.items() if address.startswith(place)), "")
        ends = frozenset({who, there})
        if self._gone & ends or trio.current_time() < self._out.get(ends, -math.inf):
            raise DialError(address, "the network is unreachable")
        link = await self._network.dial(kind, address, subprotocol, tls)
        wire = next(wire for wire in reversed(self._network.wires) if wire.dialler is link)
        self._carry(wire.dialler, who, there)
        self._carry(wire.acceptor, there, who)
        self._held.append((wire, ends))
        if ends in self._silent:
            _silence(wire)
        return link

    def _carry(self, end: MemoryLink, sender: str, receiver: str) -> None:
        """Carry all that one end of a wire sends from now on, frame by frame."""
        end.sieve = lambda frame: self.disturb(sender, receiver, frame)
        end.pattern = lambda _number, _frame: (_LATENCY,)

    @asynccontextmanager
    async def listen(
        self, who: str, kind: Kind, where: str, paths: ServedPaths, gate: Gate
    ) -> AsyncIterator[Listener]:
        if kind is not Kind.WEBSOCKET:
            await trio.sleep(_GATHERING)
        async with self._network.listen(kind, where, paths, gate) as listener:
            self._places[listener.address] = who
            try:
                yield listener
            finally:
                self._places.pop(listener.address, None)


class _View(Network):
    """The network as one process has it."""

    def __init__(self, network: ScenarioNetwork, who: str) -> None:
        self._network = network
        self._who = who

    @override
    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        return await self._network.dial(self._who, kind, address, subprotocol, tls)

    @override
    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._network.listen(self._who, kind, where, paths, gate)


def _silence(wire: Wire) -> None:
    wire.dialler.pattern = wire.acceptor.pattern = lambda _number, _frame: ()
