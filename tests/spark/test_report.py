"""A report, whole: its files, and what they say of a trace that breaks a claim."""

import json
import re
from html import escape
from itertools import pairwise

import attrs
import pytest

from fsm.judge.claims.catalogue import BY_MACHINES, CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.trace_line import Claim
from fsm.machine_list import MACHINES
from spark.errors import FormerReportError
from spark.findings import Broken
from spark.load import small_frame
from spark.pipeline import Question
from spark.report.figures import Figures
from spark.report.files import read_summary, write_report
from spark.report.page import Extent
from spark.report.words import stories_of, write_stories
from spark.run import Order, carry_out
from spark.schemas import FACT, VIOLATION
from specs.claims import CLAIMS
from tests.support.trace.trace_files import records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def outcome(spark_session, tmp_path_factory):
    """What came of a node whose name is markup and whose sessions never ended; two are drawn."""
    run = tmp_path_factory.mktemp("run")
    steps = [step for one in "abc" for step in session("open", key=one)]
    write_trace(run / "node=<bob>", records(whole(steps), node="<bob>"))
    report = tmp_path_factory.mktemp("report")
    former = tmp_path_factory.mktemp("former")
    (former / "summary.json").write_text('{"verdict": "conformant", "by_claim": {}}')
    question = Question(traces=(str(run),))
    order = Order(question=question, report=report, against=former, diagrams=2)
    return carry_out(spark_session, order)


@pytest.fixture(scope="module")
def page(outcome):
    return outcome.report.html.read_text()


def test_people_see_the_verdict_first_and_the_files_last(outcome):
    first, *_, last = outcome.as_text()
    assert first == "violations: 5 events, 3 entities, 3 violations, 0 lines quarantined"
    place = outcome.report.html.parent
    assert last == f"{len(MACHINES)} drawings, one per machine: {place}/*.svg"
    assert not outcome.is_conformant


def test_the_json_output_has_the_violations_first_and_the_verdict_last(outcome):
    *violations, verdict = map(json.loads, outcome.as_json())
    assert [one["schema"] for one in violations] == ["protofly.violation/1"]
    assert (verdict["schema"], verdict["verdict"]) == ("protofly.verdict/1", "violations")


def test_every_reader_sees_what_was_checked_and_what_was_not(outcome, page):
    text = "\n".join(outcome.as_text())
    on_messages = f"{len(CLAIMS_JUDGED)} on messages, tables and links"
    assert f"checked: 6 claims on the steps of machines, {on_messages}\n" in text
    assert f"not checked: {len(NOT_JUDGED)} claims that no trace can decide\n" in text
    summary = json.loads(outcome.report.summary.read_text())
    told = [json.loads(outcome.as_json()[-1]), summary]
    for verdict in told:
        steps = [claim.value for claim in Claim]
        assert verdict["checked"] == [*steps, *(CLAIMS[claim].name for claim in CLAIMS_JUDGED)]
        assert len(verdict["not_checked"]["by_nobody"]) == len(NOT_JUDGED)
    # With those that the machines' steps decide, these are all claims that there are.
    assert len(CLAIMS_JUDGED) + len(NOT_JUDGED) + len(BY_MACHINES) == len(CLAIMS)
    assert ">Claims that were not checked</h2>" in page
    assert escape(CLAIMS["I-T2"].text) in page
    assert summary["ids"]["one final"] == "I-T2"
    assert {*summary["checked"], *summary["not_checked"]["by_nobody"]} == set(summary["ids"])
    for claim in CLAIMS.values():
        if claim.id not in BY_MACHINES:
            assert escape(f"{claim.id} {claim.name}") in page


def test_the_summary_says_what_broke_first(outcome):
    summary = json.loads(outcome.report.summary.read_text())
    assert summary["by_claim"]["ends_at_rest"] == 3
    assert summary["first"][0]["record"]["new"] == "open"


def test_there_is_a_drawing_per_machine_and_every_violation_as_parquet(outcome):
    directory = outcome.report.html.parent
    assert {path.stem for path in directory.glob("*.svg")} >= {"session", "p2p_connection"}
    assert list(directory.glob("violations.parquet/*.parquet"))


def test_the_page_shows_names_as_text_and_draws_what_was_used(page):
    assert "<bob>" not in page
    # The timeline and the stories of two violations, each in two sizes; the use of the machine.
    assert page.count("<svg") == 7
    assert page.count(' narrow"') == page.count(' wide"') == 3
    assert page.count("<svg") == page.count('role="img"')


def test_the_page_fetches_nothing(page):
    assert "<script" not in page
    assert "src=" not in page
    assert "@import" not in page
    assert "http" not in page.replace("http://www.w3.org/", "")


def test_headings_are_in_order_and_ids_are_unique(page):
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_every_entry_of_the_contents_leads_to_a_section(page):
    targets = re.findall(r'<a href="#([^"]+)"', page)
    assert len(targets) > 5
    assert set(targets) <= set(re.findall(r'<h2 id="([^"]+)"', page))


def test_each_violation_has_its_history_with_the_violating_record_last(page):
    assert "Records before the violation of ends_at_rest" in page
    assert "Records before the violation 2 of ends_at_rest" in page
    # Each in two sizes.
    assert page.count('<g class="broken">') == 4


def test_the_page_says_how_many_violations_it_does_not_draw_and_where_they_are(page):
    assert "And 1 more violation: all are in <code>violations.parquet</code>" in page


def test_only_a_step_that_is_not_declared_is_drawn_in_red(outcome, page, tmp_path):
    """To end in a state that may not end is wrong, but the step into it is not."""
    red = re.compile(r'<g [^>]*class="edge illegal"')
    assert not red.search(page)

    (first,) = outcome.findings.first
    undeclared = attrs.evolve(first.step.record, cause="<x>")
    broken = attrs.evolve(
        first, claim="declared_step", step=attrs.evolve(first.step, record=undeclared)
    )
    by_claim = {"declared_step": 2}
    findings = attrs.evolve(outcome.findings, shown=[broken, broken], by_claim=by_claim)
    extent = Extent(inputs=(), command="", made="", figures=Figures(), stories={}, former=None)
    drawn = write_report(findings, tmp_path, extent).html.read_text()
    assert len(red.findall(drawn)) == 1
    assert drawn.count('<a href="#step-1">') == drawn.count('id="step-1"') == 1
    assert "<x>" not in drawn


def test_changes_since_a_former_report_are_shown(page):
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert cells[:3] == ["verdict", "conformant", "violations"]


def test_the_histories_lie_beside_the_page(outcome, spark_session):
    place = outcome.report.html.parent / "stories.parquet"
    rows = spark_session.read.parquet(str(place)).orderBy("of_ln").collect()
    told = [(row["claim"], row["of_ln"], row["at"], row["ln"], row["new"]) for row in rows]
    assert told == [("ends_at_rest", ln, 1, ln, "open") for ln in (2, 3, 4)]


STEPS = [{"ln": ln, "k": "state", "machine": "session", "key": "a"} for ln in range(1, 15)]
MESSAGES = [
    {"node": "bob", "ln": 1, "k": "msg", "mid": "m"},
    {"ln": 20, "k": "msg", "mid": "m", "link": "l"},
    {"ln": 21, "k": "msg", "mid": "n", "ref": "m", "key": "a"},
    {"ln": 22, "k": "link", "link": "l"},
    {"ln": 23, "k": "hb"},
]


def test_a_history_is_of_the_same_message_or_key_or_link_and_has_ten_records_before(
    spark_session, tmp_path
):
    told = {"run": "r", "node": "alice", "actor": "bus"}
    facts = [told | {"wall_ns": 100 * one["ln"]} | one for one in (*STEPS, *MESSAGES)]
    broken = [told | {"claim": "c", "ln": ln} for ln in (2, 14, 21, 22, 23)]
    write_stories(
        small_frame(spark_session, facts, FACT),
        small_frame(spark_session, [*broken, *broken], VIOLATION),
        str(tmp_path / "stories"),
    )
    shown = [Broken(claim="c", run="r", node="alice", ln=ln, about="", expected="")
             for ln in (2, 14, 21, 22, 23)]  # fmt: skip
    stories = stories_of(spark_session, str(tmp_path / "stories"), shown)
    assert {ln: [event.ln for event in story] for (_, _, ln), story in stories.items()} == {
        2: [1, 2], 14: list(range(4, 15)), 21: [1, 20, 21], 22: [20, 22], 23: [23],
    }  # fmt: skip
    assert stories["r", "alice", 21][0].node == "bob"


def test_a_missing_former_report_is_one_sentence(tmp_path):
    with pytest.raises(FormerReportError, match="no former report at"):
        read_summary(tmp_path)
