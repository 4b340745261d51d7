"""A judge of a process can be saved between any two records, and go on from what was saved."""

from itertools import groupby
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.frozen import pickle_state, restore
from fsm.judge.process import ProcessJudge
from fsm.judge.replay import order_of
from tests.fsm.judge.claims.cases import ANSWERED, ASKED, RUNTIME
from tests.fsm.judge.claims.test_claims import CASES
from tests.support.cases import for_each
from tests.support.trace.histories import reported

HISTORIES = {
    "kept": reported(RUNTIME + ASKED + ANSWERED),
    "broken": reported(RUNTIME + ASKED + ANSWERED + ANSWERED),
    "steps": reported(
        "x step address URL [*] assign assigned\nx step address URL [*] release released"
    ),
}


def judged(lines, pauses=frozenset()):
    judge = ProcessJudge(lines[0].run, lines[0].node, is_sorted=True)
    for number, line in enumerate(lines):
        if number in pauses:
            judge = restore(pickle_state(judge), ProcessJudge)
        judge.take(line)
    return judge.end()


@pytest.mark.parametrize("lines", HISTORIES.values(), ids=HISTORIES)
@given(pauses=st.frozensets(st.integers(0, 30)))
@settings(max_examples=20, deadline=None)
def test_a_judge_that_was_saved_and_restored_judges_the_same(lines, pauses):
    assert judged(lines, pauses) == judged(lines)


def of_process(line):
    return line.run, line.node


@for_each(CASES, attrgetter("claim"))
def test_every_fold_can_be_saved_before_every_record(case):
    for _, reported_by_one in groupby(sorted(reported(case.broken), key=order_of), key=of_process):
        lines = list(reported_by_one)
        assert judged(lines, range(len(lines))) == judged(lines)
