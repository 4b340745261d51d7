"""The observers of an object, as its reporter sees them (SYN-23)."""

from typing import Final
from weakref import WeakSet

import trio
from typing_extensions import override

from fsm.sync.observers import ObserverMove, ObserversCore, ObserversSeen
from specs.bodies.object import ObserverList, ObserversChange


class Observers(ObserversCore):
    """The observers of one reported object, and those who wait for a change of them.

    Attributes:
        is_over: Whether the object is gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._readers: WeakSet[ObserverMoves] = WeakSet()
        self._waiting = trio.lowlevel.ParkingLot()
        self.is_over = False

    @override
    def changed(self, change: ObserversChange) -> list[ObserverMove]:
        return self._add(super().changed(change))

    @override
    def read(self, whole: ObserverList) -> list[ObserverMove]:
        return self._add(super().read(whole))

    def _add(self, moves: list[ObserverMove]) -> list[ObserverMove]:
        for reader in self._readers:
            reader.seen.add(moves)
        self._waiting.unpark_all()
        return moves

    def end(self) -> None:
        """Note that the object is gone."""
        self.is_over = True
        self._waiting.unpark_all()

    def moves(self) -> "ObserverMoves":
        """Iterate over joining and leaving observers from now on."""
        reader = ObserverMoves(self)
        self._readers.add(reader)
        return reader

    async def wait(self) -> None:
        """Wait for the next notice.

        If cancelled, only the wait ends.
        """
        await self._waiting.park()

    async def wait_without(self, observer: str) -> None:
        """Wait until a hyperty does not observe, or the object is gone.

        If cancelled, only the wait ends.
        """
        await trio.lowlevel.checkpoint()
        while observer in self.observers and not self.is_over:
            await self.wait()


class ObserverMoves:
    """An async iterator over joining and leaving observers; it ends with the object.

    A reader that is more than `OBSERVER_CHANGES_KEPT` items behind gets the difference between the
    observers it has seen and the present ones.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self.seen: Final = ObserversSeen(observers.observers)

    def __aiter__(self) -> "ObserverMoves":
        return self

    async def __anext__(self) -> ObserverMove:
        await trio.lowlevel.checkpoint()
        while True:
            move = self.seen.next(self._observers.observers)
            if move is not None:
                return move
            if self._observers.is_over:
                raise StopAsyncIteration
            await self._observers.wait()
