"""Timers of data objects: renewals of subscriptions at the observer's end, and repeats.

The message by which an observer leaves may be lost, and a runtime that is killed sends none.
So a subscription is granted for a time, its lease, which the observer's sync manager renews
(SYN-20). Without a renewal the reporter's end removes the observer; if it is there all the same,
it subscribes again.

The loss of a change shows when the next one comes; after the last one there is no next. So
the last change is published again, the same change in a new message (I-D4): soon at first, then
at pauses that double, for as long as there is an observer. An observer that has it already
ignores it by its version. A lost message about a child can be detected in no other way: the next
message is about another child. So the sign of an object's children is published when they have
been at rest for a while, and then repeated as well; if they are never at rest, at the longest
pause. Repeats keep a distance from each other, the one that is due longest goes first, and so
they never use up the rate of a session.

One core of each kind serves all objects of a runtime. Times are of a clock that never goes
back; it may stand still, or leap, while the machine sleeps.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
from typing_extensions import override

from fsm.limits.timers import Alarms
from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.bodies.object import Change, DataObject
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import PART_REPEATS, REPEAT_FIRST, REPEAT_LAST, REPEAT_SPACING

IsObserved: TypeAlias = Callable[[str], bool]
"""A test whether an object has observers now."""


# ---- leases

_Pair: TypeAlias = tuple[str, str]
"""An object and its observer."""


RENEWED_AFTER: Final = 1 / 3
"""Part of a lease after which it is renewed at the latest: two more attempts fit into it."""

_JITTER: Final = 1 / 4
"""Part of that by which some are renewed earlier than others."""

_LAST_PAUSE: Final = 1 / 12
"""Part of a lease to which the pauses between attempts grow."""


@attrs.define(slots=True)
class _Grant:
    """One observer's lease, at its own end.

    Attributes:
        life: Seconds that it lasts.
        pause: Before the next attempt, if this one is not answered.
        when: When it is renewed next; infinity: that is being done.
    """

    life: float
    pause: float
    when: float = math.inf


class RenewalsCore:
    """The leases granted to the observers of a runtime, and when each is to be renewed."""

    def __init__(self) -> None:
        self._grants: dict[_Pair, _Grant] = {}
        self._alarms: Final[Alarms[_Pair]] = Alarms()

    def __len__(self) -> int:
        return len(self._grants)

    def granted(self, url: str, observer: str, life: float, at: tuple[float, float]) -> None:
        """Note a granted lease.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            life: Seconds that the lease lasts; infinity: it needs no renewal.
            at: Seconds on the host's clock, and a random number between 0 and 1: observers that
                came together do not renew together.
        """
        if life == math.inf:
            self.ended(url, observer)
            return
        now, chance = at
        self._grants[url, observer] = _Grant(life, min(READ_PAUSE, life * _LAST_PAUSE))
        self._set((url, observer), now + life * RENEWED_AFTER * (1 - _JITTER * chance))

    def unanswered(self, url: str, observer: str, at: tuple[float, float]) -> None:
        """Note that a renewal was not answered, or not decided; it is due again after a pause.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            at: As of `granted`.
        """
        grant = self._grants.get((url, observer))
        if grant is None:
            return
        now, chance = at
        self._set((url, observer), now + grant.pause * (1 - _JITTER * chance))
        grant.pause = min(2 * grant.pause, grant.life * _LAST_PAUSE)

    def ended(self, url: str, observer: str) -> None:
        """Note that a subscription has ended. Idempotent.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        self._grants.pop((url, observer), None)
        self._alarms.set((url, observer), math.inf)

    def deadline(self) -> float:
        """Return when `due` is to be asked; infinity: never."""
        return self._alarms.deadline()

    def due(self, now: float) -> list[_Pair]:
        """Return the subscriptions to renew now: pairs of an object and an observer.

        The host reports the result of each by `granted`, `unanswered` or `ended`.
        """
        ready: list[_Pair] = []
        for key in self._alarms.due(now):
            grant = self._grants[key]
            if grant.when > now:
                self._alarms.set(key, grant.when)
            else:
                grant.when = math.inf
                ready.append(key)
        return ready

    def _set(self, key: _Pair, when: float) -> None:
        self._grants[key].when = when
        self._alarms.set(key, when)


# ---- repeats


@attrs.define(slots=True)
class _Rest:
    """What is repeated of one object, since it is new.

    Attributes:
        when: When it is due; infinity: not before there is an observer again.
        pause: Seconds until it is due after that.
        latest: When it is due the first time, however often it becomes new until then.
    """

    when: float
    pause: float
    latest: float


class RepeatTimes:
    """The due times of what is repeated of each object."""

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}
        self._alarms: Final[Alarms[str]] = Alarms()
        self._not_before = -math.inf

    def begin(self, url: str, now: float, within: float = math.inf) -> None:
        """Note that something is new: it is due soon, and then at pauses that double.

        Args:
            url: Address of the object.
            now: Seconds on the host's clock.
            within: Seconds after which it is due although it becomes new again and again.
        """
        before = self._rests.get(url)
        latest = now + within if before is None else min(before.latest, now + within)
        when = min(now + REPEAT_FIRST, latest)
        self._rests[url] = _Rest(when, 2 * REPEAT_FIRST, latest)
        self._alarms.set(url, when)

    def observed(self, url: str, now: float) -> None:
        """Note that an observer came: it has all that there is, and nothing is urgent.

        Args:
            url: Address of the object.
            now: Seconds on the host's clock.
        """
        rest = self._rests.get(url)
        if rest is not None and rest.when == math.inf:
            rest.when, rest.pause = now + REPEAT_LAST, REPEAT_LAST
            self._alarms.set(url, rest.when)

    def forget(self, url: str) -> None:
        """Repeat nothing of an object any more. Idempotent."""
        self._rests.pop(url, None)
        self._alarms.set(url, math.inf)

    def deadline(self) -> float:
        """Return when `due` is to be asked; infinity: never."""
        return max(self._alarms.deadline(), self._not_before) if self._rests else math.inf

    def due(self, now: float, is_observed: IsObserved) -> str | None:
        """Return the object of which something is repeated now; None: of none.

        Args:
            now: Seconds on the host's clock.
            is_observed: Returns whether the object of an address has an observer.
        """
        while self.deadline() <= now:
            url = self._alarms.pop()
            rest = self._rests[url]
            if rest.when > now:
                self._alarms.set(url, rest.when)
            elif is_observed(url):
                self._not_before = now + REPEAT_SPACING
                rest.when, rest.latest = now + rest.pause, math.inf
                rest.pause = min(2 * rest.pause, REPEAT_LAST)
                self._alarms.set(url, rest.when)
                return url
            else:
                # A later observer has it from the beginning.
                rest.when = rest.latest = math.inf
        return None


class RepeatsCore(RepeatTimes):
    """The last change of each object, and when it is due again."""

    def __init__(self) -> None:
        super().__init__()
        # With the number of repeats still to be made; infinity: as long as there is an observer.
        self._last: dict[str, tuple[Change, float]] = {}

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
        self._last[written.url] = change, PART_REPEATS if is_of_part else math.inf
        self.begin(written.url, now)

    @override
    def forget(self, url: str) -> None:
        self._last.pop(url, None)
        super().forget(url)

    def due_change(self, now: float, is_observed: IsObserved) -> tuple[str, Change] | None:
        """Take an object and its change to repeat now; None: none is due.

        Args:
            now: Seconds on the host's clock.
            is_observed: Returns whether the object of an address has an observer.
        """
        url = self.due(now, is_observed)
        if url is None:
            return None
        change, left = self._last[url]
        self._last[url] = change, left - 1
        if left <= 1:
            self.forget(url)
        return url, change
