"""The network of a scenario, in memory: the wires between processes, and their faults."""

import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias, final

import attrs
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
"""Seconds a frame takes from one end of a wire to the other: what goes on inside a
process is done before its peers hear of it."""


_GATHERING: Final = 0.2
"""Seconds until a runtime knows where it can be dialled for a link: long enough for the
peer to observe its object first, so that candidates come as changes of it."""

_OUTAGE: Final = 0.1
"""Seconds for which two whose link broke cannot dial each other."""


@final
@attrs.frozen
class Carried:
    """The fate of a frame in the network.

    Attributes:
        frame: What is left of it, and added to it; None: it is lost.
        delay: Seconds by which it comes later than others.
    """

    frame: bytes | None
    delay: float = 0.0


Disturbance: TypeAlias = Callable[[str, str, bytes], Carried]
"""The fault that applies to a frame between two processes, given by address."""


@final
@attrs.frozen
class _Held:
    """A wire and its two ends.

    Attributes:
        dialler: The address of the runtime or peer that dialled.
        listener: The address of the node or runtime that was dialled.
    """

    wire: Wire
    dialler: str
    listener: str

    def is_between(self, one: str, other: str) -> bool:
        return {self.dialler, self.listener} == {one, other}


@final
class ScenarioNetwork:
    """One network for all processes of a scenario; each has a view of its own.

    All that can break it names the ends, never an address. Frames take their time.

    Attributes:
        disturbance: What the network makes of single frames.
    """

    def __init__(self) -> None:
        self.disturbance: Disturbance = _undisturbed
        self._network: Final = MemoryNetwork()
        self._held: Final[list[_Held]] = []
        self._places: Final[dict[str, str]] = {}
        self._gone: Final[set[str]] = set()
        self._silent: Final[set[frozenset[str]]] = set()
        self._out: Final[dict[frozenset[str], float]] = {}

    def view(self, who: str) -> Network:
        """Return the network as one process has it."""
        return _View(self, who)

    # ---- what breaks

    def cut(self, one: str, other: str) -> bool:
        """Break the open wires between two, abruptly; return whether there were any.

        For a moment neither reaches the other: an end that dials again at once fails once.

        Args:
            one: Name of one end.
            other: Name of the other end.
        """
        self._out[frozenset({one, other})] = trio.current_time() + _OUTAGE
        wires = list(self._open(one, other))
        for wire in wires:
            wire.cut()
        return bool(wires)

    def silence(self, pair: tuple[str, str]) -> None:
        """Let nothing pass any more between two that dial, or have dialled, each other."""
        self._silent.add(frozenset(pair))
        for wire in self._open(*pair):
            _silence(wire)

    def lose(self, who: str) -> None:
        """Take a process off the network: its wires break, it reaches no other process."""
        self._gone.add(who)
        for held in self._held:
            if who in {held.dialler, held.listener} and held.wire.is_open:
                held.wire.cut()

    def wire(self, one: str, other: str) -> Wire | None:
        """Return the open wire between two, of several the youngest.

        Args:
            one: Name of one end.
            other: Name of the other end.
        """
        return next(iter(reversed(list(self._open(one, other)))), None)

    def _open(self, one: str, other: str) -> Iterator[Wire]:
        for held in self._held:
            if held.wire.is_open and held.is_between(one, other):
                yield held.wire

    # ---- what the views do

    async def dial(
        self,
        who: str,
        kind: Kind,
        address: str,
        subprotocol: str | None,
        tls: ssl.SSLContext | None,
    ) -> Link:
        """Dial for a process.

        Args:
            who: Name of the process.
            kind: Kind of the transport.
            address: The address.
            subprotocol: WebSocket subprotocol; None: none.
            tls: What the connection is encrypted by; None: it is not.

        Raises:
            DialError: No listener, refused, or the process is off the network.
        """
        there = next((at for place, at in self._places.items() if address.startswith(place)), "")
        between = frozenset({who, there})
        if self._gone & between or trio.current_time() < self._out.get(between, -math.inf):
            raise DialError(address, "the network is unreachable")
        link = await self._network.dial(kind, address, subprotocol, tls)
        wire = next(wire for wire in reversed(self._network.wires) if wire.dialler is link)
        self._carry(wire.dialler, who, there)
        self._carry(wire.acceptor, there, who)
        self._held.append(_Held(wire, who, there))
        if between in self._silent:
            _silence(wire)
        return link

    def _carry(self, end: MemoryLink, sender: str, receiver: str) -> None:
        """Carry all that one end of a wire sends from now on, frame by frame."""
        delay = 0.0

        def sieve(frame: bytes) -> bytes | None:
            nonlocal delay
            carried = self.disturbance(sender, receiver, frame)
            delay = carried.delay
            return carried.frame

        def pattern(_number: int, _frame: bytes) -> tuple[float, ...]:
            return (_LATENCY + delay,)

        end.sieve, end.pattern = sieve, pattern

    @asynccontextmanager
    async def listen(
        self, who: str, kind: Kind, where: str, paths: ServedPaths, gate: Gate
    ) -> AsyncIterator[Listener]:
        """Listen for a process while the context is open.

        Args:
            who: Name of the process.
            kind: Kind of the transport.
            where: The place.
            paths: Served paths of the URL.
            gate: Admits connections.
        """
        if kind is not Kind.WEBSOCKET:
            await trio.sleep(_GATHERING)
        async with self._network.listen(kind, where, paths, gate) as listener:
            self._places[listener.address] = who
            try:
                yield listener
            finally:
                self._places.pop(listener.address, None)


@final
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


def _undisturbed(_sender: str, _receiver: str, frame: bytes) -> Carried:
    return Carried(frame)


def _silence(wire: Wire) -> None:
    wire.dialler.pattern = wire.acceptor.pattern = _nothing


def _nothing(_number: int, _frame: bytes) -> tuple[float, ...]:
    return ()
