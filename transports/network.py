"""The interface between the rest of the system and what carries frames."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final, TypeAlias

from transports.gate import EVERYBODY, Gate
from transports.link import PROTOFLY_V1, Kind, Link, Listener

__all__ = ["DEFAULT_DOORS", "Doors", "Network"]

Doors: TypeAlias = Mapping[str, str | None]
"""WebSocket paths that are served, each with the subprotocol that peers must ask for; None: they
need not ask for any. Other paths get HTTP 404, a missing subprotocol HTTP 400. Kinds without
paths ignore it.
"""

DEFAULT_DOORS: Final[Doors] = MappingProxyType({"/link": PROTOFLY_V1})


class Network(ABC):
    """Dials and listens; all links of one process come from one network."""

    @abstractmethod
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        """Open a link; takes at most `DIAL_TIMEOUT` seconds.

        Args:
            kind: Its carrier.
            address: `ws://host:port/path?query`, `host:port`, or the path of a socket.
            subprotocol: WebSocket subprotocol to ask for; None: for peers that expect none.

        If cancelled, nothing is left open.

        Raises:
            DialError: Nobody is there, the peer refuses, or it does not answer in time.
        """

    @abstractmethod
    def listen(
        self, kind: Kind, where: str, doors: Doors = DEFAULT_DOORS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        """Accept links while the returned context is open.

        Args:
            kind: Their carrier.
            where: `host:port`, where port 0 picks a free one; for Unix sockets the path.
            doors: WebSocket paths and subprotocols that are served.
            gate: Admits connections; only WebSockets that come from a host are asked about.

        If cancelled, the listener is closed; links that were accepted stay open.

        Raises:
            ListenError: On entering: the address is in use or not allowed.
        """
