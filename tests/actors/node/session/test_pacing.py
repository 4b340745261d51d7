"""Who sends too much is read later, and loses nothing (RELIABILITY L5)."""

import math

import pytest
import trio

from actors.kit.counters import Counters
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from actors.node.links.bounds import Bounds
from fsm.limits.rates import Rate
from specs.identity import Identity
from specs.limits.protocol import IDENTITY_BURST, IDENTITY_RATE, MESSAGE_BURST
from tests.support.node.legacy_peer import OLD_INSIDE, plain_peer
from tests.support.node.node_peer import RA, RB, RX, open_world

RATE = Rate(100.0, 200)
SLOW = NodeLimits(messages=RATE)


async def flood(peer, to, count):
    return [await peer.post("create", f"{peer.runtime}/ua", to, value=n) for n in range(count)]


async def hear_all(peer, count):
    """Hear so many messages; return their values and the seconds it took."""
    began = trio.current_time()
    heard = [await peer.hear() for _ in range(count)]
    return [one.body["value"] for one in heard], trio.current_time() - began


@pytest.mark.parametrize("count", [RATE.burst, 1000])
async def test_a_session_is_read_at_its_rate_after_a_burst(autojump_clock, count):
    async with open_world(limits=SLOW) as world, trio.open_nursery() as nursery:
        ra, rb = await world.peer(RA), await world.peer(RB)
        nursery.start_soon(flood, ra, f"{RB}/ua", count)

        values, took = await hear_all(rb, count)

        assert values == list(range(count))
        assert took == pytest.approx((count - RATE.burst) / RATE.per_second, abs=0.3)


async def test_the_token_deficit_of_one_frame_is_bounded(autojump_clock):
    async with open_world(limits=SLOW) as world, trio.open_nursery() as nursery:
        ra, rb = await world.peer(RA), await world.peer(RB)
        line = b'{"id":%d,"type":"create","from":"%s/ua","to":"%s/ua","body":{}}'
        frame = b"\n".join(line % (n, RA.encode(), RB.encode()) for n in range(1, 1000))
        await ra.link.send(frame)
        await ra.link.send(frame)
        nursery.start_soon(flood, ra, f"{RB}/ua", 1)

        began = trio.current_time()
        heard = [await rb.hear() for _ in range(64 + 64 + 1)]

        assert heard[-1].body == {"value": 0}
        assert trio.current_time() - began < 1.0


async def test_others_are_not_held_up_by_one_that_is_paced(autojump_clock):
    async with open_world(limits=SLOW) as world, trio.open_nursery() as nursery:
        ra, rx = await world.peer(RA), await world.peer(RX)
        nursery.start_soon(flood, ra, f"{RB}/ua", 2000)
        await trio.sleep(1.0)
        began = trio.current_time()

        assert (await rx.control("ping")).code == 200
        assert trio.current_time() - began < 0.1
        nursery.cancel_scope.cancel()


async def test_reconnecting_does_not_refill_the_token_bucket(autojump_clock):
    async with open_world(limits=SLOW) as world, trio.open_nursery() as nursery:
        ra, rb = await world.peer(RA), await world.peer(RB)
        nursery.start_soon(flood, ra, f"{RB}/ua", RATE.burst)
        await hear_all(rb, RATE.burst)
        again = await world.outsider(RA)
        await again.control("re-open", runtimeURL=RA, token=ra.token)
        nursery.start_soon(flood, again, f"{RB}/ua", 300)

        _, took = await hear_all(rb, 300)

        assert took > 290 / RATE.per_second


async def test_an_old_stub_is_paced_too(autojump_clock):
    async with open_world(limits=SLOW, allow_legacy=True) as world, trio.open_nursery() as nursery:
        old, rb = await plain_peer(world), await world.peer(RB)

        async def flood_oldly():
            for number in range(400):
                await old.say(id=number + 1, type="create", from_=f"{OLD_INSIDE}/ua",
                              to=f"{RB}/ua", body={"value": number})  # fmt: skip

        nursery.start_soon(flood_oldly)
        values, took = await hear_all(rb, 400)

        assert values == list(range(400))
        assert took == pytest.approx(200 / RATE.per_second, abs=0.3)


async def test_a_node_without_the_limit_reads_on(autojump_clock):
    limits = NodeLimits(messages=Rate(math.inf, 1))
    async with open_world(limits=limits) as world, trio.open_nursery() as nursery:
        ra, rb = await world.peer(RA), await world.peer(RB)
        nursery.start_soon(flood, ra, f"{RB}/ua", 2000)

        assert (await hear_all(rb, 2000))[1] < 0.1


async def test_all_sessions_of_one_user_share_a_rate(autojump_clock):
    bounds = Bounds(DEFAULT_LIMITS, frozenset(), Counters())
    alice = Identity(user="user://idp.ex/alice", issuer="idp.ex", until=0.0)
    other = Identity(user="user://idp.ex/alice", issuer="other.ex", until=0.0)

    sessions = [f"{RA}{number}" for number in range(6)]
    waits = [bounds.pause(runtime, alice, MESSAGE_BURST) for runtime in sessions]

    assert waits == pytest.approx(
        [0.0] * 5 + [(6 * MESSAGE_BURST - IDENTITY_BURST) / IDENTITY_RATE]
    )
    assert bounds.pause(f"{RB}9", other, 1) == bounds.pause(f"{RB}8", None, 1) == 0.0
