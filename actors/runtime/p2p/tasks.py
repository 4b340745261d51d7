"""The tasks behind one end of a P2P link: listening and dialling.

They go on until the end is withdrawn, or offers anew: then others take their place, with
secrets of their own.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias, final

import trio

from actors.runtime.p2p.candidates import Offered, open_candidates
from actors.runtime.p2p.handshake import ProvenLink, dial_candidate, welcome
from actors.runtime.p2p.link_end import Happened, LinkEnd, LinkProven
from actors.runtime.stubs.stub import StubContext
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.effects import Dial, Listen
from fsm.p2p.inputs import CandidatesReady, DialFailed, Opening
from specs.limits.p2p import PENDING_PROOFS
from transports.errors import DialError, LinkError
from transports.link import Link

__all__ = ["LinkWork", "Tell"]

Tell: TypeAlias = Callable[[Happened | LinkProven], Awaitable[None]]
"""Tells the stub."""

_Job: TypeAlias = Callable[[], Awaitable[None]]

_JOBS = 16
"""Jobs that may wait: one to listen, and dials, which come one at a time."""


@final
class LinkWork:
    """Runs what one end asks for in one negotiation, in tasks that end with that."""

    def __init__(self, context: StubContext, policy: DialPolicy, end: LinkEnd, tell: Tell) -> None:
        self._context = context
        self._policy = policy
        self._end = end.name
        self._remote = end.remote
        self._negotiation = end.negotiation
        self._keys = end.keys
        self._tell = tell
        self._scope = trio.CancelScope()
        self._jobs, self._taken = trio.open_memory_channel[_Job](_JOBS)

    def do(self, wanted: Listen | Dial) -> None:
        """Open the own candidates and let diallers prove themselves; or dial one of the peer."""
        job = partial(self._dial, wanted) if isinstance(wanted, Dial) else self._listen
        self._jobs.send_nowait(job)

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
        network, entropy = self._context.network, self._context.entropy
        try:
            link = await dial_candidate(network, dial.candidate, self._keys, entropy)
        except (DialError, LinkError):
            await self._tell(Happened(self._end, DialFailed(dial.attempt)))
        else:
            await self._hand_over(link, Opening.DIALLED)

    async def _hand_over(self, link: ProvenLink, opening: Opening) -> None:
        """Give a link to the stub; one that it does not take any more is closed."""
        try:
            await self._tell(LinkProven(self._end, link, opening, self._negotiation))
        except BaseException:
            await trio.aclose_forcefully(link.pipe)
            raise

    async def _listen(self) -> None:
        context = self._context
        mine = self._policy, self._remote, context.entropy
        async with (
            open_candidates(context.network, context.config, *mine) as offered,
            trio.open_nursery() as nursery,
        ):
            for each in offered:
                secret = bytes.fromhex(each.candidate.secret)
                self._keys.offer(each.candidate.address, secret)
                nursery.start_soon(self._accept, each)
            candidates = tuple(each.candidate for each in offered)
            await self._tell(Happened(self._end, CandidatesReady(candidates, self._negotiation)))

    async def _accept(self, offered: Offered) -> None:
        """Let some at a time prove themselves; for one more the one that is longest there goes.

        So whoever says nothing keeps nobody out: the peer has proven itself at once.
        """
        proving: deque[trio.CancelScope] = deque()
        async with trio.open_nursery() as nursery:
            while True:
                pipe = await offered.listener.accept()
                if len(proving) == PENDING_PROOFS:
                    proving.popleft().cancel()
                patience = trio.CancelScope()
                proving.append(patience)
                nursery.start_soon(
                    self._welcome, pipe, offered.candidate.address, proving, patience
                )

    async def _welcome(
        self,
        pipe: Link,
        address: str,
        proving: deque[trio.CancelScope],
        patience: trio.CancelScope,
    ) -> None:
        link = None
        with patience:
            link = await welcome(pipe, self._keys, address, self._context.entropy)
        with suppress(ValueError):
            proving.remove(patience)
        if link is not None:
            await self._hand_over(link, Opening.ACCEPTED)
