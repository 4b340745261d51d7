"""List of an object's observers, as the reporter's hyperty follows it.

The hyperty gets each change of the list in a numbered message (SYN-23, M-53). A gap in the numbers
reveals a lost message, and the whole list is read. A reader of joins and leaves gets each of them
in turn while it keeps up; a slow reader gets the difference from the list that it saw last. Applied
in order, joins and leaves always lead to the present list.
"""

from collections import deque
from typing import Final, TypeAlias, final

import attrs

from specs.bodies.object import ObserverList, ObserversChange
from specs.bodies.word import Operation
from specs.limits.sync import OBSERVER_CHANGES_KEPT


@final
@attrs.frozen
class ObserverJoined:
    """Event: a hyperty observes the object from now on."""

    observer: str


@final
@attrs.frozen
class ObserverLeft:
    """Event: an observer left, was expelled, or its runtime is gone."""

    observer: str


ObserverMove: TypeAlias = ObserverJoined | ObserverLeft


class ObserversCore:
    """The observers of one object, followed by numbered changes."""

    def __init__(self) -> None:
        self._version = 0
        self._newest = 0
        self._there: dict[str, None] = {}

    @property
    def observers(self) -> tuple[str, ...]:
        """The observers, in the order in which they joined."""
        return tuple(self._there)

    @property
    def is_behind(self) -> bool:
        """True if a change was missed, so the whole list must be read."""
        return self._newest > self._version

    def changed(self, change: ObserversChange) -> list[ObserverMove]:
        """Apply a numbered change of the list; return the joins and leaves."""
        version = change.version or self._version + 1
        is_next = version == self._version + 1 and not self.is_behind
        self._newest = max(self._newest, version)
        if not is_next:
            return []
        self._version = version
        if change.operation == Operation.ADD:
            return self._join(change.value)
        return self._leave(change.value)

    def read(self, whole: ObserverList) -> list[ObserverMove]:
        """Replace the list by a whole list that was read; return the resulting joins and leaves."""
        if whole.version < self._version:
            return []
        self._version = whole.version
        self._newest = max(self._newest, whole.version)
        former, self._there = self._there, dict.fromkeys(whole.observers)
        return _moves(former, self._there)

    def _join(self, observers: tuple[str, ...]) -> list[ObserverMove]:
        fresh = [each for each in dict.fromkeys(observers) if each not in self._there]
        self._there.update(dict.fromkeys(fresh))
        return [ObserverJoined(each) for each in fresh]

    def _leave(self, observers: tuple[str, ...]) -> list[ObserverMove]:
        gone = [each for each in dict.fromkeys(observers) if each in self._there]
        for each in gone:
            del self._there[each]
        return [ObserverLeft(each) for each in gone]


class ObserversSeen:
    """Position of one reader in the sequence of joins and leaves.

    Args:
        seen: The observers when the reader begins.
    """

    def __init__(self, seen: tuple[str, ...]) -> None:
        self._seen = dict.fromkeys(seen)
        self._waiting: Final[deque[ObserverMove]] = deque()
        self._is_behind = False

    def add(self, moves: list[ObserverMove]) -> None:
        """Queue joins and leaves for the reader; a queue that is too long is dropped."""
        self._waiting.extend(moves)
        if len(self._waiting) > OBSERVER_CHANGES_KEPT:
            self._waiting.clear()
            self._is_behind = True

    def next(self, observers: tuple[str, ...]) -> ObserverMove | None:
        """Return the next join or leave, or None if there is none now.

        Args:
            observers: The current observers.
        """
        if self._is_behind:
            self._waiting.clear()
            self._waiting.extend(_moves(self._seen, dict.fromkeys(observers)))
            self._is_behind = False
        if not self._waiting:
            return None
        move = self._waiting.popleft()
        if isinstance(move, ObserverJoined):
            self._seen[move.observer] = None
        else:
            del self._seen[move.observer]
        return move


def _moves(before: dict[str, None], after: dict[str, None]) -> list[ObserverMove]:
    leaves = [ObserverLeft(each) for each in before if each not in after]
    return [*leaves, *(ObserverJoined(each) for each in after if each not in before)]
