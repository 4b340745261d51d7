"""Each claim: a trace that keeps it, and one that breaks only it."""

import pytest

from fsm.trace_line import CLAIMS, Claim, Verdict
from spark.findings import Told
from spark.pipeline import validate
from tests.support.trace_files import (
    record,
    records,
    refused,
    session,
    step,
    whole,
    write_trace,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

_KEPT = session("open", "detached", "open", "closed")

BROKEN = {
    Claim.DECLARED_STEP: [
        *session("open"),
        step("session", "mn|ra", "open", "link-lost", "closed"),
    ],
    Claim.STARTS_AT_INITIAL: _KEPT[1:],
    Claim.NO_GAP_BETWEEN_STEPS: [_KEPT[0], *_KEPT[2:]],
    Claim.ENDS_AT_REST: session("open", "detached"),
    Claim.REFUSED_STEP: [*_KEPT, refused("session", "mn|ra", "closed", "expire")],
    Claim.UNKNOWN_MACHINE: [step("oven", "left", "[*]", "heat", "hot")],
}
LAST = {Claim.NO_GAP_BETWEEN_STEPS: 3, Claim.STARTS_AT_INITIAL: 2, Claim.UNKNOWN_MACHINE: 2}


def test_every_claim_has_a_trace_that_breaks_it():
    assert set(BROKEN) == set(CLAIMS)


def test_a_trace_that_keeps_every_claim_is_conformant(spark_session, tmp_path):
    write_trace(tmp_path / "node=alice", records(whole(_KEPT)))
    found = validate(spark_session, [str(tmp_path)])
    assert (found.verdict, found.events, found.entities) == (Verdict.CONFORMANT, 6, 1)
    assert not found.violations


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_trace_that_breaks_one_claim_breaks_no_other(spark_session, tmp_path, claim):
    facts = BROKEN[claim]
    write_trace(tmp_path / "node=alice", records(whole(facts)))
    found = validate(spark_session, [str(tmp_path)])

    assert {name for name, times in found.by_claim.items() if times} == {claim}
    assert found.verdict is Verdict.VIOLATIONS
    assert found.first[0].record.ln == LAST.get(claim, len(facts) + 1)


def test_a_violation_shows_the_records_before_it(spark_session, tmp_path):
    write_trace(tmp_path, records(whole(BROKEN[Claim.NO_GAP_BETWEEN_STEPS])))
    broken = validate(spark_session, [str(tmp_path)]).first[0]
    assert broken.before == [Told(2, 0.02, "[*]", "opened", "open")]
    assert broken.record == Told(3, 0.03, "detached", "reopened", "open")
    assert broken.expected == "a step from 'open'"


def test_a_key_may_begin_a_new_life_after_a_story_that_may_end(spark_session, tmp_path):
    write_trace(tmp_path, records(whole([*session("open", "closed"), *session("open", "closed")])))
    assert validate(spark_session, [str(tmp_path)]).verdict is Verdict.CONFORMANT


def test_a_missing_record_is_no_proof_of_a_wrong_step(spark_session, tmp_path):
    told = records(whole(_KEPT))
    write_trace(tmp_path, told[:2] + told[3:])
    found = validate(spark_session, [str(tmp_path)])
    assert (found.verdict, found.violations) == (Verdict.INCOMPLETE, 0)


def test_entities_of_several_nodes_are_kept_apart(spark_session, tmp_path):
    for node in ("alice", "bob"):
        told = [record(fact, ln, f"r-{node}", node) for ln, fact in enumerate(whole(_KEPT), 1)]
        write_trace(tmp_path / f"node={node}", told)
    found = validate(spark_session, [str(tmp_path)])
    assert (found.verdict, found.entities, len(found.nodes)) == (Verdict.CONFORMANT, 2, 2)
