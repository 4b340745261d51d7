"""The short way of telling of a message tells what the long way tells (OBS-01)."""

import attrs
import orjson
import pytest

from actors.kit.trace import Hop, Hops, ruling_fact, step_fact
from actors.kit.trace_file import FileTracer
from fsm.engine import Step
from specs.identity import SenderIdentity
from specs.limits.protocol import TRACE_PLACES, TRACE_TICK
from specs.message import Message, MessageType, reply_to, stamped
from specs.reply_code import Code
from specs.trace import Op
from tests.support.trace.memory import MemoryTracer

REQUEST = Message(
    7, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2", {"value": {"n": 1}}
)
SENDER = SenderIdentity("hyperty-runtime://a.ex/ra", "user://idp.ex/alice")
MESSAGES = {
    "request": REQUEST,
    "stamped": stamped(REQUEST, "hyperty-runtime://a.ex/ra/protostub/1"),
    "answer": reply_to(REQUEST, Code.OK, {"value": {"token": "hidden", "list": [{"secret": 1}]}}),
    "provisional": reply_to(REQUEST, Code.TRYING, {"sequence": 2}),
    "one of several answers": reply_to(REQUEST, Code.OK, {"source": 'hyperty://b.ex/"'}),
    "answer without a code": attrs.evolve(REQUEST, type=MessageType.RESPONSE),
    "request with a code": attrs.evolve(REQUEST, body={"code": 2**63}),
    "of a user": attrs.evolve(REQUEST, identity=SENDER),
    "marks in its ends": attrs.evolve(REQUEST, from_='hyperty://a.ex/"é', to="hyperty://b.ex/\\"),
    "of a service": Message(1, MessageType.READ, "hyperty://a.ex/1", "domain://registry.a.ex"),
}
ADMITTED = Hops("bus", lambda by: {"by": by}, Op.SUBMIT, Op.ADMIT)
STAMP = ("run", "node", "ln", "wall_ns", "mono_ns", "t")


def reported(tracer):
    records = [orjson.loads(line) for page in tracer.take() for line in page.splitlines()]
    return [{key: part for key, part in one.items() if key not in STAMP} for one in records]


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("more", [{}, {"stub": "S", "link": "L"}], ids=["bare", "more"])
@pytest.mark.parametrize("seq", [{}, {"seq": 3}], ids=["unnumbered", "numbered"])
@pytest.mark.parametrize("kept", [{}, {"bodies": True, "names": True}], ids=["little", "much"])
async def test_a_hop_is_reported_like_its_fact(message, more, seq, kept):
    tracer = FileTracer("ra", **kept)
    hop = Hop("bus", (Op.RCV,), more)
    for _ in range(2):
        tracer.message("bus", Op.RCV, message, **more, **seq)
        tracer.hop(hop, message, **seq)
    tracer.record("bus", tracer.message_fact(Op.RCV, message, **more, **seq))
    *short, fact = reported(tracer)
    assert short == [fact] * 4


async def test_a_tracer_that_knows_no_hops_keeps_them_as_what_they_stand_for():
    tracer, plain = MemoryTracer(), MemoryTracer()
    tracer.hop(Hop("stub", (Op.RCV,), {"link": "L"}), REQUEST, 5)
    tracer.hop(ADMITTED["S"], REQUEST)
    tracer.hop(Hop("bus", (), {"decision": "permit"}), REQUEST)
    plain.message("stub", Op.RCV, REQUEST, link="L", seq=5)
    plain.message("bus", Op.SUBMIT, REQUEST, by="S")
    plain.message("bus", Op.ADMIT, REQUEST, by="S")
    plain.hop(Hop("bus", (), {"decision": "permit"}), REQUEST)
    assert tracer.records == plain.records


async def test_what_is_remembered_of_hops_is_bounded():
    hops = Hops("bus", lambda by: {"by": by}, Op.ADMIT)
    tracer = FileTracer("ra", buffer=1)
    for number in range(3 * TRACE_PLACES):
        assert hops[str(number)].more == {"by": str(number)}
        tracer.message(
            "bus", Op.RCV, attrs.evolve(REQUEST, to=f"hyperty://{number}"), why=f"{number}"
        )
        tracer.take()
    assert len(hops) <= TRACE_PLACES
    assert max(map(len, (tracer._hops, tracer._ends))) <= TRACE_PLACES


@pytest.mark.parametrize(
    "ruling", [{"decision": "permit", "why": None}, {"policy": "p", "why": "w"}]
)
async def test_a_ruling_is_reported_like_its_fact(ruling):
    tracer = FileTracer("ra")
    tracer.hop(Hop("bus", (), ruling), REQUEST)
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
    tracer.hop(ADMITTED["hyperty://a.ex/1"], REQUEST)
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
    tracer.hop(ADMITTED["S"], broken)
    tracer.hop(
        Hop("bus", (), {"decision": "permit"}), attrs.evolve(REQUEST, from_="hyperty://b.ex/\ud800")
    )
    tracer.message("bus", Op.SUBMIT, REQUEST, by="\ud800")
    tracer.message("bus", Op.SUBMIT, REQUEST)
    records = reported(tracer)
    assert [record["k"] for record in records] == ["dropped"] * 5 + ["msg"]
    assert sum(record.get("count", 0) for record in records) == tracer.dropped == 5
