"""Spark and `fsm judge` say the same of the same traces, record by record."""

import json
import random
import shutil
from collections import Counter

import attrs
import pytest
import trio
from trio.testing import MockClock

from fsm.judge.trace_files import Manifest, Participant, Reading, parts_in
from fsm.judge.trace_line import Claim, Verdict, wire_name
from fsm.judge.verdict import judge_run
from spark.pipeline import Question, validate
from spark.report.words import summary
from spark.run import convert
from specs.claims import CLAIMS
from specs.trace import trace_folder
from tests.fsm.judge.claims.test_claims import CASES
from tests.spark.clocks import shifted
from tests.spark.judged import lines_played
from tests.support.trace import damage
from tests.support.trace.damage import write_whole
from tests.support.trace.histories import reported
from tests.support.trace.recorded import lines_of, scenario_of
from tests.support.trace.trace_files import generated, records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

STORIES = CASES
"""Both judges run the same folds: what differs is how the records get there."""

TRACES = 200
FILES = 4
GAPS = 20
"""Of more, Spark shows the first."""


def fields_of(line):
    """What a process would have written."""
    there = {wire_name(name): value for name, value in attrs.asdict(line).items()}
    kept = {name: value for name, value in there.items() if value is not None}
    return kept | {"mono_ns": 0}


def by_fsm(directory):
    reading = Reading(parts_in([directory]))
    records = list(reading.records())
    return judge_run(records, len(reading.bad)), reading


def by_spark(session, directory, report=None):
    return validate(session, Question(traces=(str(directory),)), report)


def violations(session, report):
    """Every violation that Spark found, as `fsm judge` has it."""
    rows = session.read.parquet(str(report / "violations.parquet")).collect()
    return Counter(
        (
            row["claim"],
            row["run"],
            row["node"],
            row["ln"],
            row["machine"],
            row["about"],
            row["expected"],
        )
        for row in rows
    )


def expected(judged):
    """The same of the reference."""
    steps = (
        (one.claim.value, one.entity.run, one.entity.node, one.ln, one.entity.machine,
         one.entity.key, one.expected)
        for one in judged.machines.violations
    )  # fmt: skip
    found = (
        (one.claim, one.run, one.nodes[0], one.ln, None, one.about, one.expected)
        for one in judged.findings
    )
    return Counter([*steps, *found])


def assert_agreed(session, directory, report):
    judged, _ = by_fsm(directory)
    found = by_spark(session, directory, report)
    assert violations(session, report) == expected(judged)
    assert found.verdict == judged.verdict
    gaps = [(one.run, one.node, one.ln, one.reason) for one in found.gaps]
    missing = [(one.run, one.node, one.ln, one.reason) for one in judged.missing]
    if len(missing) < GAPS:
        assert sorted(gaps) == sorted(missing)
    flaws = {(one.run, one.node): one.flaws for one in judged.machines.nodes}
    assert {(one.run, one.node): one.flaws for one in found.nodes} == flaws
    skews = {(one.run, one.node): one.skew for one in found.nodes if one.skew is not None}
    assert skews == judged.skews
    names = Counter({claim.value: times for claim, times in judged.machines.by_claim.items()})
    names += Counter({CLAIMS[claim].name: times for claim, times in judged.by_claim.items()})
    assert Counter(found.by_claim) == names
    return judged


def test_of_each_history_that_keeps_or_breaks_a_claim(spark_session, tmp_path):
    # Each story is a world of its own: its names are told apart by its number.
    lines = []
    for number, case in enumerate(STORIES):
        for word, story in (("kept", case.kept), ("broken", case.broken)):
            for line in reported(story):
                text = json.dumps(fields_of(attrs.evolve(line, run=f"{line.run}-{number}-{word}")))
                domain = f"{word}{number}"
                lines.append(
                    text.replace("a.ex", f"{domain}.a.ex").replace("b.ex", f"{domain}.b.ex")
                )
    for part in range(FILES):
        write_trace(tmp_path / "traces", lines[part::FILES], part)

    judged = assert_agreed(spark_session, tmp_path / "traces", tmp_path / "report")

    assert set(judged.by_claim) == {case.claim for case in STORIES}


CROSSED = """
x xmit read 1 HA>HB stub=SA link=l via=SA
x rcv 200 1 HB>HA stub=SA link=l
@rb
x rcv read 1 HA>HB link=k via=SA
x xmit 200 1 HB>HA link=k
"""


def test_of_processes_with_clocks_hours_apart(spark_session, tmp_path):
    lines = reported(CROSSED)
    clocks = {"ra": (3600.0, 0.0), "rb": (-1.0, 0.0)}
    at = [attrs.evolve(line, wall_ns=line.ln * 10**9) for line in lines]
    text = [json.dumps(fields_of(line)) for line in shifted(at, clocks)]
    write_trace(tmp_path / "traces", text)

    judged = assert_agreed(spark_session, tmp_path / "traces", tmp_path / "report")

    apart = judged.skews["run", "rb"].seconds - judged.skews["run", "ra"].seconds
    assert abs(abs(apart) - 3601) < 10


DAMAGES = (damage.drop_process, damage.duplicate_part, damage.rename_folder, damage.drop_lines)


@pytest.fixture(scope="module")
def links_up(tmp_path_factory):
    """What processes that set up a direct link wrote."""
    clock = MockClock(autojump_threshold=0)
    lines = trio.run(lines_played, scenario_of(lines_of("SC-16")), clock=clock)
    directory = tmp_path_factory.mktemp("whole")
    write_whole(directory, lines)
    return directory


@pytest.mark.parametrize("damaged", DAMAGES, ids=lambda one: one.__name__)
def test_of_damaged_traces(spark_session, links_up, damaged, tmp_path):
    shutil.copytree(links_up, tmp_path / "traces")
    lost = damaged(tmp_path / "traces", random.Random(7))  # noqa: S311 - reproducible, not secret

    judged = assert_agreed(spark_session, tmp_path / "traces", tmp_path / "report")

    assert judged.verdict == (Verdict.INCOMPLETE if lost else Verdict.CONFORMANT)


def test_of_generated_and_mutated_steps(spark_session, tmp_path):
    traces = generated(TRACES, seed=20)
    for part in range(FILES):
        write_trace(
            tmp_path / "traces", [one for trace in traces[part::FILES] for one in trace], part
        )

    judged = assert_agreed(spark_session, tmp_path / "traces", tmp_path / "report")

    assert set(judged.machines.by_claim) == set(Claim)


def test_of_a_manifest(spark_session, links_up):
    declared = Manifest(
        (Participant("hyperty-runtime://a.ex/ra"), Participant("hyperty-runtime://a.ex/other"))
    )
    reading = Reading(parts_in([links_up]))
    judged = judge_run(list(reading.records()), manifest=declared)
    asked = Question(traces=(str(links_up),), manifest=declared)

    found = validate(spark_session, asked)

    assert found.verdict is judged.verdict is Verdict.INCOMPLETE
    assert {one.reason for one in found.gaps} == {one.reason for one in judged.missing}


def test_of_a_process_with_parts_in_several_folders(spark_session, tmp_path):
    """A part that was copied elsewhere, and one that was moved: one process all the same."""
    lines = records(whole(session("open", "detached", "open", "closed")))
    write_trace(tmp_path / "a", lines[:3])
    write_trace(tmp_path / "b", lines[2:])
    write_trace(tmp_path / "c", records(whole([]), "r2", "bob"))

    judged, _ = by_fsm(tmp_path)
    found = by_spark(spark_session, tmp_path)

    (node,) = (one for one in found.nodes if one.node != "bob")
    assert (node.records, node.doubled) == (len(lines) + 1, 1)
    assert {one.doubled for one in judged.machines.nodes} == {0, 1}
    assert found.verdict is judged.verdict is Verdict.INCOMPLETE


@pytest.mark.parametrize("is_converted", [False, True])
def test_of_files_that_spark_reads_and_hands_to_the_workers(
    spark_session, tmp_path, monkeypatch, is_converted
):
    """As it is behind a URL: here the same files, and nobody takes them for local ones."""
    traces = generated(8, seed=3)
    for run, lines in enumerate(traces):
        named = [line | {"run": f"r{run}", "node": "a+b %41"} for line in lines]
        write_trace(tmp_path / "lines" / trace_folder(f"r{run}", "a+b %41"), [*named, "garbage"])
    place = tmp_path / "lines"
    if is_converted:
        place = tmp_path / "columns"
        convert(spark_session, [str(tmp_path / "lines")], str(place))
    by_workers = by_spark(spark_session, place)

    monkeypatch.setattr("spark.files.is_local", lambda name: False)
    monkeypatch.setattr("spark.pipeline.is_local", lambda name: False)

    assert by_spark(spark_session, place) == by_workers
    assert by_workers.events == sum(map(len, traces))


def test_of_machines_alone(spark_session, tmp_path):
    for number, lines in enumerate(generated(40, seed=8)):
        write_trace(tmp_path / f"r{number}", lines)
    judged, _ = by_fsm(tmp_path)
    asked = Question(traces=(str(tmp_path),), is_of_machines=True)

    found = validate(spark_session, asked)
    of_all = by_spark(spark_session, tmp_path)

    assert found.by_claim == {claim.value: judged.machines.by_claim[claim] for claim in Claim}
    assert (found.events, found.entities) == (of_all.events, of_all.entities)
    assert found.machines == of_all.machines
    assert "checked: 6 claims on the steps of machines only" in summary(found)
