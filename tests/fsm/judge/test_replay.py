"""The reference judge: per claim one trace that keeps it and one that breaks only it."""

from fsm.judge.trace_line import Claim, Flaw
from fsm.judge.verdict import judge
from tests.fsm.traces import step, trace

OPENED = step("[*] opened open", "s", "session")


def test_a_row_with_another_target_is_undeclared():
    judged = judge(trace(OPENED, step("open close expired", "s", "session")))

    assert judged.by_claim == {Claim.DECLARED_STEP: 1}
    assert judged.entities[0].first.expected == "a step to 'closed'"


def test_a_doubled_record_is_a_flaw():
    reported = trace()
    assert judge([*reported, reported[0]]).nodes[0].flaws == {Flaw.GAP}


# fmt: on
