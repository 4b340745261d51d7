"""The Message BUS: who hears what, and who may speak (BUS-01..14, I-B1..I-B12, I-T1..I-T8)."""

from functools import partial

import pytest
import trio

from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec
from fsm.bus.listeners import ANY, RoutingCore
from specs.errors import SpecError
from specs.reply_code import Code
from specs.trace import Op
from tests.support.runtime.runtime_parts import Listener, R
from tests.support.wire.wire import A, B, answer, ask, event


async def test_an_answer_awaited_in_place_is_delivered_there_only(world):
    """BUS-07, I-B4."""
    alice, _ = await world.component(A), await world.component(B)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_answer_when_asked, world)
        final = await world.port(A).request(ask(1))
    assert final == answer(ask(1))
    assert alice == []
    assert [f.code for f in world.tracer.facts if f.op is Op.CALLBACK] == [183, 200]


async def _answer_when_asked(world):
    await world.settle()
    await world.port(B).post(answer(ask(1), 183))
    await world.port(B).post(answer(ask(1)))


async def test_all_listeners_of_an_address_get_a_copy(world):
    """BUS-03, I-B2."""
    changes = f"{A}/changes"
    alice, bob = await world.component(A), await world.component(B)
    for component in (A, B):
        world.agent.follow(changes, component)
    await world.port(A).post(event(1, to=changes))
    await world.settle()
    assert world.heard_by(alice) == world.heard_by(bob) == [event(1, to=changes)]


async def test_nothing_is_delivered_after_a_listener_went(world):
    """BUS-02, I-B1."""
    await world.component(A)
    bob = await world.component(B)
    world.agent.expel(B)
    await world.port(A).post(ask(1, to=f"{R}/b"))
    await world.settle()
    assert bob == []


async def test_own_runtime_without_listener_is_answered_404(world):
    """BUS-14, REG-14, SC-02: and nothing is looked up for it."""
    await world.component(A)
    final = await world.port(A).request(ask(1, to=f"{R}/nobody"))
    assert (final.code, final.from_, final.to) == (404, f"{R}/nobody", A)
    assert world.asked == []


@pytest.mark.parametrize("to", [f"{R}/a/b", f"{R}/ab", f"{R}/", "*", f"{R}/*"])
async def test_listeners_are_found_by_the_very_address_only(to, world):
    """BUS-01, I-B1, I-B5: no prefix, no wildcard."""
    await world.component(A)
    heard = await world.component(f"{R}/a")
    await world.port(A).post(ask(1, to=to))
    await world.settle()
    assert heard == []


async def test_the_message_bus_has_no_listener_for_everything(world):
    """BUS-04, I-B5: that is the MiniBUS's of a stub; here it would send back what came from it."""
    listener = await world.supervisor.start_child(ChildSpec("all", partial(Listener, [])))
    with pytest.raises(SpecError):
        RoutingCore(has_any=False).add(ANY, listener, "test")


async def test_ids_of_one_sender_rise(world):
    """MSG-03: whoever it speaks to."""
    ids = IdSource()
    assert [ids.next(A), ids.next(A), ids.next(B), ids.next(A)] == [1, 2, 1, 3]


# ---- admission


async def test_another_request_with_the_same_id_is_malformed(world):
    """MSG-03, MSG-07, I-T8."""
    alice, bob = await world.component(A), await world.component(B)
    await world.port(A).post(ask(1, value=1))
    await world.port(A).post(ask(1, value=2))
    await world.settle()
    assert len(bob) == 1
    assert [m.code for m in world.heard_by(alice)] == [Code.MALFORMED]
