"""Requests that are sent again, said to be worked on, or sent to several."""

import math

import pytest
import trio
from typing_extensions import override

from actors.runtime.bus.messages import Origin
from actors.runtime.hyperty.hyperty import Hyperty, Refused
from fsm.effects import Intent
from fsm.judge.trace_line import Verdict, read_record
from fsm.judge.verdict import judge
from specs.errors import BadMessageError
from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import Code, DropReason
from tests.support.runtime.domain import NODE_PLACE, DomainOptions, open_domain
from tests.support.runtime.runtime_parts import R
from tests.support.trace.trace_files import records, whole
from tests.support.wire.wire import A, B, C, answer, ask
from transports.link import Kind as Carrier

S = f"{R}/protostub/1"
TO_CAROL = (C, Intent.REACH, S, math.inf)
TO_CAROL_KNOWN = (C, Intent.KNOWN, S, math.inf)


async def test_a_request_is_sent_so_often_and_then_answered_408(world, autojump_clock):
    """MSG-07: the same message with the same id; the trace of it conforms."""
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    world.bus.take_route(*TO_CAROL)
    final = await world.port(A).insist(ask(1, to=C), 3)
    assert (final.code, trio.current_time()) == (Code.TIMEOUT, 3 * REPLY_TIMEOUT)
    assert world.heard_by(stub) == [ask(1, to=C)] * 3
    reported = judge(map(read_record, records(whole(world.tracer.facts))))
    assert reported.verdict is Verdict.CONFORMANT


async def test_an_answer_to_the_second_attempt_is_the_answer(world, autojump_clock):
    """MSG-07."""
    await world.component(A)
    stub = await world.component(S, Origin.NODE_STUB)
    world.bus.take_route(*TO_CAROL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_answer_the_second, world, stub)
        final = await world.port(A).insist(ask(1, to=C), 3)
    assert (final.code, len(stub)) == (Code.OK, 2)


async def _answer_the_second(world, stub):
    await trio.sleep(REPLY_TIMEOUT + 1)
    await world.port(S).post(answer(ask(1, to=C)))


async def test_a_repeated_open_request_is_not_delivered_again(world, autojump_clock):
    """MSG-07: a message within a runtime is not lost; its receiver is slow."""
    await world.component(A)
    bob = await world.component(B)
    assert (await world.port(A).insist(ask(1), 2)).code == Code.TIMEOUT
    assert (len(bob), trio.current_time()) == (1, 2 * REPLY_TIMEOUT)


async def remote_request(world):
    """Carol has asked Bob, and was answered by way of the stub."""
    bob, stub = await world.component(B), await world.component(S, Origin.NODE_STUB)
    world.bus.take_route(*TO_CAROL_KNOWN)
    await world.port(S).post(ask(1, from_=C, value=1))
    await world.port(B).post(answer(ask(1, from_=C)))
    await world.settle()
    return bob, stub


async def test_a_repeated_answered_request_gets_the_same_answer(world):
    """MSG-07: the receiver does not see it twice; paths tell the answers apart (I-T9)."""
    bob, stub = await remote_request(world)
    await world.port(S).post(ask(1, from_=C, value=1))
    await world.settle()
    assert len(bob) == 1
    first, again = world.heard_by(stub)
    assert first == again == answer(ask(1, from_=C))
    assert first is not again
    assert world.counters.drops == {DropReason.DUPLICATE: 1}


async def test_another_request_with_the_id_of_one_that_was_answered_is_malformed(world):
    """MSG-07, I-T8."""
    bob, stub = await remote_request(world)
    await world.port(S).post(ask(1, from_=C, value=2))
    await world.settle()
    assert len(bob) == 1
    assert [message.code for message in world.heard_by(stub)] == [Code.OK, Code.MALFORMED]


async def test_a_request_repeated_during_its_handling_is_answered_once(world):
    """MSG-07."""
    bob, stub = await world.component(B), await world.component(S, Origin.NODE_STUB)
    world.bus.take_route(*TO_CAROL_KNOWN)
    for _ in range(2):
        await world.port(S).post(ask(1, from_=C))
    await world.settle()
    assert (len(bob), stub) == (1, [])


# ---- what a hyperty can do


class Slow(Hyperty):
    """Answers after three times the time an answer may take, and says so on the way."""

    @override
    async def on_request(self, message):
        for part in range(3):
            await trio.sleep(REPLY_TIMEOUT - 1)
            await self.progress(message, {"part": part})
        return "done"


async def test_a_receiver_that_reports_progress_may_take_longer(autojump_clock):
    """MSG-05, MSG-06: each provisional answer begins the wait anew."""
    async with open_domain("ra", "rb") as domain:
        slow = await domain["rb"].runtime.deploy("slow", Slow)
        final = await domain["ra"].hyperty.request(slow)
    assert (final.code, final.body["value"]) == (Code.OK, "done")


async def test_there_is_no_progress_of_an_answer(autojump_clock):
    """MSG-05."""
    async with open_domain("ra") as domain:
        with pytest.raises(BadMessageError):
            await domain["ra"].hyperty.progress(answer(ask(1)))


class Never(Hyperty):
    @override
    async def on_request(self, message):
        raise Refused(Code.CONFLICT, "never")


async def test_several_are_asked_by_a_message_each_and_each_answers_for_itself(autojump_clock):
    """MSG-08: who refuses, or is not there, keeps nobody from answering."""
    async with open_domain("ra", "rb") as domain:
        one, other = domain["ra"], domain["rb"]
        never = await one.runtime.deploy("never", Never)
        nobody = f"{one.runtime.url}/nobody"
        asked = [other.address, never, nobody, other.address]
        answers = await one.hyperty.request_each(asked, 7)
    assert list(answers) == [other.address, never, nobody]
    assert [each.code for each in answers.values()] == [200, 409, 404]
    assert other.hyperty.heard == [7]
    assert len({each.id for each in answers.values()}) == 3


async def test_no_receiver_is_asked_if_none_is_named(autojump_clock):
    """MSG-08."""
    async with open_domain("ra") as domain:
        assert await domain["ra"].hyperty.request_each([]) == {}


async def test_a_hyperty_insists(autojump_clock):
    """MSG-07: on one who is there and answers, as by a request."""
    async with open_domain("ra", "rb") as domain:
        final = await domain["ra"].hyperty.insist(domain["rb"].address, 5)
    assert (final.code, domain["rb"].hyperty.heard) == (Code.OK, [5])


class AtLast(Hyperty):
    """Handles each request when it may."""

    def __init__(self):
        self.heard, self.may = [], trio.Event()

    @override
    async def on_request(self, message):
        self.heard.append(message.body["value"])
        await self.may.wait()
        return "done"


async def test_a_repetition_that_finds_no_node_does_not_end_what_was_sent(autojump_clock):
    """MSG-07: the first message is answered, and the node holds its answer meanwhile."""
    by_node = DomainOptions(kinds=())
    async with (
        open_domain("ra", "rb", options=by_node) as domain,
        trio.open_nursery() as nursery,
    ):
        slow = AtLast()
        to = await domain["rb"].runtime.deploy("slow", lambda: slow)
        answers = []

        async def insist():
            answers.append(await domain["ra"].hyperty.insist(to, 5, attempts=5))

        nursery.start_soon(insist)
        await trio.sleep(1)
        domain.network.refuse(NODE_PLACE)
        domain.network.open_wires(Carrier.WEBSOCKET)[0].cut()
        await trio.sleep(1)
        slow.may.set()
        await trio.sleep(2 * REPLY_TIMEOUT)
        assert (await domain["ra"].hyperty.request(to, 6)).code == Code.UNAVAILABLE
        assert answers == []
        domain.network.allow(NODE_PLACE)
        await trio.sleep(2 * REPLY_TIMEOUT)
    assert [(final.code, final.body["value"]) for final in answers] == [(Code.OK, "done")]
    assert slow.heard == [5]
