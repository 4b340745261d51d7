"""One task asks all silent links if they are there, and is fair when it is late itself (R8)."""

import pytest
import trio

from actors.kit.counters import Counters
from actors.node.limits import DEFAULT_LIMITS
from actors.node.links.acceptor import RestAcceptor
from actors.node.links.bounds import Bounds
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from specs.reply_code import LinkEnd
from tests.support.node.port_ends import NotedBus, make_links
from transports.link import Kind, Upgrade
from transports.memory import MemoryLink, Wire, whole


class Peers:
    """Links in memory, and when their peers were asked for a sign of life."""

    def __init__(self, nursery, monkeypatch):
        self.bus, self.bounds = NotedBus(), Bounds(DEFAULT_LIMITS, frozenset(), Counters())
        self.links = make_links(self.bus, self.bounds, nursery)
        self.asked = {}
        self.connections = []
        nursery.start_soon(self.links.run_alarms)
        ping = MemoryLink.ping

        def noted(link):
            self.asked[link].append(trio.current_time())
            ping(link)

        monkeypatch.setattr(MemoryLink, "ping", noted)

    def join(self, *, is_dead):
        """Let a peer come; a dead one does not answer."""
        number = len(self.connections) + 1
        wire = Wire(Kind.WEBSOCKET, "a", number, Upgrade())
        if is_dead:
            wire.dialler.sieve = lost
        self.asked[wire.acceptor] = []
        self.links.admit(number, wire.acceptor, RestAcceptor())
        self.connections.append(self.bus.connections[number])
        return self.connections[-1], self.asked[wire.acceptor], wire


def lost(_frame):
    return None


@pytest.fixture
def peers(nursery, monkeypatch):
    return Peers(nursery, monkeypatch)


async def test_a_silent_peer_is_pinged_and_then_given_up_once(autojump_clock, peers):
    began = trio.current_time()
    dead, dead_asked, _ = peers.join(is_dead=True)
    alive, alive_asked, _ = peers.join(is_dead=False)
    await trio.sleep(5 * PING_PERIOD + 1)

    assert [at - began for at in dead_asked] == [PING_PERIOD]
    assert dead.end is LinkEnd.SILENT
    assert [at - began for at in alive_asked] == [n * PING_PERIOD for n in range(1, 6)]
    assert alive.end is None
    assert list(peers.bus.connections.values()) == [alive]


async def test_a_peer_that_comes_after_an_idle_period_is_pinged(autojump_clock, peers):
    first, asked, _ = peers.join(is_dead=True)
    await trio.sleep(1)
    first.conclude()
    await trio.sleep(100)
    later, _, _ = peers.join(is_dead=True)
    await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 1)

    assert not asked
    assert later.end is LinkEnd.SILENT


async def test_no_link_is_closed_for_the_nodes_own_delay(autojump_clock, peers):
    peer, asked, wire = peers.join(is_dead=True)
    await trio.sleep(PING_PERIOD + 1)
    assert asked

    autojump_clock.jump(3 * PONG_TIMEOUT)  # the node does nothing at all for so long
    await trio.testing.wait_all_tasks_blocked()
    assert peer.end is None

    wire.dialler.sieve = whole
    await wire.dialler.send(b"{}")  # now it reads what the peer has answered
    await trio.sleep(PONG_TIMEOUT + 1)
    assert peer.end is None

    wire.dialler.sieve = lost
    await trio.sleep(PING_PERIOD + 2 * PONG_TIMEOUT)
    assert peer.end is LinkEnd.SILENT
