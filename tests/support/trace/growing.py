"""A list that can be waited for."""

from collections.abc import Callable
from typing import TypeVar

import trio
from typing_extensions import override

T = TypeVar("T")


class Growing(list[T]):
    """Whoever waits for something to be in it looks again after each `append`."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = trio.lowlevel.ParkingLot()

    @override
    def append(self, item: T) -> None:
        super().append(item)
        self._waiting.unpark_all()

    async def until(self, is_enough: Callable[["Growing[T]"], bool]) -> None:
        """Wait until there is enough in it; the caller says for how long at the most."""
        while not is_enough(self):
            await self._waiting.park()
