"""Requests that a part of the node relays to a back end: limits, order, retries (CON-07).

Requests under way and requests that wait are limited; further requests are refused with
503. Requests of one lane go one after the other, in their order. A request that takes too
long, waiting included, is refused with 504. When the session of a requester ends, its
requests are given up. An answer of the back end to a request that is over is late.

`RetryQueue` is the retry queue: work of the node at a back end for sessions that are over. Each
entry is tried until it succeeds, with pauses that double up to `RETRY_QUEUE_PAUSE`, and is given
up after `RETRY_QUEUE_TRIES` attempts.

`Reservations` are those of sessions at a quality broker (CON-04). A reservation belongs to a
session and a client of it, and has a name that only the node and the broker know.
"""

from collections import Counter, deque
from typing import Final, TypeAlias, assert_never, final

import attrs

from specs.jsonvalue import JsonObject
from specs.limits.node import MAX_RESERVATIONS, RETRY_QUEUE_PAUSE, RETRY_QUEUE_TRIES
from specs.limits.protocol import RETRY_COOL_DOWN
from specs.reply_code import Code

__all__ = [
    "Broke",
    "Came",
    "Deliver",
    "Effect",
    "GiveUp",
    "Input",
    "Late",
    "Left",
    "Refuse",
    "RelayCore",
    "RelayLimits",
    "Reservation",
    "Reservations",
    "RetryQueue",
    "Start",
    "Tick",
    "Wanted",
]


@final
@attrs.frozen
class Reservation:
    """A reservation that the broker granted.

    Attributes:
        name: Its name at the broker.
        request: The request for it.
        value: The value that opens it.
    """

    name: str
    request: JsonObject
    value: JsonObject


@final
class Reservations:
    """The reservations of all sessions of one node."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Reservation]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def held(self, by: str, client: str) -> Reservation | None:
        """Return the reservation of a client; None: it has none.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
        """
        return self._held.get(by, {}).get(client)

    def has_room(self, by: str) -> bool:
        """Return whether a session may hold one more reservation."""
        return len(self._held.get(by, {})) < MAX_RESERVATIONS

    def granted(self, by: str, client: str, reservation: Reservation) -> None:
        """Note the reservation that the broker granted to a client.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
            reservation: The reservation.
        """
        self._held.setdefault(by, {})[client] = reservation

    def give_back(self, by: str, client: str) -> str | None:
        """Take out a client's reservation; return its name, None if there is none.

        Args:
            by: Address of the session's runtime.
            client: Name of the client, within the session.
        """
        held = self._held.get(by, {})
        reservation = held.pop(client, None)
        if not held:
            self._held.pop(by, None)
        return None if reservation is None else reservation.name

    def left(self, by: str) -> tuple[str, ...]:
        """Take out all reservations of a session; return their names."""
        return tuple(one.name for one in self._held.pop(by, {}).values())


_GROWTH: Final = 2.0


@final
@attrs.define
class _Retry:
    due: float
    tries: int = 0


@final
class RetryQueue:
    """The retry queue: names of work to do at a back end, oldest first."""

    def __init__(self) -> None:
        self._owed: dict[str, _Retry] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._owed

    def __len__(self) -> int:
        return len(self._owed)

    def owe(self, name: str, now: float) -> None:
        """Add work, which is due at once.

        Args:
            name: Name of the work, such as that of a reservation.
            now: Seconds on the host's clock.
        """
        self._owed[name] = _Retry(now)

    def paid(self, name: str) -> None:
        """Remove work that is done or no longer needed."""
        self._owed.pop(name, None)

    def failed(self, name: str, now: float) -> bool:
        """Note that an attempt failed; return whether that was the last one.

        Args:
            name: Name of the work.
            now: Seconds on the host's clock.
        """
        retry = self._owed.get(name)
        if retry is None:
            return False
        retry.tries += 1
        if retry.tries >= RETRY_QUEUE_TRIES:
            del self._owed[name]
            return True
        retry.due = now + min(RETRY_COOL_DOWN * _GROWTH ** (retry.tries - 1), RETRY_QUEUE_PAUSE)
        return False

    def due(self, now: float) -> tuple[str, ...]:
        """Return the names of the work to try now."""
        return tuple(name for name, retry in self._owed.items() if retry.due <= now)

    def deadline(self) -> float:
        """Return when the next attempt is due."""
        return min((retry.due for retry in self._owed.values()), default=float("inf"))


@final
@attrs.frozen(slots=True)
class RelayLimits:
    """The limits of requests to one back end.

    Attributes:
        parallel: Requests under way at once.
        waiting: Requests that wait for one of them to end.
        patience: Seconds a request may take, waiting included.
        each: Requests of one user under way at once; None: as many as of all.
    """

    parallel: int
    waiting: int
    patience: float
    each: int | None = None


@final
@attrs.frozen(slots=True)
class Wanted:
    """A request for the back end.

    Attributes:
        number: Names the request; never used again.
        by: The runtime whose session it came over; None: the node itself asks.
        lane: Requests of the same lane keep their order; None: it is in none.
        user: Whose it is, over all sessions of a user; None: it counts for the runtime.
    """

    number: int
    by: str | None
    lane: str | None = None
    user: str | None = None

    @property
    def counts_for(self) -> str | None:
        """The user or runtime whose limits it counts against."""
        return self.user or self.by


@final
@attrs.frozen(slots=True)
class Came:
    """The back end has answered."""

    number: int


@final
@attrs.frozen(slots=True)
class Broke:
    """The back end cannot be reached, or its answer is malformed."""

    number: int
    why: str


@final
@attrs.frozen(slots=True)
class Left:
    """The session of a runtime is over."""

    runtime: str


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline has passed."""


Input: TypeAlias = Wanted | Came | Broke | Left | Tick


@final
@attrs.frozen(slots=True)
class Start:
    """Send the request to the back end."""

    number: int


@final
@attrs.frozen(slots=True)
class Deliver:
    """Deliver the back end's answer to the requester."""

    number: int


@final
@attrs.frozen(slots=True)
class Refuse:
    """Refuse a request; if it is under way at the back end, cancel it there."""

    number: int
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class GiveUp:
    """Cancel a request at the back end: its requester is gone."""

    number: int


@final
@attrs.frozen(slots=True)
class Late:
    """Drop the back end's answer to a request that is over."""

    number: int


Effect: TypeAlias = Start | Deliver | Refuse | GiveUp | Late

_FULL: Final = "too many requests wait for the back end"
_SLOW: Final = "the back end did not answer in time"


@final
class RelayCore:
    """The open requests to one back end."""

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self._due: dict[int, float] = {}
        self._open: dict[int, Wanted] = {}
        self._waiting: deque[Wanted] = deque()
        self._running: dict[int, Wanted] = {}

    def __len__(self) -> int:
        return len(self._open)

    def deadline(self) -> float:
        """Return when a `Tick` is due; with one patience for all, the first request is next."""
        return next(iter(self._due.values()), float("inf"))

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case Wanted():
                return self._want(happened, now)
            case Came(number):
                return self._end(number, Deliver(number))
            case Broke(number, why):
                return self._end(number, Refuse(number, Code.BAD_BACKEND, why))
            case Left(runtime):
                gone = [one.number for one in self._open.values() if one.by == runtime]
                return [effect for one in gone for effect in self._end(one, GiveUp(one))]
            case Tick():
                late = [one for one, due in self._due.items() if due <= now]
                slow = [Refuse(one, Code.BACKEND_TIMEOUT, _SLOW) for one in late]
                return [effect for one in slow for effect in self._end(one.number, one)]
            case _:
                assert_never(happened)

    def _want(self, wanted: Wanted, now: float) -> list[Effect]:
        self._open[wanted.number] = wanted
        self._due[wanted.number] = now + self._limits.patience
        self._waiting.append(wanted)
        started = self._start()
        if len(self._waiting) > self._limits.waiting:
            crowded = self._crowding(wanted).number
            return [*started, *self._end(crowded, Refuse(crowded, Code.UNAVAILABLE, _FULL))]
        return started

    def _crowding(self, wanted: Wanted) -> Wanted:
        """Return what gives way: the newest request of the user that waits for most.

        Otherwise, one user could fill the queue, so that all others are refused.
        """
        waits = Counter(one.counts_for for one in self._waiting)
        user, most = waits.most_common(1)[0]
        if waits[wanted.counts_for] == most:
            return wanted
        return next(one for one in reversed(self._waiting) if one.counts_for == user)

    def _end(self, number: int, how: Effect) -> list[Effect]:
        wanted = self._open.pop(number, None)
        if wanted is None:
            return [Late(number)]
        del self._due[number]
        if self._running.pop(number, None) is None:
            self._waiting.remove(wanted)
        return [how, *self._start()]

    def _start(self) -> list[Effect]:
        """Start the requests that may start, in their order."""
        started: list[Effect] = []
        busy = {one.lane for one in self._running.values()} - {None}
        running, each = Counter(one.counts_for for one in self._running.values()), self._limits.each
        for wanted in list(self._waiting):
            if len(self._running) >= self._limits.parallel:
                break
            if wanted.lane in busy or (each is not None and running[wanted.counts_for] >= each):
                continue
            running[wanted.counts_for] += 1
            if wanted.lane is not None:
                busy.add(wanted.lane)
            self._waiting.remove(wanted)
            self._running[wanted.number] = wanted
            started.append(Start(wanted.number))
        return started
