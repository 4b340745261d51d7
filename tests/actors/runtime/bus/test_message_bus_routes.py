"""Ways out of the Message BUS: routes, links, and what waits for them (BUS-01..14, I-B1..I-B12)."""

from types import SimpleNamespace

import trio

from actors.kit.supervision.actor import Delivery, Purpose
from actors.runtime.bus.messages import LinkListener, Origin
from fsm.effects import Intent
from fsm.p2p.transfer import Behind
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import Code, DropReason
from specs.trace import Op
from tests.support.runtime.runtime_parts import R, ScriptedRegistry
from tests.support.wire.wire import A, B, C, ask, event

S, PQ = f"{R}/protostub/1", f"{R}/p2prequester/1"
RC = "hyperty-runtime://b.ex/rc"


def route(to=C, url=S, intent=Intent.REACH):
    return to, intent, url, float("inf")


async def with_route(world):
    """Alice here, a node stub that leads to Carol."""
    alice, stub = await world.component(A), await world.component(S, Origin.NODE_STUB)
    world.bus.take_route(*route())
    return alice, stub


# ---- outward


async def test_a_stub_that_is_gone_is_503(world):
    await with_route(world)
    world.agent.expel(S)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.UNAVAILABLE


async def test_a_remote_requester_of_an_unknown_address_gets_404_and_is_never_relayed(world):
    """BUS-14, BUS-06."""
    stub = await world.component(S, Origin.NODE_STUB)
    await world.port(S).post(ask(1, from_=C, to="hyperty://d.ex/x"))
    await world.settle()
    assert world.asked == []
    assert [m.code for m in world.heard_by(stub)] == [Code.NOT_FOUND]


# ---- links


async def with_link(world, remote=RC):
    """A P2P stub, and a link of it that leads to a runtime."""
    link = await world.component(PQ, Origin.P2P_STUB)
    world.bus.add_peer(PQ, remote)
    return link


async def test_a_proven_sender_is_checked_again_once_its_record_is_in_doubt(world):
    """I-B10, REG-13."""
    bob = await world.component(B)
    await with_link(world)
    await world.port(PQ).post(ask(1, from_=C, via=[PQ]))
    await world.settle()
    world.bus.set_owner(C, RC)
    world.bus.forget_owner(C)
    await world.port(PQ).post(ask(2, from_=C, via=[PQ]))
    await world.settle()
    assert ([m.id for m in world.heard_by(bob)], len(world.asked)) == ([1], 2)
    world.bus.set_owner(C, None)
    await world.settle()
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}


async def test_a_message_of_an_unknown_owner_is_refused_while_the_registry_is_busy(
    world, monkeypatch
):
    monkeypatch.setattr(ScriptedRegistry, "try_ask_owner", lambda *_: False)
    bob, link = await world.component(B), await with_link(world)
    await world.port(PQ).post(ask(1, from_=C, via=[PQ]))
    await world.settle()
    assert (bob, [m.code for m in world.heard_by(link)]) == ([], [Code.UNAUTHENTICATED])


async def test_a_returned_message_is_routed_again_before_younger_ones(world):
    _, stub = await with_route(world)
    link = await world.component(PQ, Origin.P2P_STUB)
    world.bus.take_route(*route(url=PQ))
    for number in (1, 2):
        await world.port(A).post(ask(number, to=C))
    await world.settle()
    lost = world.heard_by(link)
    await world.port(PQ).hand_back(lost)
    await world.port(A).post(ask(3, to=C))
    await world.settle()
    world.bus.take_route(*route())
    await world.settle()
    await world.port(PQ).hand_back(world.heard_by(link)[len(lost) :])
    await world.settle()
    assert [m.id for m in world.heard_by(stub)] == [1, 2, 3]


async def test_a_message_by_a_link_waits_for_the_node_and_is_reported_in_the_trace(world):
    heard = await world.component(A)
    await world.component(S, Origin.NODE_STUB)
    await with_link(world)
    await world.port(PQ).announce(Behind(C, A, 1, 1), PQ)
    for number in (2, 3):
        await world.port(PQ).post(ask(number, from_=C, to=A, via=[PQ]), PQ)
    await world.settle()
    world.bus.set_owner(C, RC)
    await world.settle()
    assert heard == []
    await world.port(S).post(ask(1, from_=C, to=A))
    await world.settle()
    assert [m.id for m in world.heard_by(heard)] == [1, 2, 3]
    ops = [fact.op for fact in world.tracer.facts if fact.mid == f"{C}#2"]
    assert ops[:2] == [Op.QUEUE, Op.FLUSH]


async def test_the_wait_for_a_link_that_announces_nothing_has_an_end(world, autojump_clock):
    with trio.fail_after(REPLY_TIMEOUT + 1):
        await world.agent.caught_up(f"{C}/changes", PQ)


def test_a_link_announces_with_the_first_message_that_its_stub_takes():
    taken, rooms, behind = [], [False, True, True], Behind(A, B, 1, 1)
    stub = SimpleNamespace(try_tell=lambda one: taken.append(one.behind) or rooms.pop(0))
    listener = LinkListener(stub, PQ, behind)
    assert [listener.try_tell(Delivery(ask(2), PQ)) for _ in range(3)] == [False, True, True]
    assert taken == [behind, behind, None]


async def test_a_link_that_ends_leaves_the_other_links_of_an_address(world):
    stubs = [await world.component(stub, Origin.P2P_STUB) for stub in (PQ, f"{PQ}2")]
    for stub in (PQ, f"{PQ}2"):
        world.agent.add_link(f"{A}/changes", stub)
    world.agent.remove_link(f"{A}/changes", PQ)
    await world.component(A)
    await world.port(A).post(event(1, from_=A, to=f"{A}/changes"))
    await world.settle()
    purposes = [[one.purpose for one in stub] for stub in stubs]
    assert purposes == [[Purpose.ANNOUNCE], [Purpose.ANNOUNCE, Purpose.SEND]]
