"""The data channel of one end of a link in one negotiation, from offer or answer to the link.

A network without data channels, or a process of WebRTC that fails, leaves the end without one:
then its other kinds of links remain.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import trio

from actors.kit.log import get_logger
from actors.runtime.stubs.stub import StubContext
from fsm.p2p.link_end import Role
from specs.limits.webrtc import MAX_ICE_CANDIDATES
from transports.errors import DialError
from transports.link import ChannelEnd, ChannelTerms, Kind, Link

_log = get_logger("actors.p2p")

CHANNEL_SECRET: Final = "webrtc"  # noqa: S105 - names the kind: the channel leads to one peer only
"""The secret of the first line on a data channel."""


class DataChannel:
    """One end of a data channel; none, until it is opened."""

    def __init__(self) -> None:
        self._end: ChannelEnd | None = None
        self._heard, self._unheard = trio.open_memory_channel[str](MAX_ICE_CANDIDATES)

    @property
    def sdp(self) -> str | None:
        """Its session description; None: there is no data channel."""
        return None if self._end is None else self._end.sdp

    @asynccontextmanager
    async def open(
        self, context: StubContext, role: Role, offer: str | None
    ) -> AsyncIterator[None]:
        """Offer a data channel, or answer an offer, where the configuration wants that.

        Args:
            context: The context of the stub.
            role: The role of this end: a requester offers, a handler answers.
            offer: The session description that the peer offers; None: there is none.
        """
        is_possible = role is Role.REQUESTER or offer is not None
        is_wanted = is_possible and Kind.WEBRTC in context.config.kinds
        async with AsyncExitStack() as stack:
            if is_wanted:
                config, guard = context.config, context.guard()
                servers = await config.ice.servers(context.bus, context.ids, context.url)
                terms = ChannelTerms(
                    guard.channel_certificate(),
                    config.host,
                    offer,
                    servers,
                    relay_only=config.ice.relay_only,
                )
                try:
                    opening = context.network.negotiate(terms)
                    self._end = await stack.enter_async_context(opening)
                except DialError as exc:
                    _log.warning("no data channel is offered", stub=context.url, why=exc.reason)
            yield

    def hear(self, candidate: str) -> None:
        """Take a candidate of ICE of the peer, for `hear_all`."""
        self._heard.send_nowait(candidate)

    async def hear_all(self) -> None:
        """Try the peer's candidates as they come, until cancelled."""
        async for candidate in self._unheard:
            if self._end is not None:
                await self._end.hear(candidate)

    async def report_all(self, report: Callable[[str], Awaitable[None]]) -> None:
        """Report the own candidates as they are found.

        Args:
            report: Takes a candidate.

        If cancelled, further ones are not reported.
        """
        if self._end is not None:
            async for candidate in self._end.candidates:
                await report(candidate)

    async def dialled(self, answer: str) -> Link:
        """Take the answer of the peer, and wait until the channel is open.

        If cancelled, no link is lost.

        Raises:
            DialError: It does not open, or there is none.
        """
        end = self._offered()
        await end.answered(answer)
        return await end.opened()

    async def accepted(self) -> Link:
        """Wait until the channel is open.

        If cancelled, no link is lost.

        Raises:
            DialError: It does not open, or there is none.
        """
        return await self._offered().opened()

    def _offered(self) -> ChannelEnd:
        if self._end is None:
            raise DialError(Kind.WEBRTC, "this end has no data channel")
        return self._end
