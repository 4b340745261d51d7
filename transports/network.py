"""The seam between everything above and what carries frames."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final, TypeAlias

from transports.gate import EVERYBODY, Gate
from transports.link import PROTOFLY_V1, Kind, Link, Listener

__all__ = ["DEFAULT_DOORS", "Doors", "Network"]

Doors: TypeAlias = Mapping[str, str | None]
"""WebSocket paths that are served, each with the subprotocol its peers must ask
for; None where they need not ask for any. Other paths get HTTP 404, a missing
subprotocol HTTP 400. Kinds without paths ignore it."""

DEFAULT_DOORS: Final[Doors] = MappingProxyType({"/link": PROTOFLY_V1})


class Network(ABC):
    """Dials and listens. All links of one process come from one network."""

    @abstractmethod
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        """Open a link; takes at most `DIAL_TIMEOUT`.

        Args:
            kind: What is to carry it.
            address: `ws://host:port/path?query`, `host:port`, or a socket path.
            subprotocol: What to ask a WebSocket for; None where the peer is not
                one of ours and expects none.

        Cancelled: nothing is left open.

        Raises:
            DialError: Nobody there, refused, or no answer in time.
        """

    @abstractmethod
    def listen(
        self, kind: Kind, where: str, doors: Doors = DEFAULT_DOORS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        """Await links while the returned context is open.

        Args:
            kind: What is to carry them.
            where: `host:port`, port 0 picks a free one; for Unix sockets the path.
            doors: Which WebSocket paths and subprotocols are served.
            gate: Who may come in; only WebSockets that come from a host are asked about.

        Raises:
            ListenError: The place is taken or not ours; raised on entering.
        """
