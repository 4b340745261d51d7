"""Where HTTP connections are taken in."""

import itertools
from functools import partial
from typing import Never, final

import trio
from typing_extensions import override

from actors.kit.actor import Actor
from actors.kit.monitor import Monitor
from actors.kit.supervisor import ChildSpec, Restart, Strategy, open_supervisor
from actors.node.http.conversation import Conversation, Place
from actors.node.http.site import Site
from fsm.limits.host_shares import HostShares
from transports.link import Listener

__all__ = ["HttpDoor"]

_MAILBOX = 1
"""Nobody tells a conversation anything."""


@final
class HttpDoor(Actor[Never]):
    """Gives each connection an actor of its own; above its host's share it is hung up.

    Args:
        listener: Where connections come from.
        site: Who answers.
        monitor: Who hears what conversations crashed with.
        shares: Connections at once, in all and of one host.
    """

    def __init__(
        self, listener: Listener, site: Site, monitor: Monitor, shares: HostShares
    ) -> None:
        self._listener = listener
        self._site = site
        self._monitor = monitor
        self._shares = shares
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
                    link = await self._listener.accept()
                    host = link.host
                    if not self._shares.enter(host):
                        await trio.aclose_forcefully(link)
                        continue
                    name = f"http:{next(self._numbers)}"
                    make = partial(Conversation, link, self._site, Place(self._shares, host))
                    spec = ChildSpec(name, make, Restart.TEMPORARY, _MAILBOX)
                    await connections.start_child(spec)
        self._has_left.set()
