"""A recorder says what is broken, and is not content with a trace that tells too little."""

import re

import pytest
import trio
import trio.testing

import actors
from actors.testing.domains import Domains, chaos
from actors.testing.recorder import Recorder
from specs.message import Message, MessageType
from specs.trace import Fact, Kind, Op
from tests.support.trace.trace_files import step


@pytest.fixture
def recorder():
    return Recorder()


async def test_each_claim_is_reported_once(recorder):
    with recorder.process("ra") as tracer:
        for number in range(5):
            tracer.record("stub", step("session", f"mn|{number}", "[*]", "sneezed", "live"))
    with pytest.raises(AssertionError) as failed:
        recorder.assert_conformant()
    said = str(failed.value)
    assert said.startswith("the run is not conformant; violations: ")
    assert said.count("broken: machines: declared step") == 1


async def test_a_claim_on_messages_is_reported_in_words_not_by_its_label(recorder):
    request = Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://a.ex/2", {})
    with recorder.process("ra") as tracer:
        listed = "listeners"
        tracer.record("bus", Fact(k=Kind.TABLE, op=Op.ADD, table=listed, key="runtime://a.ex/r"))
        tracer.message("bus", Op.ADMIT, request)
    with pytest.raises(AssertionError, match="before it is permitted") as failed:
        recorder.assert_conformant()
    assert not re.search(r"\bI-[A-Z]+\d", str(failed.value))


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body["value"]


async def history(recorder):
    async with Domains(chaos(), recorder)("ra", "rb") as domain:
        here, there = await domain["ra"].deploy(Echo), await domain["rb"].deploy(Echo)
        for number in range(10):
            assert (await here.request(there.url, number)).code == 200


def test_a_record_taken_out_of_a_good_trace_is_noticed(recorder):
    trio.run(history, recorder, clock=trio.testing.MockClock(autojump_threshold=0))
    recorder.assert_conformant()
    (at, *_) = [at for at, line in enumerate(recorder.lines) if line.op == Op.DELIVER]
    del recorder._lines[at]
    with pytest.raises(AssertionError, match=r"record \d+ is missing"):
        recorder.assert_conformant()
