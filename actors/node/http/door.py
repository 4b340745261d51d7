"""Where HTTP connections are taken in."""

import itertools
from functools import partial
from typing import Never, final

import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.monitor import Monitor
from actors.kit.supervisor import ChildSpec, Restart, Strategy, open_supervisor
from actors.node.http.conversation import Conversation
from actors.node.http.site import Site
from specs.limits import HTTP_CONNECTIONS
from transports.sockets import next_stream

__all__ = ["HttpDoor"]

_MAILBOX = 1
"""Nobody tells a conversation anything."""


@final
class HttpDoor(Actor[Never]):
    """Gives each connection an actor of its own; above the limit it is hung up.

    Args:
        listener: Where connections come from.
        site: Who answers.
        monitor: Who hears what conversations crashed with.
    """

    def __init__(self, listener: trio.SocketListener, site: Site, monitor: Monitor) -> None:
        self._listener = listener
        self._site = site
        self._monitor = monitor
        self._accepting = trio.CancelScope()
        self._has_left = trio.Event()
        self._numbers = itertools.count(1)

    @override
    async def start(self) -> None:
        self.spawn(self._accept)

    @override
    async def handle(self, message: Never) -> None:
        """Nobody tells this actor anything."""

    @override
    async def farewell(self) -> None:
        self._accepting.cancel()
        await self._has_left.wait()

    async def _accept(self) -> None:
        async with open_supervisor(
            "http-connections", Strategy.PEERS, monitor=self._monitor
        ) as connections:
            with self._accepting:
                while True:
                    stream = await next_stream(self._listener)
                    if len(connections.children) >= HTTP_CONNECTIONS:
                        await trio.aclose_forcefully(stream)
                        continue
                    name = f"http:{next(self._numbers)}"
                    make = partial(Conversation, stream, self._site)
                    spec = ChildSpec(name, make, Restart.TEMPORARY, _MAILBOX)
                    await connections.start_child(spec)
        self._has_left.set()
