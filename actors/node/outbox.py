"""What waits to be written to one link: bounded by count and by bytes (RELIABILITY L2)."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, final

import trio

from actors.node.limits import NodeLimits
from fsm.cores.node_session_terms import Parcel
from fsm.cores.outbox_budget import OutboxBudget, weight
from specs.limits import FRAME_MESSAGES, WRITE_BYTES
from transports.link import Link

__all__ = ["Outbox"]


@final
class Outbox:
    """The queue between the bus, which never waits, and the task that writes a link.

    What it holds counts in the budget of the node, also what is being written: until
    the peer has taken it in, it takes room here.

    Attributes:
        held: Bytes of memory that what it holds takes, what is being written included.
        is_idle: Whether the writer has to be told of what is put next.
        is_leaving: Whether the writer has been told to leave.
    """

    __slots__ = (
        "_budget", "_bytes", "_is_closed", "_limits", "_link", "_old", "_parcels", "_taken",
        "_writing", "held", "is_idle", "is_leaving",
    )  # fmt: skip

    def __init__(self, limits: NodeLimits, link: Link) -> None:
        self._limits: Final = limits
        self._link: Final = link
        self._taken: Sequence[Parcel] = ()
        self._parcels: deque[Parcel] | None = None  # an empty one takes 760 bytes
        self._bytes = 0
        self._old: deque[Parcel] | None = None
        self._budget: OutboxBudget | None = None
        self._is_closed = False
        self._writing = trio.CancelScope()
        self.held = 0
        self.is_idle = True
        self.is_leaving = False

    def __len__(self) -> int:
        return len(self._parcels or ()) + len(self._old or ())

    def count_in(self, budget: OutboxBudget) -> None:
        """Count what it holds in a budget from now on."""
        self._budget = budget
        budget.count(self.held)

    def refill(self, parcels: Iterable[Parcel]) -> None:
        """Take in what waited for the session: it goes out first, and was bounded there."""
        old = self._old = self._old or deque()
        for parcel in parcels:
            old.append(parcel)
            self._hold(weight(1, len(parcel.line)))

    def put(self, parcel: Parcel) -> bool:
        """Take in a parcel; False: there is no room, or nobody writes any more."""
        size = len(parcel.line)
        waiting = self._bytes + size
        parcels = self._parcels
        if parcels is None:
            parcels = self._parcels = deque()
        if (
            self._is_closed
            or waiting > self._limits.outbox_bytes
            or len(parcels) >= self._limits.outbox_messages
        ):
            return False
        parcels.append(parcel)
        self._bytes = waiting
        self._hold(weight(1, size))
        return True

    def take(self) -> list[Parcel]:
        """Take out the next parcels, at most a frame's worth; what was taken last is written."""
        taken = self._next()
        self._taken = taken
        return taken

    def _next(self) -> list[Parcel]:
        if self._old:
            taken, _ = _first(self._old)
            return taken
        self._old = None
        if not self._parcels:
            self._parcels = None
            return []
        taken, size = _first(self._parcels)
        self._bytes -= size
        return taken

    def written(self, parcels: Iterable[Parcel]) -> None:
        """Note that what was taken has left."""
        self._taken = ()
        self._hold(-sum(weight(1, len(parcel.line)) for parcel in parcels))

    def writing(self) -> trio.CancelScope:
        """Return the scope to write in, until the queue is closed."""
        self._writing = trio.CancelScope()
        if self._is_closed:
            self._writing.cancel()
        return self._writing

    def interrupt(self) -> None:
        """Stop the write at hand: nobody is there to read it."""
        self._writing.cancel()

    def close(self) -> list[Parcel]:
        """Take in nothing more, stop the write at hand, and give back what was not taken.

        Of what is being written that is what the peer has surely not read.
        """
        self._is_closed = True
        self._writing.cancel()
        unread = self._taken[len(self._taken) - self._link.unread() :]
        rest = [*unread, *(self._old or ()), *(self._parcels or ())]
        self._taken = ()
        self._old = self._parcels = None
        self._bytes = 0
        self._hold(-self.held)
        return rest

    def _hold(self, size: int) -> None:
        if size < 0 and self._is_closed and not self.held:
            return  # the write at hand ended after everything was given up
        self.held += size
        if self._budget is not None:
            self._budget.count(size)


def _first(parcels: deque[Parcel]) -> tuple[list[Parcel], int]:
    """Take at most a frame's worth of parcels, and at least one if there is one."""
    taken: list[Parcel] = []
    size = 0
    while parcels and len(taken) < FRAME_MESSAGES:
        size += len(parcels[0].line)
        if taken and size > WRITE_BYTES:
            return taken, size - len(parcels[0].line)
        taken.append(parcels.popleft())
    return taken, size
