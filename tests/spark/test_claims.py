"""Each claim: a trace that keeps it, and one that breaks only it."""

import pytest

from fsm.judge.replay import TimelineStep
from fsm.judge.trace_line import CLAIMS, Claim, Verdict
from spark.pipeline import Question, validate
from tests.support.trace.trace_files import records, refused, session, step, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

KEPT = session("open", "detached", "open", "closed")
BROKEN = {
    Claim.DECLARED_STEP: [
        *session("open"),
        step("session", "mn|ra", "open", "link-lost", "closed"),
    ],
    Claim.STARTS_AT_INITIAL: KEPT[1:],
    Claim.NO_GAP_BETWEEN_STEPS: [KEPT[0], *KEPT[2:]],
    Claim.ENDS_AT_REST: session("open", "detached"),
    Claim.REFUSED_STEP: [*KEPT, refused("session", "mn|ra", "closed", "expire")],
    Claim.UNKNOWN_MACHINE: [step("oven", "left", "[*]", "heat", "hot")],
}
BREAKS = {
    Claim.DECLARED_STEP: 3,
    Claim.STARTS_AT_INITIAL: 2,
    Claim.NO_GAP_BETWEEN_STEPS: 3,
    Claim.ENDS_AT_REST: 3,
    Claim.REFUSED_STEP: 6,
    Claim.UNKNOWN_MACHINE: 2,
}
COPY = [
    step("observer_copy", "o|h", "[*]", "observe", "syncing"),
    step("observer_copy", "o|h", "syncing", "snapshot", "live"),
    step("observer_copy", "o|h", "live", "changed", "live"),
    step("observer_copy", "o|h", "live", "changed", "stale"),
    step("observer_copy", "o|h", "stale", "deleted", "deleted"),
]
LAWFUL = {
    "kept": KEPT,
    "both ways that a guard decides between": COPY,
    "a new life under the same key": [*session("open", "closed"), *session("open", "closed")],
}


@pytest.fixture(scope="module")
def found(spark_session, tmp_path_factory):
    """One run in which each node breaks one claim, and some break none."""
    directory = tmp_path_factory.mktemp("run")
    for node, facts in (LAWFUL | BROKEN).items():
        write_trace(directory / f"node={node}", records(whole(facts), f"r-{node}", node))
    return validate(spark_session, Question(traces=(str(directory),)))


def test_every_claim_has_a_trace_that_breaks_it():
    assert set(BROKEN) == set(CLAIMS)


@pytest.mark.parametrize("node", LAWFUL.keys())
def test_a_trace_that_keeps_every_claim_is_conformant(found, node):
    assert [one.verdict for one in found.nodes if one.node == node] == [Verdict.CONFORMANT]


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_trace_that_breaks_one_claim_breaks_no_other(found, claim):
    broken = {one.claim: one for one in found.first}[claim]
    assert [one.violations for one in found.nodes if one.node == claim] == [1]
    assert (broken.node, broken.ln) == (claim, BREAKS[claim])


def test_every_violation_is_counted_by_its_claim(found):
    assert {claim: times for claim, times in found.by_claim.items() if times} == dict.fromkeys(
        CLAIMS, 1
    )
    assert (found.verdict, found.violations, found.entities) == (Verdict.VIOLATIONS, 6, 9)


def test_a_violation_shows_the_records_before_it(found):
    broken = {one.claim: one for one in found.first}[Claim.NO_GAP_BETWEEN_STEPS]
    assert broken.step.before == [TimelineStep(2, 0.02, "[*]", "opened", "open")]
    assert broken.step.record == TimelineStep(3, 0.03, "detached", "reopened", "open")
    assert broken.expected == "a step from 'open'"


def test_the_use_of_a_machine_is_counted(found):
    use = {one.machine: one for one in found.machines}["session"]
    assert use.steps == 22
    assert [row.cause for row in use.never] == ["expire", "close", "move"]
    stays = {dwell.state: dwell.stays for dwell in use.dwells}
    assert stays == {"open": 11, "detached": 3, "closed": 1}
