"""Folders of traces by others, as `tests/fsm/judge/test_hostile_files` has them, by Spark."""

import pytest

from fsm.judge.trace_line import MAX_LINE, Verdict
from spark.load import read_source
from spark.pipeline import Question, validate
from spark.stream import sizes_of
from tests.fsm.judge.hostile import GOOD, write_endless, write_links

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_line_without_end_is_one_bad_line(spark_session, tmp_path, is_packed):
    write_endless(tmp_path, is_packed=is_packed)

    found = validate(spark_session, Question(traces=(str(tmp_path),)))

    assert found.verdict is Verdict.INCOMPLETE
    assert found.bad_lines[0].reason == f"it has more than {MAX_LINE:,} bytes"
    assert found.quarantined == 2


def test_links_out_of_a_folder_are_not_followed(spark_session, tmp_path):
    write_links(tmp_path / "traces", tmp_path / "elsewhere")
    place = str(tmp_path / "traces")

    assert validate(spark_session, Question(traces=(place,))).verdict is Verdict.CONFORMANT
    assert list(sizes_of(tmp_path / "traces")) == [f"{GOOD}/part-00000.jsonl"]
    (tmp_path / "traces" / GOOD / "part-00002.jsonl").unlink()
    rows = read_source(spark_session, [place]).records.collect()
    assert len(rows) == 4
    assert "secret" not in str(rows)
