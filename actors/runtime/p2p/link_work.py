"""The tasks of one end of a P2P link in one negotiation: they listen, dial, and name what opens.

A network without data channels, or a process of WebRTC that fails, leaves the end without one:
then its other kinds of links remain.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from actors.kit.log import get_logger
from actors.runtime.p2p import handshake
from actors.runtime.stubs.stub import StubContext
from fsm.p2p.dialling import ChannelAnswer
from fsm.p2p.link_end import LinkEnd, Opening, Role
from specs.bodies.object import Candidate
from specs.limits.p2p import PENDING_PROOFS
from specs.limits.webrtc import CHANNEL_TIMEOUT, MAX_ICE_CANDIDATES
from transports.errors import DialError, LinkError
from transports.link import ChannelEnd, ChannelTerms, Kind, Link, Listener
from transports.tls import PinnedTls

if TYPE_CHECKING:
    from actors.runtime.p2p.stub import P2PStub

_log = get_logger("actors.runtime")
_channel_log = get_logger("actors.p2p")

_Job: TypeAlias = Callable[[], Awaitable[None]]

_JOBS: Final = 16
"""Jobs that may wait: one to listen, and dials, which come one at a time."""


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
                    _channel_log.warning(
                        "no data channel is offered", stub=context.url, why=exc.reason
                    )
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


class LinkWork:
    """Runs what one end asks for in one negotiation, in tasks that end with that."""

    def __init__(self, stub: "P2PStub", core: LinkEnd, tls: PinnedTls) -> None:
        self._stub = stub
        self._context = stub.context
        self._core = core
        self._end = core.terms.name
        self._negotiation = core.negotiation
        self._tls = tls
        self._scope = trio.CancelScope()
        self._channel = DataChannel()
        self._jobs, self._taken = trio.open_memory_channel[_Job](_JOBS)

    def listen(self, offer: str | None = None) -> None:
        """Open the own candidates and let the peer in.

        Args:
            offer: The session description that is answered; None: there is none.
        """
        self._jobs.send_nowait(partial(self._listen, offer))

    def dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        """Dial a candidate of the peer."""
        self._jobs.send_nowait(partial(self._dial, candidate, attempt))

    def hear_ice(self, candidate: str) -> None:
        """Try a candidate of ICE of the peer."""
        self._channel.hear(candidate)

    def cancel(self) -> None:
        """Stop listening and dialling."""
        self._scope.cancel()

    async def run(self) -> None:
        """Work until cancelled."""
        with self._jobs, self._taken, self._scope:
            async with trio.open_nursery() as nursery:
                async for job in self._taken:
                    nursery.start_soon(job)

    async def _dial(self, candidate: Candidate | ChannelAnswer, attempt: int) -> None:
        try:
            link = await self._dialled(candidate)
        except LinkError:
            await self._stub.report(self._end, partial(self._core.dial_failed, attempt))
        else:
            await self._hand_over(link, Opening.DIALLED)

    async def _dialled(self, candidate: Candidate | ChannelAnswer) -> handshake.ProvenLink:
        network, entropy = self._context.network, self._context.entropy
        if isinstance(candidate, Candidate):
            return await handshake.dial_candidate(network, candidate, self._tls, entropy)
        with trio.move_on_after(CHANNEL_TIMEOUT):
            pipe = await self._channel.dialled(candidate.sdp)
            return await handshake.greet(pipe, CHANNEL_SECRET, self._tls, entropy)
        raise DialError(Kind.WEBRTC, f"no data channel within {CHANNEL_TIMEOUT:g} s")

    async def _hand_over(self, link: handshake.ProvenLink, opening: Opening) -> None:
        """Give a link to the stub; one that it does not take any more is closed."""
        try:
            await self._stub.report_link(self._end, link, opening, self._negotiation)
        except BaseException:
            await trio.aclose_forcefully(link[1])
            raise

    async def _listen(self, offer: str | None) -> None:
        context, channel, negotiation = self._context, self._channel, self._negotiation
        opening = handshake.open_candidates(
            context.network,
            context.config,
            self._stub.policy,
            self._core.terms.remote,
            self._tls,
            context.entropy,
            self._leave_out,
        )
        role = Role.REQUESTER if self._end == context.url else Role.HANDLER
        async with (
            opening as offered,
            channel.open(context, role, offer),
            trio.open_nursery() as nursery,
        ):
            for candidate, listener in offered:
                nursery.start_soon(self._accept, candidate, listener)
            candidates = tuple(candidate for candidate, _ in offered)
            ready = partial(self._core.candidates_ready, candidates, negotiation, channel.sdp)
            await self._stub.report(self._end, ready)
            nursery.start_soon(channel.hear_all)
            if offer is not None:
                nursery.start_soon(self._accept_channel)
            await channel.report_all(self._found)

    def _leave_out(self, kind: Kind, why: str) -> None:
        """Warn of a kind of candidate that cannot be opened here; others are tried."""
        if kind not in self._stub.kinds_left_out:
            self._stub.kinds_left_out.add(kind)
            stub = self._context.url
            _log.warning("no link of this kind is offered", kind=kind.value, why=why, stub=stub)

    async def _found(self, candidate: str) -> None:
        found = partial(self._core.ice_found, candidate, self._negotiation)
        await self._stub.report(self._end, found)

    async def _accept_channel(self) -> None:
        with suppress(LinkError):
            pipe = await self._channel.accepted()
            link = await handshake.welcome(pipe, CHANNEL_SECRET, self._tls, self._context.entropy)
            if link is not None:
                await self._hand_over(link, Opening.ACCEPTED)

    async def _accept(self, candidate: Candidate, listener: Listener) -> None:
        """Let some at a time prove themselves; for one more the one that is longest there goes.

        So a silent dialler keeps no other out: the peer has proven itself at once.
        """
        proving: deque[trio.CancelScope] = deque()
        async with trio.open_nursery() as nursery:
            while (pipe := await self._accepted(candidate, listener)) is not None:
                if len(proving) == PENDING_PROOFS:
                    proving.popleft().cancel()
                patience = trio.CancelScope()
                proving.append(patience)
                nursery.start_soon(self._welcome, pipe, candidate, proving, patience)

    async def _accepted(self, candidate: Candidate, listener: Listener) -> Link | None:
        """Return the next connection; None: the listener has ended."""
        try:
            return await listener.accept()
        except LinkError as exc:
            self._leave_out(Kind(candidate.kind), str(exc))
            return None

    async def _welcome(
        self,
        pipe: Link,
        candidate: Candidate,
        proving: deque[trio.CancelScope],
        patience: trio.CancelScope,
    ) -> None:
        link = None
        with patience:
            link = await handshake.welcome(pipe, candidate.secret, self._tls, self._context.entropy)
        with suppress(ValueError):
            proving.remove(patience)
        if link is not None:
            await self._hand_over(link, Opening.ACCEPTED)
