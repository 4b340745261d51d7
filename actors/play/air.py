"""The network of a scenario, in memory: whose wires are whose, and what becomes of them."""

import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.play.roles import Pair
from transports.errors import DialError
from transports.gate import EVERYBODY, Gate
from transports.link import PROTOFLY_V1, Kind, Link, Listener
from transports.memory import MemoryNetwork
from transports.memory_link import Wire
from transports.network import DEFAULT_DOORS, Doors, Network

__all__ = ["Air", "Toll"]

_LATENCY: Final = 0.01
"""Seconds a frame takes from one end of a wire to the other: what goes on inside a
process is done before its peers hear of it."""


_GATHERING: Final = 0.2
"""Seconds until a runtime knows where it can be dialled for a link: long enough for the
peer to observe its object first, so that candidates come as changes of it."""

_OUTAGE: Final = 0.1
"""Seconds for which two whose link broke cannot dial each other."""


Toll: TypeAlias = Callable[[str, str, bytes], bytes | None]
"""What is left of a frame on its way from one process to another, given by address; None:
nothing is."""


@final
@attrs.frozen
class _Held:
    """A wire and between whom it is.

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
class Air:
    """One network for all processes of a scenario; each has a view of its own.

    All that can break it does so by whom, never by address. Frames take their time.

    Attributes:
        toll: What the network keeps of a frame, or adds to it.
    """

    def __init__(self) -> None:
        self.toll: Toll = _free
        self._network: Final = MemoryNetwork()
        self._held: Final[list[_Held]] = []
        self._places: Final[dict[str, str]] = {}
        self._gone: Final[set[str]] = set()
        self._mute: Final[set[frozenset[str]]] = set()
        self._out: Final[dict[frozenset[str], float]] = {}

    def view(self, who: str) -> Network:
        """Return the network as one process has it."""
        return _View(self, who)

    # ---- what breaks

    def cut(self, one: str, other: str) -> bool:
        """Break the open wires between two, abruptly; tell whether there were any.

        For a moment neither reaches the other: who dials again at once fails once.
        """
        self._out[frozenset({one, other})] = trio.current_time() + _OUTAGE
        wires = list(self._open(one, other))
        for wire in wires:
            wire.cut()
        return bool(wires)

    def mute(self, pair: Pair) -> None:
        """Let nothing pass any more between two that dial, or have dialled, each other."""
        self._mute.add(frozenset(pair))
        for wire in self._open(*pair):
            _silence(wire)

    def lose(self, who: str) -> None:
        """Take a process off the network: its wires break, it reaches nobody any more."""
        self._gone.add(who)
        for held in self._held:
            if who in {held.dialler, held.listener} and held.wire.is_open:
                held.wire.cut()

    def wire(self, one: str, other: str) -> Wire | None:
        """Return the open wire between two, of several the youngest."""
        return next(iter(reversed(list(self._open(one, other)))), None)

    def _open(self, one: str, other: str) -> Iterator[Wire]:
        for held in self._held:
            if held.wire.is_open and held.is_between(one, other):
                yield held.wire

    # ---- what the views do

    async def dial(self, who: str, kind: Kind, address: str, subprotocol: str | None) -> Link:
        """Dial for a process.

        Raises:
            DialError: Nobody there, refused, or the process is off the network.
        """
        there = next((at for place, at in self._places.items() if address.startswith(place)), "")
        between = frozenset({who, there})
        if self._gone & between or trio.current_time() < self._out.get(between, -math.inf):
            raise DialError(address, "the network is unreachable")
        link = await self._network.dial(kind, address, subprotocol)
        wire = next(wire for wire in reversed(self._network.wires) if wire.dialler is link)
        wire.dialler.pattern = wire.acceptor.pattern = _slowly
        wire.dialler.sieve = partial(self._pay, who, there)
        wire.acceptor.sieve = partial(self._pay, there, who)
        self._held.append(_Held(wire, who, there))
        if between in self._mute:
            _silence(wire)
        return link

    def _pay(self, sender: str, receiver: str, frame: bytes) -> bytes | None:
        return self.toll(sender, receiver, frame)

    @asynccontextmanager
    async def listen(
        self, who: str, kind: Kind, where: str, doors: Doors
    ) -> AsyncIterator[Listener]:
        """Listen for a process while the context is open."""
        if kind is not Kind.WEBSOCKET:
            await trio.sleep(_GATHERING)
        async with self._network.listen(kind, where, doors) as listener:
            self._places[listener.address] = who
            try:
                yield listener
            finally:
                self._places.pop(listener.address, None)


@final
class _View(Network):
    """The network as one process has it."""

    def __init__(self, air: Air, who: str) -> None:
        self._air = air
        self._who = who

    @override
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        return await self._air.dial(self._who, kind, address, subprotocol)

    @override
    def listen(
        self, kind: Kind, where: str, doors: Doors = DEFAULT_DOORS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._air.listen(self._who, kind, where, doors)


def _free(_sender: str, _receiver: str, frame: bytes) -> bytes:
    return frame


def _slowly(_number: int, _frame: bytes) -> tuple[float, ...]:
    return (_LATENCY,)


def _silence(wire: Wire) -> None:
    wire.dialler.pattern = wire.acceptor.pattern = _nothing


def _nothing(_number: int, _frame: bytes) -> tuple[float, ...]:
    return ()
