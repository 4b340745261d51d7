"""When the reporter's end tells what children an object has (I-D4, SYN-24).

Whoever loses something about a child has no other way to see that: what the next one is
about says nothing of it. So the sign of all children is told when they have been at rest
for a while, and then at pauses that double, for as long as somebody observes; if they are
never at rest, at the longest pause.

One of these serves all objects of a runtime: signs keep a distance from each other.
"""

import math
from collections.abc import Callable
from typing import Final, final

import attrs

from fsm.limits.timers import Alarms
from specs.limits.sync import REPEAT_FIRST, REPEAT_LAST, REPEAT_SPACING

__all__ = ["SignsCore"]


@final
@attrs.define(slots=True)
class _Rest:
    """The children of one object, since they changed.

    Attributes:
        when: Their sign is due; infinity: not before somebody observes again.
        pause: Before the one after that.
        latest: When it is due however restless they are.
    """

    when: float
    pause: float
    latest: float


@final
class SignsCore:
    """Whose sign is due when."""

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}
        self._alarms: Final[Alarms[str]] = Alarms()
        self._not_before = -math.inf

    def changed(self, url: str, now: float) -> None:
        """Note that the children of an object changed."""
        before = self._rests.get(url)
        is_waiting = before is not None and before.latest < math.inf
        latest = before.latest if before is not None and is_waiting else now + REPEAT_LAST
        when = min(now + REPEAT_FIRST, latest)
        self._rests[url] = _Rest(when, 2 * REPEAT_FIRST, latest)
        self._alarms.set(url, when)

    def observed(self, url: str, now: float) -> None:
        """Note that an observer came: it has all children, and nothing is urgent."""
        rest = self._rests.get(url)
        if rest is not None and rest.when == math.inf:
            rest.when, rest.pause = now + REPEAT_LAST, REPEAT_LAST
            self._alarms.set(url, rest.when)

    def forget(self, url: str) -> None:
        """Tell nothing of an object any more; one that is not known is fine."""
        self._rests.pop(url, None)
        self._alarms.set(url, math.inf)

    def deadline(self) -> float:
        """Return when `due` is to be asked; infinity: never."""
        return max(self._alarms.deadline(), self._not_before)

    def due(self, now: float, is_observed: Callable[[str], bool]) -> str | None:
        """Return the object whose sign is to be told now; None: none is."""
        while self.deadline() <= now:
            url = self._alarms.pop()
            rest = self._rests[url]
            if rest.when > now:
                self._alarms.set(url, rest.when)
            elif is_observed(url):
                return self._tell(url, rest, now)
            else:
                # Whoever comes later has them from the beginning.
                rest.when = rest.latest = math.inf
        return None

    def _tell(self, url: str, rest: _Rest, now: float) -> str:
        self._not_before = now + REPEAT_SPACING
        rest.when, rest.latest = now + rest.pause, math.inf
        rest.pause = min(2 * rest.pause, REPEAT_LAST)
        self._alarms.set(url, rest.when)
        return url
