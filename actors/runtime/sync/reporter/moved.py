"""What an object that has changed hands has outside of its reporter (SYN-26)."""

from typing import final

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.registration import ObjectPlaces
from fsm.registry.changes_io import LocalGone, LocalLive
from specs.bodies.sync import DataObject

__all__ = ["MovedObjects"]


@final
class MovedObjects:
    """Tells the registries who reports an object now."""

    def __init__(self, context: SyncContext, places: ObjectPlaces) -> None:
        self._context = context
        self._places = places

    async def open(self, thing: DataObject) -> None:
        """Set all paths of an object that this runtime reports now, and register it here."""
        if not await self._places.renewals.renew(thing.url):
            return
        await self._context.registry.tell(LocalLive(thing.url))
        await self.announce(thing)

    async def announce(self, thing: DataObject) -> None:
        """Tell the domain registry who reports an object.

        If it does not take that, the object can be observed all the same; as with any record,
        the next keep-alive tells it again.
        """
        await self._places.register(thing)

    async def close(self, url: str, listener: ActorRef[Delivery]) -> None:
        """Take down what is here of an object that another runtime reports now."""
        await self._context.registry.tell(LocalGone(url))
        await self._places.give_away(url, listener)
