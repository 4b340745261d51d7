"""Folds that judge a process while it runs: they decide on what they saw, and may forget it."""

from operator import attrgetter

import pytest

from fsm.frozen import pickle_state
from fsm.judge.claims.catalogue import PROCESS_CLAIMS
from fsm.judge.process import OnlineJudge
from specs.claims import CLAIMS, Reach
from tests.fsm.judge.claims.test_claims import CASES
from tests.support.cases import for_each
from tests.support.trace.histories import reported

HOMES = {name: f"hyperty-runtime://a.ex/{name}" for name in ("ra", "rb", "rc")}
MONITORED = [claim for claim in PROCESS_CLAIMS if claim.is_forgetful]
MONITORED_CLAIMS = {claim for fold in MONITORED for claim in fold.claims}


def found(lines, home):
    judge = OnlineJudge("x", home)
    return [one.claim for line in lines for one in judge.take(line)]


def processes(history):
    lines = reported(history)
    for node in {line.node for line in lines}:
        yield HOMES.get(node), [line for line in lines if line.node == node]


@for_each(CASES, attrgetter("claim"))
def test_records_that_a_fold_did_not_see_or_forgot_break_nothing(case):
    for home, lines in processes(case.kept):
        for start in range(len(lines)):
            assert found(lines[start:], home) == []


@pytest.mark.parametrize("claim", sorted(MONITORED_CLAIMS))
def test_a_claim_that_is_broken_is_found_while_the_process_runs(claim):
    """As whatever the process of a story is: most of them are of one that may be either."""
    stories = [case.broken for case in CASES if case.claim == claim]
    broken = {
        one
        for history in stories
        for home, lines in processes(history)
        for whose in (home, None)
        for one in found(lines, whose)
    }

    assert claim in broken


def test_what_another_component_records_hides_nothing_of_the_message_bus():
    twice = "bus callback 200@RB 1 HB>HA\n" * 2
    lines = reported("minibus callback 200@RB 1 HB>HA\n" + twice)

    assert found(lines, HOMES["ra"]) == ["I-T2"]


def test_only_what_one_process_decides_at_once_is_judged_by_it():
    for fold in MONITORED:
        assert fold in PROCESS_CLAIMS
        assert not fold.across
        assert all(CLAIMS[claim].reach is not Reach.LIVENESS for claim in fold.claims)


def test_memory_is_bounded_and_what_is_forgotten_is_counted():
    judge = OnlineJudge("x", None)
    history = "".join(f"x step address URL{at} [*] allocate allocated\n" for at in range(25_000))
    for line in reported(history):
        judge.take(line)

    assert judge.forgotten == 2


ROWS = {
    "addresses of a node": ("bus add alloc hyperty://a.ex/h{at} RA\n", None),
    "listeners of a node": ("bus add listeners hyperty://a.ex/h{at} L\n", None),
    "links": ("registry upd p2p RB{at} live PX PC\n", HOMES["ra"]),
    "listeners that come and go": (
        "bus add listeners hyperty://a.ex/h{at} L\nbus del listeners hyperty://a.ex/h{at} L\n",
        HOMES["ra"],
    ),
}


@pytest.mark.parametrize("rows", ROWS)
def test_rows_that_no_claim_reads_are_not_kept(rows):
    history, home = ROWS[rows]

    def kept(first, last):
        for line in reported("".join(history.format(at=at) for at in range(first, last))):
            judge.take(line)
        return len(pickle_state(judge))

    judge = OnlineJudge("x", home)

    assert kept(0, 1) >= kept(1, 5_000) - 50  # numbers of records grow
