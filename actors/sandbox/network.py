"""The network of a sandbox: it has none, so its host dials and carries the frames."""

import ssl
from collections.abc import Sequence
from itertools import count
from typing import Final

import trio
from typing_extensions import override

from actors.pipe.outlet import FrameParts, Outlet, Window
from actors.pipe.plan import PipeMessage, Word, parts_of
from specs.limits.protocol import DIAL_TIMEOUT, SANDBOX_WINDOW
from transports import errors
from transports import link as links

_DIAL_LIMIT: Final = DIAL_TIMEOUT + 1.0
"""Seconds that a dial may take; the time limit of the host ends before."""


class PipeLink(links.Link):
    """A link whose frames the host of the sandbox carries."""

    __slots__ = (
        "_arrive", "_end", "_frames", "_is_closed", "_number", "_outlet", "_parts", "_receiving",
        "_sending", "_window",
    )  # fmt: skip

    def __init__(self, number: int, kind: links.Kind, opened: PipeMessage, outlet: Outlet) -> None:
        upgrade = links.Upgrade(subprotocol=opened.get("subprotocol") or None)
        super().__init__(kind, opened.text or f"link {number}", upgrade)
        self._number: Final = number
        self._outlet: Final = outlet
        self._parts: Final = FrameParts()
        self._window: Final = Window()
        self._sending: Final = links.Turn("sending")
        self._receiving: Final = links.Turn("receiving")
        self._arrive, self._frames = trio.open_memory_channel[bytes](SANDBOX_WINDOW)
        self._end: errors.LinkBrokenError | None = None
        self._is_closed = False

    # ---- pipe messages of the host

    def take(self, item: PipeMessage) -> None:
        """Add a part of a frame; the host sends no more frames than the window permits."""
        frame = self._parts.add(item)
        if frame is not None and not self._is_closed:
            self._arrive.send_nowait(frame)

    def acknowledge(self) -> None:
        """Record that the host has sent a frame."""
        self._window.acknowledge()

    def take_end(self, item: PipeMessage) -> None:
        """Record that the link has ended."""
        code = item.get("farewell")
        close_reason = errors.CloseReason.read(int(code)) if code.isdecimal() else None
        self._end = errors.LinkBrokenError(self.name, item.text, close_reason)
        self._window.close()
        self._arrive.close()

    # ---- the contract

    @override
    async def send_many(self, frames: Sequence[bytes]) -> None:
        self._check_sizes(frames)
        with self._sending:
            for frame in frames:
                if not await self._window.enter():
                    raise self._end_error()
                for part in parts_of(self._number, frame):
                    await self._outlet.send(part)
            await trio.lowlevel.checkpoint()

    @override
    async def receive(self) -> bytes:
        with self._receiving:
            try:
                frame = await self._frames.receive()
            except (trio.EndOfChannel, trio.ClosedResourceError) as exc:
                raise self._end_error() from exc
            self._outlet.put(PipeMessage(Word.TOOK, self._number))
            return frame

    def _end_error(self) -> errors.LinkError:
        if self._is_closed or self._end is None:
            return errors.LinkClosedError(self.name)
        return self._end

    @override
    async def aclose(self, close_reason: errors.CloseReason = errors.CloseReason.DONE) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._window.close()
            self._arrive.close()
            self._frames.close()
            self._outlet.put(PipeMessage(Word.HANG, self._number, str(close_reason.value)))
        await trio.lowlevel.checkpoint()


class PipeNetwork(links.Network):
    """Dials through the pipe; the host decides whether it may."""

    no_listening = "a sandbox cannot listen"

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._numbers = count(1)
        self._dials: dict[int, tuple[links.Kind, trio.MemorySendChannel[PipeLink | str]]] = {}
        self._links: dict[int, PipeLink] = {}

    @override
    async def dial(
        self,
        kind: links.Kind,
        address: str,
        subprotocol: str | None = links.PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> links.Link:
        if tls is not None:
            raise errors.DialError(address, "a sandbox dials by the TLS of its runtime only")
        number = next(self._numbers)
        put, results = trio.open_memory_channel[PipeLink | str](1)
        self._dials[number] = kind, put
        fields = {"kind": str(kind), "subprotocol": subprotocol}
        link: PipeLink | str = "no answer in time"
        try:
            with trio.move_on_after(_DIAL_LIMIT):
                await self._outlet.send(PipeMessage(Word.DIAL, number, address, {**fields}))
                link = await results.receive()
        finally:
            del self._dials[number]
            if isinstance(link, str):
                self._outlet.put(PipeMessage(Word.HANG, number, str(errors.CloseReason.DONE.value)))
        if isinstance(link, str):
            raise errors.DialError(address, link)
        return link

    def receive(self, item: PipeMessage) -> None:
        """Handle a pipe message about a link; ignore one about a link that has ended."""
        dial = self._dials.get(item.number)
        link = self._links.get(item.number)
        match item.word:
            case Word.OPEN if dial is not None:
                kind, put = dial
                link = self._links[item.number] = PipeLink(item.number, kind, item, self._outlet)
                put.send_nowait(link)
            case Word.GONE if link is not None:
                del self._links[item.number]
                link.take_end(item)
            case Word.GONE if dial is not None:
                dial[1].send_nowait(item.text)
            case Word.DATA if link is not None:
                link.take(item)
            case Word.TOOK if link is not None:
                link.acknowledge()
            case _:
                pass
