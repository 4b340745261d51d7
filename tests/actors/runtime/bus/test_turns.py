"""No hyperty crowds out the others at the bus, or at a receiver (R11)."""

import math

import pytest
import trio

from actors.runtime.bus.mini_bus import MiniBus
from actors.runtime.bus.ports import HypertyPort
from fsm.effects import Intent
from specs.limits.bus import OPEN_REQUESTS, SUBMIT_RATE, SUBMITTED
from specs.limits.protocol import REPLY_TIMEOUT, RETRY_AFTER
from specs.message import Message, MessageType
from specs.reply_code import Code
from tests.support.runtime.runtime_parts import R
from tests.support.wire.wire import A, B, C, answer, ask, event

S = f"{R}/protostub/1"


def hyperty_port(world, url):
    return HypertyPort(url, world.bus, MiniBus(f"minibus:{url}", world.hops("minibus")))


async def flood(port, from_, to, count=10**6):
    for number in range(1, count + 1):
        await port.post(event(number, from_, to))


async def test_one_that_floods_keeps_to_a_rate_while_another_submits(world, autojump_clock):
    """R11."""
    changes = f"{A}/changes"
    alice = await world.component(A)
    world.agent.follow(changes, A)
    await world.component(B)
    port, other = hyperty_port(world, A), hyperty_port(world, B)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, port, A, changes)
        for number in range(1, 101):
            await other.post(event(number, B, f"{B}/changes"))
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert SUBMIT_RATE / 2 <= len(alice) <= 1.5 * SUBMIT_RATE


async def test_a_sender_has_only_so_much_open_at_one_receiver(world):
    """R11: it is refused what is more, and others are not."""
    alice, carol = await world.component(A), await world.component(C)
    bob = await world.component(B)
    for number in range(1, OPEN_REQUESTS + 3):
        await world.port(A).post(ask(number))
    await world.settle()
    await world.port(C).post(ask(1, from_=C))
    await world.settle()
    refused = [(message.id, message.code) for message in world.heard_by(alice)]
    assert refused == [(OPEN_REQUESTS + n, Code.UNAVAILABLE) for n in (1, 2)]
    assert (len(bob), carol) == (OPEN_REQUESTS + 1, [])


@pytest.mark.parametrize("end", ["answered", "silent"])
async def test_closed_requests_are_not_counted(end, world, autojump_clock):
    """R11."""
    await world.component(A)
    await world.component(B)
    for number in range(1, OPEN_REQUESTS + 1):
        await world.port(A).post(ask(number))
        if end == "answered":
            await world.port(B).post(answer(ask(number)))
    await trio.sleep(REPLY_TIMEOUT + 1)
    last = Message(OPEN_REQUESTS + 1, MessageType.READ, A, B)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.port(B).post, answer(last))
        assert (await world.port(A).request(last)).code in {Code.OK, Code.TIMEOUT}


async def windowed(world, room):
    """Return the mailbox of a stub that has room for so many messages, and leads to C."""
    stub = await world.component(S)
    await hyperty_port(world, S).room(room, is_first=True)
    world.bus.take_route(C, Intent.REACH, S, math.inf)
    return stub


async def post_all(port, count):
    for number in range(1, count + 1):
        await port.post(ask(number, to=C))


async def test_a_stub_that_leaves_keeps_no_sender_waiting(world):
    alice = await world.component(A)
    await windowed(world, 0)
    port = hyperty_port(world, A)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(post_all, port, SUBMITTED + 1)
            await world.settle()
            world.agent.expel(S)
    assert [one.message.code for one in alice[:SUBMITTED]] == [Code.UNAVAILABLE] * SUBMITTED


async def test_a_stub_that_never_has_room_costs_a_503_that_says_why(world, autojump_clock):
    """And not a 408: the request was never sent."""
    await world.component(A)
    await windowed(world, 0)
    answer = await world.port(A).request(ask(1, to=C))
    assert (answer.code, answer.body["retryAfter"]) == (503, RETRY_AFTER)
    assert "does not take" in answer.body["description"]
