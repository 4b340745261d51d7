"""Data channels within one process, under any clock: negotiated as real ones, without a stack.

An end opens when both ends have the description of the other one, when one of them has heard of
an address of the other one, and when both descriptions name the certificates that are shown.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final, final

import trio
from typing_extensions import override

from specs.bodies.sdp import Description, read_description, read_ice, write_description
from specs.errors import BadMessageError
from transports.channel_terms import ChannelTerms
from transports.errors import DialError
from transports.link import ChannelEnd, Kind, Link

_PORT: Final = 50_000


@final
class _MemoryEnd(ChannelEnd):
    """One end, and what it knows of the other one."""

    def __init__(self, number: int, terms: ChannelTerms, channels: "MemoryChannels") -> None:
        found, candidates = trio.open_memory_channel[str](2)
        super().__init__(candidates)
        digest = hashlib.sha256(terms.certificate.der).digest()
        self.is_offering: Final = terms.offer is None
        self.own: Final = Description(
            f"end{number:04}", f"{number:022}", f"sha-256 {digest.hex(':').upper()}"
        )
        self.sdp = write_description(self.own, "offer" if self.is_offering else "answer")
        self.port: Final = _PORT + number
        self.heard: Final[set[int]] = set()
        self.remote: Description | None = None
        self.link: Link | None = None
        self._channels: Final = channels
        self._is_decided: Final = trio.Event()
        self._is_taken = False
        if not terms.relay_only:
            found.send_nowait(f"candidate:1 1 udp 1 {terms.host} {self.port} typ host")
        found.send_nowait("")
        found.close()

    def described(self, sdp: str, kind: str) -> None:
        """Take the description of the other end; one that cannot be read ends this one."""
        try:
            self.remote = read_description(sdp, kind)
        except BadMessageError:
            self.decide(None)
        self._channels.connect(self)

    def decide(self, link: Link | None) -> None:
        """Open with a link, or never."""
        self.link = link
        self._is_decided.set()

    @property
    def is_decided(self) -> bool:
        """True if it has its link, or gets none."""
        return self._is_decided.is_set()

    @override
    async def answered(self, sdp: str) -> None:
        await trio.lowlevel.checkpoint()
        self.described(sdp, "answer")

    @override
    async def hear(self, candidate: str) -> None:
        await trio.lowlevel.checkpoint()
        with suppress(BadMessageError):
            address = read_ice(candidate)
            if address is not None:
                self.heard.add(address.port)
                self._channels.connect(self)

    @override
    async def opened(self) -> Link:
        await self._is_decided.wait()
        if self.link is None or self._is_taken:
            raise DialError(Kind.WEBRTC, "the data channel does not open")
        self._is_taken = True
        return self.link


@final
class MemoryChannels:
    """The data channels of one network.

    Args:
        wire: Makes a link; returns the end that offered, and the other one.
    """

    def __init__(self, wire: Callable[[], tuple[Link, Link]]) -> None:
        self._wire: Final = wire
        self._ends: Final[dict[str, _MemoryEnd]] = {}
        self._numbers: Final = count(1)

    @asynccontextmanager
    async def negotiate(self, terms: ChannelTerms) -> AsyncIterator[ChannelEnd]:
        """Open one end (see `Network.negotiate`)."""
        end = _MemoryEnd(next(self._numbers), terms, self)
        self._ends[end.own.user] = end
        try:
            await trio.lowlevel.checkpoint()
            if terms.offer is not None:
                end.described(terms.offer, "offer")
            yield end
        finally:
            del self._ends[end.own.user]
            if end.link is not None:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(end.link)

    def connect(self, end: _MemoryEnd) -> None:
        """Connect an end with the one that it knows, if everything fits."""
        here = end.remote
        other = None if here is None else self._ends.get(here.user)
        there = None if other is None else other.remote
        if here is None or other is None or there is None or there.user != end.own.user:
            return
        is_reached = end.port in other.heard or other.port in end.heard
        if not is_reached or end.is_decided or other.is_decided:
            return
        refusing = [
            one
            for one, said, two in ((end, here, other), (other, there, end))
            if said.fingerprint != two.own.fingerprint
        ]
        for one in refusing:
            one.decide(None)
        if not refusing:
            links = self._wire()
            for one in (end, other):
                one.decide(links[0 if one.is_offering else 1])
