"""What is wrong between whom, and since when."""

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
"""Who sends, and who receives; None: nobody knows."""


@final
class Trouble:
    """Something that is wrong between some ends, until it is ended.

    A context manager, too: leaving it ends it.

    Attributes:
        toxic: What is wrong; None: nothing passes, but nothing is lost either.
        ways: Where it is wrong.
        since: When it began.
    """

    def __init__(
        self, toxic: Toxic | None, ways: frozenset[Way], end: Callable[["Trouble"], None]
    ) -> None:
        """Construct it; `end` takes it out of the climate."""
        self.toxic: Final = toxic
        self.ways: Final = ways
        self.since: Final = trio.current_time()
        self._end: Final = end

    def end(self) -> None:
        """Have it over; repeated is fine. What a partition held up goes on its way."""
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
    """All that is wrong in one network, and the links that it is wrong with."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._links: Final[dict[ChaosLink, None]] = {}
        self._now: Final[list[Trouble]] = []
        self._changed = trio.Event()

    @property
    def courses(self) -> tuple[Course, ...]:
        """Between whom links are that nobody has closed or cut; each once, in order."""
        return tuple(dict.fromkeys(link.course for link in self._links))

    def adopt(self, link: ChaosLink) -> ChaosLink:
        """Expose a link to what is wrong."""
        self._links[link] = None
        return link

    def begin(self, toxic: Toxic | None, ways: frozenset[Way]) -> Trouble:
        """Have something wrong from now on."""
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
        """Wait until something passes both ways."""
        while self.on((one, other)).is_held or self.on((other, one)).is_held:
            await self._changed.wait()

    def on(self, way: Way, since: float = 0.0) -> Weather:
        """Tell what is wrong on a way, for a link opened at `since`."""
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
