"""The short way of telling of a message tells what the long way tells (OBS-01)."""

import attrs
import orjson
import pytest

from actors.kit.trace import message_fact, ruling_fact, step_fact
from actors.kit.trace_file import FileTracer
from fsm.engine import Step
from specs.limits.protocol import TRACE_TICK
from specs.message import Message, MessageType, reply_to, stamped
from specs.reply_code import Code
from specs.trace import Op

REQUEST = Message(
    7, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2", {"value": {"n": 1}}
)
MESSAGES = (
    REQUEST,
    stamped(REQUEST, "hyperty-runtime://a.ex/ra/protostub/1"),
    reply_to(REQUEST, Code.OK, {"value": {"token": "hidden", "list": [{"secret": 1}]}}),
)
STAMP = ("run", "node", "ln", "wall_ns", "mono_ns", "t")


def reported(tracer):
    records = [orjson.loads(line) for page in tracer.take() for line in page.splitlines()]
    return [{key: part for key, part in one.items() if key not in STAMP} for one in records]


@pytest.mark.parametrize("message", MESSAGES, ids=["request", "stamped", "answer"])
@pytest.mark.parametrize("more", [{}, {"stub": "S", "link": "L", "seq": 3}], ids=["bare", "more"])
async def test_a_hop_is_reported_like_its_fact(message, more):
    tracer = FileTracer("ra")
    for _ in range(2):
        tracer.message("bus", Op.RCV, message, **more)
    tracer.record("bus", message_fact(Op.RCV, message, **more))
    first, second, fact = reported(tracer)
    assert first == second == fact


@pytest.mark.parametrize(
    "ruling", [{"decision": "permit", "why": None}, {"policy": "p", "why": "w"}]
)
async def test_a_ruling_is_reported_like_its_fact(ruling):
    tracer = FileTracer("ra")
    tracer.ruled("bus", REQUEST, **ruling)
    tracer.record("bus", ruling_fact(REQUEST, **ruling))
    short, fact = reported(tracer)
    assert short == fact


async def test_a_message_is_never_taken_for_one_that_had_its_place_in_memory():
    tracer = FileTracer("ra")
    for number in range(1, 50):
        message = attrs.evolve(REQUEST, id=number)
        tracer.message("bus", Op.SUBMIT, message)
        del message
    assert [record["id"] for record in reported(tracer)] == list(range(1, 50))


async def test_an_admission_is_reported_as_its_two_hops():
    tracer = FileTracer("ra")
    tracer.admitted("bus", REQUEST, "hyperty://a.ex/1")
    for op in (Op.SUBMIT, Op.ADMIT):
        tracer.message("bus", op, REQUEST, by="hyperty://a.ex/1")
    *short, submitted, admitted = reported(tracer)
    assert short == [submitted, admitted]


@pytest.mark.parametrize("why", ["", "asked to"])
async def test_a_step_is_reported_like_its_fact(why):
    tracer = FileTracer("ra")
    for key in ("a", "b"):
        step = Step("session", key, None, "open", "opened", why)
        tracer.step("bus", step)
        tracer.record("bus", step_fact(step))
    steps = reported(tracer)
    assert steps[::2] == steps[1::2]


async def test_records_of_one_moment_have_the_time_of_the_first(mock_clock):
    tracer = FileTracer("ra")
    for pause in (0, TRACE_TICK / 4, TRACE_TICK):
        mock_clock.jump(pause)
        tracer.message("bus", Op.SUBMIT, REQUEST)
    (page,) = tracer.take()
    records = [orjson.loads(line) for line in page.splitlines()]
    first, same, later = ([one[name] for name in ("wall_ns", "mono_ns", "t")] for one in records)
    assert first == same
    assert all(new > old for new, old in zip(later, first, strict=True))


async def test_an_unrecordable_message_is_counted():
    tracer = FileTracer("ra")
    broken = attrs.evolve(REQUEST, to="hyperty://b.ex/\ud800")
    tracer.message("bus", Op.SUBMIT, broken)
    tracer.admitted("bus", broken, "S")
    tracer.ruled("bus", attrs.evolve(REQUEST, from_="hyperty://b.ex/\ud800"), decision="permit")
    tracer.message("bus", Op.SUBMIT, REQUEST, by="\ud800")
    tracer.message("bus", Op.SUBMIT, REQUEST)
    records = reported(tracer)
    assert [record["k"] for record in records] == ["dropped"] * 5 + ["msg"]
    assert sum(record.get("count", 0) for record in records) == tracer.dropped == 5
