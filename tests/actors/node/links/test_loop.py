"""One task reads all sockets of a node; a link that fails, floods or is stuck harms no other."""

import os
import socket
from contextlib import suppress

import pytest
import trio
import trio.testing

from actors.kit.counters import Counters
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from actors.node.links.acceptor import LinkAcceptor
from actors.node.links.bounds import Bounds
from fsm.limits.rates import Rate
from specs.limits.protocol import HANDSHAKE_TIMEOUT, READ_BYTES
from specs.message import Message, MessageType
from specs.reply_code import LinkEnd
from tests.actors.node.links.port_ends import NotedBus, make_links
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.runtime.links import open_pair, open_place
from tests.support.wire.raw_websocket import frame, text, websocket_link
from transports.codec import encode
from transports.errors import LinkBrokenError
from transports.link import Kind, Upgrade
from transports.memory import MemoryLink, Wire
from transports.system import open_system_network

NO_RATE = NodeLimits(messages=Rate(float("inf"), 1))


@pytest.fixture
async def world():
    async with open_system_network() as network, open_world(network, limits=NO_RATE) as world:
        yield world


async def test_a_bus_that_fails_in_a_call_of_a_link_is_started_again():
    faults = []

    def entropy(size):
        if faults:
            raise faults.pop()
        return os.urandom(size)

    async with (
        open_system_network() as network,
        open_world(network, limits=NO_RATE, entropy=entropy) as world,
    ):
        ra = await world.peer(RA)
        faults.append(RuntimeError("told to fail"))
        with pytest.raises(LinkBrokenError):
            await ra.allocate()
        again = await world.peer(RA)
        assert (await again.control("ping")).code == 200


class FaultyLink(MemoryLink):
    frame_due = property(lambda _: 1 / 0)


class FaultyAcceptor(LinkAcceptor):
    def read(self, _):
        raise RuntimeError("told to fail")


async def test_a_fault_in_what_is_due_of_a_link_ends_it_and_no_other(autojump_clock, nursery):
    bus, bounds = NotedBus(grants=False), Bounds(DEFAULT_LIMITS, frozenset(), Counters())
    links = make_links(bus, bounds, nursery)
    nursery.start_soon(links.run_alarms)
    for number, kind in enumerate((FaultyLink, MemoryLink), start=1):
        about = Kind.WEBSOCKET, f"link {number}", Upgrade()
        links.admit(number, kind(about, *trio.open_memory_channel(1)), LinkAcceptor())
    both = list(bus.connections.values())
    await trio.sleep(HANDSHAKE_TIMEOUT + 0.1)
    assert [one.end for one in both] == [LinkEnd.BROKEN, LinkEnd.NO_SESSION]
    assert all(one.is_over for one in both)


async def test_a_fault_in_what_a_link_brings_ends_it_and_no_other(nursery):
    bus, bounds = NotedBus(), Bounds(DEFAULT_LIMITS, frozenset(), Counters())
    links, ends = make_links(bus, bounds, nursery), []
    for number, acceptor in enumerate((FaultyAcceptor(), LinkAcceptor()), start=1):
        wire = Wire(Kind.WEBSOCKET, "a", number, Upgrade())
        links.admit(number, wire.acceptor, acceptor)
        ends.append(bus.connections[number])
        await wire.dialler.send(update(1))
    await trio.testing.wait_all_tasks_blocked()
    assert ([end.end for end in ends], bus.heard) == ([LinkEnd.BROKEN, None], [2])
    nursery.cancel_scope.cancel()


def update(size):
    return encode(Message(1, MessageType.UPDATE, f"{RA}/ua", f"{RB}/ua", {"value": "x" * size}))


class PausingBounds(Bounds):
    is_first = True

    def pause(self, *_):
        pause, self.is_first = 0.2 * self.is_first, False
        return pause


class ItemsBus(NotedBus):
    def take_items(self, _, items):
        self.heard.extend(items)


async def test_what_tls_has_taken_in_during_a_pause_is_read_after_it(tmp_path, nursery):
    """Its end is within TLS then, and the socket has nothing more to tell."""
    bus = ItemsBus()
    links = make_links(bus, PausingBounds(NO_RATE, frozenset(), Counters()), nursery)
    large = b"\n".join([update(60_000)] * 2)
    assert len(large) > READ_BYTES
    async with open_place("tls-websocket", tmp_path) as place, open_pair(place) as pair:
        for line in (update(20), large, update(30)):  # a record of TLS has the end of one only
            await pair.dialler.send(line)
        links.admit(1, pair.acceptor, LinkAcceptor())
        nursery.start_soon(links.run)
        with trio.fail_after(20):
            while len(bus.heard) < 4:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_a_peer_that_sends_pings_and_reads_no_answers_is_not_read(nursery):
    """What waits for it stays small, and it is read again when it reads."""
    bus = NotedBus()
    links = make_links(bus, Bounds(DEFAULT_LIMITS, frozenset(), Counters()), nursery)
    nursery.start_soon(links.run)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)  # noqa: FBT003 - the standard library's signature
    link = websocket_link(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
    links.admit(1, link, LinkAcceptor())
    connection, pings = bus.connections[1], frame(9, b"x" * 125) * 100
    while connection in links.watched:
        with suppress(BlockingIOError):
            theirs.send(pings)
        await trio.lowlevel.checkpoint()
    assert 0 < link.unwritten < 2 * READ_BYTES

    with trio.fail_after(10):
        while connection not in links.watched:
            with suppress(BlockingIOError):
                theirs.recv(READ_BYTES)
            await trio.lowlevel.checkpoint()
        while not bus.heard:
            with suppress(BlockingIOError):
                theirs.recv(READ_BYTES)
            with suppress(BlockingIOError):
                theirs.send(text(update(1)))
            await trio.lowlevel.checkpoint()
    nursery.cancel_scope.cancel()
    theirs.close()
    await links.stop()
