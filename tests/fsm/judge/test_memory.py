"""The judge of one long process keeps no more of a long trace than of a short one."""

import gc
import tracemalloc

import pytest

import actors
from bench.judge import write_runtime
from fsm.judge.claims.records import Lasting, Recent
from fsm.judge.replay import Machines
from fsm.judge.trace_files import folders_of, parts_in
from fsm.judge.trace_line import Verdict
from fsm.judge.verdict import combine, judge_folder, judge_folders

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


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.value


async def ask_by_a_node(place, times):
    async with (
        actors.open_node("a.example", trace=place) as node,
        actors.open_runtime("a.example", "rb", node=node.url, trace=place) as rb,
        actors.open_runtime("a.example", "ra", node=node.url, trace=place) as ra,
    ):
        asking, echo = await ra.deploy(actors.Hyperty), await rb.deploy(Echo)
        for number in range(times):
            assert (await asking.request(echo.url, number)).code == 200


def held(place):
    """Bytes that stay of all processes until they are judged together."""
    tracemalloc.start()
    try:
        folders = judge_folders(folders_of(parts_in([place])))
        gc.collect()
        bytes_held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    judged = combine([process for folder in folders for process in folder.processes])
    assert judged.verdict is Verdict.CONFORMANT
    return bytes_held


STATED = 6_000
"""Bytes for a request and its answer by a node, as docs/traces.md says: two messages, two hops."""


@pytest.mark.usefixtures("forgetful")
async def test_what_crosses_between_processes_takes_as_much_as_is_stated(tmp_path):
    for name, times in ("first", 20), ("short", 50), ("long", 200):
        await ask_by_a_node(tmp_path / name, times)
    _, of_short, of_long = (held(tmp_path / name) for name in ("first", "short", "long"))
    assert 0.5 * STATED < (of_long - of_short) / 150 < STATED
