"""A network that tells which candidates a runtime offers and which one it dials."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, final

from typing_extensions import override

from actors.demo.act import Beat
from actors.demo.line import What, tell
from transports.gate import EVERYBODY, Gate
from transports.link import PROTOFLY_V1, Kind, Link, Listener
from transports.network import DEFAULT_DOORS, Doors, Network

__all__ = ["WatchedNetwork"]


@final
class WatchedNetwork(Network):
    """Another network; what is listened on and dialled for a link is told.

    Args:
        who: Name of the process, for the lines.
        network: Does the work.
        node: Where the message node is: a link there is none between runtimes.
    """

    def __init__(self, who: str, network: Network, node: str) -> None:
        self._who: Final = who
        self._network: Final = network
        self._node: Final = node

    @override
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        link = await self._network.dial(kind, address, subprotocol)
        if address != self._node:
            tell(self._who, What.STEP, f"dials the candidate {kind} {address}", Beat.DIALLED)
        return link

    @override
    def listen(
        self, kind: Kind, where: str, doors: Doors = DEFAULT_DOORS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._listening(kind, where, doors, gate)

    @asynccontextmanager
    async def _listening(
        self, kind: Kind, where: str, doors: Doors, gate: Gate
    ) -> AsyncIterator[Listener]:
        async with self._network.listen(kind, where, doors, gate) as listener:
            text = f"offers the candidate {kind} {listener.address}"
            tell(self._who, What.STEP, text, Beat.CANDIDATE, kind=kind, address=listener.address)
            yield listener
