"""`python -m fsm check --product` says what it explored, and writes what it found."""

import json
import re

from click.testing import CliRunner

from fsm.__main__ import cli
from fsm.explore.compositions.catalogue import COMPOSITIONS


def run(*words):
    return CliRunner().invoke(cli, ["check", "--product", *words])


def test_a_composition_that_holds_is_one_line():
    done = run("transaction")
    assert done.exit_code == 0
    line = r"transaction: \d+ states, \d+ transitions, depth \d+, \d+\.\d s: holds.*"
    assert re.fullmatch(line, done.stdout.strip())


def test_an_exploration_that_is_cut_short_is_no_success():
    done = run("transaction", "--max-states", "100")
    assert done.exit_code == 1
    assert "100 states" in done.stdout
    assert "not finished" in done.stdout
    assert "this proves nothing: allow more with --max-states" in done.stdout


def test_an_unknown_composition_is_reported_which_there_are():
    assert all(name in run("transactions").stderr for name in COMPOSITIONS)


def test_the_scenario_of_an_endless_wait_ends_with_time(tmp_path, flawed):
    run(flawed, "-o", str(tmp_path))
    written = next(tmp_path.glob("*deadlock*/scenario.jsonl"))
    last = json.loads(written.read_text("utf-8").splitlines()[-1])
    assert (last["k"], last["dt"]) == ("time", 60.0)


def test_a_finding_is_reported_as_json(flawed):
    finding, *_, summary = map(json.loads, run(flawed, "--json").stdout.splitlines())
    assert finding["fault"] == "deadlock"
    assert "finding" in summary["verdict"]
    assert finding["run"]


def test_a_directory_that_cannot_be_written_is_reported(tmp_path, flawed):
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run(flawed, "-o", str(tmp_path / "file" / "below"))
    assert done.exit_code == 1
    assert "cannot write" in done.stderr
