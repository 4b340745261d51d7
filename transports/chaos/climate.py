"""The faults between parties, and their times."""

from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Final, Self, TypeAlias, final

import trio
from typing_extensions import override

from transports.chaos.link import CALM, ChaosLink, Climate, Course, Weather
from transports.chaos.toxics import Timeout, Toxic

__all__ = ["Trouble", "Troubles", "Way"]

Way: TypeAlias = tuple[str | None, str | None]
"""Sender and receiver; None: unknown."""


@final
class Trouble:
    """A fault between some parties, until it ends; leaving it as a context manager ends it.

    Attributes:
        toxic: The fault; None: a partition: nothing passes, and nothing is lost.
        ways: The pairs that it affects.
        since: Trio time at which it began.
    """

    def __init__(
        self, toxic: Toxic | None, ways: frozenset[Way], end: Callable[["Trouble"], None]
    ) -> None:
        """Construct it; `end` removes it.

        Args:
            toxic: The fault; None: a partition.
            ways: The pairs that it affects.
            end: Removes it from the network.
        """
        self.toxic: Final = toxic
        self.ways: Final = ways
        self.since: Final = trio.current_time()
        self._end: Final = end

    def end(self) -> None:
        """End it. Idempotent. What a partition held up is delivered."""
        self._end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()


@final
class Troubles(Climate):
    """All faults of one network, and the links that they affect."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._links: Final[dict[ChaosLink, None]] = {}
        self._now: Final[list[Trouble]] = []
        self._changed = trio.Event()

    @property
    def courses(self) -> tuple[Course, ...]:
        """Ends of the links that are neither closed nor cut; each link once, in order."""
        return tuple(dict.fromkeys(link.course for link in self._links))

    def adopt(self, link: ChaosLink) -> ChaosLink:
        """Expose a link to the faults."""
        self._links[link] = None
        return link

    def begin(self, toxic: Toxic | None, ways: frozenset[Way]) -> Trouble:
        """Begin a fault now.

        Args:
            toxic: The fault; None: a partition.
            ways: The pairs that it affects.
        """
        trouble = Trouble(toxic, ways, self._end)
        self._now.append(trouble)
        self._wake()
        return trouble

    def _end(self, trouble: Trouble) -> None:
        if trouble in self._now:
            self._now.remove(trouble)
            if isinstance(trouble.toxic, Timeout):
                # What it swallowed is lost; so is the link, then.
                for course in self.courses:
                    if {(course.dialler, course.listener), (course.listener, course.dialler)} & (
                        trouble.ways
                    ):
                        self.break_link(course)
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
        for link in tuple(self._links):
            link.wake()

    async def wait_passable(self, one: str, other: str | None) -> None:
        """Wait until frames pass in both directions.

        Args:
            one: Name of a party.
            other: Name of the other; None: unknown.

        If cancelled, only the wait ends.
        """
        while self.on((one, other)).is_held or self.on((other, one)).is_held:
            await self._changed.wait()

    def on(self, way: Way, since: float = 0.0) -> Weather:
        """Return the faults on a way.

        Args:
            way: Sender and receiver.
            since: Trio time at which the link was opened.
        """
        troubles = [trouble for trouble in self._now if way in trouble.ways]
        if not troubles:
            return CALM
        bad = [(each.toxic, max(each.since, since)) for each in troubles]
        toxics = [(toxic, begun) for toxic, begun in bad if toxic is not None]
        return Weather(
            tuple(toxic for toxic, _ in toxics),
            len(toxics) < len(bad) or any(toxic.holds for toxic, _ in toxics),
            min((begun + toxic.patience for toxic, begun in toxics), default=CALM.reset_at),
            max((toxic.linger for toxic, _ in toxics), default=CALM.linger),
        )

    @override
    def weather(self, course: Course, receiver: str | None) -> Weather:
        outward = (course.dialler, course.listener)
        return self.on(outward if receiver == course.listener else outward[::-1], course.since)

    @override
    def break_link(self, course: Course) -> None:
        for link in tuple(self._links):
            if link.course is course:
                link.cut()

    @override
    def forget(self, link: ChaosLink) -> None:
        self._links.pop(link, None)
