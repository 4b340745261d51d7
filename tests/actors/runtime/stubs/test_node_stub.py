"""The node stub over a link (STB-03..09, STB-17, I-S3, I-S4, I-S8)."""

import trio

from fsm.machines.stub_connection import NODE_LINK, STUB_CONNECTION
from specs.limits.protocol import MAX_MESSAGE_BYTES, PING_PERIOD, PONG_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.trace import Kind, Op
from tests.actors.runtime.stubs.fake_node import S, open_node_stub
from tests.support.wire.wire import A, C, answer, ask, event


async def test_the_first_message_opens_the_session_and_goes_stamped(autojump_clock):
    async with open_node_stub() as world:
        assert world.node.controls == []
        await world.send(ask(1, to=C))
        await world.settle()
        assert world.node.controls == ["open"]
        assert [m.via for m in world.node.heard] == [(S,)]
        assert world.statuses() == ["created", "in-progress", "live"]


async def test_waiting_messages_go_in_one_frame_in_order(autojump_clock):
    async with open_node_stub() as world:
        await world.send(*(ask(n, to=C) for n in range(1, 21)))
        await world.settle()
        assert [m.id for m in world.node.heard] == list(range(1, 21))
        assert len(world.node.frames) <= 3


async def test_a_stub_has_room_for_as_many_as_have_left_it(autojump_clock):
    async with open_node_stub() as world:
        rooms = []

        async def room(count, *, is_first=False):
            rooms.append(count)

        world.port.room = room
        for number in range(1, 4):
            await world.send(ask(number, to=C))
            await world.settle()
        assert rooms == [1, 1, 1]


async def test_a_received_message_is_posted_with_a_stamp(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        await world.node.send(ask(1, from_=C, to=A), event(2, from_=C, to=f"{C}/changes"))
        await world.settle()
        inbound = [m for m in world.delivered() if m.from_ == C]
        assert [(m.id, m.via) for m in inbound] == [(1, (S,)), (2, (S,))]


async def test_messages_that_crossed_this_stub_before_are_dropped_in_both_directions(
    autojump_clock,
):
    async with open_node_stub() as world:
        await world.send(ask(1, to=C, via=[S]))
        await world.settle()
        await world.node.send(ask(2, from_=C, to=A, via=[S]))
        await world.settle()
        assert world.node.heard == world.delivered() == []
        assert world.counters.drops == {DropReason.LOOP: 2}


async def test_a_cut_link_is_reopened_with_its_token_and_loses_nothing_new(autojump_clock):
    async with open_node_stub() as world:
        await world.send(ask(1, to=C))
        await world.settle()
        world.node.cut()
        await world.settle()
        await world.send(ask(2, to=C))
        await trio.sleep(1)
        assert world.node.controls == ["open", "re-open"]
        assert world.node.tokens[-1] == "t1"
        assert [m.id for m in world.node.heard] == [1, 2]
        assert world.statuses()[-2:] == ["disconnected", "live"]


async def test_a_forgotten_session_is_opened_anew_and_says_so(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        world.node.refusals = [Code.GONE]
        world.node.cut()
        await trio.sleep(1)
        assert world.node.controls == ["open", "re-open", "open"]
        sessions = [m.body["link"] for m in world.port.posted if m.body.get("value") == "live"]
        assert sessions == [f"{S}/session/1", f"{S}/session/2"]


async def test_a_node_that_refuses_the_session_fails_the_stub(autojump_clock):
    async with open_node_stub(Code.UNAUTHENTICATED) as world:
        await world.send(ask(1, to=C), event(2, to=f"{C}/x/changes"))
        await world.settle()
        assert [(m.id, m.code) for m in world.delivered()] == [(1, 401)]
        assert world.statuses()[-1] == "failed"


async def test_an_unreachable_node_answers_all_that_wait_in_time(autojump_clock):
    async with open_node_stub() as world:
        world.node.network.refuse(world.node.url.removesuffix("/link"))
        await world.send(ask(1, to=C), ask(2, to=C))
        with trio.fail_after(5):
            await world.port.wait_for(5)
        assert [(m.id, m.code) for m in world.delivered()] == [(1, 503), (2, 503)]
        assert world.statuses() == ["created", "in-progress", "failed"]


async def test_a_node_that_stops_answering_is_noticed(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        world.node.is_mute = True
        await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 0.1)
        assert "disconnected" in world.statuses()


async def test_a_node_that_sends_messages_is_not_asked_whether_it_is_there(autojump_clock):
    """R8: whatever comes is a sign of life."""
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        for number in range(40):
            await trio.sleep(PING_PERIOD - 5)
            await world.node.send(event(number, from_=C, to=f"{C}/changes"))
        assert world.node.controls == ["open"]
        assert world.statuses() == ["created", "in-progress", "live"]


async def test_pings_of_the_node_are_answered(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        await world.node.ping()
        await world.settle()
        assert [(m.id, m.code) for m in world.node.heard] == [(1, 200)]


async def test_a_line_that_is_no_message_harms_no_other(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        await world.node._links[-1].send(b'{"id":"x"}\n{"id":1,"type":"read","from":"a:","to":3}')
        await world.node.send(ask(1, from_=C, to=A))
        await world.settle()
        assert [m.id for m in world.delivered() if m.from_ == C] == [1]
        assert world.counters.drops == {DropReason.MALFORMED: 2}


async def test_a_malformed_answer_ends_the_request_and_is_counted(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        ends = b'{"id":7,"type":"response","from":"%b","to":"%b"' % (C.encode(), A.encode())
        for body in (b'{"code":200,"value":NaN}', b'{"code":183,"value":NaN}'):
            await world.node._links[-1].send(ends + b',"body":%b}' % body)
        await world.settle()
        assert [(m.id, m.code) for m in world.delivered() if m.from_ == C] == [(7, 502)]
        assert world.counters.drops == {DropReason.MALFORMED: 2}


async def test_an_answer_that_no_line_can_hold_is_replaced_and_counted(autojump_clock):
    async with open_node_stub() as world:
        await world.command("connect")
        await world.settle()
        wrong = ({"code": 200, "value": "\ud83d"}, {"code": 200, "value": "x" * MAX_MESSAGE_BYTES})
        for number, body in enumerate((*wrong, {"code": 183, "value": "\ud83d"}), 1):
            await world.send(Message(number, MessageType.RESPONSE, A, C, body))
        await world.settle()
        assert [(m.id, m.code) for m in world.node.heard] == [(1, 502), (2, 502)]
        assert world.counters.drops == {DropReason.MALFORMED: 3}


async def test_the_substitute_of_an_answer_keeps_its_place_among_those_of_the_pair(autojump_clock):
    """I-B7: also of answers that wait for the session."""
    large = {"code": 200, "value": "x" * MAX_MESSAGE_BYTES}
    bodies = (large, {"code": 200}, {"code": 200})
    async with open_node_stub() as world:
        await world.send(
            *(Message(n, MessageType.RESPONSE, A, C, body) for n, body in enumerate(bodies, 1))
        )
        await world.settle()
        assert [(m.id, m.code) for m in world.node.heard] == [(1, 502), (2, 200), (3, 200)]


async def test_a_message_too_large_for_the_wire_is_answered(autojump_clock):
    async with open_node_stub() as world:
        await world.send(ask(1, to=C, value="x" * MAX_MESSAGE_BYTES), ask(2, to=C))
        await world.settle()
        assert [(m.id, m.code) for m in world.delivered()] == [(1, 413)]
        assert [m.id for m in world.node.heard] == [2]


async def test_disconnect_closes_the_session_then_answers_and_stays(autojump_clock):
    async with open_node_stub() as world:
        await world.send(ask(1, to=C))
        await world.settle()
        await world.command("disconnect")
        await world.settle()
        assert world.node.controls == ["open", "close"]
        assert [m.code for m in world.delivered()] == [200]
        await world.send(ask(2, to=C))
        await trio.sleep(60)
        assert [m.code for m in world.delivered()] == [200, 503]
        assert world.statuses()[-1] == "disconnected"


async def test_unknown_commands_are_refused_and_answers_let_be(autojump_clock):
    async with open_node_stub() as world:
        await world.command("dance")
        await world.send(ask(2, to=S), answer(ask(3, from_=S)))
        await world.settle()
        assert [m.code for m in world.delivered()] == [400, 400]


def reported(world, machine):
    """The states that the trace tells of the stub in one machine."""
    return [fact.new for fact in world.tracer.facts if fact.machine == machine.name]


async def test_stopped_in_the_middle_it_comes_to_rest(autojump_clock):
    async with open_node_stub() as world:
        await world.send(ask(1, to=C))
        await world.settle()
    states = {machine: reported(world, machine) for machine in (STUB_CONNECTION, NODE_LINK)}
    assert states == {
        STUB_CONNECTION: ["created", "in-progress", "live", "disconnected"],
        NODE_LINK: ["dialling", "opening", "open", "closing", "ended"],
    }


async def test_each_step_is_one_status_event_and_the_trace_has_both_directions(autojump_clock):
    async with open_node_stub() as world:
        await world.send(ask(1, to=C))
        await world.settle()
        world.node.cut()
        await trio.sleep(1)
        await world.node.send(answer(ask(1, to=C)))
        await world.settle()
        assert reported(world, STUB_CONNECTION) == world.statuses()
        ops = [f.op for f in world.tracer.facts if f.k is Kind.MSG]
        assert ops == [Op.QUEUE, Op.FLUSH, Op.XMIT, Op.RCV]
