"""A recorder says what is broken, and is not content with a trace that tells too little."""

import re

import pytest
import trio
import trio.testing

import actors
from actors.testing.domains import Domains, chaos
from actors.testing.recorder import Recorder, draw_history, history_of
from fsm.machine_list import MACHINES
from specs.message import Message, MessageType
from specs.trace import ABSENT, Fact, Kind, Op
from tests.support.trace.trace_files import step


@pytest.fixture
def recorder():
    return Recorder()


def test_a_run_in_which_nothing_was_recorded_proves_nothing(recorder):
    with pytest.raises(AssertionError, match="nothing was recorded"):
        recorder.assert_conformant()


async def test_a_step_no_machine_declares_is_named_with_what_came_before(recorder):
    with recorder.process("ra") as tracer:
        row = next(row for row in MACHINES["session"].rows if row.old == ABSENT)
        entered = row.target.value
        tracer.record("stub", step("session", "mn|ra", ABSENT, row.trigger.value, entered))
        tracer.record("stub", step("session", "mn|ra", entered, "sneezed", "live"))
    with pytest.raises(AssertionError) as failed:
        recorder.assert_conformant()
    said = str(failed.value)
    assert "broken: machines: declared step\n  by session mn|ra\n  expected no step" in said
    assert "record 3 of ra, and what led to it:\n    A = ra: stub\n    A\n" in said
    _, first, *_ = said.split("broken: ")
    assert re.findall(r"^ +([oX]) +(\d+) +[\d.]+ s  step", first, re.MULTILINE) == [
        ("o", "2"),
        ("X", "3"),
    ]
    assert f"session mn|ra: {entered} -> live by sneezed" in said


async def test_the_history_of_a_message_is_drawn_as_a_sequence(recorder):
    """Over all processes; what is of other messages is not shown."""
    request = Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2", {})
    other = Message(2, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2", {})
    with recorder.process("ra") as ra, recorder.process("a.ex") as node:
        ra.message("bus", Op.SUBMIT, request)
        ra.message("bus", Op.SUBMIT, other)
        ra.message("stub", Op.XMIT, request)
        node.message("node", Op.RCV, request)
        ra.message("bus", Op.DELIVER, request)
    lines = recorder.lines
    at = lines[-3]
    assert (at.node, at.op) == ("ra", "deliver")
    text = [line.partition("  ")[0] for line in draw_history(history_of("ra", at.ln, lines))]
    assert [line.rstrip() for line in text][:3] == ["A = ra: bus", "B = ra: stub", "C = a.ex: node"]
    rows = [line[:9] for line in draw_history(history_of("ra", at.ln, lines))][3:]
    assert rows == [
        "A   B   C",
        "o   |   |",
        "|-->o   |",
        "|   |-->o",
        "X<------|",
    ]


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


async def test_a_process_that_ended_in_disorder_is_reported(recorder):
    with pytest.raises(ZeroDivisionError), recorder.process("ra"):
        _ = 1 / 0
    with pytest.raises(AssertionError, match="ra: it has no end: the process crashed"):
        recorder.assert_conformant()


async def test_a_process_that_still_runs_is_no_fault(recorder):
    with recorder.process("ra"):
        recorder.assert_conformant()
    recorder.assert_conformant()


async def test_each_process_has_a_name_of_its_own(recorder):
    with recorder.process("ra"):
        pass
    with pytest.raises(ValueError, match="two processes are named 'ra'"), recorder.process("ra"):
        pass


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


def test_two_runs_of_a_test_are_the_same_to_the_record():
    first, second = Recorder(), Recorder()
    for recorder in (first, second):
        trio.run(history, recorder, clock=trio.testing.MockClock(autojump_threshold=0))
    reported = [{(line.node, line.ln, line.mid) for line in each.lines} for each in (first, second)]
    assert reported[0] == reported[1]
