"""The front door: takes in links and gives each an actor of its own (CON-05)."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Never, TypeAlias, final

import trio
from typing_extensions import override

from actors.kit.actor import Actor, ActorRef
from actors.kit.monitor import Monitor
from actors.kit.supervisor import ChildSpec, Restart, Supervisor, open_supervisor
from actors.node.bus_message import BusMessage
from actors.node.connection import MAILBOX, Connection
from actors.node.door import Door
from transports.link import Link, Listener, Upgrade

__all__ = ["DoorMaker", "FrontDoor"]

DoorMaker: TypeAlias = Callable[[Upgrade], Door]
"""Makes the door of one link out of what its dialler asked for."""


@final
class FrontDoor(Actor[Never]):
    """Accepts links; a crash of one connection is nobody else's.

    Args:
        listener: Where links come from.
        doors: How each path speaks.
        numbers: Numbers of links; go on counting when this actor is restarted.
        bus: Where everything goes.
        monitor: Who hears what connections crashed with; its counters count them.
    """

    def __init__(
        self,
        listener: Listener,
        doors: Mapping[str, DoorMaker],
        numbers: Iterator[int],
        bus: ActorRef[BusMessage],
        monitor: Monitor,
    ) -> None:
        self._listener = listener
        self._doors = doors
        self._numbers = numbers
        self._bus = bus
        self._monitor = monitor
        self._accepting = trio.CancelScope()
        self._has_left = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._accept)

    @override
    async def handle(self, message: Never) -> None:
        """Nobody tells this actor anything."""

    async def _accept(self) -> None:
        async with open_supervisor("connections", monitor=self._monitor) as connections:
            with self._accepting:
                while True:
                    await self._admit(await self._listener.accept(), connections)
        self._has_left.set()

    @override
    async def farewell(self) -> None:
        """Take in nobody any more, and let every connection finish."""
        self._accepting.cancel()
        await self._has_left.wait()

    async def _admit(self, link: Link, connections: Supervisor) -> None:
        number = next(self._numbers)
        door = partial(self._doors[link.upgrade.path], link.upgrade)
        make = partial(Connection, number, link, door, self._bus, self._monitor.counters)
        await connections.start_child(
            ChildSpec(f"connection:{number}", make, Restart.TEMPORARY, MAILBOX)
        )
