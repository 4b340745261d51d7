"""The links of a sandbox, held by its host: dials, reads and writes for it (T16)."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, final

import trio

from actors.pipe.errors import PipeError
from actors.pipe.message import PipeMessage, Word, parts_of
from actors.pipe.outlet import FrameParts, Outlet, Window
from specs.limits.protocol import GOODBYE_TIMEOUT, SANDBOX_LINKS, SANDBOX_WINDOW
from transports.errors import DialError, LinkBrokenError, LinkError
from transports.link import PROTOFLY_V1, Link, Network
from transports.urls import Endpoint, read_endpoint

_SUBPROTOCOLS: Final = (None, PROTOFLY_V1)
"""Subprotocols that a link may ask for: an endpoint names none of its own."""


@final
class _Relay:
    """One link of a sandbox, from the dial to the farewell."""

    def __init__(self, number: int, outlet: Outlet) -> None:
        self._number = number
        self._outlet = outlet
        self._parts = FrameParts()
        self._window = Window()
        self._scope = trio.CancelScope()
        self._put, self._frames = trio.open_memory_channel[bytes](SANDBOX_WINDOW)

    async def run(self, network: Network, endpoint: Endpoint, subprotocol: str | None) -> None:
        """Dial, then carry frames both ways until the link breaks or `hang`."""
        end = LinkBrokenError("", "hung up")
        with self._scope:
            try:
                link = await network.dial(endpoint.kind, endpoint.address, subprotocol)
                end = await self._live(link)
            except DialError as exc:
                end = LinkBrokenError("", exc.reason)
        code = "" if end.close_reason is None else str(end.close_reason.value)
        self._outlet.put(PipeMessage(Word.GONE, self._number, end.reason, {"farewell": code}))

    async def _live(self, link: Link) -> LinkBrokenError:
        fields = {"subprotocol": link.upgrade.subprotocol}
        self._outlet.put(PipeMessage(Word.OPEN, self._number, link.name, {**fields}))
        end = LinkBrokenError(link.name, "hung up")
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, link, nursery.cancel_scope)
                end = await self._read(link)
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await link.aclose()
        return end

    async def _read(self, link: Link) -> LinkBrokenError:
        try:
            while True:
                frame = await link.receive()
                await self._window.enter()
                for part in parts_of(self._number, frame):
                    await self._outlet.send(part)
        except LinkBrokenError as exc:
            return exc
        except LinkError as exc:
            return LinkBrokenError(link.name, str(exc))

    async def _write(self, link: Link, scope: trio.CancelScope) -> None:
        try:
            async for frame in self._frames:
                await link.send(frame)
                self._outlet.put(PipeMessage(Word.TOOK, self._number))
        except LinkError:
            # The reader of the link reports its end.
            return
        scope.cancel()

    def data(self, item: PipeMessage) -> None:
        """Take (a part of) a frame.

        Raises:
            PipeError: It is too large, or too many are unacknowledged.
        """
        frame = self._parts.add(item)
        try:
            if frame is not None:
                self._put.send_nowait(frame)
        except trio.WouldBlock:
            raise PipeError(f"more than {SANDBOX_WINDOW} frames of a link at once") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # It was in transit when the link broke.
            return

    def took(self) -> None:
        """Note that the sandbox has taken a frame."""
        self._window.taken()

    def hang(self) -> None:
        """Write what is left, briefly, then say goodbye."""
        self._scope.deadline = trio.current_time() + GOODBYE_TIMEOUT
        self._put.close()


@final
class Relays:
    """All links of one sandbox.

    Args:
        endpoints: The only places it dials, as the plan of the sandbox names them.
    """

    def __init__(self, network: Network, endpoints: Iterable[str], outlet: Outlet) -> None:
        """Take what is there.

        Raises:
            ValueError: One of the endpoints is none.
        """
        self._network = network
        self._endpoints = frozenset(map(read_endpoint, endpoints))
        self._outlet = outlet
        self._open: dict[int, _Relay] = {}

    def dial(self, item: PipeMessage) -> Callable[[], Awaitable[None]] | None:
        """Return what carries a link that the sandbox asks for; None: it may not have it."""
        asked = (item.get("kind"), item.text)
        endpoint = next((one for one in self._endpoints if (one.kind, one.address) == asked), None)
        most = SANDBOX_LINKS * len(self._endpoints)
        if endpoint is None:
            self._refuse(item, "the sandbox may not dial this")
            return None
        if (item.get("subprotocol") or None) not in _SUBPROTOCOLS:
            self._refuse(item, "the sandbox may not ask for this subprotocol")
            return None
        if item.number in self._open or len(self._open) >= most:
            self._refuse(item, "the sandbox has too many links")
            return None
        relay = self._open[item.number] = _Relay(item.number, self._outlet)
        return partial(self._carry, item, endpoint, relay)

    def _refuse(self, item: PipeMessage, why: str) -> None:
        self._outlet.put(PipeMessage(Word.GONE, item.number, why))

    async def _carry(self, item: PipeMessage, endpoint: Endpoint, relay: _Relay) -> None:
        subprotocol = item.get("subprotocol") or None
        try:
            await relay.run(self._network, endpoint, subprotocol)
        finally:
            del self._open[item.number]

    def heard(self, item: PipeMessage) -> None:
        """Take what the sandbox says of a link; of one that is gone nothing counts.

        Raises:
            PipeError: It sends more than may be unacknowledged.
        """
        relay = self._open.get(item.number)
        if relay is None:
            return
        match item.word:
            case Word.DATA:
                relay.data(item)
            case Word.TOOK:
                relay.took()
            case _:
                relay.hang()
