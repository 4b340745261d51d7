"""The judge of one long process keeps no more of a long trace than of a short one."""

import tracemalloc

import pytest

from bench.judge import write_runtime
from fsm.judge.claims.records import Lasting, Recent
from fsm.judge.replay import Machines
from fsm.judge.trace_files import parts_in
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import combine, judge_folder

FEW = 50
RECORDS = 4_000


@pytest.fixture
def forgetful(monkeypatch):
    """Remembers few messages, so that a short trace has more of them."""
    monkeypatch.setattr(Recent, "limit", FEW)
    monkeypatch.setattr(Lasting, "limit", FEW)
    monkeypatch.setattr(Machines, "kept", FEW)


def most_kept(place, records):
    """Bytes that the judge of a runtime had at most, beside what it had before."""
    write_runtime(place, "ra", records)
    tracemalloc.start()
    try:
        judged = judge_folder(parts_in([place]))
        return judged, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("forgetful")
def test_four_times_the_records_take_no_more_memory(tmp_path):
    most_kept(tmp_path / "first", RECORDS)  # what is loaded and cached once
    _, of_short = most_kept(tmp_path / "short", RECORDS)
    judged, of_long = most_kept(tmp_path / "long", 4 * RECORDS)
    assert combine(judged.processes).verdict is Verdict.CONFORMANT
    (process,) = judged.processes
    assert process.entity_counts["transaction"] == 4 * RECORDS // 12
    assert of_long < 1.2 * of_short
