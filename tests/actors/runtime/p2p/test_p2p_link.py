"""A link between two ends: offered, proven, carrying messages, lost (P2P-15, P2P-20, T11)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.runtime.p2p.handshake import dial_candidate, open_candidates, welcome, write_behind
from actors.runtime.p2p.link import P2PLink
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.transfer import Behind
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.limits.protocol import FRAME_MESSAGES, STUB_QUEUE
from specs.message import Message, MessageType
from tests.actors.runtime.p2p.link_tls import own_tls, peer_tls
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.codec import encode
from transports.link import Kind
from transports.memory import FRAMES_IN_FLIGHT, MemoryNetwork
from transports.urls import LOOPBACK

PQ, PC = "hyperty-runtime://a.ex/ra/p2prequester/1", "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1"
KINDS = (Kind.UNIX, Kind.WEBSOCKET, Kind.TCP)
RB = "hyperty-runtime://b.ex/rb"
POLICY = DialPolicy(tuple(kind.value for kind in KINDS), b"this machine")


def entropy():
    count = 0

    def some(size):
        nonlocal count
        count += 1
        return count.to_bytes(size, "big")

    return some


def message(number, **body):
    return Message(number, MessageType.READ, "hyperty://a.ex/1", "hyperty://b.ex/2", body)


@attrs.frozen
class End:
    link: P2PLink
    port: KeepingPort
    tracer: MemoryTracer
    counters: Counters

    def send(self, one: Message) -> bool:
        """Send a message in a turn of its own."""
        is_taken = self.link.send(one)
        self.link.flush()
        return is_taken


@attrs.frozen
class Pair:
    network: MemoryNetwork
    dialler: End
    listener: End

    def cut(self):
        self.network.wires[-1].cut()


def offering(*kinds: Kind, host: str = LOOPBACK) -> StubConfig:
    return StubConfig("hyperty-runtime://a.ex/ra", "a.ex", kinds=kinds, host=host)


def end(proven, stub: str) -> End:
    context = context_of(config=offering(), url=stub)
    link = P2PLink(proven, context, stub, SenderIdentity(RB))
    return End(link, context.bus, context.tracer, context.counters)


def context_of(network=None, random=None, config=None, url=PQ):
    parts = (network or MemoryNetwork(), MemoryTracer(), IdSource(), random or entropy())
    return StubContext(url, KeepingPort(url), config or offering(Kind.TCP), *parts, Counters())


def offered_by(network, random, kind=Kind.TCP, tls=None):
    context = context_of(network, random, offering(kind))
    return open_candidates(context, POLICY, RB, tls or own_tls())


@asynccontextmanager
async def offered_pair(kind: Kind) -> AsyncIterator[Pair]:
    network, random = MemoryNetwork(), entropy()
    tls, proven = own_tls(), []
    async with offered_by(network, random, kind, tls) as ((candidate, listener),):

        async def accept():
            pipe = await listener.accept()
            proven.append(await welcome(pipe, candidate.secret, tls, random))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            dialled = await dial_candidate(network, candidate, peer_tls(), random)
        yield Pair(network, end(dialled, PQ), end(proven[0], PC))


@asynccontextmanager
async def running_pair() -> AsyncIterator[tuple[Pair, list]]:
    ends = []
    async with offered_pair(Kind.TCP) as pair, trio.open_nursery() as nursery:

        async def run(which):
            ends.append((which, await which.link.run()))

        nursery.start_soon(run, pair.dialler)
        nursery.start_soon(run, pair.listener)
        yield pair, ends
        nursery.cancel_scope.cancel()


async def test_a_peer_that_writes_nonsense_is_given_up(autojump_clock):
    async with running_pair() as (pair, ends):
        await pair.network.wires[-1].dialler.send(b'{"p2p":"dance"}')
        await trio.sleep(1)
        assert len(ends) == 2


@pytest.mark.parametrize("more", [0, 1])
async def test_a_frame_has_so_many_lines_and_no_more(more, autojump_clock):
    async with running_pair() as (pair, _):
        lines = [encode(message(number + 1)) for number in range(FRAME_MESSAGES + more)]
        await pair.network.wires[-1].dialler.send(b"\n".join(lines))
        await trio.sleep(1)
        assert len(pair.listener.port.posted) == (0 if more else FRAME_MESSAGES)


async def test_an_announcement_is_behind_the_messages_before_it_in_a_frame(autojump_clock):
    async with running_pair() as (pair, _):
        behind = write_behind(Behind("hyperty://a.ex/1", "hyperty://b.ex/2", 1, 1))
        lines = encode(message(1)), behind, encode(message(2))
        await pair.network.wires[-1].dialler.send(b"\n".join(lines))
        await trio.sleep(1)
        assert [verb for verb, _, _ in pair.listener.port.said] == ["post", "announce", "post"]


async def test_a_too_large_message_is_refused(autojump_clock):
    async with running_pair() as (pair, _):
        with pytest.raises(BadMessageError, match="larger than") as refused:
            pair.dialler.send(message(1, value="x" * 100_000))
    assert refused.value.code == 413


async def test_a_link_takes_so_many_messages_and_no_more_until_it_has_written(autojump_clock):
    async with running_pair() as (pair, _):
        count = 0
        while pair.dialler.send(message(count + 1)):
            count += 1
        assert STUB_QUEUE <= count <= STUB_QUEUE + FRAMES_IN_FLIGHT + 1
        await pair.listener.port.wait_for(count)
        assert pair.dialler.send(message(count + 2))
