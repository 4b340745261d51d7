"""The command as its users meet it: arguments, exit status, stdout, stderr."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark.__main__ import main
from tests.support.trace.trace_files import records, session, whole, write_trace

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "sh", "dirname", "basename", "ps", "env", "uname", "cat", "sed", "readlink")


def run_command(*arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "spark", "validate", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environ,
    )


@pytest.fixture
def no_java(tmp_path):
    """A clean environment whose PATH has what Spark's shell scripts call, but no Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        if tool := shutil.which(name):
            (tools / name).symlink_to(tool)
    return {"PATH": str(tools), "HOME": str(tmp_path)}


@pytest.mark.spark
@pytest.mark.timeout(180)
@pytest.mark.long
def test_on_the_wheels_java_a_trace_is_judged_and_nothing_else_is_said(tmp_path, no_java):
    write_trace(tmp_path / "run" / "node=alice", records(whole(session("open", "closed"))))
    done = run_command(tmp_path / "run", "--json", "--master", "local[1]", **no_java)

    assert done.stderr == ""
    assert done.returncode == 0
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert verdict["schema"] == "protofly.verdict/1"
    assert verdict["verdict"] == "conformant"
    assert (verdict["events"], verdict["entities"], verdict["violations"]) == (4, 1, 0)
    assert [node["verdict"] for node in verdict["nodes"]] == ["conformant"]


@pytest.mark.spark
@pytest.mark.timeout(180)
@pytest.mark.long
def test_a_setting_of_the_user_wins_over_every_other(tmp_path, no_java):
    write_trace(tmp_path / "run" / "node=alice", records(whole([])))
    options = ("--driver-memory", "1g", "--conf", "spark.driver.memory=100m")
    done = run_command(tmp_path / "run", "--master", "local[1]", *options, **no_java)

    assert done.returncode == 1
    assert (
        "Spark did not start on local[1]: Insufficient driver memory: System memory" in done.stderr
    )


def test_a_missing_trace_is_one_sentence_and_status_3(tmp_path):
    done = CliRunner().invoke(main, ["validate", str(tmp_path / "nothing")])
    assert done.exit_code == 3
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: no trace at {tmp_path / 'nothing'}: ")
    assert done.stderr.count("\n") == 1


def test_a_report_that_cannot_be_written_is_one_sentence_before_spark_starts(tmp_path):
    write_trace(tmp_path, records(whole([])))
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "report"
    done = CliRunner().invoke(main, ["validate", str(tmp_path), "--report", str(place)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: cannot write a report to {place}: not a directory; ")


@pytest.mark.parametrize(
    "arguments",
    [["validate"], ["validate", "x", "--bogus"], ["validate", "x", "--conf", "k"], ["judge"]],
)
def test_wrong_usage_is_status_2(arguments):
    assert CliRunner().invoke(main, arguments).exit_code == 2


def test_help_needs_no_spark():
    done = CliRunner().invoke(main, ["validate", "--help"])
    assert done.exit_code == 0
    assert "--allow-quarantine" in done.stdout
