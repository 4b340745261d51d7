"""A load balancer in front of the nodes of a domain, as a runtime has it."""

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    PROTOFLY_V1,
    Gate,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
)


class Balancer(Network):
    """Dials the node that is chosen at that moment, whatever node is named.

    Args:
        chosen: Returns the URL that is dialled for another.
    """

    def __init__(self, network: Network, chosen: Callable[[str], str]) -> None:
        self._network = network
        self._chosen = chosen

    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        return await self._network.dial(kind, self._chosen(address), subprotocol, tls)

    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._network.listen(kind, where, paths, gate)
