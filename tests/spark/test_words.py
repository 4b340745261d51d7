"""Numbers and times in words."""

import pytest

from fsm.judge.claims.catalogue import CLAIMS_JUDGED
from fsm.judge.trace_line import Claim, Verdict
from spark.report.words import CLAIM, VERDICT, count, duration


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [(1, "entity", "1 entity"), (2, "entity", "2 entities"), (1200, "step", "1,200 steps")],
)
def test_counting_knows_the_plural(number, noun, words):
    assert count(number, noun) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0032, "3.2 ms"), (1.5, "1.50 s"), (125.0, "2 min 5 s")]
)
def test_a_duration_has_the_unit_that_suits_it(seconds, words):
    assert duration(seconds) == words


def test_every_claim_and_verdict_has_a_sentence():
    assert set(Claim) < set(CLAIM)
    assert len(CLAIM) == len(Claim) + len(CLAIMS_JUDGED)
    assert set(VERDICT) == set(Verdict)
