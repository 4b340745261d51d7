"""Requests that a part of the node relays to a back end: how many, how long, for whom (CON-07).

Only so many are under way at once, and only so many wait; what is over that is refused
with 503. Requests of one lane go one after the other, in the order they came. What takes
too long, waiting included, is refused with 504. When the session of an asker ends, its
requests are given up. What comes from the back end for a request that is over is late.
"""

from collections import deque
from typing import Final, TypeAlias, assert_never, final

import attrs

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
    "Start",
    "Tick",
    "Wanted",
]


@final
@attrs.frozen(slots=True)
class RelayLimits:
    """How much one back end may be asked.

    Attributes:
        parallel: Requests under way at once.
        waiting: Requests that wait for one of them to end.
        patience: Seconds a request may take, waiting included.
    """

    parallel: int
    waiting: int
    patience: float


@final
@attrs.frozen(slots=True)
class Wanted:
    """Somebody asks.

    Attributes:
        number: Names the request; never used again.
        by: The runtime whose session it came over; None: the node itself asks.
        lane: Requests of the same lane keep their order; None: it is in none.
    """

    number: int
    by: str | None
    lane: str | None = None


@final
@attrs.frozen(slots=True)
class Came:
    """The back end has answered."""

    number: int


@final
@attrs.frozen(slots=True)
class Broke:
    """The back end cannot be asked, or answers nonsense."""

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
    """Ask the back end."""

    number: int


@final
@attrs.frozen(slots=True)
class Deliver:
    """Give the back end's answer to who asked."""

    number: int


@final
@attrs.frozen(slots=True)
class Refuse:
    """Say no to who asked; if the back end is being asked, stop that."""

    number: int
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class GiveUp:
    """Nobody is left to answer: stop asking."""

    number: int


@final
@attrs.frozen(slots=True)
class Late:
    """What the back end says of a request that is over; it is dropped."""

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
        """Return when a `Tick` is due; all are given the same time, so the first is next."""
        return next(iter(self._due.values()), float("inf"))

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Decide."""
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
            refusal = Refuse(wanted.number, Code.UNAVAILABLE, _FULL)
            return [*started, *self._end(wanted.number, refusal)]
        return started

    def _end(self, number: int, how: Effect) -> list[Effect]:
        wanted = self._open.pop(number, None)
        if wanted is None:
            return [Late(number)]
        del self._due[number]
        if self._running.pop(number, None) is None:
            self._waiting.remove(wanted)
        return [how, *self._start()]

    def _start(self) -> list[Effect]:
        """Start what may start, in the order it came."""
        started: list[Effect] = []
        busy = {one.lane for one in self._running.values()} - {None}
        for wanted in list(self._waiting):
            if len(self._running) >= self._limits.parallel:
                break
            if wanted.lane in busy:
                continue
            if wanted.lane is not None:
                busy.add(wanted.lane)
            self._waiting.remove(wanted)
            self._running[wanted.number] = wanted
            started.append(Start(wanted.number))
        return started
