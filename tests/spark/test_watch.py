"""Traces that are judged while they are written: all is found, each thing once, if killed too."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import attrs
import pytest
from click.testing import CliRunner
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from fsm.judge.process import judge_across
from fsm.judge.trace_files import folders_of, parts_in
from fsm.judge.trace_line import Claim, Verdict
from fsm.judge.verdict import combine, judge_folders
from spark.__main__ import Exit, main
from spark.errors import WatchStateError
from spark.findings import Broken
from spark.stream import next_offset, sizes_of
from spark.watch import JUDGE, Ledger, Seen
from specs.claims import CLAIMS
from tests.fsm.judge.claims.test_claims import CASES
from tests.support.trace.damage import write_whole
from tests.support.trace.histories import reported
from tests.support.trace.trace_files import generated, records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PATIENCE = 250
"""Seconds until a round has to be done: a busy machine takes many times as long."""

KIB = 1 << 10


# --- how far a round reads ------------------------------------------------------------------


def test_a_part_is_read_when_the_one_before_it_is():
    sizes = {"a/part-0": 200 * KIB, "a/part-1": 100 * KIB}

    first = next_offset({}, sizes, ReadMaxBytes(128 * KIB))
    second = next_offset(first, sizes, ReadMaxBytes(128 * KIB))

    assert first == {"a/part-0": 128 * KIB}
    assert second == {"a/part-0": 200 * KIB, "a/part-1": 56 * KIB}


def test_a_folder_that_grows_fast_keeps_no_other_waiting():
    sizes = {"a/part-0": 10_000 * KIB, "b/part-0": 10 * KIB}

    assert next_offset({}, sizes, ReadMaxBytes(128 * KIB))["b/part-0"] == 10 * KIB


def test_all_there_is_is_read_if_spark_wants_it():
    sizes = {"a/part-0": 10_000 * KIB, "b/part-0": 10 * KIB}

    assert next_offset({"b/part-0": 3}, sizes, ReadAllAvailable()) == sizes


def test_a_file_that_became_shorter_is_not_read_again():
    assert next_offset({"a": 9}, {"a": 5}, ReadAllAvailable()) == {"a": 9}


def test_parts_are_listed_in_the_order_in_which_they_are_written(tmp_path):
    for part in (1, 0):
        write_trace(tmp_path / "run=r" / "node=n", ["x"], part)

    assert [*sizes_of(tmp_path).values()] == [2, 2]
    assert [name[-11:] for name in sizes_of(tmp_path)] == ["00000.jsonl", "00001.jsonl"]


# --- what is written down -------------------------------------------------------------------


def broken(ln):
    return Broken(claim=Claim.REFUSED_STEP.value, run="r", node="n", ln=ln, about="x", expected="y")


def seen(count):
    return Seen(folder="f", run="r", node="n", records=count, is_running=True, unjudged="")


def lines_in(directory):
    return [json.loads(one) for one in (directory / "violations.jsonl").read_text().splitlines()]


def test_a_round_that_is_done_again_changes_nothing(tmp_path):
    ledger = Ledger(tmp_path, "traces")

    assert ledger.add(0, [broken(1), broken(2)], [seen(7)]) == [broken(1), broken(2)]
    again = Ledger(tmp_path, "traces")

    assert again.add(0, [broken(1), broken(2)], [seen(7)]) == []
    assert again.progress == ledger.progress
    assert [one["ln"] for one in lines_in(tmp_path)] == [1, 2]


def test_the_output_of_an_unfinished_round_is_written_again(tmp_path):
    Ledger(tmp_path, "traces").add(0, [broken(1)])
    with (tmp_path / "violations.jsonl").open("a") as file:
        file.write('{"claim":"half a l')

    ledger = Ledger(tmp_path, "traces")

    assert ledger.add(1, [broken(2)]) == [broken(2)]
    assert [one["ln"] for one in lines_in(tmp_path)] == [1, 2]


def test_a_repeated_finding_is_reported_once(tmp_path):
    ledger = Ledger(tmp_path, "traces")

    assert ledger.add(0, [broken(1), broken(1)]) == [broken(1)]
    assert ledger.add(1, [broken(1)]) == []
    assert ledger.violations == len(lines_in(tmp_path)) == 1


def test_the_verdict_so_far_is_open_until_something_is_broken_or_cannot_be_read(tmp_path):
    ledger = Ledger(tmp_path, "traces")

    ledger.add(0, [], [seen(3)])
    assert ledger.verdict is Verdict.OPEN
    ledger.add(1, [], [attrs.evolve(seen(3), unjudged="its records are in disorder")])
    assert ledger.verdict is Verdict.INCOMPLETE
    ledger.add(2, [broken(1)])
    assert Ledger(tmp_path, "traces").verdict is Verdict.VIOLATIONS


def test_the_progress_of_another_watch_is_refused(tmp_path):
    Ledger(tmp_path, "traces").add(0, [])

    with pytest.raises(WatchStateError, match="it is of a watch of traces; name another"):
        Ledger(tmp_path, "others")


@pytest.mark.parametrize("judge", [None, "0" * 64])
def test_the_progress_of_another_version_is_one_sentence(tmp_path, judge):
    traces, to = tmp_path / "traces", tmp_path / "state"
    traces.mkdir()
    Ledger(to, str(traces)).add(0, [broken(1)])
    kept = json.loads((to / "progress.json").read_text())
    assert kept.pop("judge") == JUDGE
    named = {} if judge is None else {"judge": judge}
    (to / "progress.json").write_text(json.dumps(kept | named))

    done = CliRunner().invoke(main, ["watch", str(traces), "--to", str(to)])

    assert done.exit_code == Exit.NOT_CONFORMANT
    assert done.stderr == (
        f"Error: cannot watch with {to}: "
        "it is of a watch by another version of this program; name another directory\n"
    )


def test_a_watch_names_its_version_before_its_first_round(tmp_path):
    Ledger(tmp_path, "traces")

    assert progress(tmp_path)["judge"] == JUDGE


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema": 1, "processes": 3}', "\0"])
def test_progress_that_cannot_be_read_is_one_sentence(tmp_path, content):
    (tmp_path / "progress.json").write_text(content)

    with pytest.raises(WatchStateError, match=f"cannot watch with {tmp_path}: .*; name another"):
        Ledger(tmp_path, "traces")


def test_a_place_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "traces").mkdir()

    done = CliRunner().invoke(
        main, ["watch", str(tmp_path / "traces"), "--to", str(tmp_path / "file")]
    )

    assert done.exit_code == Exit.USAGE


# --- as a process ---------------------------------------------------------------------------


def grown(source, target, part):
    """Let the copies of all traces grow to a part of their length, mostly within a line.

    A process begins a file when the one before is complete.
    """
    for folder in {file.parent for file in source.rglob("part-*.jsonl")}:
        files = sorted(folder.iterdir())
        left = int(sum(file.stat().st_size for file in files) * part)
        for file in files:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            data = file.read_bytes()[:left]
            left -= len(data)
            if data:
                start = copy.stat().st_size if copy.exists() else 0
                with copy.open("ab") as out:
                    out.write(data[start:])


def story(directory):
    """Traces that break all kinds of claims, I-M17 only once they are whole.

    Some lines are no records.
    """
    for number, case in enumerate(CASES):
        if number % 5 == 0 or case.claim == "I-M17":
            lines = [attrs.evolve(one, run=f"{one.run}-{number}") for one in reported(case.broken)]
            write_whole(directory, lines)
    for lines in generated(30, 5):
        run, node = lines[0]["run"], lines[0]["node"]
        write_trace(directory / f"run={run}" / f"node={node}", [*lines, "no record"])
    return directory


def of_steps(violations):
    return {
        (one.claim.value, one.entity.run, one.entity.node, one.ln, one.entity.key, one.expected)
        for one in violations
    }


def of_others(findings):
    return {
        (CLAIMS[one.claim].name, one.run, one.nodes[0], one.ln, one.about, one.expected)
        for one in findings
    }


def expected(directory):
    """What the reference finds: at the end, and of that what is known before."""
    folders = judge_folders(folders_of(parts_in([directory])))
    processes = [one for folder in folders for one in folder.processes]
    judged = combine(processes)
    steps = of_steps(judged.machines.violations)
    found = [found for one in processes for found in one.findings]
    found += judge_across([item for one in processes for item in one.evidence], frozenset())
    return steps | of_others(judged.findings), steps | of_others(found)


def reported_in(lines):
    names = ("claim", "run", "node", "ln", "about", "expected")
    return [tuple(one[name] for name in names) for one in lines]


@contextmanager
def watching(traces, to, *more):
    command = [
        sys.executable,
        "-m",
        "spark",
        "watch",
        str(traces),
        "--to",
        str(to),
        "--json",
        *more,
    ]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def counted(to):
    """How many lines were judged or refused."""
    kept = progress(to)
    return kept["bad"] + sum(one["records"] for one in kept["processes"])


def progress(to):
    place = to / "progress.json"
    return (
        json.loads(place.read_text())
        if place.exists()
        else {"round": -1, "bad": 0, "processes": []}
    )


@pytest.mark.long
def test_a_watch_that_is_killed_goes_on_and_reports_each_violation_once(tmp_path):
    source, traces, to = story(tmp_path / "source"), tmp_path / "traces", tmp_path / "state"
    grown(source, traces, 0.5)
    with watching(traces, to) as process:
        wait_for(lambda: progress(to)["round"] >= 0)
        known = lines_in(to)
        grown(source, traces, 0.8)
        # The next round is under way, or was just written down.
        wait_for(lambda: any((to / "checkpoint" / "offsets").glob("1")))
        os.killpg(process.pid, signal.SIGKILL)

    grown(source, traces, 1.0)
    at_the_end, before = expected(source)
    lines = sum(file.read_bytes().count(b"\n") for file in source.rglob("part-*.jsonl"))
    with watching(traces, to, "--until-idle", "2") as process:
        wait_for(lambda: counted(to) == lines)
        live = lines_in(to)
        out, err = process.communicate(timeout=PATIENCE)

    found = lines_in(to)
    assert process.returncode == Exit.NOT_CONFORMANT, err
    assert known
    assert found[: len(known)] == known
    assert set(reported_in(live)) >= before
    assert sorted(reported_in(found)) == sorted(at_the_end)
    assert at_the_end > before
    verdict = json.loads(out.splitlines()[-1])
    assert verdict["verdict"] == "violations"
    assert verdict["violations"] == len(found)
    assert progress(to)["bad"] == verdict["quarantined"] == 30
    assert "no longer judged" not in err


@pytest.mark.long
def test_a_watch_that_is_interrupted_says_what_it_found_so_far(tmp_path):
    lines = records(whole(session("open", "closed")))
    write_trace(tmp_path / "traces" / "run=r1" / "node=alice", lines[:-1])
    to = tmp_path / "state"
    with watching(tmp_path / "traces", to) as process:
        wait_for(lambda: progress(to)["round"] >= 0)
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out) == (Exit.CONFORMANT, "")
    assert err == f"open: 1 process (1 running), {len(lines) - 1} records, 0 violations\n"
