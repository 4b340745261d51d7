"""The network of a scenario, in memory: the wires between processes, and their faults."""

import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import trio
from typing_extensions import override

from transports import link as links
from transports.errors import DialError
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
        self.memory: Final = MemoryNetwork()
        self.held: Final[list[tuple[Wire, frozenset[str]]]] = []
        self.places: Final[dict[str, str]] = {}
        self.gone: Final[set[str]] = set()
        self.silent: Final[set[frozenset[str]]] = set()
        self.out: Final[dict[frozenset[str], float]] = {}

    def view(self, who: str) -> links.Network:
        """Return the network as one process has it."""
        return _View(self, who)

    def cut(self, one: str, other: str) -> bool:
        """Break the open wires between two, abruptly; return whether there were any.

        For a moment neither reaches the other: an end that dials again at once fails once.
        """
        self.out[frozenset({one, other})] = trio.current_time() + _OUTAGE
        wires = list(self._open(one, other))
        for wire in wires:
            wire.cut()
        return bool(wires)

    def silence(self, one: str, other: str) -> None:
        """Let nothing pass any more between two."""
        self.silent.add(frozenset({one, other}))
        for wire in self._open(one, other):
            _silence(wire)

    def lose(self, who: str) -> None:
        """Take a process off the network: its wires break, it reaches no other process."""
        self.gone.add(who)
        for wire, ends in self.held:
            if who in ends and wire.is_open:
                wire.cut()

    def wire(self, one: str, other: str) -> Wire | None:
        """Return the open wire between two, of several the youngest."""
        return next(iter(reversed(list(self._open(one, other)))), None)

    def _open(self, one: str, other: str) -> Iterator[Wire]:
        yield from (wire for wire, ends in self.held if wire.is_open and ends == {one, other})


class _View(links.Network):
    """The network as one process has it."""

    def __init__(self, shared: ScenarioNetwork, who: str) -> None:
        self._shared = shared
        self._who = who

    @override
    async def dial(
        self,
        kind: links.Kind,
        address: str,
        subprotocol: str | None = links.PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> links.Link:
        shared, who, now = self._shared, self._who, trio.current_time()
        there = next((at for place, at in shared.places.items() if address.startswith(place)), "")
        ends = frozenset({who, there})
        if shared.gone & ends or now < shared.out.get(ends, -math.inf):
            raise DialError(address, "the network is unreachable")
        link = await shared.memory.dial(kind, address, subprotocol, tls)
        wire = next(wire for wire in reversed(shared.memory.wires) if wire.dialler is link)
        self._carry(wire.dialler, who, there)
        self._carry(wire.acceptor, there, who)
        shared.held.append((wire, ends))
        if ends in shared.silent:
            _silence(wire)
        return link

    def _carry(self, end: MemoryLink, sender: str, receiver: str) -> None:
        """Carry all that one end of a wire sends from now on, frame by frame."""
        end.sieve = lambda frame: self._shared.disturb(sender, receiver, frame)
        end.pattern = lambda _number, _frame: (_LATENCY,)

    @override
    @asynccontextmanager
    async def listen(
        self,
        kind: links.Kind,
        where: str,
        paths: links.ServedPaths = links.DEFAULT_PATHS,
        gate: links.Gate = links.EVERYBODY,
    ) -> AsyncIterator[links.Listener]:
        if kind is not links.Kind.WEBSOCKET:
            await trio.sleep(_GATHERING)
        async with self._shared.memory.listen(kind, where, paths, gate) as listener:
            self._shared.places[listener.address] = self._who
            try:
                yield listener
            finally:
                self._shared.places.pop(listener.address, None)


def _silence(wire: Wire) -> None:
    wire.dialler.pattern = wire.acceptor.pattern = lambda _number, _frame: ()
