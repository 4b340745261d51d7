"""The addresses by which others reach the objects reported here, all opened and shut together."""

from typing import final

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync.presence.registration import ObjectPlaces
from actors.runtime.sync.reporter.children import ReportedChildren
from actors.runtime.sync.reporter.moved import MovedObjects
from actors.runtime.sync.reporter.observers import Audiences
from specs.bodies.sync import DataObject

__all__ = ["ObjectDoors"]


@final
class ObjectDoors:
    """Lets each object's own address, its observers and its children lead to one listener."""

    def __init__(
        self,
        places: ObjectPlaces,
        audiences: Audiences,
        children: ReportedChildren,
        moving: MovedObjects,
    ) -> None:
        self._places = places
        self._audiences = audiences
        self._children = children
        self._moving = moving
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let all objects' addresses lead to `listener`."""
        self._listener = listener

    async def open(self, thing: DataObject) -> None:
        """Listen for an object that is reported here from now on."""
        await self._audiences.open(thing, self._listener)
        await self._places.listen(thing.url, self._listener)
        await self._children.open(thing, self._listener)

    async def leave(self, thing: DataObject) -> None:
        """Take everything of an object down, at the node, too."""
        await self.close_parts(thing)
        await self._places.leave(thing.url, self._listener)

    # --- another reporter -----------------------------------------------------------------

    async def expect(self, url: str) -> None:
        """Listen for an object that is about to be reported here."""
        await self._places.listen(url, self._listener)

    async def expect_no_more(self, url: str) -> None:
        """End it: the object stays where it was."""
        await self._places.listen_no_more(url, self._listener)

    async def open_parts(self, thing: DataObject) -> None:
        """Listen for the observers and children of an object that was expected."""
        await self._audiences.open(thing, self._listener)
        await self._children.open(thing, self._listener)

    async def close_parts(self, thing: DataObject) -> None:
        """End that, and forget both; repeated is fine."""
        await self._audiences.close(thing.url, self._listener)
        await self._children.close(thing, self._listener)

    async def pass_on(self, thing: DataObject) -> None:
        """Let another component here, the object's reporter now, hear of observers and children."""
        await self._audiences.close(thing.url, self._listener)
        await self._audiences.open(thing, self._listener)
        await self._children.passed_on(thing)

    async def give_away(self, url: str) -> None:
        """Listen no more for an object that another runtime reports now."""
        await self._moving.close(url, self._listener)
