"""One task reads all sockets of a node; a link that fails, floods or is stuck harms no other."""

import socket
from contextlib import suppress

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.kit.counters import Counters
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from actors.node.links.acceptor import LinkAcceptor
from actors.node.links.bounds import Bounds
from actors.node.links.connection import Connection
from fsm.limits.rates import Rate
from specs.limits.protocol import FRAME_MESSAGES, HANDSHAKE_TIMEOUT, READ_BYTES, READ_SLICE
from specs.message import Message, MessageType
from specs.reply_code import LinkEnd
from tests.support.node.node_peer import DR, RA, RB, open_world
from tests.support.node.port_ends import Clock, NotedBus, entry, make_links
from tests.support.runtime.links import open_pair, open_place
from tests.support.wire.raw_websocket import frame, text, websocket_link
from transports.codec import encode
from transports.errors import CloseReason, LinkBrokenError, LinkError
from transports.link import Kind, Upgrade
from transports.memory import FRAMES_IN_FLIGHT, Wire
from transports.socket_link import StreamLink
from transports.system import open_system_network

FRAME = b"\0\0\0\2{}"
NO_RATE = NodeLimits(messages=Rate(float("inf"), 1))


@pytest.fixture
async def world():
    async with open_system_network() as network, open_world(network, limits=NO_RATE) as world:
        yield world


async def test_a_link_that_is_idle_has_no_task(world):
    before = trio.lowlevel.current_statistics().tasks_living
    peers = [await world.peer(f"{RA}{number}") for number in range(10)]
    await wait_all_tasks_blocked()
    ours = 10 * 2  # those of the diallers: one reads, and one is the nursery's
    assert trio.lowlevel.current_statistics().tasks_living - before <= ours
    assert (await peers[0].control("ping")).code == 200


async def test_a_link_whose_reading_fails_affects_no_other(world, monkeypatch):
    read = LinkAcceptor.read
    monkeypatch.setattr(LinkAcceptor, "read", lambda own, f: 1 / 0 if f == b"!" else read(own, f))
    ra, rb = await world.peer(RA), await world.peer(RB)
    await ra.raw(b"!")
    with pytest.raises(LinkBrokenError) as broken:
        await ra.hear()
    assert broken.value.close_reason is CloseReason.INTERNAL
    assert (await rb.control("ping")).code == 200
    assert world.ended()[LinkEnd.BROKEN] == 1


async def test_each_link_is_read_before_any_is_read_twice(nursery):
    """Also if the slice of time is over after each, so that other tasks have their turn."""
    bus, bounds = NotedBus(), Bounds(DEFAULT_LIMITS, frozenset(), Counters())
    bounds.work_clock = Clock(READ_SLICE)
    links = make_links(bus, bounds, nursery)
    peers = []
    for number in range(5):
        ours, theirs = socket.socketpair()
        link = StreamLink(
            (Kind.UNIX, f"r{number}", Upgrade()),
            trio.SocketStream(trio.socket.from_stdlib_socket(ours)),
        )
        links.admit(number, link, LinkAcceptor())
        theirs.sendall(FRAME)
        peers.append(theirs)

    def take_items(number, _items):
        bus.heard.append(number)
        peers[number].sendall(FRAME)

    bus.take_items = take_items
    turns = 0
    nursery.start_soon(links.run)
    while len(bus.heard) < 10:
        await trio.lowlevel.checkpoint()
        turns += 1
    nursery.cancel_scope.cancel()
    for peer in peers:
        peer.close()
    await links.stop()
    assert not bus.connections
    assert sorted(bus.heard[:5]) == sorted(bus.heard[5:10]) == list(range(5))
    assert turns >= 9


async def test_a_peer_that_sends_much_at_once_is_read_in_parts(world, monkeypatch):
    ra, rb = await world.peer(RA), await world.peer(RB)
    count = 5 * FRAME_MESSAGES
    taken, take = [], Connection._items

    def noted(connection, frame):
        items = take(connection, frame)
        taken.append(len(items))
        return items

    monkeypatch.setattr(Connection, "_items", noted)
    line = b'{"id":%d,"type":"create","from":"%s/ua","to":"%s/ua","body":{}}'
    for start in (1, count + 1, 2 * count + 1):  # not the first time only
        numbers = range(start, start + count)
        await ra.link.send_many([line % (one, RA.encode(), RB.encode()) for one in numbers])
        assert [(await rb.hear()).id for _ in numbers] == list(numbers)
    assert max(taken) <= FRAME_MESSAGES


async def test_a_bus_that_fails_in_a_call_of_a_link_is_started_again(world, monkeypatch):
    ra = await world.peer(RA)
    monkeypatch.setattr("actors.node.bus.NodeBus._take_message", broken)
    await ra.post("read", f"{RA}/registry", DR, resource="/hyperty/name/x")
    with pytest.raises(LinkBrokenError):
        await ra.hear()
    monkeypatch.undo()
    again = await world.peer(RA)
    assert (await again.control("ping")).code == 200


def broken(*_):
    raise RuntimeError("told to fail")


async def test_a_peer_without_a_session_that_reads_nothing_is_left_in_time(autojump_clock, nursery):
    """Nothing is written to it any more, and no timer is due again and again."""
    bus = NotedBus(grants=False)
    links = make_links(bus, Bounds(DEFAULT_LIMITS, frozenset(), Counters()), nursery)
    nursery.start_soon(links.run_alarms)
    wire = Wire(Kind.WEBSOCKET, "a", 1, Upgrade())
    links.admit(1, wire.acceptor, LinkAcceptor())
    connection = bus.connections[1]
    for number in range(10 * FRAMES_IN_FLIGHT):
        connection.refill([entry(number + 1, 60_000)])
    await trio.sleep(HANDSHAKE_TIMEOUT - 0.1)
    assert connection.end is None
    await trio.sleep(0.2)
    assert (connection.end, connection.is_over) == (LinkEnd.NO_SESSION, True)


async def test_a_fault_in_what_is_due_of_a_link_ends_it_and_no_other(
    autojump_clock, nursery, monkeypatch
):
    bus, bounds = NotedBus(grants=False), Bounds(DEFAULT_LIMITS, frozenset(), Counters())
    links = make_links(bus, bounds, nursery)
    nursery.start_soon(links.run_alarms)
    time_over = Connection.time_over

    def fails_for_the_first(connection, now):
        if connection.number == 1:
            raise RuntimeError("told to fail")
        time_over(connection, now)

    monkeypatch.setattr(Connection, "time_over", fails_for_the_first)
    for number in (1, 2):
        links.admit(number, Wire(Kind.WEBSOCKET, "a", number, Upgrade()).acceptor, LinkAcceptor())
    both = list(bus.connections.values())
    await trio.sleep(HANDSHAKE_TIMEOUT + 0.1)
    assert [one.end for one in both] == [LinkEnd.BROKEN, LinkEnd.NO_SESSION]
    assert all(one.is_over for one in both)


def update(size):
    return encode(Message(1, MessageType.UPDATE, f"{RA}/ua", f"{RB}/ua", {"value": "x" * size}))


async def test_what_tls_has_taken_in_during_a_pause_is_read_after_it(
    tmp_path, nursery, monkeypatch
):
    """Its end is within TLS then, and the socket has nothing more to tell."""
    bus, pauses = NotedBus(), [0.2]
    bounds = Bounds(NO_RATE, frozenset(), Counters())
    monkeypatch.setattr(bounds, "pause", lambda *_: pauses.pop() if pauses else 0.0)
    monkeypatch.setattr(bus, "take_items", lambda _, items: bus.heard.extend(items))
    links = make_links(bus, bounds, nursery)
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


async def test_a_link_that_fails_while_it_is_admitted_harms_no_other(world, monkeypatch):
    ra = await world.peer(RA)
    greeting, failed = LinkAcceptor.greeting, []

    def fails_once(acceptor):
        if not failed:
            failed.append(acceptor)
            raise RuntimeError("told to fail")
        return greeting(acceptor)

    monkeypatch.setattr(LinkAcceptor, "greeting", fails_once)
    link = await world.link()
    with pytest.raises(LinkBrokenError) as broken:
        await link.receive()
    assert broken.value.close_reason is CloseReason.INTERNAL
    rb = await world.peer(RB)
    assert [(await peer.control("ping")).code for peer in (ra, rb)] == [200, 200]


async def test_a_link_without_a_session_is_closed_in_order_when_the_node_ends():
    over = []

    async def read(link):
        try:
            await link.receive()
        except LinkError as exc:
            over.append(exc)

    async with (
        open_system_network() as network,
        trio.open_nursery() as reading,
        open_world(network) as world,
    ):
        for _ in range(20):
            reading.start_soon(read, await world.link())
        await wait_all_tasks_blocked()
    assert [one.close_reason for one in over] == [CloseReason.GOING_AWAY] * 20
