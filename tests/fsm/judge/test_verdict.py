"""One verdict of machines and claims together."""

import attrs
import pytest

from fsm.judge.process import DisorderError, LateHomeError, ProcessJudge
from fsm.judge.trace_line import Claim, Verdict
from fsm.judge.verdict import combine, judge_processes, judge_run
from tests.fsm.judge.claims.cases import ANSWERED, ASKED, RUNTIME
from tests.support.trace.histories import reported


def judge(lines):
    return judge_run(lines).findings


KEPT = RUNTIME + ASKED + ANSWERED
BROKEN = KEPT + ANSWERED


def test_a_run_that_keeps_all_and_reports_all_is_conformant():
    judged = judge_run(reported(KEPT))

    assert judged.verdict is Verdict.CONFORMANT
    assert judged.findings == ()


def test_a_broken_claim_makes_violations():
    """OBS-02."""
    judged = judge_run(reported(BROKEN))

    assert judged.verdict is Verdict.VIOLATIONS
    assert judged.by_claim == {"I-T2": 1}


def test_a_broken_machine_makes_violations():
    judged = judge_run(reported("x step address URL [*] release released"))

    assert judged.verdict is Verdict.VIOLATIONS
    assert judged.machines.by_claim == {Claim.DECLARED_STEP: 1}
    assert judged.findings == ()


def test_lines_that_cannot_be_read_make_it_incomplete():
    assert judge_run(reported(KEPT), quarantined=1).verdict is Verdict.INCOMPLETE


def test_a_process_that_was_killed_makes_it_incomplete_and_is_owed_nothing():
    killed = judge_run(reported(RUNTIME + ASKED + "t 100\nbus take read 2 HA>HB\ncut"))

    assert killed.verdict is Verdict.INCOMPLETE
    assert killed.findings == ()


def test_behind_a_hole_nothing_is_judged():
    lines = reported(BROKEN)
    (finding,) = judge(lines)
    missing = [line for line in lines if line.ln != finding.ln - 3]

    assert judge(missing) == ()
    assert judge(lines[: finding.ln]) == (finding,)


def test_a_trace_with_an_overloaded_sink_is_not_judged():
    *lines, end = reported(BROKEN)
    dropped = attrs.evolve(end, k="dropped")

    assert judge([*lines, dropped, attrs.evolve(end, ln=end.ln + 1)]) == ()


def test_the_order_in_which_records_are_given_does_not_matter():
    assert judge(reversed(reported(BROKEN))) == judge(reported(BROKEN))


def test_a_finding_says_where_and_what_would_have_been_right():
    (finding,) = judge(reported(BROKEN))

    assert finding.claim == "I-T2"
    assert finding.nodes == ("ra",)
    assert finding.about == "hyperty://a.ex/ha#1>hyperty://a.ex/hb!200"
    assert finding.expected == "no second final answer"


def test_runtimes_of_one_name_in_two_domains_are_two_ends_of_their_link():
    crossed = "x open L1 kind=p2p {}\nx {} read {} HA>HB stub=PQ link=L1 seq=1 digest=d via=PQ\n"
    sent = reported(crossed.format("a=RA b=RB", "xmit", 1))
    came = reported(crossed.format("a=RB b=RA", "rcv", 2))
    runs = {"r1": sent, "r2": came}
    lines = [
        attrs.evolve(one, run=run, node="ra")
        for run, reported_ in runs.items()
        for one in reported_
    ]

    assert judge_run(lines).by_claim == {"I-P15": 1}


def streamed(lines):
    return combine(judge_processes(lambda: lines, is_sorted=False))


def test_records_of_several_processes_are_judged_while_they_are_read():
    lines = reported("@ra\n" + BROKEN + "@rb\n" + KEPT)
    by_number = sorted(lines, key=lambda line: line.ln)

    assert streamed(by_number).findings == judge(lines)


def test_a_record_that_does_not_come_in_order_is_an_error_of_its_own():
    first, second, *_ = reported(KEPT)
    with pytest.raises(DisorderError):
        streamed([second, first])


def test_a_runtime_that_says_late_what_it_is_is_judged_as_one_all_the_same():
    start, *lines = reported(BROKEN)
    idle = [attrs.evolve(lines[0], table="other", ln=ln) for ln in range(2, 1502)]
    late = [start, *idle, *(attrs.evolve(line, ln=line.ln + len(idle)) for line in lines)]

    judge = ProcessJudge(start.run, start.node)
    with pytest.raises(LateHomeError) as caught:
        [*map(judge.take, late)]
    assert caught.value.home == "hyperty-runtime://a.ex/ra"
    assert judge_run(late).by_claim == {"I-T2": 1}
