"""The Message BUS where the request is answered (MSG-04..06, I-T2)."""

import math
from functools import partial

import pytest
import trio

from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import Origin
from fsm.effects import Intent
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import DropReason
from tests.support.runtime.runtime_parts import Listener, R
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


@pytest.mark.parametrize("by", [f"{R}/sm", B])
async def test_an_answer_from_an_address_that_a_part_has_closed_is_a_404(by, world):
    """MSG-04: the request waited in its mailbox; another component cannot refuse it so."""
    await world.component(C)
    part: list = []
    spec = ChildSpec("part", partial(Listener, part))
    listener = await world.supervisor.start_child(spec)
    world.agent.admit(by, Origin.LOCAL, listener)
    world.port(f"{R}/sm").open_address(A, listener)
    answers = []

    async def request():
        answers.append(await world.port(C).request(ask(1, from_=C, to=A)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(request)
        await world.settle()
        assert world.heard_by(part) == [ask(1, from_=C, to=A)]
        world.port(f"{R}/sm").close_address(A, listener)
        await world.port(by).post(answer(ask(1, from_=C, to=A)))
        await world.settle()
        nursery.cancel_scope.cancel()
    assert [one.code for one in answers] == ([404] if by != B else [])
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}


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
