"""The front door: takes in links and gives each an actor of its own (CON-05)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Never, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef
from actors.kit.supervision.monitor import Monitor
from actors.kit.supervision.supervisor import (
    ChildSpec,
    Restart,
    Strategy,
    Supervisor,
    open_supervisor,
)
from actors.node.links.acceptor import Acceptor
from actors.node.messages import BusMessage
from actors.node.session.bounds import Bounds
from actors.node.session.connection import MAILBOX, Connection
from transports.errors import LinkClosedError
from transports.link import Link, Listener, Upgrade

__all__ = ["DoorMaker", "Entrance", "SessionListener"]

DoorMaker: TypeAlias = Callable[[Upgrade], Acceptor]
"""Makes the door of one link out of what its dialler asked for."""


@final
@attrs.frozen
class Entrance:
    """Where links come from, and on what terms; outlives a front door that is restarted.

    Attributes:
        listeners: Where links come from.
        doors: How each path speaks.
        numbers: Numbers of links.
        bounds: What one peer may do.
    """

    listeners: tuple[Listener, ...]
    doors: Mapping[str, DoorMaker]
    numbers: Iterator[int]
    bounds: Bounds


@final
class SessionListener(Actor[Never]):
    """Accepts links; a crash of one connection is nobody else's.

    Args:
        entrance: Where links come from.
        bus: Where everything goes.
        monitor: Who hears what connections crashed with.
    """

    def __init__(self, entrance: Entrance, bus: ActorRef[BusMessage], monitor: Monitor) -> None:
        self._entrance = entrance
        self._bus = bus
        self._monitor = monitor
        self._accepting = trio.CancelScope()
        self._has_left = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._accept)
        self.spawn(self._entrance.bounds.pulse.run)

    @override
    async def handle(self, message: Never) -> None:
        """Nobody tells this actor anything."""

    async def _accept(self) -> None:
        async with open_supervisor(
            "connections", Strategy.PEERS, monitor=self._monitor
        ) as connections:
            with self._accepting:
                async with trio.open_nursery() as nursery:
                    for listener in self._entrance.listeners:
                        nursery.start_soon(self._accept_at, listener, connections)
                await trio.sleep_forever()
        self._has_left.set()

    async def _accept_at(self, listener: Listener, connections: Supervisor) -> None:
        # Closed: the node is going down. Who is in stays until it is told so.
        with suppress(LinkClosedError):
            while True:
                await self._admit(await listener.accept(), connections)

    @override
    async def farewell(self) -> None:
        """Take in nobody any more, and let every connection finish."""
        self._accepting.cancel()
        await self._has_left.wait()

    async def _admit(self, link: Link, connections: Supervisor) -> None:
        entrance = self._entrance
        number = next(entrance.numbers)
        door = partial(entrance.doors[link.upgrade.path], link.upgrade)
        make = partial(Connection, number, link, door, self._bus, entrance.bounds)
        await connections.start_child(
            ChildSpec(f"connection:{number}", make, Restart.TEMPORARY, MAILBOX)
        )
