"""Whoever else comes to a candidate: outsiders, thieves of secrets, crowds (T10, T11).

The crowd has the certificate of the peer here, as nobody else gets beyond TLS: what it says is
judged all the same.

Each is tried on every kind of link, in memory and over real sockets.
"""

from contextlib import asynccontextmanager
from itertools import count
from types import SimpleNamespace

import attrs
import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.runtime.p2p.handshake import dial_candidate, greet
from actors.runtime.p2p.link_work import LinkWork
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import FIRST, LinkEnd, LinkTerms
from specs.bodies.object import Candidate
from specs.limits.p2p import PENDING_PROOFS
from specs.limits.protocol import HANDSHAKE_TIMEOUT
from tests.actors.runtime.p2p.link_tls import own_tls, peer_tls
from tests.support.link_calls import RecordingPort
from tests.support.runtime.domain import P2P_KINDS
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.growing import Growing
from tests.support.trace.memory import MemoryTracer
from transports.errors import DialError, LinkError
from transports.link import Kind
from transports.memory import MemoryNetwork
from transports.system import open_system_network

RA = "hyperty-runtime://a.ex/ra"
PQ, PC = "hyperty-runtime://a.ex/ra/p2prequester/1", "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1"
RB = "hyperty-runtime://b.ex/rb"
MACHINE = b"one machine"


@asynccontextmanager
async def in_memory():
    yield MemoryNetwork()


NETWORKS = {"memory": in_memory, "sockets": open_system_network}


@pytest.fixture(params=list(NETWORKS))
def network_of(request):
    return NETWORKS[request.param]


@pytest.fixture
def clock(network_of, autojump_clock, hasty_clock):
    return autojump_clock if network_of is in_memory else hasty_clock


@pytest.fixture(params=P2P_KINDS, ids=lambda kind: kind.value)
def kind(request):
    return request.param


def entropy():
    numbers = count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


@attrs.define
class Door:
    """An end that listens, and its notices."""

    network: object
    kind: Kind
    candidate: Candidate | None
    proven: Growing
    random: object = attrs.field(factory=entropy)
    pipes: list = attrs.field(factory=list)

    async def knock(self):
        tls = peer_tls().dialling
        pipe = await self.network.dial(self.kind, self.candidate.address, tls=tls)
        self.pipes.append(pipe)
        return pipe

    async def enter(self, tls=None, candidate=None):
        """Dial as the peer does."""
        shown, there = tls or peer_tls(), candidate or self.candidate
        _, pipe = await dial_candidate(self.network, there, shown, self.random)
        self.pipes.append(pipe)

    async def has_let_in(self, number):
        """Wait until so many have proven themselves; whether there are no more."""
        with trio.fail_after(HANDSHAKE_TIMEOUT):
            await self.proven.until(lambda proven: len(proven) >= number)
        return len(self.proven) == number


@asynccontextmanager
async def open_door(network_of, kind):
    reported = Growing()
    ready = trio.Event()

    async def report(event):
        event()
        ready.set()

    async def report_link(*link):
        reported.append(link)

    async with network_of() as network:
        config = StubConfig("hyperty-runtime://a.ex/ra", "a.ex", kinds=(kind,))
        parts = (KeepingPort(PQ), config, network, MemoryTracer(), IdSource(), entropy())
        context = StubContext(PQ, *parts, Counters())
        policy, core = DialPolicy((kind.value,), MACHINE), RecordingPort(LinkEnd)
        core.terms, core.negotiation = LinkTerms(RA, RB, PQ, PC), FIRST
        stub = SimpleNamespace(context=context, policy=policy)
        end = SimpleNamespace(stub=stub, core=core, tls=own_tls(), is_requester=True)
        end.report, end.report_link = report, report_link
        work = LinkWork(end)
        door = Door(network, kind, None, reported)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work.run)
                work.listen()
                await ready.wait()
                (ready_now,) = core.take()
                (door.candidate,) = ready_now.candidates
                yield door
                nursery.cancel_scope.cancel()
        finally:
            # Only now can nobody prove itself any more.
            for pipe in (*door.pipes, *(link[0][1] for link in reported)):
                await trio.aclose_forcefully(pipe)


async def is_hung_up(pipe):
    """Wait for the end of a link; whether not one byte came before it."""
    frames = []
    with trio.fail_after(HANDSHAKE_TIMEOUT + 2):
        try:
            while True:
                frames.append(await pipe.receive())
        except LinkError:
            return not frames


STRANGE = [
    b"hello?",
    b"{}",
    b'{"p2p":"ping"}',
    b'{"p2p":"hello","nonce":"00","secret":"00"}',
    b'{"id":1,"type":"read","from":"hyperty://x.ex/1","to":"hyperty://y.ex/2"}',
]


@pytest.mark.parametrize("said", [None, *STRANGE], ids=range(len(STRANGE) + 1))
async def test_an_outsider_is_reported_nothing_and_hung_up_in_time(network_of, kind, said, clock):
    """SEC-20."""
    async with open_door(network_of, kind) as door:
        pipe = await door.knock()
        began = trio.current_time()
        if said is not None:
            await pipe.send(said)
        assert await is_hung_up(pipe)
        assert trio.current_time() - began <= HANDSHAKE_TIMEOUT + 1
        await door.enter()
        assert await door.has_let_in(1)


async def test_the_secret_of_another_candidate_opens_nothing(network_of, kind, clock):
    """It names the link: a peer that was led to the listener of another one is hung up on."""
    async with open_door(network_of, kind) as door:
        elsewhere = attrs.evolve(door.candidate, secret="ab" * 16)
        with pytest.raises(DialError):
            await door.enter(candidate=elsewhere)
        assert door.proven == []


async def test_a_crowd_that_comes_after_a_peer_does_not_exclude_it(network_of, kind, clock):
    async with open_door(network_of, kind) as door:
        crowd = [await door.knock() for _ in range(PENDING_PROOFS - 1)]
        pipe = await door.knock()
        crowd.append(await door.knock())
        assert await is_hung_up(crowd[0])
        await greet(pipe, door.candidate.secret, peer_tls(), entropy())
        assert await door.has_let_in(1)
