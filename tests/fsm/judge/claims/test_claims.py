"""Each claim that is judged is kept by one story, and broken, alone, by another."""

import re
from pathlib import Path

import pytest

from fsm.judge.claims.catalogue import BY_MACHINES, CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.trace_line import Claim
from fsm.judge.verdict import judge_run
from fsm.machine_list import MACHINES
from specs.claims import CLAIMS
from tests.fsm.judge.claims import (
    cases_bodies,
    cases_conservation,
    cases_groups,
    cases_links,
    cases_node,
    cases_objects,
    cases_traffic,
)
from tests.support.trace.histories import reported

CASES = (
    *cases_traffic.TRANSACTIONS, *cases_traffic.BUSES, *cases_traffic.LOOPS,
    *cases_conservation.CONSERVATION,
    *cases_links.RESOLUTION,
    *cases_links.STUBS,
    *cases_links.LINKS,
    *cases_links.CHANGES,
    *cases_node.SESSIONS,
    *cases_node.ADDRESSES,
    *cases_node.FAN_OUT,
    *cases_node.OBJECTS,
    *cases_groups.GROUPS,
    *cases_objects.VALUES,
    *cases_bodies.ADDRESSES,
    *cases_bodies.REGISTRATIONS,
    *cases_bodies.CHANGES,
    *cases_bodies.LINKS,
)  # fmt: skip

EXCUSED = (
    *cases_traffic.EXCUSED, *cases_conservation.EXCUSED, *cases_groups.EXCUSED,
    *cases_objects.EXCUSED,
)  # fmt: skip

PAGES = Path(__file__).parents[4] / "docs"

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)


@each_case
def test_a_history_that_keeps_a_claim_breaks_none(case):
    assert judge_run(reported(case.kept)).findings == ()


@pytest.mark.parametrize("case", EXCUSED, ids=lambda case: case.claim)
def test_a_history_with_a_reason_breaks_no_claim(case):
    assert judge_run(reported(case.broken)).findings == ()


CONSERVED = {"I-T11", "I-T12"}
"""What is given twice or to nobody for a wrong reason breaks these, too."""


@each_case
def test_a_history_that_breaks_a_claim_breaks_only_that_claim(case):
    broken = {finding.claim for finding in judge_run(reported(case.broken)).findings}

    assert case.claim in broken
    assert broken - CONSERVED <= {case.claim}


def test_what_breaks_no_more_than_conservation_breaks_one_claim_of_it():
    for case in cases_conservation.CONSERVATION:
        broken = {finding.claim for finding in judge_run(reported(case.broken)).findings}
        assert broken == {case.claim}, case


def test_each_judged_claim_has_its_histories():
    assert {case.claim for case in CASES} == set(CLAIMS_JUDGED)


def test_each_claim_of_the_catalogue_is_judged_here_or_by_a_machine_or_not_at_all():
    reported = [*CLAIMS_JUDGED, *BY_MACHINES, *NOT_JUDGED]

    assert sorted(reported) == sorted(CLAIMS)


def test_the_page_of_sources_says_what_each_judged_claim_compares():
    page = (PAGES / "claim-sources.md").read_text()

    named = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| I-")]
    assert named == [f"| {claim}" for claim in CLAIMS_JUDGED]


def test_the_page_of_traces_says_what_may_be_delivered_again():
    section = (
        (PAGES / "traces.md").read_text().split("## Repeated deliveries\n")[1].split("\n## ")[0]
    )
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]

    declared = {case.forbids: case.claim for case in CASES if case.forbids}
    declared |= {case.allows: "allowed" for case in (*CASES, *EXCUSED) if case.allows}
    assert {kind: verdict for kind, verdict, _ in rows[1:]} == declared


def test_the_machines_that_judge_claims_are_declared():
    assert set(BY_MACHINES.values()) <= set(MACHINES)


def test_the_page_of_traces_says_what_each_rule_for_steps_stands_for():
    page = (PAGES / "traces.md").read_text()
    rows = page.split("| rule | what it says | stands for |\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [row.split(" | ")[0].strip("| `") for row in rows] == [rule.value for rule in Claim]
    assert set(re.findall(r"I-[A-Z]\d+", "".join(rows))) == set(BY_MACHINES)
