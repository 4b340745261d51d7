"""The Message BUS where the request is answered (MSG-04..06, I-T2)."""

import math

import pytest
import trio

from actors.runtime.bus.messages import Origin
from fsm.intent import Intent
from fsm.registry.resolve.resolve_io import Route
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
    await world.bus.tell(Route(C, Intent.KNOWN, S, math.inf, "test"))
    await world.settle()
    return stub


@pytest.mark.parametrize(
    ("codes", "goes"),
    [([200, 200], [200]), ([183, 200], [183, 200]), ([200, 183], [200]), ([404, 200], [404])],
)
async def test_a_receiver_gives_one_final_answer(codes, goes, world):
    """MSG-05, I-T2: what an answering component says after its final answer goes nowhere."""
    stub = await remote_request(world)
    for code in codes:
        await world.port(A).post(answer(ask(1, from_=C, to=A), code))
        await world.settle()
    assert [message.code for message in world.heard_by(stub)] == goes
    dropped = len(codes) - len(goes)
    assert world.counters.drops.get(DropReason.UNMATCHED, 0) == dropped


async def test_a_component_cannot_answer_a_request_to_another_component(world):
    """MSG-04."""
    stub = await remote_request(world)
    await world.component(B)
    await world.port(B).post(answer(ask(1, from_=C, to=B)))
    await world.settle()
    assert stub == []


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
