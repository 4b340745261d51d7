"""The node stub over a link (STB-03..09, STB-17, I-S3, I-S4, I-S8)."""

import trio

from specs.limits.protocol import MAX_MESSAGE_BYTES
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.actors.runtime.stubs.fake_node import S, open_node_stub
from tests.support.wire.wire import A, C, answer, ask


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


async def test_unknown_commands_are_refused_and_answers_let_be(autojump_clock):
    async with open_node_stub() as world:
        await world.command("dance")
        await world.send(ask(2, to=S), answer(ask(3, from_=S)))
        await world.settle()
        assert [m.code for m in world.delivered()] == [400, 400]
