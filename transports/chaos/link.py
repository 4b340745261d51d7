"""One end of a link with faults, which act where it receives."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Final, NoReturn, final

import attrs
import trio
from typing_extensions import override

from transports.chaos.toxics import Passing, Road, Toxic
from transports.errors import CloseReason, LinkBrokenError, LinkClosedError
from transports.link import Link, Turn

__all__ = ["CALM", "ChaosLink", "Climate", "Course", "Weather"]

_IN_FLIGHT: Final = 64
"""Frames that are read before they arrive; more wait in the link below (backpressure)."""

_RESET: Final = "the connection was reset"


@final
@attrs.frozen
class Weather:
    """The faults of one direction of a link at one time.

    Attributes:
        toxics: Faults that change frames, in the order in which they began.
        reset_at: Trio time at which the link is reset; infinity: never.
        linger: Seconds by which the end of a link is delayed.
    """

    toxics: tuple[Toxic, ...] = ()
    is_held: bool = False
    reset_at: float = math.inf
    linger: float = 0.0


CALM: Final = Weather()
"""No faults."""


@final
@attrs.frozen(eq=False)
class Course:
    """The two parties of a link; one object for both its ends.

    Attributes:
        dialler: Party that dialled; None: one of another network.
        listener: Party that listened; None: one of another network.
        since: Trio time of the dial.
    """

    dialler: str | None
    listener: str | None
    since: float


class Climate(ABC):
    """Knows the present faults, and the links of each party."""

    random: Random

    @abstractmethod
    def weather(self, course: Course, receiver: str | None) -> Weather:
        """Return the faults of a link on the way to one of its ends."""

    @abstractmethod
    def break_link(self, course: Course) -> None:
        """Break a link, at both its ends."""

    @abstractmethod
    def forget(self, link: "ChaosLink") -> None:
        """Stop to affect a link: it is closed or cut."""


@final
class ChaosLink(Link):
    """A link whose receiver suffers the faults; otherwise the link below."""

    __slots__ = (
        "_carried",
        "_climate",
        "_coming",
        "_end",
        "_is_closed",
        "_is_cut",
        "_link",
        "_own",
        "_peer",
        "_receiving",
        "_send",
        "_sending",
        "_wait",
        "course",
    )

    def __init__(
        self, link: Link, climate: Climate, course: Course, ends: tuple[str | None, str | None]
    ) -> None:
        """Construct it.

        Args:
            link: The link below.
            climate: The faults.
            course: The parties of the link.
            ends: Party of this end, and party of the other end.
        """
        self._link: Final = link
        super().__init__(link.kind, link.name, link.upgrade)
        self.guest = link.guest
        self.course: Final = course
        self._own, self._peer = ends
        self._climate: Final = climate
        self._coming: Final = deque[tuple[float, bytes]]()
        self._carried = 0
        self._end: tuple[float, LinkBrokenError] | None = None
        self._is_cut = False
        self._is_closed = False
        self._send = trio.CancelScope()
        self._wait = trio.CancelScope()
        self._sending: Final = Turn("sending")
        self._receiving: Final = Turn("receiving")

    @property  # type: ignore[explicit-override] # mypy does not see it on properties over fields
    def heard_at(self) -> float:
        """Trio time of the last sign of life, as the link below knows it."""
        return self._link.heard_at

    @heard_at.setter
    def heard_at(self, when: float) -> None:
        self._link.heard_at = when

    @property
    @override
    def host(self) -> str:
        return self._link.host

    @override
    def unread(self) -> int:
        return self._link.unread()

    # -- what the network does to it ----------------------------------------------

    def cut(self) -> None:
        """Break it abruptly: its user sees `LinkBrokenError`, and what is in flight is lost."""
        self._is_cut = True
        self._coming.clear()
        self._climate.forget(self)
        self._send.cancel()
        self.wake()

    def wake(self) -> None:
        """Read the faults again."""
        self._wait.cancel()

    # -- the contract -------------------------------------------------------------

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            if not self._is_cut:
                with trio.CancelScope() as self._send:
                    await self._pass_on(frames)
                if not self._send.cancelled_caught:
                    return
            await self._break()

    async def _pass_on(self, frames: Sequence[bytes]) -> None:
        try:
            await self._link.send_many(frames)
        except LinkClosedError as exc:
            raise self._seen(exc) from exc

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            while not (self._is_cut or self._is_closed):
                weather, now = self._weather(), trio.current_time()
                if weather.reset_at <= now:
                    self._climate.break_link(self.course)
                elif not weather.is_held and self._due() <= now:
                    return self._arrived()
                else:
                    await self._next(weather)
            if self._is_cut:
                await self._break()
            raise LinkClosedError(self.name)

    def _weather(self) -> Weather:
        return self._climate.weather(self.course, self._own)

    def _due(self) -> float:
        """Return when the next frame arrives, or else the end of the link."""
        if self._coming:
            return self._coming[0][0]
        return math.inf if self._end is None else self._end[0]

    def _arrived(self) -> bytes:
        if not self._coming and self._end is not None:
            raise self._end[1]
        return self._coming.popleft()[1]

    async def _next(self, weather: Weather) -> None:
        """Wait until a frame comes or arrives, the link ends, or the faults change."""
        due = math.inf if weather.is_held else self._due()
        with trio.CancelScope(deadline=min(weather.reset_at, due)) as self._wait:
            if weather.is_held or self._end is not None or len(self._coming) >= _IN_FLIGHT:
                await trio.sleep_forever()
            await self._read()

    async def _read(self) -> None:
        try:
            frame = await self._link.receive()
        except LinkBrokenError as exc:
            self._end = (trio.current_time() + self._weather().linger, exc)
        except LinkClosedError as exc:
            raise self._seen(exc) from exc
        else:
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        """Schedule the arrival of a frame as the toxics say; a lost one breaks the link."""
        now = trio.current_time()
        busy_until = self._coming[-1][0] if self._coming else now
        road = Road(busy_until, self._carried, self._climate.random)
        passing = Passing(len(frame), now)
        for toxic in self._weather().toxics:
            passing = toxic.touch(passing, road)
        if not passing.copies:
            self._climate.break_link(self.course)
            return
        if passing.spoilt_at is not None:
            frame = frame[: passing.spoilt_at] + b"\0" + frame[passing.spoilt_at + 1 :]
        self._carried += passing.size
        self._coming.extend([(max(passing.due, busy_until), frame)] * passing.copies)

    def _seen(self, error: LinkClosedError) -> LinkClosedError | LinkBrokenError:
        """Return the error for the user of a cut link: it was reset, not closed by this end."""
        return LinkBrokenError(self.name, _RESET) if self._is_cut else error

    async def _break(self) -> NoReturn:
        """Close the link below a cut link by force, and raise that it is broken."""
        await trio.aclose_forcefully(self._link)
        raise LinkBrokenError(self.name, _RESET)

    @override
    def ping(self) -> None:
        """Ping, unless frames are held in one of the two directions."""
        there = self._climate.weather(self.course, self._peer)
        if not (self._is_cut or there.is_held or self._weather().is_held):
            self._link.ping()

    @override
    async def rest(self, seconds: float) -> None:
        await self._link.rest(seconds)

    @override
    async def aclose(self, farewell: CloseReason = CloseReason.DONE) -> None:
        self._is_closed = True
        self._climate.forget(self)
        self.wake()
        if self._is_cut:
            await trio.aclose_forcefully(self._link)
        else:
            await self._link.aclose(farewell)
