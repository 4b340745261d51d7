"""The Message BUS where the request is answered (MSG-04..06, I-T2)."""

import math

import trio

from actors.runtime.bus.messages import Origin
from fsm.effects import Intent
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import DropReason
from tests.support.runtime.runtime_parts import R
from tests.support.wire.wire import A, B, C, answer, ask

S = f"{R}/protostub/1"


async def remote_request(world):
    """Carol, behind the stub, has asked Alice here."""
    stub = await world.component(S, Origin.NODE_STUB)
    await world.component(A)
    await world.port(S).post(ask(1, from_=C, to=A))
    world.bus.take_route(C, Intent.KNOWN, S, math.inf)
    await world.settle()
    return stub


async def test_a_late_answer_to_a_remote_requester_is_dropped_and_no_408_is_made_here(
    world, autojump_clock
):
    """MSG-06: the 408 is made where the requester is."""
    stub = await remote_request(world)
    await trio.sleep(REPLY_TIMEOUT + 1)
    await world.port(A).post(answer(ask(1, from_=C, to=A)))
    await world.settle()
    assert stub == []
    assert world.counters.drops[DropReason.LATE_RESPONSE] == 1


async def test_a_component_cannot_answer_a_request_to_another_component(world):
    """MSG-04."""
    stub = await remote_request(world)
    await world.component(B)
    await world.port(B).post(answer(ask(1, from_=C, to=B)))
    await world.settle()
    assert stub == []
