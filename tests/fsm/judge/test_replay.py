"""The reference judge: per claim one trace that keeps it and one that breaks only it."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.judge.replay import EntityId
from fsm.judge.trace_line import CLAIMS, Claim, Flaw, Verdict
from fsm.judge.verdict import judge
from tests.support.trace.traces import NODE, RUN, record, refused, step, trace

ALLOCATED = step("[*] allocate allocated")
RELEASED = step("allocated release released")
OPENED = step("[*] opened open", "s", "session")
CLOSED = step("open close closed", "s", "session")
LOST = step("open link-lost detached", "s", "session")
EXPIRED = step("detached expire expired", "s", "session")
LOADING = step("[*] load deploying", "u", "stub_deployment")
LOADED = step("deploying loaded deployed", "u", "stub_deployment")

KEEPS = {
    Claim.DECLARED_STEP: (OPENED, LOST, EXPIRED),
    Claim.STARTS_AT_INITIAL: (OPENED, CLOSED),
    Claim.NO_GAP_BETWEEN_STEPS: (ALLOCATED, OPENED, CLOSED, RELEASED),
    Claim.ENDS_AT_REST: (ALLOCATED, RELEASED),
    Claim.REFUSED_STEP: (),
    Claim.UNKNOWN_MACHINE: (LOADING, LOADED),
}
BREAKS = {
    Claim.DECLARED_STEP: (OPENED, step("open expire expired", "s", "session")),
    Claim.STARTS_AT_INITIAL: (CLOSED,),
    Claim.NO_GAP_BETWEEN_STEPS: (OPENED, EXPIRED),
    Claim.ENDS_AT_REST: (ALLOCATED,),
    Claim.REFUSED_STEP: (ALLOCATED, refused("allocated", "allocate"), RELEASED),
    Claim.UNKNOWN_MACHINE: (step("[*] hatch egg", "e", "chicken"),),
}
BROKEN_AT = {
    Claim.DECLARED_STEP: (3, "no step by 'expire' from 'open'"),
    Claim.STARTS_AT_INITIAL: (2, "a first step from '[*]'"),
    Claim.NO_GAP_BETWEEN_STEPS: (3, "a step from 'open'"),
    Claim.ENDS_AT_REST: (2, "a last step to 'released'"),
    Claim.REFUSED_STEP: (3, "no 'allocate' in this state"),
    Claim.UNKNOWN_MACHINE: (2, "a declared machine"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_trace_that_keeps_a_claim_is_conformant(claim):
    judged = judge(trace(*KEEPS[claim]))

    assert judged.verdict is Verdict.CONFORMANT
    assert judged.violations == ()
    assert all(entity.first is None for entity in judged.entities)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_trace_that_breaks_a_claim_breaks_only_it(claim):
    judged = judge(trace(*BREAKS[claim]))
    entity = judged.entities[0]

    assert judged.verdict is entity.verdict is Verdict.VIOLATIONS
    assert judged.by_claim == {claim: 1}
    assert (entity.first.ln, entity.first.expected) == BROKEN_AT[claim]


def test_a_row_with_another_target_is_undeclared():
    judged = judge(trace(OPENED, step("open close expired", "s", "session")))

    assert judged.by_claim == {Claim.DECLARED_STEP: 1}
    assert judged.entities[0].first.expected == "a step to 'closed'"


def test_at_one_record_the_order_of_the_claims_decides():
    judged = judge(trace(step("open expire detached", "s", "session")))

    assert [broken.claim for broken in judged.violations] == [
        Claim.DECLARED_STEP,
        Claim.STARTS_AT_INITIAL,
        Claim.ENDS_AT_REST,
    ]


def test_the_first_violation_is_that_of_the_smallest_ln():
    judged = judge(trace(OPENED, EXPIRED, step("detached opened open", "s", "session")))

    assert judged.entities[0].first.ln == 3
    assert judged.entities[0].steps == 3


def test_a_trace_without_its_end_says_nothing_about_rest():
    judged = judge(trace(ALLOCATED, ends=()))

    assert judged.verdict is judged.entities[0].verdict is Verdict.INCOMPLETE
    assert judged.nodes[0].flaws == {Flaw.NO_END}


def test_the_same_key_on_two_nodes_is_two_entities():
    elsewhere = [attrs.evolve(line, node="bob") for line in trace(ALLOCATED)]
    judged = judge([*trace(ALLOCATED, RELEASED), *elsewhere])

    assert [entity.entity for entity in judged.entities] == [
        EntityId(RUN, NODE, "address", "url-1"),
        EntityId(RUN, "bob", "address", "url-1"),
    ]
    assert [entity.verdict for entity in judged.entities] == ["conformant", "violations"]


FLAWED = {
    Flaw.NO_START: [record(1), record(2, "end")],
    Flaw.NO_END: [record(1, "start"), record(2)],
    Flaw.GAP: [record(1, "start"), record(3, "end")],
    Flaw.DROPPED: [record(1, "start"), record(2, "dropped"), record(3, "end")],
}


@pytest.mark.parametrize("flaw", list(Flaw))
def test_a_flawed_trace_is_incomplete(flaw):
    judged = judge(FLAWED[flaw])

    assert judged.verdict is Verdict.INCOMPLETE
    assert judged.nodes[0].flaws == {flaw}


def test_a_doubled_record_is_a_flaw():
    reported = trace()
    assert judge([*reported, reported[0]]).nodes[0].flaws == {Flaw.GAP}


def test_a_violation_weighs_more_than_a_flaw():
    assert judge(trace(CLOSED, ends=())).verdict is Verdict.VIOLATIONS


def test_a_quarantined_line_makes_a_trace_incomplete():
    judged = judge(trace(), quarantined=1)

    assert judged.verdict is Verdict.INCOMPLETE
    assert judged.quarantined == 1


def test_no_trace_at_all_is_incomplete():
    assert judge([]).verdict is Verdict.INCOMPLETE


def test_one_flawed_node_does_not_harm_the_entities_of_another():
    alive = trace(ALLOCATED, RELEASED)
    killed = [attrs.evolve(line, node="bob") for line in trace(ALLOCATED, ends=())]
    judged = judge([*alive, *killed])

    assert judged.verdict is Verdict.INCOMPLETE
    assert [entity.verdict for entity in judged.entities] == ["conformant", "incomplete"]


def test_where_a_history_may_end_a_new_one_begins_under_the_same_key():
    assert judge(trace(OPENED, CLOSED, OPENED, CLOSED)).verdict is Verdict.CONFORMANT


def test_where_a_history_may_not_end_no_new_one_begins():
    judged = judge(trace(OPENED, OPENED, CLOSED))
    assert judged.by_claim == {Claim.NO_GAP_BETWEEN_STEPS: 1}


# fmt: off
JUMP, LATE, UNRESTED = {Claim.NO_GAP_BETWEEN_STEPS}, {Claim.STARTS_AT_INITIAL}, {Claim.ENDS_AT_REST}
MISSING = {
    "the first step":   ((OPENED, CLOSED),          2, set()),
    "the second step":  ((CLOSED, OPENED, CLOSED),  3, LATE),
    "what is between":  ((OPENED, LOST, EXPIRED),   3, set()),
    "what comes after": ((OPENED, EXPIRED, CLOSED), 4, JUMP),
    "what came before": ((ALLOCATED, OPENED),       2, UNRESTED),
    "the last step":    ((OPENED, CLOSED),          3, set()),
}
# fmt: on


@pytest.mark.parametrize("case", list(MISSING))
def test_only_judgements_on_a_missing_record_are_left_out(case):
    steps, missing, broken = MISSING[case]
    judged = judge([line for line in trace(*steps) if line.ln != missing])

    assert set(judged.by_claim) == broken
    assert judged.nodes[0].flaws == {Flaw.GAP}


@given(st.permutations(trace(ALLOCATED, OPENED, refused("allocated", "allocate"), EXPIRED)))
def test_the_order_of_the_lines_does_not_matter(lines):
    assert judge(lines) == judge(sorted(lines, key=lambda line: line.ln))
