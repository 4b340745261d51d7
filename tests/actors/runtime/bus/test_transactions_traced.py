"""The Message BUS runs the machine of requests, and its trace tells all of it (I-T1..I-T8)."""

import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.trace import NULL_TRACER
from actors.runtime.hop_trace import HopTrace
from fsm.bus.transactions import Steps
from fsm.judge.trace_line import Verdict, read_record
from fsm.judge.verdict import judge
from specs.limits.protocol import DEDUP_WINDOW, REPLY_TIMEOUT
from specs.reply_code import DropReason
from specs.trace import Kind
from tests.support.runtime.runtime_parts import R, open_bus
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole
from tests.support.wire.wire import A, B, answer, ask


def history(world, number=1):
    """Trigger and reason of each step of Alice's request to Bob of that number."""
    facts = [f for f in world.tracer.facts if f.k is Kind.STATE and f.key == f"{A}|{B}|{number}"]
    assert all(fact.machine == "transaction" for fact in facts)
    return [(fact.cause, fact.new, fact.why) for fact in facts]


def verdict(world):
    return judge(map(read_record, records(whole(world.tracer.facts)))).verdict


async def test_an_answered_request(autojump_clock):
    async with open_bus() as world:
        await world.component(A)
        await world.component(B)
        await world.port(A).post(ask(1))
        await world.settle()
        await world.port(B).post(answer(ask(1), 183))
        await world.port(B).post(answer(ask(1)))
        await world.settle()
    assert history(world) == [
        ("opened", "pending", None),
        ("provisional", "pending", None),
        ("answered", "final", None),
    ]
    assert verdict(world) is Verdict.CONFORMANT


async def test_a_request_without_answer(autojump_clock):
    async with open_bus() as world:
        await world.component(A)
        await world.component(B)
        await world.port(A).request(ask(1))
        assert trio.current_time() == REPLY_TIMEOUT
    assert history(world)[1:] == [("silence", "timed-out", None)]


async def test_a_request_to_an_unknown_address_is_refused_by_the_bus():
    async with open_bus() as world:
        await world.component(A)
        await world.port(A).request(ask(1, to=f"{R}/nobody"))
    moved = [fact.why for fact in world.tracer.facts if fact.cause == "refused"]
    assert moved == ["404 target not found"]


async def test_open_requests_at_the_end_of_the_runtime_are_ended():
    async with open_bus() as world:
        await world.component(A)
        await world.component(B)
        await world.port(A).post(ask(1))
        await world.settle()
    assert history(world)[1:] == [("refused", "final", "the runtime ends")]
    assert verdict(world) is Verdict.CONFORMANT


async def test_a_retry_that_the_window_has_forgotten_is_not_opened_again():
    """The one who asks decides how soon an instance leaves the window: it must break nothing."""
    async with open_bus() as world:
        await world.component(A)
        bob = await world.component(B)
        for number in range(1, DEDUP_WINDOW + 2):
            await world.port(A).post(ask(number))
            if not number % 100:
                await world.settle()
        await world.port(A).post(ask(1))
        await world.settle()
        assert world.heard_by(bob).count(ask(1)) == 1
        assert world.counters.drops == {DropReason.DUPLICATE: 1}
    assert len(history(world)) == 2


@pytest.mark.parametrize(
    ("tracer", "steps"),
    [(NULL_TRACER, Steps.UNREPORTED), (MemoryTracer(), Steps.REPORTED)],
    ids=["nobody", "somebody"],
)
def test_steps_are_made_only_where_they_are_recorded(tracer, steps):
    assert HopTrace(tracer, "bus", Counters()).steps is steps
