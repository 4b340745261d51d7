"""Timers of data objects: renewals of an observer's subscriptions, and repeats of the last change.

The message by which an observer leaves may be lost, and a runtime that is killed sends none. So a
subscription is granted for a limited time, its lease, which the observer's sync manager renews
(SYN-20). Without a renewal the reporter's runtime removes the observer; an observer that still
exists then subscribes again.

An observer detects a lost change when the next change arrives; after the last change no next one
comes. So the last change is published again, the same change in a new message (I-D4): soon at
first, then at pauses that double, as long as the object has observers. An observer that has the
change already ignores the repeat by its version. A lost message about a child object can be
detected in no other way, since the next message is about another child. So a checksum of an
object's children, their sign, is published when they have not changed for a while, and then
repeated as well; if they never stop changing, at the longest pause. Any two repeats are separated
by a pause, and the most overdue repeat is sent first, so repeats never use up the rate limit of a
session.

One core of each kind serves all objects of a runtime. Times are read from a clock that never goes
back; the clock may stand still, or leap, while the machine sleeps.
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
"""Function that returns whether the object with an address has observers now."""


# ---- leases

_Pair: TypeAlias = tuple[str, str]
"""Address of an object and address of its observer."""


RENEWED_AFTER: Final = 1 / 3
"""Fraction of a lease after which it is renewed at the latest, so that two retries are possible."""

_JITTER: Final = 1 / 4
"""Fraction of that time by which renewals are spread, so that they do not coincide."""

_LAST_PAUSE: Final = 1 / 12
"""Longest pause between attempts to renew, as a fraction of the lease."""


@attrs.define(slots=True)
class _Grant:
    """Lease of one observer, as the observer's runtime knows it.

    Attributes:
        life: Its duration in seconds.
        pause: Seconds until the next attempt if this one is not answered.
        when: Time of the next renewal; infinity: a renewal is under way.
    """

    life: float
    pause: float
    when: float = math.inf


class RenewalsCore:
    """Renewal times of the leases that were granted to the observers of a runtime."""

    def __init__(self) -> None:
        self._grants: dict[_Pair, _Grant] = {}
        self._alarms: Final[Alarms[_Pair]] = Alarms()

    def __len__(self) -> int:
        return len(self._grants)

    def granted(self, url: str, observer: str, life: float, at: tuple[float, float]) -> None:
        """Record a granted lease, and schedule its renewal.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            life: Duration of the lease in seconds; infinity: the lease needs no renewal.
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
        """Schedule another attempt after a pause, since a renewal was not answered or not decided.

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
        """Stop the renewals of a subscription that has ended. Idempotent.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        self._grants.pop((url, observer), None)
        self._alarms.set((url, observer), math.inf)

    def deadline(self) -> float:
        """Return the time at which `due` should be called next; infinity: never."""
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
    """Schedule for repeating one object's last change, or the checksum of its children.

    Attributes:
        when: Time of the next repeat; infinity: not before there is an observer again.
        pause: Seconds between that repeat and the following one.
        latest: Latest time of the first repeat, however often the object changes until then.
    """

    when: float
    pause: float
    latest: float


class RepeatTimes:
    """Schedule of repeats: for each object, when its last message is published again."""

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}
        self._alarms: Final[Alarms[str]] = Alarms()
        self._not_before = -math.inf

    def begin(self, url: str, now: float, within: float = math.inf) -> None:
        """Schedule repeats of a change: the first soon, further ones at pauses that double.

        Args:
            url: Address of the object.
            now: Seconds on the host's clock.
            within: Seconds after which a repeat is due even if the object changes again and again.
        """
        former = self._rests.get(url)
        latest = now + within if former is None else min(former.latest, now + within)
        when = min(now + REPEAT_FIRST, latest)
        self._rests[url] = _Rest(when, 2 * REPEAT_FIRST, latest)
        self._alarms.set(url, when)

    def observed(self, url: str, now: float) -> None:
        """Resume repeats at the longest pause for a new observer, which has the present state.

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
        """Return the time at which `due` should be called next; infinity: never."""
        return max(self._alarms.deadline(), self._not_before) if self._rests else math.inf

    def due(self, now: float, is_observed: IsObserved) -> str | None:
        """Return the address of the object whose last message is to be repeated now, or None.

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
    """The last change of each object, and the times at which it is published again."""

    def __init__(self) -> None:
        super().__init__()
        # Last change by object, with the number of repeats left; infinity: while observed.
        self._last: dict[str, tuple[Change, float]] = {}

    def published(self, written: DataObject, change: Change, now: float) -> None:
        """Schedule repeats of a published change, and stop those of older changes of the object.

        A change of an internal component of a runtime, such as the offer of a P2P link, is repeated
        a few times only: the component's own state machine handles further losses.

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
        """Take an object and the change of it to publish again now, or return None if none is due.

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
