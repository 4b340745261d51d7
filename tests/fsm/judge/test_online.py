"""Folds that judge a process while it runs: they decide on what they saw, and may forget it."""

from fsm.judge.claims.catalogue import PROCESS_CLAIMS
from fsm.judge.process import OnlineJudge
from specs.claims import CLAIMS, Reach
from tests.support.trace.histories import reported

MONITORED = [claim for claim in PROCESS_CLAIMS if claim.is_forgetful]


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
