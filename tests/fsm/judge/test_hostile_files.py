"""Folders of traces by others are read in bounded memory, and lead nowhere else."""

import tracemalloc

import pytest
from click.testing import CliRunner

from fsm.__main__ import cli
from fsm.judge.live import LiveJudge
from fsm.judge.trace_files import Reading, parts_in
from fsm.judge.trace_line import MAX_LINE
from tests.fsm.judge.hostile import LONG, write_endless, write_links

REASON = f"it has more than {MAX_LINE:,} bytes"


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_line_without_end_is_one_bad_line_in_bounded_memory(tmp_path, is_packed):
    write_endless(tmp_path, is_packed=is_packed)
    reading = Reading(parts_in([tmp_path]))
    tracemalloc.start()
    try:
        read = len(list(reading.records()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert read == reading.count > 0
    assert (reading.bad[0].line, reading.bad[0].reason) == (1, REASON)
    assert len(reading.bad) == 2
    assert len(reading.bad[0].text) <= 1000
    assert peak < LONG / 4


def test_the_judge_says_which_line_is_too_long(tmp_path):
    part = write_endless(tmp_path, is_packed=True)
    done = CliRunner().invoke(cli, ["judge", str(tmp_path)])

    assert done.exit_code == 1
    assert f"incomplete: {part}:1: the line cannot be read: {REASON}" in done.stdout


def test_a_line_without_end_is_one_bad_line_while_it_is_written():
    judge = LiveJudge()
    tracemalloc.start()
    try:
        for _ in range(LONG >> 20):
            judge.take("part-0", b"x" * (1 << 20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    judge.take("part-0", b"\n")

    (bad,) = judge.round().bad
    assert (bad.line, bad.reason) == (1, REASON)
    assert peak < LONG / 4


def test_a_line_of_the_longest_length_is_read(tmp_path):
    line = b'{"a":"' + b"x" * (MAX_LINE - 8) + b'"}'
    assert len(line) == MAX_LINE
    (tmp_path / "part-0.jsonl").write_bytes(line + b"\n" + line + b" \n")
    reading = Reading(parts_in([tmp_path]))
    list(reading.records())

    assert [bad.reason == REASON for bad in reading.bad] == [False, True]


def test_links_out_of_a_folder_are_not_followed(tmp_path):
    write_links(tmp_path / "traces", tmp_path / "elsewhere")
    done = CliRunner().invoke(cli, ["judge", str(tmp_path / "traces")])

    assert done.exit_code == 0
    assert done.stdout.startswith("conformant: 4 records")
    assert "secret" not in done.output
