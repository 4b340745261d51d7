"""One verdict of machines and claims together."""

import attrs
import pytest

from fsm.judge.process import LateHomeError, ProcessJudge
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import judge_run
from tests.fsm.judge.claims.cases import ANSWERED, ASKED, RUNTIME
from tests.support.trace.histories import reported


def judge(lines):
    return judge_run(lines).findings


KEPT = RUNTIME + ASKED + ANSWERED
BROKEN = KEPT + ANSWERED


def test_a_broken_claim_makes_violations():
    """OBS-02."""
    judged = judge_run(reported(BROKEN))

    assert judged.verdict is Verdict.VIOLATIONS
    assert judged.by_claim == {"I-T2": 1}


def test_a_trace_with_an_overloaded_sink_is_not_judged():
    *lines, end = reported(BROKEN)
    dropped = attrs.evolve(end, k="dropped")

    assert judge([*lines, dropped, attrs.evolve(end, ln=end.ln + 1)]) == ()


def test_a_runtime_that_says_late_what_it_is_is_judged_as_one_all_the_same():
    start, *lines = reported(BROKEN)
    idle = [attrs.evolve(lines[0], table="other", ln=ln) for ln in range(2, 1502)]
    late = [start, *idle, *(attrs.evolve(line, ln=line.ln + len(idle)) for line in lines)]

    judge = ProcessJudge(start.run, start.node)
    with pytest.raises(LateHomeError) as caught:
        [*map(judge.take, late)]
    assert caught.value.home == "hyperty-runtime://a.ex/ra"
    assert judge_run(late).by_claim == {"I-T2": 1}
