"""The tasks by which one end of a P2P link listens and dials during one negotiation.

A network without data channels, or a process of WebRTC that fails, leaves the end without a data
channel: then its other kinds of links remain.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from actors.kit.log import get_logger
from actors.runtime.p2p import handshake
from fsm.p2p.dialling import ChannelAnswer
from fsm.p2p.link_end import Opening
from specs.bodies.object import Candidate
from specs.limits.p2p import PENDING_PROOFS
from specs.limits.webrtc import CHANNEL_TIMEOUT, MAX_ICE_CANDIDATES
from transports.errors import DialError, LinkError
from transports.link import ChannelEnd, ChannelTerms, Kind, Link, Listener

if TYPE_CHECKING:
    from actors.runtime.p2p.signalling import EndHost

_log = get_logger("actors.runtime")
_channel_log = get_logger("actors.p2p")

_Job: TypeAlias = Callable[[], Awaitable[None]]

_JOBS: Final = 16
"""Maximum number of waiting tasks: one to listen, and dials, which come one at a time."""

CHANNEL_SECRET: Final = "webrtc"  # noqa: S105 - no secret: the channel leads to one peer only
"""The secret that the first line on a data channel contains."""


class LinkWork:
    """Runs the listening and dialling of one end in one negotiation; the tasks end with it."""

    def __init__(self, end: "EndHost") -> None:
        self._end = end
        self._core, self._tls, self._stub = end.core, end.tls, end.stub
        self._context = end.stub.context
        self._negotiation = end.core.negotiation
        self._scope = trio.CancelScope()
        self._jobs, self._job_queue = trio.open_memory_channel[_Job](_JOBS)
        self._channel: ChannelEnd | None = None
        self._ice, self._ice_queue = trio.open_memory_channel[str](MAX_ICE_CANDIDATES)

    def listen(self, offer: str | None = None) -> None:
        """Listen at the own network addresses, and accept the peer.

        Args:
            offer: The session description to answer; None: there is none.
        """
        self._jobs.send_nowait(partial(self._listen, offer))

    def dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        """Dial a network address of the peer."""
        self._jobs.send_nowait(partial(self._dial, candidate, attempt))

    def hear_ice(self, candidate: str) -> None:
        """Try an ICE candidate (network address) of the peer, once a data channel exists."""
        self._ice.send_nowait(candidate)

    def cancel(self) -> None:
        """Stop listening and dialling."""
        self._scope.cancel()

    async def run(self) -> None:
        """Work until cancelled."""
        with self._jobs, self._job_queue, self._scope:
            async with trio.open_nursery() as nursery:
                async for job in self._job_queue:
                    nursery.start_soon(job)

    # --- dialling ---------------------------------------------------------------------------

    async def _dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        try:
            link = await self._dial_once(candidate)
        except LinkError:
            await self._end.report(partial(self._core.dial_failed, attempt))
        else:
            await self._end.report_link(link, Opening.DIALLED, self._negotiation)

    async def _dial_once(self, candidate: Candidate | ChannelAnswer) -> handshake.ProvenLink:
        network, entropy = self._context.network, self._context.entropy
        if isinstance(candidate, Candidate):
            return await handshake.dial_candidate(network, candidate, self._tls, entropy)
        if self._channel is None:
            raise DialError(Kind.WEBRTC, "this end has no data channel")
        with trio.move_on_after(CHANNEL_TIMEOUT):
            await self._channel.answered(candidate.sdp)
            pipe = await self._channel.opened()
            return await handshake.greet(pipe, CHANNEL_SECRET, self._tls, entropy)
        raise DialError(Kind.WEBRTC, f"no data channel within {CHANNEL_TIMEOUT:g} s")

    # --- listening --------------------------------------------------------------------------

    async def _listen(self, offer: str | None) -> None:
        remote, policy = self._core.terms.remote, self._stub.policy
        opening = handshake.open_candidates(
            self._context, policy, remote, self._tls, self._leave_out
        )
        async with (
            opening as offered,
            self._open_channel(offer) as channel,
            trio.open_nursery() as nursery,
        ):
            for candidate, listener in offered:
                nursery.start_soon(self._accept, candidate, listener)
            candidates = tuple(candidate for candidate, _ in offered)
            sdp = None if channel is None else channel.sdp
            ready = partial(self._core.candidates_ready, candidates, self._negotiation, sdp)
            await self._end.report(ready)
            if channel is not None:
                nursery.start_soon(self._hear_ice, channel)
                if offer is not None:
                    nursery.start_soon(self._accept_channel, channel)
                async for line in channel.candidates:
                    await self._end.report(partial(self._core.ice_found, line, self._negotiation))

    @asynccontextmanager
    async def _open_channel(self, offer: str | None) -> AsyncIterator[ChannelEnd | None]:
        """Offer a data channel (WebRTC), or answer an offer, if the configuration permits."""
        context, config = self._context, self._context.config
        is_possible = self._end.is_requester or offer is not None
        is_wanted = is_possible and Kind.WEBRTC in config.kinds
        async with AsyncExitStack() as stack:
            if is_wanted:
                terms = ChannelTerms(
                    context.guard().channel_certificate(),
                    config.host,
                    offer,
                    await config.ice.servers(context.bus, context.ids, context.url),
                    relay_only=config.ice.relay_only,
                )
                try:
                    opening = context.network.negotiate(terms)
                    self._channel = await stack.enter_async_context(opening)
                except DialError as exc:
                    _channel_log.warning(
                        "no data channel is offered", stub=context.url, why=exc.reason
                    )
            yield self._channel

    async def _hear_ice(self, channel: ChannelEnd) -> None:
        async for candidate in self._ice_queue:
            await channel.hear(candidate)

    async def _accept_channel(self, channel: ChannelEnd) -> None:
        with suppress(LinkError):
            pipe = await channel.opened()
            link = await handshake.welcome(pipe, CHANNEL_SECRET, self._tls, self._context.entropy)
            if link is not None:
                await self._end.report_link(link, Opening.ACCEPTED, self._negotiation)

    def _leave_out(self, kind: Kind, why: str) -> None:
        """Log once that a kind of network address cannot be opened on this machine."""
        if kind not in self._stub.kinds_left_out:
            self._stub.kinds_left_out.add(kind)
            stub = self._context.url
            _log.warning("no link of this kind is offered", kind=kind.value, why=why, stub=stub)

    async def _accept(self, candidate: Candidate, listener: Listener) -> None:
        """Let several diallers prove themselves at the same time; a new one replaces the oldest.

        So silent diallers do not block the peer, which proves itself at once.
        """
        proving: deque[trio.CancelScope] = deque()
        tls, entropy = self._tls, self._context.entropy

        async def prove(pipe: Link, scope: trio.CancelScope) -> None:
            link = None
            with scope:
                link = await handshake.welcome(pipe, candidate.secret, tls, entropy)
            with suppress(ValueError):
                proving.remove(scope)
            if link is not None:
                await self._end.report_link(link, Opening.ACCEPTED, self._negotiation)

        async with trio.open_nursery() as nursery:
            while (pipe := await self._accept_one(candidate, listener)) is not None:
                if len(proving) == PENDING_PROOFS:
                    proving.popleft().cancel()
                scope = trio.CancelScope()
                proving.append(scope)
                nursery.start_soon(prove, pipe, scope)

    async def _accept_one(self, candidate: Candidate, listener: Listener) -> Link | None:
        """Return the next incoming connection; None: the listener has ended."""
        try:
            return await listener.accept()
        except LinkError as exc:
            self._leave_out(Kind(candidate.kind), str(exc))
            return None
