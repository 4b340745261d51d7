"""Fair access to the Message BUS: one component does not crowd out the others (R11).

A component has a limited number of permits. A message gives its permit back when it is routed; one
that waits for room at a stub keeps it. A component that takes more than its share while others
wait gets its permits back later.
"""

from collections import deque
from typing import Final, final

import trio

from fsm.limits.token_bucket import FairQueueCore
from specs.limits.bus import SUBMITTED


@final
class Permits:
    """The permits of one component, each as good as another.

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
        """Wait for a permit. Not a checkpoint while there is one."""
        if not self.enter_nowait():
            # One at a time: of two that are woken at once either may run first.
            async with self._line:
                await self._permits.acquire()

    def give_back(self) -> None:
        """Let the next message come; called once for each."""
        self._permits.release()


@final
class FairQueue:
    """Gives permits back, each in its turn.

    Attributes:
        held: Places that are given back later, by the addresses of their senders.
    """

    def __init__(self) -> None:
        self._core = FairQueueCore()
        self.held: Final[dict[str, deque[Permits]]] = {}

    def deadline(self) -> float:
        """Return when the next permit is due."""
        return self._core.deadline()

    def give_back(self, permits: Permits, by: str, now: float) -> None:
        """Give back the permit of a message, at once or in its turn.

        Args:
            permits: Those of its sender.
            by: Address of the sender.
        """
        if self._core.taken(by, now):
            permits.give_back()
        else:
            self.held.setdefault(by, deque()).append(permits)

    def tick(self, now: float) -> None:
        """Give back the permits that are due."""
        for by in self._core.due(now):
            self.held[by].popleft().give_back()
            if not self.held[by]:
                del self.held[by]
