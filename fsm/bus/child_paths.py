"""The paths by which the components of a runtime write the children of data objects (P2P-30).

By default the node spreads what a creator writes. Where the changes of an object come by a direct
link, its children go by that link to the reporter's runtime, which reports them to all others.
Where links reach all runtimes that observe an object reported here, nothing goes by the node.

When a link ends, the node does not know the observers that were let in by the link, and would
refuse what they write. So it waits here, in order, until the sync manager has set the path at the
node, for `CHILD_WAIT` seconds at most.
"""

import math
from collections import deque
from enum import Enum, auto
from typing import Final, TypeAlias

import attrs

from specs.limits.protocol import STUB_QUEUE
from specs.limits.sync import CHILD_WAIT
from specs.message import Message, instance_id


class Elsewhere(Enum):
    """What happens to a child beside its delivery in this runtime, without a link."""

    BY_NODE = auto()
    """The node spreads it."""

    NOWHERE = auto()
    """Links bring the report of the object to all others."""

    WAITS = auto()
    """It waits for a path."""

    REPEATED = auto()
    """It waits for one already: its sender repeats it."""

    FULL = auto()
    """Too many wait."""


ChildPath: TypeAlias = str | Elsewhere
"""A link, or what is done without one."""


@attrs.define(slots=True, eq=False)
class _Row:
    """How one list of children is written.

    Attributes:
        path: A link, or `NOWHERE`.
        until: When the wait for another path ends; infinity: nothing waits for one.
    """

    path: ChildPath
    until: float = math.inf
    waiting: deque[Message] = attrs.field(factory=deque)


class ChildPaths:
    """The paths of all lists of children that are written here; other lists go by the node."""

    def __init__(self) -> None:
        self._rows: Final[dict[str, _Row]] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """The number of messages that wait for a path."""
        return self._waiting

    def link_of(self, address: str) -> str | None:
        """Return the link of a list of children; None: it has none."""
        row = self._rows.get(address)
        return row.path if row is not None and isinstance(row.path, str) else None

    def lead(self, address: str, path: ChildPath) -> list[Message]:
        """Take another path for a list of children; return what has waited for it, in order.

        Args:
            address: Address of the children.
            path: A link, `NOWHERE` or `BY_NODE`.
        """
        row = self._rows.pop(address, None)
        if path is not Elsewhere.BY_NODE:
            self._rows[address] = _Row(path)
        return [] if row is None else self._freed(row)

    def find(self, message: Message, now: float, *, is_there: bool) -> ChildPath:
        """Return the path of what a component writes; it is kept here if that is `WAITS`.

        Args:
            is_there: Whether the link of its children takes messages.
        """
        row = self._rows.get(message.to)
        if row is None:
            return Elsewhere.BY_NODE
        if row.path is Elsewhere.NOWHERE or (is_there and row.until == math.inf):
            return row.path
        if any(instance_id(one) == instance_id(message) for one in row.waiting):
            return Elsewhere.REPEATED
        if self._waiting >= STUB_QUEUE:
            return Elsewhere.FULL
        row.until = min(row.until, now + CHILD_WAIT)
        row.waiting.append(message)
        self._waiting += 1
        return Elsewhere.WAITS

    def lost(self, link: str, now: float) -> None:
        """Note that a link has given messages back: what is written waits for another path."""
        for row in self._rows.values():
            if row.path == link:
                row.until = min(row.until, now + CHILD_WAIT)

    def deadline(self) -> float:
        """Return the time of the next call of `tick`."""
        return min((row.until for row in self._rows.values()), default=math.inf)

    def tick(self, now: float) -> list[Message]:
        """Return what has waited long enough: it goes by the link, if it is back, or the node."""
        free: list[Message] = []
        for row in self._rows.values():
            if row.until <= now:
                row.until = math.inf
                free += self._freed(row)
        return free

    def _freed(self, row: _Row) -> list[Message]:
        self._waiting -= len(row.waiting)
        free, row.waiting = [*row.waiting], deque()
        return free
