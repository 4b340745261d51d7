"""Data channels whose links are exposed to faults; their set-up is not."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import final

from typing_extensions import override

from transports.link import ChannelEnd, Link


@final
class ObservedEnd(ChannelEnd):
    """Another end of a data channel; whoever observes it has its answer and its link first.

    Args:
        end: The end.
        opened: Returns what is used in the place of its link.
        answered: Is called with each answer.
    """

    def __init__(
        self,
        end: ChannelEnd,
        opened: Callable[[Link], Link],
        answered: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(end.candidates)
        self.sdp = end.sdp
        self._end = end
        self._opened = opened
        self._answered = answered

    @override
    async def answered(self, sdp: str) -> None:
        self._answered(sdp)
        await self._end.answered(sdp)

    @override
    async def hear(self, candidate: str) -> None:
        await self._end.hear(candidate)

    @override
    async def opened(self) -> Link:
        return self._opened(await self._end.opened())


@asynccontextmanager
async def exposed(
    opening: AbstractAsyncContextManager[ChannelEnd], opened: Callable[[Link], Link]
) -> AsyncIterator[ChannelEnd]:
    """Open an end whose link is exposed.

    Args:
        opening: Opens the end.
        opened: Exposes its link.

    If cancelled, nothing is left open.
    """
    async with opening as end:
        yield ObservedEnd(end, opened)
