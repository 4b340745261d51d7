"""Who reads late still learns why it was left, on real sockets (RELIABILITY L1)."""

import math

import trio

from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.reply_code import LinkEnd
from tests.actors.node.session.test_gate import connect, read_all, real_world
from tests.support.node.node_peer import RA, RB, RX
from tests.support.wire.raw_websocket import frame, handshake

QUICK = NodeLimits(messages=Rate(math.inf, 1))
FAREWELL = b"\x88\x0f\x03\xf5slow-consumer"


def opening(runtime):
    wanted = (
        b'{"id":1,"type":"execute","from":"%s/protostub/1","to":"domain://msg-node.a.ex/session",'
        b'"body":{"method":"open","params":{"runtimeURL":"%s"}}}'
    )
    return wanted % (runtime.encode(), runtime.encode())


async def drown(world, ra):
    """Send RB requests until its link is left."""
    while not world.ended():
        for _ in range(50):
            await ra.post("create", f"{RA}/ua", f"{RB}/ua", value="x" * 1000)
        await trio.lowlevel.checkpoint()


async def test_a_victim_that_begins_to_read_after_it_was_left_finds_1013(hasty_clock):
    async with real_world(limits=QUICK) as world, await connect(world) as victim:
        await victim.send_all(handshake() + frame(1, opening(RB)))
        ra, rx = await world.peer(RA), await world.peer(RX)
        with trio.fail_after(100):
            await drown(world, ra)
        left = trio.current_time()
        assert (await rx.control("ping")).code == 200
        assert trio.current_time() - left < 1.0  # nobody else waits for the farewell
        assert world.ended() == {LinkEnd.SLOW_CONSUMER: 1}
        await trio.sleep(5 * GOODBYE_TIMEOUT)

        assert (await read_all(victim)).endswith(FAREWELL)
