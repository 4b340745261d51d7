"""The tasks of one end of a P2P link in one negotiation: they listen, dial, and name what opens."""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

import attrs
import trio

from actors.kit.log import get_logger
from actors.runtime.p2p import handshake
from actors.runtime.p2p.data_channel import CHANNEL_SECRET, DataChannel
from actors.runtime.stubs.stub import StubContext
from fsm.p2p.dialling import ChannelAnswer, DialPolicy
from fsm.p2p.link_end import LinkEnd, Opening, Role
from specs.bodies.object import Candidate
from specs.limits.p2p import PENDING_PROOFS
from specs.limits.webrtc import CHANNEL_TIMEOUT
from transports.errors import DialError, LinkError
from transports.link import Kind as LinkKind
from transports.link import Link
from transports.tls import PinnedTls

_log = get_logger("actors.runtime")

_Job: TypeAlias = Callable[[], Awaitable[None]]

_JOBS: Final = 16
"""Jobs that may wait: one to listen, and dials, which come one at a time."""


@attrs.frozen(slots=True)
class EndEvent:
    """A task of the stub reports an event of one end.

    Attributes:
        end: Address of the end: PQ or PC.
        tell: Tells the end, in the stub's own task.
    """

    end: str
    tell: Callable[[], None]


@attrs.frozen(slots=True)
class LinkProven:
    """A link is open, and its other end is the peer; the stub decides whether it is used.

    Attributes:
        negotiation: The one that its candidate is of.
    """

    end: str
    link: handshake.ProvenLink
    opening: Opening
    negotiation: int


Report: TypeAlias = Callable[[EndEvent | LinkProven], Awaitable[None]]
"""Sends a message to the stub."""


class LinkWork:
    """Runs what one end asks for in one negotiation, in tasks that end with that."""

    def __init__(
        self,
        context: StubContext,
        policy: DialPolicy,
        core: LinkEnd,
        tls: PinnedTls,
        report: Report,
        left_out: set[LinkKind] | None = None,
    ) -> None:
        self._context = context
        self._policy = policy
        self._core = core
        self._end = core.terms.name
        self._role = Role.REQUESTER if self._end == context.url else Role.HANDLER
        self._remote = core.terms.remote
        self._negotiation = core.negotiation
        self._tls = tls
        self._report = report
        self._kinds_left_out = set[LinkKind]() if left_out is None else left_out
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
            await self._tell(partial(self._core.dial_failed, attempt))
        else:
            await self._hand_over(link, Opening.DIALLED)

    async def _dialled(self, candidate: Candidate | ChannelAnswer) -> handshake.ProvenLink:
        network, entropy = self._context.network, self._context.entropy
        if isinstance(candidate, Candidate):
            return await handshake.dial_candidate(network, candidate, self._tls, entropy)
        with trio.move_on_after(CHANNEL_TIMEOUT):
            pipe = await self._channel.dialled(candidate.sdp)
            return await handshake.greet(pipe, CHANNEL_SECRET, self._tls, entropy)
        raise DialError(LinkKind.WEBRTC, f"no data channel within {CHANNEL_TIMEOUT:g} s")

    async def _hand_over(self, link: handshake.ProvenLink, opening: Opening) -> None:
        """Give a link to the stub; one that it does not take any more is closed."""
        try:
            await self._report(LinkProven(self._end, link, opening, self._negotiation))
        except BaseException:
            await trio.aclose_forcefully(link.pipe)
            raise

    async def _listen(self, offer: str | None) -> None:
        context, channel, negotiation = self._context, self._channel, self._negotiation
        meeting = handshake.Meeting(self._policy, self._remote, self._tls)
        async with (
            handshake.open_candidates(
                context.network, context.config, meeting, context.entropy, self._leave_out
            ) as offered,
            channel.open(context, self._role, offer),
            trio.open_nursery() as nursery,
        ):
            for each in offered:
                nursery.start_soon(self._accept, each)
            candidates = tuple(each.candidate for each in offered)
            await self._tell(
                partial(self._core.candidates_ready, candidates, negotiation, channel.sdp)
            )
            nursery.start_soon(channel.hear_all)
            if offer is not None:
                nursery.start_soon(self._accept_channel)
            await channel.report_all(self._found)

    def _leave_out(self, kind: LinkKind, why: str) -> None:
        """Warn of a kind of candidate that cannot be opened here; others are tried."""
        if kind not in self._kinds_left_out:
            self._kinds_left_out.add(kind)
            stub = self._context.url
            _log.warning("no link of this kind is offered", kind=kind.value, why=why, stub=stub)

    async def _found(self, candidate: str) -> None:
        await self._tell(partial(self._core.ice_found, candidate, self._negotiation))

    async def _tell(self, tell: Callable[[], None]) -> None:
        await self._report(EndEvent(self._end, tell))

    async def _accept_channel(self) -> None:
        with suppress(LinkError):
            pipe = await self._channel.accepted()
            link = await handshake.welcome(pipe, CHANNEL_SECRET, self._tls, self._context.entropy)
            if link is not None:
                await self._hand_over(link, Opening.ACCEPTED)

    async def _accept(self, offered: handshake.Offered) -> None:
        """Let some at a time prove themselves; for one more the one that is longest there goes.

        So a silent dialler keeps no other out: the peer has proven itself at once.
        """
        proving: deque[trio.CancelScope] = deque()
        async with trio.open_nursery() as nursery:
            while (pipe := await self._accepted(offered)) is not None:
                if len(proving) == PENDING_PROOFS:
                    proving.popleft().cancel()
                patience = trio.CancelScope()
                proving.append(patience)
                nursery.start_soon(self._welcome, pipe, offered.candidate, proving, patience)

    async def _accepted(self, offered: handshake.Offered) -> Link | None:
        """Return the next connection; None: the listener has ended."""
        try:
            return await offered.listener.accept()
        except LinkError as exc:
            self._leave_out(LinkKind(offered.candidate.kind), str(exc))
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
