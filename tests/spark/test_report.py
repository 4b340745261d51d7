"""A report, whole: its files, and what they say of a trace that breaks a claim."""

import json

import pytest

from fsm.catalogue import MACHINES
from spark.run import Order, carry_out
from tests.support.trace_files import records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def outcome(spark_session, tmp_path_factory):
    """What came of a node whose name is markup and whose session never ended."""
    run = tmp_path_factory.mktemp("run")
    write_trace(run / "node=<bob>", records(whole(session("open")), node="<bob>"))
    report = tmp_path_factory.mktemp("report")
    return carry_out(spark_session, Order(traces=(str(run),), report=report))


@pytest.fixture(scope="module")
def page(outcome):
    return outcome.report.html.read_text()


def test_people_are_told_the_verdict_first_and_the_places_last(outcome):
    first, *_, last = outcome.as_text()
    assert first == "violations: 3 events, 1 entity, 1 violation, 0 lines quarantined"
    place = outcome.report.html.parent
    assert last == f"{len(MACHINES)} drawings, one per machine: {place}/*.svg"
    assert not outcome.is_conformant


def test_machines_are_told_the_violations_first_and_the_verdict_last(outcome):
    *violations, verdict = map(json.loads, outcome.as_json())
    assert [one["schema"] for one in violations] == ["protofly.violation/1"]
    assert (verdict["schema"], verdict["verdict"]) == ("protofly.verdict/1", "violations")


def test_the_summary_says_what_broke_first(outcome):
    summary = json.loads(outcome.report.summary.read_text())
    assert summary["by_claim"]["ends_at_rest"] == 1
    assert summary["first"][0]["record"]["new"] == "open"


def test_there_is_a_drawing_per_machine_and_every_violation_as_parquet(outcome):
    directory = outcome.report.html.parent
    assert {path.stem for path in directory.glob("*.svg")} >= {"session", "p2p_connection"}
    assert list(directory.glob("violations.parquet/*.parquet"))


def test_the_page_shows_names_as_text_and_draws_what_was_used(page):
    assert "<bob>" not in page
    assert page.count("<svg") == 1


def test_the_page_fetches_nothing(page):
    assert "<script" not in page
    assert "src=" not in page
    assert "@import" not in page
