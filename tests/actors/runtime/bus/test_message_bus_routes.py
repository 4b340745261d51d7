"""Ways out of the Message BUS: routes, links, and what waits for them (BUS-01..14, I-B1..I-B12)."""

from types import SimpleNamespace

import pytest
import trio

from actors.kit.supervision.actor import Delivery, Purpose
from actors.runtime.bus.messages import LinkListener, Origin
from fsm.effects import Intent, intent_of
from fsm.p2p.transfer import Behind
from specs.limits.p2p import FORGERIES, HELD_MESSAGES, PROOF_TIMEOUT
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType, reply_to, stamped
from specs.reply_code import Code, DropReason
from specs.trace import Op
from tests.support.runtime.runtime_parts import R, ScriptedRegistry
from tests.support.wire.wire import A, B, C, answer, ask, event

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


async def test_messages_that_wait_for_a_route_keep_their_order(world):
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    for number in (1, 2, 3):
        await world.port(A).post(ask(number, to=C))
    await world.settle()
    assert world.asked == [("route", C, Intent.REACH)]
    world.bus.take_route(*route())
    await world.settle()
    assert [(d.message.id, d.route) for d in stub] == [(1, S), (2, S), (3, S)]


async def test_a_known_route_is_not_asked_again_until_routes_change(world):
    await with_route(world)
    await world.port(A).post(ask(1, to=C))
    await world.settle()
    assert world.asked == []
    world.bus.forget_routes()
    await world.port(A).post(ask(2, to=C))
    await world.settle()
    assert world.asked == [("route", C, Intent.REACH)]


async def test_requests_and_events_to_one_target_keep_their_order_while_it_is_asked(world):
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    await world.port(A).post(ask(1, to=f"{C}/changes"))
    await world.port(A).post(event(2, to=f"{C}/changes"))
    await world.settle()
    world.bus.take_route(*route(f"{C}/changes"))
    await world.settle()
    world.bus.take_route(*route(f"{C}/changes", intent=Intent.KNOWN))
    await world.settle()
    assert [d.message.id for d in stub] == [1, 2]


async def test_no_route_refuses_every_waiting_request_once(world):
    alice = await world.component(A)
    for number in (1, 2):
        await world.port(A).post(ask(number, to=C))
    await world.settle()
    world.bus.no_route(C, Intent.REACH, Code.UNAVAILABLE, "no stub")
    await world.settle()
    assert [(m.id, m.code) for m in world.heard_by(alice)] == [(1, 503), (2, 503)]


async def test_a_message_that_waited_too_long_for_a_route_is_not_sent(world, autojump_clock):
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.TIMEOUT
    world.bus.take_route(*route())
    await world.settle()
    assert stub == []


async def test_a_stub_that_is_gone_is_503(world):
    await with_route(world)
    world.agent.expel(S)
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
    world.bus.take_route(*route(intent=Intent.KNOWN))
    await world.settle()
    assert world.heard_by(stub) == [answer(ask(1, from_=C))]


async def test_a_remote_requester_of_an_unknown_address_gets_404_and_is_never_relayed(world):
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


async def with_link(world, remote=RC):
    """A P2P stub, and a link of it that leads to a runtime."""
    link = await world.component(PQ, Origin.P2P_STUB)
    world.bus.add_peer(PQ, remote)
    return link


async def test_messages_of_an_unproven_sender_wait_in_order_until_its_owner_is_read(world):
    """I-B10: the registry is asked once; others of the same link do not wait."""
    bob = await world.component(B)
    await with_link(world)
    for number in (1, 2):
        await world.port(PQ).post(ask(number, from_=C, via=[PQ]))
    await world.port(PQ).post(ask(3, from_=f"{RC}/sm", via=[PQ]))
    await world.settle()
    assert world.asked == [("owner", C, RC)]
    assert [m.id for m in world.heard_by(bob)] == [3]
    world.bus.set_owner(C, RC)
    await world.port(PQ).post(ask(4, from_=f"{C}/part", via=[PQ]))
    await world.settle()
    assert [m.id for m in world.heard_by(bob)] == [3, 1, 2, 4]
    assert len(world.asked) == 1


async def test_an_object_of_another_runtime_is_refused_and_its_record_read_again(world):
    """I-B10, S1: by the link it came by, and counted."""
    bob, link = await world.component(B), await with_link(world)
    await world.port(PQ).post(ask(1, from_=C, via=[PQ]))
    await world.settle()
    world.bus.set_owner(C, f"{RC}2")
    await world.settle()
    assert [(m.id, m.code) for m in world.heard_by(link)] == [(1, Code.UNAUTHENTICATED)]
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}
    await world.port(PQ).post(ask(2, from_=C, via=[PQ]))
    await world.settle()
    assert (bob, len(world.asked)) == ([], 2)


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


async def test_a_message_of_an_unknown_owner_is_refused_in_time(world, autojump_clock):
    """I-B10: and it is not held against the peer."""
    bob, link = await world.component(B), await with_link(world)
    for number in range(1, FORGERIES + 2):
        await world.port(PQ).post(ask(number, from_=C, via=[PQ]))
    await trio.sleep(PROOF_TIMEOUT + 1)
    assert {m.code for m in world.heard_by(link)} == {Code.UNAUTHENTICATED}
    assert (bob, len(link)) == ([], FORGERIES + 1)
    assert not [one for one in world.asked if one[0] == "forged"]


async def test_waiting_messages_are_decided_though_their_link_has_ended(world):
    """I-P22: its sender was notified that it arrived."""
    bob = await world.component(B)
    await with_link(world)
    await world.port(PQ).post(ask(1, from_=C, via=[PQ]))
    world.bus.remove_peer(PQ)
    await world.port(PQ).post(ask(2, from_=f"{C}2", via=[PQ]))
    await world.settle()
    world.bus.set_owner(C, RC)
    await world.port(PQ).post(ask(3, from_=C, via=[PQ]))
    await world.settle()
    assert [m.id for m in world.heard_by(bob)] == [1]


async def test_waiting_messages_are_bounded(world):
    """I-B10: what is more is refused, and proven senders go on."""
    bob, link = await world.component(B), await with_link(world)
    for number in range(HELD_MESSAGES + 1):
        await world.port(PQ).post(ask(number + 1, from_=C, via=[PQ]))
        await world.settle()
    assert [m.code for m in world.heard_by(link)] == [Code.UNAVAILABLE]
    await world.port(PQ).post(ask(1, from_=f"{RC}/sm", via=[PQ]))
    await world.settle()
    assert len(bob) == 1


FOREIGN = (
    f"{R}/registry",
    PQ,
    A,
    f"{RC}2/sm",
    "hyperty-runtime://b.ex",
    "domain://msg-node.a.ex/sm",
    "domain://registry.b.ex",
    "global://registry",
)


async def test_an_impossible_sender_address_is_refused_at_once_and_ends_the_link(world):
    """S1, I-B10: own addresses, another runtime's, and those of services."""
    await world.component(A)
    bob, link = await world.component(B), await with_link(world)
    for number, from_ in enumerate((*FOREIGN, A), start=1):
        await world.port(PQ).post(ask(number, from_=from_, via=[PQ]))
    await world.settle()
    assert (bob, world.asked) == ([], [])
    assert [m.code for m in world.heard_by(link)] == [Code.UNAUTHENTICATED] * (FORGERIES - 1)
    await world.port(PQ).post(stamped(event(10, from_=A, to=f"{A}/changes"), PQ))
    await world.settle()
    assert world.asked == [("forged", PQ)]
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: FORGERIES}


async def test_an_answer_is_accepted_only_from_the_runtime_of_the_receiver(world):
    """I-T1, I-B10: whoever guesses its number."""
    alice = await world.component(A)
    await with_link(world)
    other = f"{R}/p2prequester/2"
    await world.component(other, Origin.P2P_STUB)
    world.bus.add_peer(other, f"{RC}2")
    world.bus.take_route(*route(url=PQ))
    asked = ask(1, to=C)
    await world.port(A).post(asked)
    await world.port(other).post(stamped(answer(asked, Code.ACCEPTED), other))
    await world.port(PQ).post(stamped(answer(asked), PQ))
    await world.settle()
    world.bus.set_owner(C, RC)
    await world.settle()
    assert [m.code for m in world.heard_by(alice)] == [Code.OK]
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}


async def test_a_peer_answers_for_its_own_runtime_where_many_are_asked(world):
    """C-81, I-B10: not for another, nor for all."""
    core = await world.component(A)
    await with_link(world)
    gone = Message(1, MessageType.DELETE, A, f"{A}/changes")
    world.bus.take_route(*route(gone.to, PQ))
    await world.port(A).post(gone)
    await world.settle()
    for source in (f"{RC}2", None, RC):
        said = reply_to(gone, Code.OK, {"source": source} if source else None)
        await world.port(PQ).post(stamped(said, PQ))
    await world.settle()
    assert [m.body.get("source") for m in world.heard_by(core)] == [RC]
    assert world.counters.drops == {DropReason.UNKNOWN_SOURCE: 2}


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


async def handed_back(world):
    """Two requests that a link gave back and that have no route yet, and a younger event."""
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    link = await world.component(PQ, Origin.P2P_STUB)
    to = f"{C}/changes"
    world.bus.take_route(*route(to, PQ))
    world.bus.take_route(*route(to, intent=Intent.KNOWN))
    requests = [Message(number, MessageType.READ, A, to) for number in (1, 2)]
    for message in (*requests, event(3, to=to)):
        await world.port(A).post(message)
    await world.settle()
    await world.port(PQ).hand_back(world.heard_by(link))
    return stub, to


async def test_nothing_younger_passes_what_was_handed_back_and_has_no_route_yet(
    world, autojump_clock
):
    """I-B7: however long the registry takes."""
    stub, to = await handed_back(world)
    await trio.sleep(REPLY_TIMEOUT / 6)
    assert stub == []
    world.bus.take_route(*route(to))
    await world.settle()
    assert [m.id for m in world.heard_by(stub)] == [1, 2, 3]


async def test_a_returned_message_delays_nothing_after_its_408(world, autojump_clock):
    stub, to = await handed_back(world)
    await trio.sleep(REPLY_TIMEOUT + 1)
    assert [m.id for m in world.heard_by(stub)] == [3]
    world.bus.take_route(*route(to))
    await world.settle()
    assert len(stub) == 1


async def test_a_returned_message_after_its_408_is_discarded(world, autojump_clock):
    _, stub = await with_route(world)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.TIMEOUT
    await world.port(S).hand_back([ask(1, to=C)])
    await world.settle()
    assert len(stub) == 1


@pytest.mark.parametrize("is_lost", [False, True], ids=["there is no link", "the link goes first"])
async def test_a_link_only_message_is_refused_without_a_link(world, is_lost):
    """P2P-30: the way by the node, which is known, is none for it."""
    _, stub = await with_route(world)
    link, answers = await world.component(PQ, Origin.P2P_STUB), []

    async def ask_directly():
        answers.append(await world.port(A).request_direct(ask(1, to=C)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_directly)
        await world.settle()
        assert world.asked == [("route", C, Intent.DIRECT)]
        if is_lost:
            world.bus.take_route(*route(url=PQ, intent=Intent.DIRECT))
            await world.settle()
            await world.port(PQ).hand_back(world.heard_by(link))
        else:
            world.bus.no_route(C, Intent.DIRECT, Code.UNAVAILABLE, "no live link")
    assert [one.code for one in answers] == [Code.UNAVAILABLE]
    assert (stub, len(link)) == ([], is_lost)


async def test_a_returned_message_after_its_408_delays_no_other_message(world, autojump_clock):
    _, stub = await with_route(world)
    assert (await world.port(A).request(ask(1, to=C))).code == Code.TIMEOUT
    await world.port(S).hand_back([ask(1, to=C)])
    await world.port(A).post(ask(2, to=C))
    world.bus.take_route(*route())
    await world.settle()
    assert [m.id for m in world.heard_by(stub)] == [1, 2]


async def test_a_switch_to_a_link_announces_what_went_by_the_node(world):
    await with_route(world)
    link = await world.component(PQ, Origin.P2P_STUB)
    await world.port(A).post(ask(1, to=C))
    await world.settle()
    world.bus.forget_routes()
    world.bus.take_route(*route(url=PQ))
    await world.port(A).post(ask(2, to=C))
    await world.settle()
    assert [(one.message.id, one.behind.last) for one in link] == [(2, 1)]
    await world.port(S).post(reply_to(ask(1, to=C), Code.OK))
    await world.settle()
    assert [one.purpose for one in link] == [Purpose.SEND, Purpose.ANNOUNCE]
    assert link[-1].behind == Behind(A, C)


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


async def test_a_late_message_by_another_path_is_refused(world):
    heard = await world.component(A)
    node = await world.component(S, Origin.NODE_STUB)
    await with_link(world)
    await world.port(PQ).post(ask(2, from_=C, to=A, via=[PQ]), PQ)
    await world.settle()
    world.bus.set_owner(C, RC)
    await world.port(S).post(ask(1, from_=C, to=A))
    await world.settle()
    assert [m.id for m in world.heard_by(heard)] == [2]
    assert [(m.id, m.code) for m in world.heard_by(node)] == [(1, Code.UNAVAILABLE)]
    drops = [fact.reason for fact in world.tracer.facts if fact.op is Op.DROP]
    assert drops == ["overtaken"]


async def test_a_repeat_of_the_node_makes_no_late_message_of_a_link_welcome(world):
    """I-B7: the node may bring what it lost again; the youngest one stays the youngest."""
    heard = await world.component(A)
    await world.component(S, Origin.NODE_STUB)
    await with_link(world)
    world.bus.set_owner(C, RC)
    for number in (3, 1):
        await world.port(S).post(ask(number, from_=C, to=A))
        await world.settle()
    await world.port(PQ).post(ask(2, from_=C, to=A, via=[PQ]), PQ)
    await world.settle()
    world.bus.set_owner(C, RC)
    await world.settle()
    assert [m.id for m in world.heard_by(heard)] == [3, 1]


async def test_answers_to_a_shared_address_may_come_from_many(world):
    core = await world.component(A)
    await world.component(S, Origin.NODE_STUB)
    gone = Message(1, MessageType.DELETE, A, f"{A}/changes")
    world.bus.take_route(*route(gone.to))
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
