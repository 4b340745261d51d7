"""Timers of data objects: renewals of subscriptions at the observer's end, and repeats.

The message by which an observer leaves may be lost, and a runtime that is killed sends none. So a
subscription is granted for a time, its lease, which the observer's sync manager renews (SYN-20).
Without a renewal the reporter's end removes the observer; if the observer is still there, it
subscribes again.

The loss of a change shows when the next one comes; after the last change there is no next one. So
the last change is published again, the same change in a new message (I-D4): soon at first, then at
pauses that double, for as long as there is an observer. An observer that has it already ignores it
by its version. A lost message about a child can be detected in no other way, since the next message
is about another child. So the sign of an object's children is published when they have not changed
for a while, and then repeated as well; if they never stop changing, at the longest pause. There is
a pause between any two repeats, and the one that is overdue longest goes first, so they never use
up the rate of a session.

One core of each kind serves all objects of a runtime. Times are of a clock that never goes back; it
may stand still, or leap, while the machine sleeps.
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
"""Returns whether the object with an address has observers now."""


# ---- leases

_Pair: TypeAlias = tuple[str, str]
"""An object and its observer."""


RENEWED_AFTER: Final = 1 / 3
"""Fraction of a lease after which it is renewed at the latest: two more attempts fit into it."""

_JITTER: Final = 1 / 4
"""Fraction of that time by which renewals are spread, so that they do not come together."""

_LAST_PAUSE: Final = 1 / 12
"""Fraction of a lease that is the longest pause between attempts."""


@attrs.define(slots=True)
class _Grant:
    """One observer's lease, at the observer's end.

    Attributes:
        life: Its duration in seconds.
        pause: Seconds until the next attempt if this one is not answered.
        when: Time of the next renewal; infinity: a renewal is under way.
    """

    life: float
    pause: float
    when: float = math.inf


class RenewalsCore:
    """The leases granted to the observers of a runtime, and the times of their renewals."""

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
            life: Duration of the lease in seconds; infinity: it needs no renewal.
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
        """Note that a renewal was not answered or decided, so it is due again after a pause.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            at: As in `granted`.
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
        """Return when `due` should be called next; infinity: never."""
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
    """The repeats of one object's last change or sign.

    Attributes:
        when: Time of the next repeat; infinity: not before there is an observer again.
        pause: Seconds between that repeat and the following one.
        latest: Latest time of the first repeat, however often the object changes until then.
    """

    when: float
    pause: float
    latest: float


class RepeatTimes:
    """The times of the next repeat for each object."""

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}
        self._alarms: Final[Alarms[str]] = Alarms()
        self._not_before = -math.inf

    def begin(self, url: str, now: float, within: float = math.inf) -> None:
        """Note a change: its first repeat is due soon, further ones at pauses that double.

        Args:
            url: Address of the object.
            now: Seconds on the host's clock.
            within: Seconds after which it is due even if the object changes again and again.
        """
        former = self._rests.get(url)
        latest = now + within if former is None else min(former.latest, now + within)
        when = min(now + REPEAT_FIRST, latest)
        self._rests[url] = _Rest(when, 2 * REPEAT_FIRST, latest)
        self._alarms.set(url, when)

    def observed(self, url: str, now: float) -> None:
        """Note that an observer came, which has the present state, so no repeat is urgent.

        Args:
            url: Address of the object.
            now: Seconds on the host's clock.
        """
        rest = self._rests.get(url)
        if rest is not None and rest.when == math.inf:
            rest.when, rest.pause = now + REPEAT_LAST, REPEAT_LAST
            self._alarms.set(url, rest.when)

    def forget(self, url: str) -> None:
        """Stop the repeats of an object. Idempotent."""
        self._rests.pop(url, None)
        self._alarms.set(url, math.inf)

    def deadline(self) -> float:
        """Return when `due` should be called next; infinity: never."""
        return max(self._alarms.deadline(), self._not_before) if self._rests else math.inf

    def due(self, now: float, is_observed: IsObserved) -> str | None:
        """Return the object of which a repeat is due now, or None.

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
                # A later observer gets the present state when it subscribes.
                rest.when = rest.latest = math.inf
        return None


class RepeatsCore(RepeatTimes):
    """The last change of each object, and the time of its next repeat."""

    def __init__(self) -> None:
        super().__init__()
        # With the number of repeats that remain; infinity: as long as there is an observer.
        self._last: dict[str, tuple[Change, float]] = {}

    def published(self, written: DataObject, change: Change, now: float) -> None:
        """Note a published change: its repeats begin, and those of older changes end.

        A change of an internal component, such as the offer of a link, is repeated a few times
        only: its own machine handles further losses.

        Args:
            written: The object with that change.
            change: The change as it was published.
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
        """Take an object and its change to repeat now, or return None if none is due.

        Args:
            now: Seconds on the host's clock.
            is_observed: Returns whether the object of an address has an observer.
        """
        url = self.due(now, is_observed)
        if url is None:
            return None
        change, remaining = self._last[url]
        self._last[url] = change, remaining - 1
        if remaining <= 1:
            self.forget(url)
        return url, change
