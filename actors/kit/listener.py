"""The actor that accepts links."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Never

import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import Monitor, Strategy, Supervisor, open_supervisor
from transports.errors import LinkClosedError
from transports.link import Link, Listener


class ListenerActor(Actor[Never], ABC):
    """Accepts links; each is served by a child, whose crash affects no other.

    Args:
        name: Name of the supervisor of the children.
        listeners: Sources of links.
        monitor: Takes the exceptions of children.
    """

    def __init__(self, name: str, listeners: Iterable[Listener], monitor: Monitor) -> None:
        self._children = name
        self._listeners = listeners
        self._monitor = monitor
        self._accepting = trio.CancelScope()
        self._has_left = trio.Event()

    @override
    async def start(self) -> None:
        self.spawn(self._accept)

    @override
    async def handle(self, message: Never) -> None:
        """This actor receives no messages."""

    async def _accept(self) -> None:
        async with open_supervisor(
            self._children, Strategy.PEERS, monitor=self._monitor
        ) as connections:
            with self._accepting:
                async with trio.open_nursery() as nursery:
                    for listener in self._listeners:
                        nursery.start_soon(self._accept_at, listener, connections)
                await trio.sleep_forever()
        self._has_left.set()

    async def _accept_at(self, listener: Listener, connections: Supervisor) -> None:
        # Closed: the node is going down. Accepted links stay until they are ordered to leave.
        with suppress(LinkClosedError):
            while True:
                await self.admit(await listener.accept(), connections)

    @abstractmethod
    async def admit(self, link: Link, connections: Supervisor) -> None:
        """Start the child that serves a link, or close the link.

        Args:
            link: The link.
            connections: Supervisor of the connections.
        """

    @override
    async def closing(self) -> None:
        """Accept no more links, and let every connection finish."""
        self._accepting.cancel()
        await self._has_left.wait()
