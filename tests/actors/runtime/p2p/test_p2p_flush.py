"""A direct link is written to at the end of a turn, and by its task what is left (P2P-20)."""

from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.trace import NULL_TRACER
from actors.runtime.p2p.link import P2PLink
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.identity import SenderIdentity
from specs.message import Message, MessageType
from tests.support.runtime.p2p_bus import KeepingPort
from transports.errors import CloseReason, LinkClosedError
from transports.link import Kind, Link, Upgrade
from transports.memory import MemoryNetwork

STUB = "hyperty-runtime://a.ex/ra/p2prequester/1"


class Pipe(Link):
    """A link that can be written to at once, and notes what is written which way.

    Attributes:
        takes_all: Whether what is written at once leaves at once.
    """

    def __init__(self) -> None:
        super().__init__(Kind.UNIX, "pipe", Upgrade())
        self._said, self._heard = trio.open_memory_channel[bytes](10)
        self.at_once: list[bytes] = []
        self.by_task: list[bytes] = []
        self.takes_all = True
        self._is_clear = True

    @property
    @override
    def is_clear(self) -> bool:
        return self._is_clear

    @override
    def write_now(self, frames):
        self.at_once += frames
        self._is_clear = self.takes_all
        return self.takes_all

    @override
    async def send_many(self, frames):
        await trio.lowlevel.checkpoint()
        self._is_clear = True
        self.by_task += frames

    def say(self, frame: bytes) -> None:
        self._said.send_nowait(frame)

    @override
    async def receive(self) -> bytes:
        try:
            return await self._heard.receive()
        except trio.ClosedResourceError:
            raise LinkClosedError(self.name) from None

    @override
    async def aclose(self, close_reason: CloseReason = CloseReason.DONE) -> None:
        self._said.close()
        self._heard.close()
        await trio.lowlevel.checkpoint()


def message(number: int) -> Message:
    return Message(number, MessageType.READ, "hyperty://a.ex/1", "hyperty://b.ex/2", {})


@asynccontextmanager
async def open_link():
    pipe = Pipe()
    config = StubConfig("hyperty-runtime://a.ex/ra", "a.ex")
    parts = (KeepingPort(STUB), config, MemoryNetwork(), NULL_TRACER, IdSource(), bytes)
    context = StubContext(STUB, *parts, Counters())
    link = P2PLink(("x", pipe), context, STUB, SenderIdentity("b"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.run)
        await wait_all_tasks_blocked()
        yield link, pipe
        link.break_off()


@pytest.fixture
async def opened():
    async with open_link() as opened:
        yield opened


async def test_a_link_that_is_broken_off_is_not_written_to(opened):
    link, pipe = opened
    link.send(message(1))
    link.break_off()
    link.flush()

    assert pipe.at_once == []
    assert [one.id for one in link.take_unacknowledged()] == [1]
