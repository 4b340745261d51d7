"""What the reporter of an object has to do with its observers (SYN-11, SYN-18, SYN-21, SYN-23)."""

from typing import Final

import trio

from actors.runtime.objects.context import Seat
from actors.runtime.objects.observers import ObserverMoves
from specs.bodies.observers import ObserverName
from specs.bodies.sync import ObjectName
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import MessageType
from transports.bodies import write_body

__all__ = ["Attended"]


class Attended:
    """An object that others observe, as its reporter has it in hand.

    Attributes:
        url: Its address, by which it is observed.
    """

    def __init__(self, seat: Seat, url: str) -> None:
        self.url: Final = url
        self._seat = seat
        self._audience = seat.audiences.take(url)

    @property
    def observers(self) -> tuple[str, ...]:
        """Who observes now, in the order they came."""
        return self._audience.observers

    def observer_changes(self) -> ObserverMoves:
        """Go through who comes and leaves from now on: `async for move in …`.

        Each is an `ObserverJoined` or `ObserverLeft`. Whoever reads too slowly gets the
        difference instead; taken in order they always lead to `observers`. The loop ends
        with the object.
        """
        return self._audience.moves()

    async def allow(self, observer: str) -> None:
        """Let a hyperty observe and read the object without being asked; it is told nothing.

        Raises:
            ObjectError: 413 too many are allowed, 404 the object is deleted, 410 the
                hyperty is undeployed.
        """
        body = write_body(ObserverName(self.url, observer))
        await self._seat.ask_manager(MessageType.CREATE, body, self.url)

    async def expel(self, observer: str) -> None:
        """Shut a hyperty out: when this returns, nothing more is published to it.

        It is told, and is not waited for. It may ask again, also if the object is public:
        then `on_subscribe` decides. Whoever does not observe loses its allowance.

        Cancelled: it may be out, and not told.

        Raises:
            ObjectError: 404 the object is deleted, 410 the hyperty is undeployed.
        """
        body = write_body(ObserverName(self.url, observer))
        await self._seat.ask_manager(MessageType.UNSUBSCRIBE, body, self.url)
        await self._seat.post(observer, MessageType.UNSUBSCRIBE, write_body(ObjectName(self.url)))
        # What is told of it comes by the mailbox, which may be behind.
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._audience.wait_without(observer)
