"""One task asks all silent links if they are there, and is fair when it is late itself (R8)."""

import trio

from actors.node.session.bounds import LinkHeartbeat
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT


class Silent:
    """A link; it answers at once if it answers at all."""

    def __init__(self, *, answers=False):
        self.heard_at = trio.current_time()
        self.asked = []
        self.given_up = []
        self._answers = answers

    def ask(self):
        self.asked.append(trio.current_time())
        if self._answers:
            self.heard_at = trio.current_time()

    def give_up(self):
        self.given_up.append(trio.current_time())


async def test_a_silent_peer_is_pinged_and_then_given_up_once(autojump_clock, nursery):
    heartbeat, began = LinkHeartbeat(), trio.current_time()
    nursery.start_soon(heartbeat.run)
    dead, alive = Silent(), Silent(answers=True)
    heartbeat.watch(1, dead)
    heartbeat.watch(2, alive)
    await trio.sleep(5 * PING_PERIOD + 1)

    assert [at - began for at in dead.asked] == [PING_PERIOD]
    assert [at - began for at in dead.given_up] == [PING_PERIOD + PONG_TIMEOUT]
    assert [at - began for at in alive.asked] == [n * PING_PERIOD for n in range(1, 6)]
    assert not alive.given_up


async def test_a_link_watched_after_an_idle_period_gets_heartbeats(autojump_clock, nursery):
    heartbeat = LinkHeartbeat()
    nursery.start_soon(heartbeat.run)
    first = Silent()
    heartbeat.watch(1, first)
    await trio.sleep(1)
    heartbeat.forget(1)
    await trio.sleep(100)
    later = Silent()
    heartbeat.watch(2, later)
    await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 1)

    assert not first.asked
    assert len(later.given_up) == 1


async def test_no_link_is_closed_for_the_nodes_own_delay(autojump_clock, nursery):
    heartbeat = LinkHeartbeat()
    nursery.start_soon(heartbeat.run)
    peer = Silent()
    heartbeat.watch(1, peer)
    await trio.sleep(PING_PERIOD + 1)
    assert peer.asked

    autojump_clock.jump(3 * PONG_TIMEOUT)  # the node does nothing at all for so long
    await trio.testing.wait_all_tasks_blocked()
    assert not peer.given_up

    peer.heard_at = trio.current_time()  # now it reads what the peer has answered
    await trio.sleep(PONG_TIMEOUT + 1)
    assert not peer.given_up

    await trio.sleep(PING_PERIOD + 2 * PONG_TIMEOUT)
    assert len(peer.given_up) == 1
