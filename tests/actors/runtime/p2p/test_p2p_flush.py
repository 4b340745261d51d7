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
from specs.limits.p2p import ACK_DELAY
from specs.message import Message, MessageType
from tests.support.runtime.p2p_bus import KeepingPort
from transports.errors import CloseReason, LinkClosedError
from transports.link import Kind, Link, Upgrade
from transports.memory import MemoryNetwork

STUB = "hyperty-runtime://a.ex/ra/p2prequester/1"
ACK = b'{"p2p":"ack","seq":1}'


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


def numbers(written: list[bytes]) -> list[list[int]]:
    """Return the ids of messages, frame by frame."""
    return [
        [int(line[6 : line.index(b",")]) for line in frame.split(b"\n") if b'"id"' in line]
        for frame in written
    ]


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


async def test_all_of_a_turn_is_one_frame_at_its_end_and_none_of_the_task(opened):
    link, pipe = opened
    for number in (1, 2, 3):
        assert link.send(message(number))
    assert pipe.at_once == []

    link.flush()
    assert numbers(pipe.at_once) == [[1, 2, 3]]
    await wait_all_tasks_blocked()
    assert pipe.by_task == []


async def test_the_task_writes_what_comes_while_the_pipe_is_not_clear(opened):
    link, pipe = opened
    pipe.takes_all = False
    link.send(message(1))
    link.flush()
    link.send(message(2))
    link.flush()
    assert numbers(pipe.at_once) == [[1]]

    await wait_all_tasks_blocked()
    assert numbers(pipe.by_task) == [[2]]


async def test_an_acknowledgement_goes_with_what_is_written_at_once(opened, autojump_clock):
    link, pipe = opened
    pipe.say(b'{"id":1,"type":"read","from":"hyperty://b.ex/2","to":"hyperty://a.ex/1","body":{}}')
    await wait_all_tasks_blocked()
    assert (pipe.at_once, pipe.by_task) == ([], [])

    link.send(message(1))
    link.flush()
    assert pipe.at_once[0].endswith(b"\n" + ACK)
    await trio.sleep(3 * ACK_DELAY)
    assert (len(pipe.at_once), pipe.by_task) == (1, [])


async def test_an_acknowledgement_without_company_is_written_in_time(opened, autojump_clock):
    _, pipe = opened
    pipe.say(b'{"id":1,"type":"read","from":"hyperty://b.ex/2","to":"hyperty://a.ex/1","body":{}}')
    await trio.sleep(2 * ACK_DELAY)

    assert pipe.at_once + pipe.by_task == [ACK]


async def test_a_later_acknowledgement_waits_for_company_of_its_own(opened, autojump_clock):
    link, pipe = opened
    line = b'{"id":1,"type":"read","from":"hyperty://b.ex/2","to":"hyperty://a.ex/1","body":{}}'
    pipe.say(line)
    await trio.sleep(ACK_DELAY / 2)
    link.send(message(1))
    link.flush()
    pipe.say(line)
    await trio.sleep(ACK_DELAY)
    assert pipe.by_task == []

    await trio.sleep(2 * ACK_DELAY)
    assert pipe.by_task == [ACK.replace(b"1}", b"2}")]


async def test_a_goodbye_that_is_written_at_once_ends_the_link(opened, autojump_clock):
    link, pipe = opened
    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.say_goodbye)
            await trio.lowlevel.checkpoint()
            link.flush()
    assert (pipe.at_once + pipe.by_task).count(b'{"p2p":"bye"}') == 1


async def test_a_link_that_is_broken_off_is_not_written_to(opened):
    link, pipe = opened
    link.send(message(1))
    link.break_off()
    link.flush()

    assert pipe.at_once == []
    assert [one.id for one in link.take_unacknowledged()] == [1]
