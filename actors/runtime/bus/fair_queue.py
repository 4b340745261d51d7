"""Fair access to the Message BUS: one component does not crowd out the others (R11).

A component has a limited number of messages in transit into the bus. Each gives its place
back when the bus has taken it. A component that takes more than its share while others wait
gets its places back later.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import final

import trio
from typing_extensions import override

from fsm.limits.token_bucket import FairQueueCore
from specs.limits.bus import SUBMITTED

__all__ = ["FairQueue", "OwnPlace", "Permit", "Permits"]


class Permit(ABC):
    """A permit for one message in transit into the bus."""

    __slots__ = ()

    @abstractmethod
    def take(self) -> None:
        """Note that the bus has the message: from now on it alone gives the place back."""

    @abstractmethod
    def give_back(self) -> None:
        """Let the next message come; called by the bus, once for each message."""


@final
class Permits(Permit):
    """The places of one component, each as good as another.

    Places are given in the order in which they are asked for: a message has its id by then,
    and the ids of one sender rise (I-T7).
    """

    __slots__ = ("_line", "_permits")

    def __init__(self) -> None:
        self._permits = trio.Semaphore(SUBMITTED)
        self._line = trio.StrictFIFOLock()

    def enter_nowait(self) -> bool:
        """Take a permit if one is free and no sender waits; return whether there was."""
        if self._line.locked():
            return False
        try:
            self._permits.acquire_nowait()
        except trio.WouldBlock:
            return False
        return True

    async def enter(self) -> None:
        """Wait for a place. Not a checkpoint while there is one."""
        if not self.enter_nowait():
            # One at a time: of two that are woken at once either may run first.
            async with self._line:
                await self._permits.acquire()

    @override
    def take(self) -> None:
        pass

    @override
    def give_back(self) -> None:
        self._permits.release()


@final
class OwnPlace(Permit):
    """The place of a message that the bus may never see: its submitter may stop waiting."""

    __slots__ = ("_is_taken", "_places")

    def __init__(self, places: Permits) -> None:
        self._places = places
        self._is_taken = False

    @override
    def take(self) -> None:
        self._is_taken = True

    @override
    def give_back(self) -> None:
        self._places.give_back()

    def leave(self) -> None:
        """Give it back, unless that is the bus's to do."""
        if not self._is_taken:
            self._is_taken = True
            self._places.give_back()


@final
class FairQueue:
    """Gives places back, each in its turn; part of the bus's task."""

    def __init__(self) -> None:
        self._core = FairQueueCore()
        self._held: dict[str, deque[Permit]] = {}

    def taken(self, place: Permit, by: str, now: float) -> None:
        """Take a message that counts.

        Args:
            place: The permit.
            by: Address of the sender.
            now: Current time, in seconds.
        """
        place.take()
        if self._core.taken(by, now):
            place.give_back()
        else:
            self._held.setdefault(by, deque()).append(place)

    def deadline(self) -> float:
        """Return when the next place is due."""
        return self._core.deadline()

    def tick(self, now: float) -> None:
        """Give back the places that are due."""
        for by in self._core.due(now):
            self._held[by].popleft().give_back()
            if not self._held[by]:
                del self._held[by]
