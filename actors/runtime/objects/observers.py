"""Who observes the objects of one hyperty, as it hears of it (SYN-23, M-53)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final
from weakref import WeakSet

import trio

from fsm.sync.observers import ObserverMove, ObserversCore, ObserversSeen
from specs.bodies.object import ObserverList, ObserversChange
from specs.message import Message, MessageType
from transports.bodies import read_body

__all__ = ["Audience", "Audiences", "ObserverMoves"]

_OBSERVERS: Final = "/observers"


@final
class Audience:
    """The observers of one object that a hyperty reports."""

    def __init__(self) -> None:
        self._core = ObserversCore()
        self._readers: WeakSet[ObserverMoves] = WeakSet()
        self._waiting = trio.lowlevel.ParkingLot()
        self.is_over = False

    @property
    def observers(self) -> tuple[str, ...]:
        """Who observes, in the order they came."""
        return self._core.observers

    @property
    def is_behind(self) -> bool:
        """Whether something was missed: the whole list is to be read."""
        return self._core.is_behind and not self.is_over

    def told(self, change: ObserversChange) -> None:
        """Take what the sync manager tells."""
        self._add(self._core.told(change))

    def read(self, whole: ObserverList) -> None:
        """Take the whole list."""
        self._add(self._core.read(whole))

    def end(self) -> None:
        """Say that the object is gone."""
        self.is_over = True
        self._waiting.unpark_all()

    def moves(self) -> "ObserverMoves":
        """Go through who comes and leaves from now on."""
        reader = ObserverMoves(self)
        self._readers.add(reader)
        return reader

    async def wait(self) -> None:
        """Wait until something happens."""
        await self._waiting.park()

    async def wait_without(self, observer: str) -> None:
        """Wait until somebody does not observe."""
        await trio.lowlevel.checkpoint()
        while observer in self.observers and not self.is_over:
            await self.wait()

    def _add(self, moves: list[ObserverMove]) -> None:
        for reader in self._readers:
            reader.seen.add(moves)
        self._waiting.unpark_all()


@final
class ObserverMoves:
    """Who came, and who left, one after the other; ends with the object.

    A reader that is further behind than `OBSERVER_CHANGES_KEPT` gets the difference from
    what it saw last.
    """

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self.seen: Final = ObserversSeen(audience.observers)

    def __aiter__(self) -> "ObserverMoves":
        return self

    async def __anext__(self) -> ObserverMove:
        await trio.lowlevel.checkpoint()
        while True:
            move = self.seen.next(self._audience.observers)
            if move is not None:
                return move
            if self._audience.is_over:
                raise StopAsyncIteration
            await self._audience.wait()


@final
class Audiences:
    """The observers of all objects that one hyperty reports."""

    def __init__(self) -> None:
        self._of: dict[str, Audience] = {}
        self._taken: set[str] = set()
        self._expecting = 0

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """Hear of the observers of a new object, too, whose address is not known yet."""
        self._expecting += 1
        try:
            yield
        finally:
            self._expecting -= 1
            if not self._expecting:
                self._of = {url: one for url, one in self._of.items() if url in self._taken}

    def take(self, url: str) -> Audience:
        """Return the observers of an own object, for as long as it is not dropped."""
        self._taken.add(url)
        return self._of.setdefault(url, Audience())

    def drop(self, url: str) -> None:
        """Forget an object; repeated is fine."""
        self._taken.discard(url)
        gone = self._of.pop(url, None)
        if gone is not None:
            gone.end()

    def heard(self, message: Message) -> Audience | None:
        """Take what an own object says of its observers; None: it is not that."""
        url = message.to.removesuffix(_OBSERVERS)
        if message.type is not MessageType.UPDATE or url == message.to or message.from_ != url:
            return None
        audience = self._of.get(url)
        if audience is None and self._expecting:
            audience = self._of.setdefault(url, Audience())
        if audience is not None:
            audience.told(read_body(message, ObserversChange))
        return audience
