"""A runtime that comes back hears how many messages the node has given up meanwhile (RES-09, R14).

Every request that the node gives up is answered 503 to its sender: as many are missing.
"""

import math

import pytest
import trio

from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from fsm.session.outbox_budget import weight
from specs.limits.protocol import OUTBOX_BYTES, SESSION_QUEUE
from tests.support.node.node_peer import RA, RB, RX, open_world
from transports.memory import FRAMES_IN_FLIGHT

KILOBYTE = "x" * 900
LIMITS = NodeLimits(outbox_budget=weight(98, 98 * 1020), messages=Rate(math.inf, 1))


async def send(ra, to, count, text=KILOBYTE):
    for _ in range(count):
        await ra.post("create", f"{RA}/ua", f"{to}/ua", value=text)
        await trio.sleep(0.001)


async def refused(ra):
    """Return how many requests to RB the node has answered with 503."""
    answers = []
    while not await ra.silence(0.05):
        answers += ra.heard
        ra.heard = []
    return sum(one.code == 503 and one.from_.startswith(RB) for one in answers)


async def detached_with_a_full_queue(world, ra, rb):
    await rb.link.aclose()
    await trio.sleep(0.01)
    await send(ra, RB, SESSION_QUEUE + 7, "")


async def detached_with_a_queue_of_many_bytes(world, ra, rb):
    await rb.link.aclose()
    await trio.sleep(0.01)
    await send(ra, RB, 27, ["x" * 10_000] * (OUTBOX_BYTES // 250_000))


async def detached_when_all_queues_are_too_large(world, ra, rb):
    await rb.link.aclose()
    await trio.sleep(0.01)
    await send(ra, RB, 110)


async def reading_nothing_when_all_queues_are_too_large(world, ra, rb):
    await world.peer(RX)
    await send(ra, RB, FRAMES_IN_FLIGHT + 1, 0)
    await send(ra, RX, FRAMES_IN_FLIGHT + 1, 0)
    await send(ra, RB, 60)
    await send(ra, RX, 40)


@pytest.mark.parametrize(
    ("loss", "limits"),
    [
        (detached_with_a_full_queue, NodeLimits(messages=Rate(math.inf, 1))),
        (detached_with_a_queue_of_many_bytes, NodeLimits(messages=Rate(math.inf, 1))),
        (detached_when_all_queues_are_too_large, LIMITS),
        (reading_nothing_when_all_queues_are_too_large, LIMITS),
    ],
)
async def test_a_runtime_hears_how_many_messages_were_given_up(loss, limits, autojump_clock):
    async with open_world(limits=limits) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await loss(world, ra, rb)
        count = await refused(ra)
        again = await world.outsider(RB)
        granted = (await again.control("re-open", runtimeURL=RB, token=rb.token)).body["value"]
        assert count > 0
        assert (granted["recovered"], granted["missing"]) == (False, count)
