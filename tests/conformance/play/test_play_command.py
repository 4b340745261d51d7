"""`python -m tests.conformance.play`: what a person and a script see."""

import orjson
import pytest

from actors.cli.group import ExitCode
from tests.conformance.play.__main__ import command
from tests.support.command import called
from tests.support.trace.recorded import GOLDEN, lines_of


def written(path, lines):
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return str(path)


def test_a_scenario_that_passes_is_a_line_and_status_0():
    ended = called(command, str(GOLDEN), "--scenario", "SC-01", "--scenario", "SC-17")
    assert (ended.status, ended.err) == (ExitCode.OK, [])
    assert ended.out == ["SC-01 passed, 4 steps", "SC-17 passed, 8 steps"]


def test_the_first_step_that_differs_is_reported_with_expected_and_seen(tmp_path):
    lines = lines_of("SC-02")
    lines[-1]["msg"]["body"]["code"] = 200
    ended = called(command, written(tmp_path / "mine.jsonl", lines))
    assert ended.status == ExitCode.FAILED
    first, expected, seen, *_ = ended.out
    assert first == "SC-02 differs at step 3"
    assert expected.startswith("  expected: RA.bus>HA #1 response hyperty-runtime://a.ex/ra/nobody")
    assert seen.startswith("  seen:     #1 response hyperty-runtime://a.ex/ra/nobody")
    assert '"code":404' in seen


def test_a_script_reads_one_object_per_scenario(tmp_path):
    lines = [*lines_of("SC-01"), *lines_of("SC-02")]
    lines[-1]["msg"]["body"]["code"] = 200
    ended = called(command, "--json", written(tmp_path / "mine.jsonl", lines))
    assert ended.status == ExitCode.FAILED
    passed, differs = map(orjson.loads, ended.out)
    reported = {
        "schema": "protofly.scenario/1",
        "scenario": "SC-01",
        "steps": 4,
        "result": "passed",
    }
    assert passed == reported
    assert (differs["result"], differs["step"]) == ("differs", 3)
    assert differs["expected"]
    assert differs["seen"]


def test_a_scenario_that_the_file_does_not_hold_is_usage():
    ended = called(command, str(GOLDEN), "--scenario", "SC-99")
    assert (ended.status, ended.out) == (ExitCode.USAGE, [])
    assert "there is no 'SC-99', only SC-01" in "".join(ended.err)


@pytest.mark.parametrize("text", ["{", '{"sc":"S","n":1,"k":"song"}'])
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, text):
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    ended = called(command, str(path))
    assert (ended.status, ended.out, len(ended.err)) == (ExitCode.CONFIGURATION, [], 1)
    assert ended.err[0].startswith(f"protofly: {path}, line 1: ")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    ended = called(command, str(tmp_path / "none.jsonl"))
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert "cannot be read: No such file or directory; name another file" in ended.err[0]


def test_a_check_plays_nothing(tmp_path):
    lines = lines_of("SC-02")
    lines[-1]["msg"]["body"]["code"] = 200
    ended = called(command, "--check", written(tmp_path / "mine.jsonl", lines))
    assert (ended.status, ended.err) == (ExitCode.OK, [])
    assert ended.out == ["SC-02 can be played, 3 steps"]


def test_a_check_refuses_what_is_not_known_with_line_and_nearest_word(tmp_path):
    lines = lines_of("SC-02")
    lines[1]["given"] = "runtme"
    path = written(tmp_path / "mine.jsonl", lines)
    ended = called(command, "--check", path)
    assert (ended.status, ended.out) == (ExitCode.CONFIGURATION, [])
    what = "there is no given 'runtme'; the nearest known is 'runtime'"
    assert ended.err == [f"protofly: {path}, line 2: {what}"]
