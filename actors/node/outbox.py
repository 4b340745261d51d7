"""What waits to be written to one link: bounded by count and by bytes (RELIABILITY L2)."""

from collections import deque
from collections.abc import Iterable
from typing import final

import trio

from fsm.cores.node_session_terms import Parcel
from specs.limits import FRAME_MESSAGES, OUTBOX_BYTES, OUTBOX_MESSAGES

__all__ = ["Outbox"]


@final
class Outbox:
    """The queue between the bus, which never waits, and the task that writes a link.

    Attributes:
        is_idle: Whether the writer has to be told of what is put next.
        is_leaving: Whether the writer has been told to leave.
    """

    __slots__ = (
        "_bytes", "_is_closed", "_old", "_parcels", "_writing", "is_idle", "is_leaving",
    )  # fmt: skip

    def __init__(self) -> None:
        self._parcels: deque[Parcel] = deque()
        self._bytes = 0
        self._old: deque[Parcel] = deque()
        self._is_closed = False
        self._writing = trio.CancelScope()
        self.is_idle = True
        self.is_leaving = False

    def __len__(self) -> int:
        return len(self._parcels) + len(self._old)

    def refill(self, parcels: Iterable[Parcel]) -> None:
        """Take in what waited for the session: it goes out first, and was bounded there."""
        self._old.extend(parcels)

    def put(self, parcel: Parcel) -> bool:
        """Take in a parcel; False: there is no room, or nobody writes any more."""
        size = self._bytes + len(parcel.line)
        if self._is_closed or size > OUTBOX_BYTES or len(self._parcels) >= OUTBOX_MESSAGES:
            return False
        self._parcels.append(parcel)
        self._bytes = size
        return True

    def take(self) -> list[Parcel]:
        """Take out the next parcels, at most a frame's worth."""
        if self._old:
            return _first(self._old)
        taken = _first(self._parcels)
        self._bytes -= sum(len(parcel.line) for parcel in taken)
        return taken

    def writing(self) -> trio.CancelScope:
        """Return the scope to write in, until the queue is closed."""
        self._writing = trio.CancelScope()
        if self._is_closed:
            self._writing.cancel()
        return self._writing

    def close(self) -> list[Parcel]:
        """Take in nothing more, stop the write at hand, and give back what was not taken."""
        self._is_closed = True
        self._writing.cancel()
        rest = [*self._old, *self._parcels]
        self._old.clear()
        self._parcels.clear()
        self._bytes = 0
        return rest


def _first(parcels: deque[Parcel]) -> list[Parcel]:
    return [parcels.popleft() for _ in range(min(FRAME_MESSAGES, len(parcels)))]
