"""The observers of the objects that one hyperty reports (SYN-23, M-53)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final
from weakref import WeakSet

import trio

from fsm.sync.observers import ObserverMove, ObserversCore, ObserversSeen
from specs.bodies.object import ObserverList, ObserversChange
from specs.message import Message, MessageType
from transports.bodies import read_body

__all__ = ["ObserverMoves", "Observers", "ReportedObservers"]

_OBSERVERS: Final = "/observers"


@final
class Observers:
    """The observers of one reported object.

    Attributes:
        is_over: Whether the object is gone.
    """

    def __init__(self) -> None:
        self._core = ObserversCore()
        self._readers: WeakSet[ObserverMoves] = WeakSet()
        self._waiting = trio.lowlevel.ParkingLot()
        self.is_over = False

    @property
    def present(self) -> tuple[str, ...]:
        """Addresses of the observers, in the order in which they subscribed."""
        return self._core.observers

    @property
    def is_behind(self) -> bool:
        """Whether a notice was lost, so that the whole list has to be read."""
        return self._core.is_behind and not self.is_over

    def told(self, change: ObserversChange) -> None:
        """Take a notice of the sync manager."""
        self._add(self._core.told(change))

    def read(self, whole: ObserverList) -> None:
        """Take the whole list."""
        self._add(self._core.read(whole))

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
        while observer in self.present and not self.is_over:
            await self.wait()

    def _add(self, moves: list[ObserverMove]) -> None:
        for reader in self._readers:
            reader.seen.add(moves)
        self._waiting.unpark_all()


@final
class ObserverMoves:
    """An async iterator over joining and leaving observers; it ends with the object.

    A reader that is more than `OBSERVER_CHANGES_KEPT` items behind gets the difference between the
    observers it has seen and the present ones.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self.seen: Final = ObserversSeen(observers.present)

    def __aiter__(self) -> "ObserverMoves":
        return self

    async def __anext__(self) -> ObserverMove:
        await trio.lowlevel.checkpoint()
        while True:
            move = self.seen.next(self._observers.present)
            if move is not None:
                return move
            if self._observers.is_over:
                raise StopAsyncIteration
            await self._observers.wait()


@final
class ReportedObservers:
    """The observers of all objects that one hyperty reports."""

    def __init__(self) -> None:
        self._of: dict[str, Observers] = {}
        self._taken: set[str] = set()
        self._expecting = 0

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """Take notices about a new object without a known address while the context is open."""
        self._expecting += 1
        try:
            yield
        finally:
            self._expecting -= 1
            if not self._expecting:
                self._of = {url: one for url, one in self._of.items() if url in self._taken}

    def take(self, url: str) -> Observers:
        """Return the observers of a reported object, until it is dropped."""
        self._taken.add(url)
        return self._of.setdefault(url, Observers())

    def drop(self, url: str) -> None:
        """Forget an object. Idempotent."""
        self._taken.discard(url)
        gone = self._of.pop(url, None)
        if gone is not None:
            gone.end()

    def heard(self, message: Message) -> Observers | None:
        """Take a notice of a reported object about its observers.

        Returns:
            The observers of the object; None: the message is no such notice.

        Raises:
            BadMessageError: The notice has no valid body.
        """
        url = message.to.removesuffix(_OBSERVERS)
        if message.type is not MessageType.UPDATE or url == message.to or message.from_ != url:
            return None
        observers = self._of.get(url)
        if observers is None and self._expecting:
            observers = self._of.setdefault(url, Observers())
        if observers is not None:
            observers.told(read_body(message, ObserversChange))
        return observers
