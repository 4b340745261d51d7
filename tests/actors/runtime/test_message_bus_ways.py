"""Ways out of the Message BUS: routes, links, and what waits for them (BUS-01..14, I-B1..I-B12)."""

import pytest

from actors.kit.delivery import Purpose
from actors.runtime.bus_messages import Origin
from fsm.cores.intent import Intent, intent_of
from fsm.cores.pair_order import Behind
from fsm.cores.resolve_effects import NoRoute, Route, RoutesChanged
from fsm.cores.resolve_inputs import Asked, HeardFrom
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Op
from tests.support.runtime_parts import R
from tests.support.wire import A, B, C, answer, ask, event

S, PQ = f"{R}/protostub/1", f"{R}/p2prequester/1"


def route(to=C, url=S, intent=Intent.REACH):
    return Route(to, intent, url, float("inf"), "test")


async def with_route(world):
    """Alice here, a node stub that leads to Carol."""
    alice, stub = await world.component(A), await world.component(S, Origin.NODE_STUB)
    await world.bus.tell(route())
    return alice, stub


# ---- outward


async def test_who_waits_for_a_route_goes_in_order(world):
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    for number in (1, 2, 3):
        await world.port(A).post(ask(number, to=C))
    await world.settle()
    assert world.asked == [Asked(C, Intent.REACH)]
    await world.bus.tell(route())
    await world.settle()
    assert [(d.message.id, d.route) for d in stub] == [(1, S), (2, S), (3, S)]


async def test_a_known_route_is_not_asked_again_until_routes_change(world):
    await with_route(world)
    await world.port(A).post(ask(1, to=C))
    await world.settle()
    assert world.asked == []
    await world.bus.tell(RoutesChanged())
    await world.port(A).post(ask(2, to=C))
    await world.settle()
    assert world.asked == [Asked(C, Intent.REACH)]


async def test_requests_and_events_to_one_target_keep_their_order_while_it_is_asked(world):
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    await world.port(A).post(ask(1, to=f"{C}/changes"))
    await world.port(A).post(event(2, to=f"{C}/changes"))
    await world.settle()
    await world.bus.tell(route(f"{C}/changes"))
    await world.settle()
    await world.bus.tell(route(f"{C}/changes", intent=Intent.KNOWN))
    await world.settle()
    assert [d.message.id for d in stub] == [1, 2]


async def test_no_route_refuses_every_waiting_request_once(world):
    alice = await world.component(A)
    for number in (1, 2):
        await world.port(A).post(ask(number, to=C))
    await world.settle()
    await world.bus.tell(NoRoute(C, Intent.REACH, Code.UNAVAILABLE, "no stub"))
    await world.settle()
    assert [(m.id, m.code) for m in world.heard_by(alice)] == [(1, 503), (2, 503)]


async def test_what_waited_too_long_for_a_route_is_not_sent_any_more(world, autojump_clock):
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.TIMEOUT
    await world.bus.tell(route())
    await world.settle()
    assert stub == []


async def test_a_stub_that_is_gone_is_503(world):
    await with_route(world)
    await world.agent.expel(S)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.UNAVAILABLE


async def test_an_answer_from_outside_comes_home(world):
    alice, _ = await with_route(world)
    await world.port(A).post(ask(1, to=C))
    await world.port(S).post(answer(ask(1, to=C)))
    await world.settle()
    assert world.heard_by(alice) == [answer(ask(1, to=C))]


async def test_a_remote_requester_is_answered_by_its_route(world):
    await world.component(B)
    stub = await world.component(S, Origin.NODE_STUB)
    await world.port(S).post(ask(1, from_=C))
    await world.port(B).post(answer(ask(1, from_=C)))
    await world.settle()
    await world.bus.tell(route(intent=Intent.KNOWN))
    await world.settle()
    assert world.heard_by(stub) == [answer(ask(1, from_=C))]


async def test_a_remote_requester_gets_404_for_nobody_and_is_never_relayed(world):
    """BUS-14, BUS-06."""
    stub = await world.component(S, Origin.NODE_STUB)
    await world.port(S).post(ask(1, from_=C, to="hyperty://d.ex/x"))
    await world.settle()
    assert world.asked == []
    assert [m.code for m in world.heard_by(stub)] == [Code.NOT_FOUND]


async def test_a_stub_asking_for_itself_is_answered_here(world):
    requester, _ = await world.component(PQ, Origin.P2P_STUB), await world.component(B)
    await world.port(PQ).post(ask(1, from_=PQ))
    await world.port(B).post(answer(ask(1, from_=PQ)))
    await world.settle()
    assert world.heard_by(requester) == [answer(ask(1, from_=PQ))]


# ---- links


async def test_the_first_word_over_a_link_is_told_to_the_registry(world):
    await world.component(B)
    await world.component(PQ, Origin.P2P_STUB)
    for number in (1, 2):
        await world.port(PQ).post(ask(number, from_=C))
    await world.settle()
    assert world.asked == [HeardFrom(C, PQ)]


async def test_the_memory_of_who_was_heard_over_links_is_bounded(world):
    await world.component(A)
    await world.component(PQ, Origin.P2P_STUB)
    for id_, number in enumerate([0, *range(4097), 0], start=1):
        await world.port(PQ).post(ask(id_, from_=f"{C}{number}", to=A))
        await world.settle()
    told = [each.address for each in world.asked if isinstance(each, HeardFrom)]
    assert len(set(told)) == 4097
    assert told[4097:] == told[:1]


async def test_what_is_handed_back_is_routed_again_before_what_is_younger(world):
    _, stub = await with_route(world)
    link = await world.component(PQ, Origin.P2P_STUB)
    await world.bus.tell(route(url=PQ))
    for number in (1, 2):
        await world.port(A).post(ask(number, to=C))
    await world.settle()
    await world.port(PQ).hand_back(world.heard_by(link))
    await world.port(A).post(ask(3, to=C))
    await world.settle()
    await world.bus.tell(route())
    await world.settle()
    assert [m.id for m in world.heard_by(stub)] == [1, 2, 3]


async def test_what_is_handed_back_after_its_408_goes_nowhere(world, autojump_clock):
    _, stub = await with_route(world)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.TIMEOUT
    await world.port(S).hand_back([ask(1, to=C)])
    await world.settle()
    assert len(stub) == 1


async def test_a_switch_to_a_link_announces_what_went_by_the_node(world):
    await with_route(world)
    link = await world.component(PQ, Origin.P2P_STUB)
    await world.port(A).post(ask(1, to=C))
    await world.settle()
    await world.bus.tell(RoutesChanged())
    await world.bus.tell(route(url=PQ))
    await world.port(A).post(ask(2, to=C))
    await world.settle()
    assert [(one.message.id, one.behind.last) for one in link] == [(2, 1)]
    await world.port(S).post(reply_to(ask(1, to=C), Code.OK))
    await world.settle()
    assert [one.purpose for one in link] == [Purpose.SEND, Purpose.ANNOUNCE]
    assert link[-1].behind == Behind(A, C)


async def test_what_a_link_brings_waits_for_the_node_and_is_told_in_the_trace(world):
    heard = await world.component(A)
    await world.component(S, Origin.NODE_STUB)
    await world.component(PQ, Origin.P2P_STUB)
    await world.port(PQ).announce(Behind(C, A, 1, 1), PQ)
    await world.port(PQ).post(ask(2, from_=C, to=A), PQ)
    await world.settle()
    assert heard == []
    await world.port(S).post(ask(1, from_=C, to=A))
    await world.settle()
    assert [m.id for m in world.heard_by(heard)] == [1, 2]
    ops = [fact.op for fact in world.tracer.facts if fact.mid == f"{C}#2"]
    assert ops[:2] == [Op.QUEUE, Op.FLUSH]


async def test_what_comes_too_late_by_another_path_is_refused(world):
    heard = await world.component(A)
    node = await world.component(S, Origin.NODE_STUB)
    await world.component(PQ, Origin.P2P_STUB)
    await world.port(PQ).post(ask(2, from_=C, to=A), PQ)
    await world.port(S).post(ask(1, from_=C, to=A))
    await world.settle()
    assert [m.id for m in world.heard_by(heard)] == [2]
    assert [(m.id, m.code) for m in world.heard_by(node)] == [(1, Code.UNAVAILABLE)]
    drops = [fact.reason for fact in world.tracer.facts if fact.op is Op.DROP]
    assert drops == ["overtaken"]


async def test_answers_to_a_shared_address_may_come_from_many(world):
    core = await world.component(A)
    await world.component(S, Origin.NODE_STUB)
    gone = Message(1, MessageType.DELETE, A, f"{A}/changes")
    await world.bus.tell(route(gone.to))
    await world.port(A).post(gone)
    await world.settle()
    await world.port(S).post(answer(gone))
    await world.settle()
    assert world.heard_by(core) == [answer(gone)]


@pytest.mark.parametrize(
    ("address", "is_part"),
    [
        (f"{R}/p2phandler/1", True),
        (f"{R}/p2prequester/1", True),
        (f"{R}/p2phandler/1/conn/2", True),
        ("hyperty://a.ex/p2phandler/1", False),
        ("hyperty-runtime://a.ex/p2phandler", False),
        (f"{R}/x/p2phandler/1", False),
    ],
)
def test_a_p2p_stub_is_known_by_where_its_name_stands(address, is_part):
    """ADR-07: not by a word that occurs somewhere in an address."""
    found = intent_of(ask(1, to=address))
    assert found is (Intent.NODE if is_part else Intent.REACH)
