"""The census of a run: read, written, and counted only where the product steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.bus.transactions import Steps, TransactionsCore
from fsm.engine import Entity
from fsm.machine_list import MACHINES
from fsm.machines.stub_connection import Trigger
from fsm.session.stub_client import StubClientCore, StubPort
from fsm.static_check import TakenStep, read_census, write_census
from fsm.table import CensusError
from tests.support.link_calls import RecordingPort
from tests.support.trace.census import counted
from tests.support.wire.wire import ask

words = st.text()
steps = st.builds(TakenStep, words, words, words, words, st.frozensets(words, max_size=2))


@given(st.dictionaries(steps, st.integers(1), max_size=4))
def test_written_steps_are_read(times):
    assert read_census(write_census(times).split("\n")[:-1]) == set(times)


GOOD = '{"machine": "m", "old": "[*]", "cause": "c", "new": "s", "times": 1}'
BAD = {
    "no JSON": ("chicken", "it is no JSON"),
    "an array": ("[]", "it is no JSON object"),
    "too deep": ("[" * 100_000, "it is no JSON"),
    "no state": ('{"machine": "m", "old": "[*]", "cause": "c"}', "new is no text"),
    "a number": ('{"machine": 3}', "machine is no text"),
    "conditions in a text": (GOOD.replace("1}", '1, "given": "x"}'), "given is no list of texts"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_line_that_is_none_is_reported_by_its_number(case):
    line, reason = BAD[case]

    with pytest.raises(CensusError) as caught:
        read_census([GOOD, line])
    assert (caught.value.line, caught.value.reason) == (2, reason)


def test_a_step_that_a_core_takes_counts():
    with counted() as times:
        StubClientCore("stub", RecordingPort(StubPort), lambda: 0.5).begin()

    assert times() == {TakenStep("stub_connection", "[*]", "constructed", "created"): 1}


def test_a_step_that_a_test_takes_does_not_count():
    with counted() as times:
        Entity(MACHINES["stub_connection"], "stub").step(Trigger.CONSTRUCTED)

    assert times() == {}


def test_a_step_without_a_recipient_of_reports_counts():
    with counted() as times:
        TransactionsCore(Steps.UNREPORTED).open(ask(), "nobody", 0.0)

    assert times() == {TakenStep("transaction", "[*]", "opened", "pending"): 1}
