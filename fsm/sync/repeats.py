"""Repeats of the last change of an object (I-D4).

The loss of a change shows when the next one comes; after the last one there is no next. So
the last change is published again, the same change in a new message: soon at first, then at
pauses that double, for as long as there is an observer. An observer that has it already
ignores it by its version.

One core serves all objects of a runtime: repeats keep a distance from each other, the one
that is due longest goes first, and so they never use up the rate of a session.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias, final

import attrs

from fsm.limits.timers import Alarms
from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.bodies.sync import Change, DataObject
from specs.limits.sync import PART_REPEATS, REPEAT_FIRST, REPEAT_LAST, REPEAT_SPACING

__all__ = ["IsObserved", "RepeatedChange", "RepeatsCore"]

IsObserved: TypeAlias = Callable[[str], bool]
"""Says whether anybody observes an object now."""


@final
@attrs.frozen(slots=True)
class RepeatedChange:
    """Publish this change of an object again."""

    url: str
    change: Change


@final
@attrs.define(slots=True)
class _Last:
    """The last change of an object.

    Attributes:
        when: When its repeat is due; infinity: not before there is an observer again.
        pause: Seconds until the repeat after that.
        left: Repeats still to be made; infinity: as long as there is an observer.
    """

    change: Change
    when: float
    pause: float
    left: float


@final
class RepeatsCore:
    """The last change of each object, and when it is due again."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}
        self._alarms: Final[Alarms[str]] = Alarms()
        self._not_before = -math.inf

    def published(self, written: DataObject, change: Change, now: float) -> None:
        """Note a published change: its repeats begin, and those of older changes end.

        A change of an internal component, such as the offer of a link, is repeated a few
        times only: its own machine goes on from there.

        Args:
            written: The object with that change.
            change: As it was published.
            now: Seconds on the host's clock.
        """
        is_of_part = scheme_of(written.reporter) == RUNTIME_SCHEME
        left = PART_REPEATS if is_of_part else math.inf
        self._last[written.url] = _Last(change, now + REPEAT_FIRST, 2 * REPEAT_FIRST, left)
        self._alarms.set(written.url, now + REPEAT_FIRST)

    def observed(self, url: str, now: float) -> None:
        """Note that an observer came: it has the newest version, and nothing is urgent.

        Args:
            url: Address of the object.
            now: Seconds on the host's clock.
        """
        last = self._last.get(url)
        if last is not None and last.when == math.inf:
            last.when, last.pause = now + REPEAT_LAST, REPEAT_LAST
            self._alarms.set(url, last.when)

    def forget(self, url: str) -> None:
        """Repeat nothing of an object any more. Idempotent."""
        self._last.pop(url, None)
        self._alarms.set(url, math.inf)

    def deadline(self) -> float:
        """Return when `due` is to be asked; infinity: never."""
        return max(self._alarms.deadline(), self._not_before)

    def due(self, now: float, is_observed: IsObserved) -> RepeatedChange | None:
        """Take the change to repeat now; None: none is due.

        Args:
            now: Seconds on the host's clock.
            is_observed: Returns whether the object of an address has an observer.
        """
        while self.deadline() <= now:
            url = self._alarms.pop()
            last = self._last[url]
            if last.when > now:
                self._alarms.set(url, last.when)
            elif is_observed(url):
                return self._repeat(url, last, now)
            else:
                # Whoever comes later has it from the beginning.
                last.when = math.inf
        return None

    def _repeat(self, url: str, last: _Last, now: float) -> RepeatedChange:
        self._not_before = now + REPEAT_SPACING
        last.left -= 1
        last.when = now + last.pause
        last.pause = min(2 * last.pause, REPEAT_LAST)
        if last.left <= 0:
            del self._last[url]
        else:
            self._alarms.set(url, last.when)
        return RepeatedChange(url, last.change)
