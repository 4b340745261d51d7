"""The tasks behind one end of a P2P link: listening and dialling, until it is withdrawn."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, final

import trio

from actors.runtime.candidates import Offered, open_candidates
from actors.runtime.p2p_end import Happened, LinkEnd, LinkProven
from actors.runtime.p2p_handshake import dial_candidate, welcome
from actors.runtime.stub import StubContext
from fsm.cores.p2p_dial import DialPolicy
from fsm.cores.p2p_effect import Dial
from fsm.cores.p2p_input import CandidatesReady, DialFailed, Opening
from specs.limits import PENDING_PROOFS
from transports.errors import DialError, Farewell, LinkError
from transports.link import Link

__all__ = ["LinkWork", "Tell"]

Tell: TypeAlias = Callable[[Happened | LinkProven], Awaitable[None]]
"""Tells the stub."""

_Job: TypeAlias = Callable[[], Awaitable[None]]

_JOBS = 16
"""Jobs that may wait: one to listen, and dials, which come one at a time."""


@final
class LinkWork:
    """Runs what one end asks for, in tasks that end with it."""

    def __init__(self, context: StubContext, policy: DialPolicy, end: LinkEnd, tell: Tell) -> None:
        self._context = context
        self._policy = policy
        self._end = end
        self._tell = tell
        self._scope = trio.CancelScope()
        self._jobs, self._taken = trio.open_memory_channel[_Job](_JOBS)

    def listen(self) -> None:
        """Open the own candidates and let diallers prove themselves."""
        self._jobs.send_nowait(self._listen)

    def dial(self, dial: Dial) -> None:
        """Dial a candidate of the peer."""
        self._jobs.send_nowait(partial(self._dial, dial))

    def cancel(self) -> None:
        """Stop listening and dialling."""
        self._scope.cancel()

    async def run(self) -> None:
        """Work until cancelled."""
        with self._jobs, self._taken, self._scope:
            async with trio.open_nursery() as nursery:
                async for job in self._taken:
                    nursery.start_soon(job)

    async def _dial(self, dial: Dial) -> None:
        context, end = self._context, self._end
        try:
            link = await dial_candidate(context.network, dial.candidate, end.keys, context.entropy)
        except (DialError, LinkError):
            await self._tell(Happened(end.name, DialFailed(dial.attempt)))
        else:
            await self._tell(LinkProven(end.name, link, Opening.DIALLED))

    async def _listen(self) -> None:
        context, end = self._context, self._end
        config, fingerprint = context.config, self._policy.host
        async with (
            open_candidates(context.network, config, fingerprint, context.entropy) as offered,
            trio.open_nursery() as nursery,
        ):
            for each in offered:
                secret = bytes.fromhex(each.candidate.secret)
                end.keys.offer(each.candidate.address, secret)
                nursery.start_soon(self._accept, each)
            candidates = tuple(each.candidate for each in offered)
            await self._tell(Happened(end.name, CandidatesReady(candidates)))

    async def _accept(self, offered: Offered) -> None:
        proving = trio.CapacityLimiter(PENDING_PROOFS)
        async with trio.open_nursery() as nursery:
            while True:
                pipe = await offered.listener.accept()
                nursery.start_soon(self._welcome, pipe, offered.candidate.address, proving)

    async def _welcome(self, pipe: Link, address: str, proving: trio.CapacityLimiter) -> None:
        try:
            proving.acquire_nowait()
        except trio.WouldBlock:
            await pipe.aclose(Farewell.REFUSED)
            return
        try:
            link = await welcome(pipe, self._end.keys, address, self._context.entropy)
        finally:
            proving.release()
        if link is not None:
            await self._tell(LinkProven(self._end.name, link, Opening.ACCEPTED))
