"""The Message BUS: who hears what, and who may speak (BUS-01..14, I-B1..I-B12, I-T1..I-T8)."""

from functools import partial

import pytest
import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import Origin
from actors.runtime.policy import Policy
from fsm.bus.listeners import ANY, RoutingCore
from specs.errors import SpecError
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType, stamped
from specs.reply_code import Code, DropReason
from specs.trace import Op
from tests.support.runtime.runtime_parts import Listener, R, open_bus
from tests.support.wire.wire import A, B, C, answer, ask, event

S, PQ = f"{R}/protostub/1", f"{R}/p2prequester/1"
RC = "hyperty-runtime://b.ex/rc"


async def test_a_request_and_its_answer_cross_the_bus(world):
    """BUS-01, MSG-04."""
    alice, bob = await world.component(A), await world.component(B)
    await world.port(A).post(ask(1))
    await world.settle()
    await world.port(B).post(answer(ask(1)))
    await world.settle()
    assert world.heard_by(bob) == [ask(1)]
    assert world.heard_by(alice) == [answer(ask(1))]


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


async def test_an_event_to_an_unknown_address_is_counted(world):
    """BUS-14, I-B12: nobody is answered."""
    await world.component(A)
    await world.port(A).post(event(1, to=f"{R}/changes"))
    await world.settle()
    assert world.counters.drops == {DropReason.NO_TARGET: 1}


async def test_silence_becomes_408_and_the_late_answer_is_dropped(world, autojump_clock):
    await world.component(A)
    await world.component(B)
    final = await world.port(A).request(ask(1))
    assert (final.code, trio.current_time()) == (Code.TIMEOUT, REPLY_TIMEOUT)
    await world.port(B).post(answer(ask(1)))
    await world.settle()
    assert world.counters.drops == {DropReason.LATE_RESPONSE: 1}


async def test_an_unrequested_answer_is_dropped(world):
    alice = await world.component(A)
    await world.component(B)
    await world.port(B).post(answer(ask(1)))
    await world.settle()
    assert alice == []
    assert world.counters.drops == {DropReason.UNMATCHED: 1}


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


async def test_an_answer_to_an_unknown_address_is_not_answered(world):
    """BUS-14: by no 404; it is counted."""
    alice = await world.component(A)
    await world.port(A).post(answer(ask(1, from_=B, to=A)))
    await world.settle()
    assert alice == []
    assert world.counters.drops == {DropReason.UNMATCHED: 1}


async def test_ids_of_one_sender_rise(world):
    """MSG-03: whoever it speaks to."""
    ids = IdSource()
    assert [ids.next(A), ids.next(A), ids.next(B), ids.next(A)] == [1, 2, 1, 3]


# ---- admission


async def test_a_forged_source_is_refused_to_its_submitter(world):
    alice, bob = await world.component(A), await world.component(B)
    await world.port(B).post(ask(1, from_=A, to=B))
    await world.settle()
    assert alice == []
    assert [m.code for m in world.heard_by(bob)] == [Code.UNAUTHENTICATED]
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}


async def test_a_node_may_not_speak_for_the_stub_that_leads_to_it(world):
    bob = await world.component(B)
    await world.component(S, Origin.NODE_STUB)
    status = Message(2, MessageType.UPDATE, S, f"{S}/status", {"value": "failed"})
    for forged in (ask(1, from_=S), status):
        await world.port(S).post(stamped(forged, S))
    await world.settle()
    assert bob == []
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 2}


async def test_a_stub_may_not_speak_for_this_runtime(world):
    bob = await world.component(B)
    await world.component(A)
    await world.component(S, Origin.NODE_STUB)
    for forged in (A, f"{R}/registry", R):
        await world.port(S).post(ask(1, from_=forged))
    await world.settle()
    assert bob == []
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 3}


async def test_a_component_without_an_address_may_not_submit(world):
    refused = await world.port(C).request(ask(1, from_=C))
    assert refused.code == Code.GONE


async def test_a_status_from_another_sender_is_dropped(world):
    bob = await world.component(B)
    await world.component(A)
    world.agent.follow(f"{B}/status", B)
    await world.port(A).post(event(1, to=f"{B}/status"))
    await world.settle()
    assert bob == []
    assert world.counters.drops == {DropReason.FORGED_STATUS: 1}


@pytest.mark.parametrize("via", [["s", "t", "s"], [str(n) for n in range(9)]])
async def test_a_circling_message_is_dropped(via, world):
    await world.component(B)
    await world.component(S, Origin.NODE_STUB)
    await world.port(S).post(ask(1, from_=C, to=B, via=via))
    await world.settle()
    assert world.counters.drops == {DropReason.LOOP: 1}


async def test_the_same_message_by_two_paths_is_delivered_once(world):
    bob = await world.component(B)
    await world.component(S, Origin.NODE_STUB)
    await world.component(PQ, Origin.P2P_STUB)
    world.bus.add_peer(PQ, RC)
    await world.port(PQ).post(ask(9, from_=C, via=[PQ]))
    await world.settle()
    world.bus.set_owner(C, RC)
    await world.settle()
    bob.clear()
    for stub in (S, PQ):
        await world.port(stub).post(ask(10, from_=C, via=[stub]))
    await world.settle()
    assert len(bob) == 1
    assert world.counters.drops == {DropReason.DUPLICATE: 1}


async def test_another_request_with_the_same_id_is_malformed(world):
    """MSG-03, MSG-07, I-T8."""
    alice, bob = await world.component(A), await world.component(B)
    await world.port(A).post(ask(1, value=1))
    await world.port(A).post(ask(1, value=2))
    await world.settle()
    assert len(bob) == 1
    assert [m.code for m in world.heard_by(alice)] == [Code.MALFORMED]


async def test_asking_twice_with_one_id_does_not_hang(world):
    await world.component(A)
    await world.component(B)
    await world.port(A).post(ask(1))
    assert (await world.port(A).request(ask(1))).code == Code.CONFLICT


class _NoWriting(Policy):
    @override
    def refusal(self, message, by):
        return "read only" if message.type == "create" else None


async def test_the_policy_refuses_before_anything_is_resolved(autojump_clock):
    async with open_bus(_NoWriting()) as world:
        await world.component(A)
        refused = await world.port(A).request(ask(1, to=C))
        assert (refused.code, refused.body["description"]) == (Code.FORBIDDEN, "read only")
        assert world.asked == []
        decisions = [fact.decision for fact in world.tracer.facts if fact.decision]
        assert decisions == ["deny"]
