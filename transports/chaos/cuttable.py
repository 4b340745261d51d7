"""A network whose links can be cut on purpose, like a cable (OBS-04)."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, final

import trio
from typing_extensions import override

from transports.errors import CloseReason, LinkBrokenError, LinkClosedError
from transports.gate import EVERYBODY, Gate
from transports.link import DEFAULT_PATHS, PROTOFLY_V1, Kind, Link, Listener, Network, ServedPaths

__all__ = ["CuttableNetwork"]


@final
class CuttableLink(Link):
    """A link that can be cut; otherwise the link below."""

    __slots__ = ("_forget", "_is_cut", "_link")

    def __init__(self, link: Link, forget: "Callable[[CuttableLink], None]") -> None:
        super().__init__(link.kind, link.name, link.upgrade)
        self._link: Final = link
        self._forget: Final = forget
        self.guest = link.guest
        self._is_cut = False

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        try:
            await self._link.send_many(frames)
        except LinkClosedError as exc:
            raise self._seen(exc) from exc

    @override
    async def receive(self) -> bytes:
        try:
            return await self._link.receive()
        except LinkClosedError as exc:
            raise self._seen(exc) from exc

    def _seen(self, error: LinkClosedError) -> LinkClosedError | LinkBrokenError:
        """Return the error for the user of a cut link: it was reset, not closed by this end."""
        return LinkBrokenError(self.name, "the connection was reset") if self._is_cut else error

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        self._forget(self)
        await self._link.aclose(close_reason)

    async def cut(self) -> None:
        """Close the link below by force: both ends see `LinkBrokenError`. Idempotent.

        If cancelled, the link is cut all the same.
        """
        self._is_cut = True
        self._forget(self)
        await trio.aclose_forcefully(self._link)


@final
class _CuttableListener(Listener):
    __slots__ = ("_adopt", "_listener")

    def __init__(self, listener: Listener, adopt: Callable[[Link], CuttableLink]) -> None:
        super().__init__(listener.address)
        self._listener: Final = listener
        self._adopt: Final = adopt

    @override
    async def accept(self) -> Link:
        return self._adopt(await self._listener.accept())


@final
class CuttableNetwork(Network):
    """Another network, whose open links it knows.

    Attributes:
        links: Dialled and accepted links that are neither closed nor cut, oldest first.
    """

    def __init__(self, network: Network) -> None:
        self._network: Final = network
        self.links: Final[list[CuttableLink]] = []

    async def cut(self, choose: Callable[[Link], bool]) -> int:
        """Cut the chosen links; return how many.

        Args:
            choose: Returns whether a link is to be cut.

        If cancelled, some of them are cut.
        """
        chosen = [link for link in self.links if choose(link)]
        for link in chosen:
            await link.cut()
        return len(chosen)

    def _adopt(self, link: Link) -> CuttableLink:
        adopted = CuttableLink(link, self._forget)
        self.links.append(adopted)
        return adopted

    def _forget(self, link: CuttableLink) -> None:
        if link in self.links:
            self.links.remove(link)

    @override
    async def dial(self, kind: Kind, address: str, subprotocol: str | None = PROTOFLY_V1) -> Link:
        return self._adopt(await self._network.dial(kind, address, subprotocol))

    @override
    @asynccontextmanager
    async def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AsyncIterator[Listener]:
        async with self._network.listen(kind, where, paths, gate) as listener:
            yield _CuttableListener(listener, self._adopt)
