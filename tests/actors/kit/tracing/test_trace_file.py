"""The trace on disk: in order, without gaps, whole; its failures are reported, not felt."""

import errno
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import orjson
import pytest
import trio
import trio.lowlevel
from hypothesis import given
from hypothesis import strategies as st

from actors.kit.errors import TraceDirectoryError
from actors.kit.trace import Hops
from actors.kit.trace_file import (
    FileTracer,
    TraceParts,
    keep_trace,
    node_directory,
    open_part,
    open_trace,
)
from specs.identity import SenderIdentity, VouchedBy
from specs.limits.protocol import TRACE_DUE, TRACE_PAGE
from specs.message import Message, MessageType
from specs.trace import SCHEMA, Fact, Kind, Op, Stamp, trace_folder, writer_of

FACT = Fact(k=Kind.MSG, op=Op.SUBMIT, from_="hyperty://a.ex/1", to="hyperty://b.ex/2", id=1)


def read(directory):
    """All records of all parts of the one node in a directory."""
    parts = sorted(directory.glob("run=*/node=*/part-*.jsonl"))
    return [orjson.loads(line) for part in parts for line in part.read_bytes().splitlines()]


def is_gap_free(records):
    return [record["ln"] for record in records] == list(range(1, len(records) + 1))


@asynccontextmanager
async def small_trace(directory, buffer=100, part_bytes=10_000, opener=open_part):
    tracer = FileTracer("ra", buffer)
    place = node_directory(directory, tracer.run, "ra")
    async with keep_trace(tracer, TraceParts(place, part_bytes, opener)):
        yield tracer


async def until(holds):
    """Let the thread that writes get on with it; what passes is real time."""
    with trio.fail_after(60):
        while not holds():
            await trio.lowlevel.checkpoint()


@attrs.define
class Disk:
    """A disk that takes so many bytes and no more; it counts what was tried."""

    room: int
    tries: int = 0

    def open(self, path):
        return _File(self, path.open("xb", buffering=0))

    async def is_tried(self, more=1):
        tries = self.tries + more
        await until(lambda: self.tries >= tries)


@attrs.define
class _File:
    disk: Disk
    file: object

    def write(self, data):
        self.disk.tries += 1
        if not self.disk.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self.file.write(data[: self.disk.room])
        self.disk.room -= written
        return written

    def close(self):
        self.file.close()


async def test_a_trace_begins_with_start_and_ends_with_end(tmp_path):
    async with open_trace(tmp_path, "ra") as tracer:
        tracer.record("bus", FACT)

    start, reported, end = read(tmp_path)
    assert (start["k"], start["val"]) == ("start", SCHEMA)
    assert "p2p_connection" in start["machine"].split("|")
    assert (reported["k"], end["k"]) == ("msg", "end")
    (part,) = tmp_path.glob("run=*/node=ra/part-*.jsonl")
    assert part.name == "part-00000.jsonl"
    assert writer_of(str(part)) == (read(tmp_path)[0]["run"], "ra")


async def test_a_record_is_its_stamp_and_its_fact_and_nothing_empty(tmp_path):
    async with open_trace(tmp_path, "ra") as tracer:
        tracer.record("bus", FACT)

    reported = read(tmp_path)[1]
    stamp = {field.name for field in attrs.fields(Stamp)}
    assert set(reported) == stamp | {"k", "op", "from", "to", "id"}
    assert (reported["node"], reported["ln"], reported["actor"]) == ("ra", 2, "bus")
    assert reported["t"] == pytest.approx(trio.current_time(), abs=60)
    assert len({record["run"] for record in read(tmp_path)}) == 1


async def test_a_record_is_on_disk_soon_while_the_run_goes_on(tmp_path):
    async with open_trace(tmp_path, "ra") as tracer:
        assert [record["k"] for record in read(tmp_path)] == ["start"]
        tracer.record("bus", FACT)
        (part,) = tmp_path.glob("run=*/node=*/part-*.jsonl")
        await until(lambda: part.read_bytes().count(b"\n") > 1)

        assert [record["k"] for record in read(tmp_path)] == ["start", "msg"]


async def test_an_error_leaves_no_end_but_all_that_was_reported(tmp_path):
    with pytest.RaisesGroup(KeyError):
        async with open_trace(tmp_path, "ra") as tracer:
            tracer.record("bus", FACT)
            raise KeyError

    assert [record["k"] for record in read(tmp_path)] == ["start", "msg"]


async def test_a_cancellation_leaves_no_end_but_all_that_was_reported(tmp_path):
    with trio.CancelScope() as scope:
        async with open_trace(tmp_path, "ra") as tracer:
            tracer.record("bus", FACT)
            scope.cancel()
            await trio.sleep_forever()

    assert [record["k"] for record in read(tmp_path)] == ["start", "msg"]


async def test_parts_have_whole_pages_and_end_when_they_are_full(tmp_path):
    async with small_trace(tmp_path, buffer=5000, part_bytes=100_000) as tracer:
        for _ in range(6 * TRACE_PAGE):
            tracer.record("bus", FACT)

    *full, last = sorted(tmp_path.glob("run=*/node=ra/part-*.jsonl"))
    page = TRACE_PAGE * max(map(len, last.read_bytes().splitlines(keepends=True)))
    assert len(full) >= 2
    assert all(100_000 <= part.stat().st_size < 100_000 + page for part in full)
    assert all(part.read_bytes().endswith(b"}\n") for part in (*full, last))
    assert is_gap_free(read(tmp_path))
    assert len(read(tmp_path)) == 6 * TRACE_PAGE + 2


async def test_many_records_do_not_wait_for_the_next_flush(tmp_path):
    async with small_trace(tmp_path, 2 * TRACE_DUE, part_bytes=10**9) as tracer:
        for _ in range(TRACE_DUE):
            tracer.record("bus", FACT)
        assert not tracer.is_due.is_set()
        tracer.record("bus", FACT)
        assert tracer.is_due.is_set()
        (part,) = tmp_path.glob("run=*/node=*/part-*.jsonl")
        await until(lambda: part.stat().st_size > 100 * TRACE_DUE)


async def test_both_hops_of_an_admission_without_room_are_counted(tmp_path):
    message = Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2")
    async with small_trace(tmp_path, buffer=10) as tracer:
        for _ in range(10):
            tracer.record("bus", FACT)
        tracer.hop(Hops("bus", lambda by: {"by": by}, Op.SUBMIT, Op.ADMIT)[message.from_], message)

    assert [record["count"] for record in read(tmp_path) if record["k"] == "dropped"] == [2]
    assert tracer.dropped == 2


async def test_records_beyond_the_buffer_are_counted_and_reported(tmp_path):
    async with small_trace(tmp_path, buffer=10) as tracer:
        for _ in range(25):
            tracer.record("bus", FACT)

    records = read(tmp_path)
    dropped = [record for record in records if record["k"] == "dropped"]
    assert [record["count"] for record in dropped] == [15]
    assert tracer.dropped == 15
    assert is_gap_free(records)
    assert [record["k"] for record in records[-2:]] == ["dropped", "end"]


async def test_each_start_is_a_run_of_its_own_in_the_order_of_the_starts(tmp_path):
    for _ in range(3):
        async with open_trace(tmp_path, "ra"):
            pass

    runs = [record["run"] for record in read(tmp_path) if record["k"] == "start"]
    assert runs == sorted(runs)
    assert len(set(runs)) == 3
    assert is_gap_free([record for record in read(tmp_path) if record["run"] == runs[1]])


async def test_a_run_that_is_there_already_is_not_written_to(tmp_path):
    node_directory(tmp_path, "r1", "ra")
    with pytest.raises(TraceDirectoryError, match="File exists"):
        node_directory(tmp_path, "r1", "ra")


@pytest.mark.parametrize("run", ["20260101T000000.000000Z-0a1b2c3d", "a/b %2F=é", ".."])
@pytest.mark.parametrize("node", ["ra", "node.a.example", "../evil", "node=x/run=y"])
def test_a_record_names_its_component(run, node):
    assert writer_of(f"/any/run=old/{trace_folder(run, node)}/part-00000.jsonl") == (run, node)


def test_parts_of_former_versions_say_their_node_only():
    assert writer_of("run/node=ra/part-00000.jsonl") == ("", "ra")
    assert writer_of("run/part-00000.jsonl") is None


async def test_several_nodes_share_a_directory(tmp_path):
    async with open_trace(tmp_path, "ra"), open_trace(tmp_path, "rb"):
        pass

    assert sorted(path.name for path in tmp_path.glob("run=*/*")) == ["node=ra", "node=rb"]


async def test_a_name_of_a_node_leads_nowhere_else(tmp_path):
    async with open_trace(tmp_path / "trace", "../evil"):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
    assert read(tmp_path / "trace")[0]["node"] == "../evil"


async def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TraceDirectoryError, match="Not a directory"):
        async with open_trace(tmp_path / "file", "ra"):
            pass


async def test_a_disk_that_is_full_from_the_start_is_refused(tmp_path):
    with pytest.raises(TraceDirectoryError, match="No space left"):
        async with small_trace(tmp_path, opener=Disk(0).open):
            pass


async def test_a_full_disk_is_reported_once_and_stops_no_actor(tmp_path, log_lines):
    disk = Disk(600)
    async with small_trace(tmp_path, opener=disk.open) as tracer:
        for _ in range(4):
            tracer.record("bus", FACT)
            await disk.is_tried()

    assert [line["event"] for line in log_lines] == [
        "the trace cannot be written",
        "the end of the trace is lost",
    ]
    assert [part.stat().st_size for part in tmp_path.glob("run=*/node=ra/*")] == [600]


async def test_a_disk_with_free_space_again_gets_all_records(tmp_path, log_lines):
    disk = Disk(600)
    async with small_trace(tmp_path, buffer=10, opener=disk.open) as tracer:
        for _ in range(5):
            tracer.record("bus", FACT)
        await disk.is_tried(2)  # what had room, and what had none
        for _ in range(25):
            tracer.record("bus", FACT)
        disk.room = 100_000
        await until(lambda: len(log_lines) > 1)

    alarm, resumed = log_lines
    assert (alarm["event"], alarm["reason"]) == (
        "the trace cannot be written",
        "No space left on device",
    )
    assert (resumed["event"], resumed["records_lost"]) == ("trace resumed", 15)
    records = read(tmp_path)
    assert is_gap_free(records)
    assert [record["k"] for record in records].count("msg") == 5 + 10
    assert [record["count"] for record in records if record["k"] == "dropped"] == [15]
    assert records[-1]["k"] == "end"


async def test_a_value_outside_json_is_counted_as_dropped(tmp_path):
    async with small_trace(tmp_path) as tracer:
        tracer.record("bus", Fact(k=Kind.FAULT, why="\ud800"))
        tracer.record("bus", Fact(k=Kind.FAULT, seq=1 << 64))

    records = read(tmp_path)
    assert [record["k"] for record in records] == ["start", "dropped", "dropped", "end"]
    assert is_gap_free(records)
    assert tracer.dropped == 2


facts = st.builds(
    Fact,
    k=st.sampled_from([Kind.MSG, Kind.STATE, Kind.TABLE]),
    op=st.none() | st.sampled_from(Op),
    key=st.none() | st.text(),
    from_=st.none() | st.text(),
    id=st.none() | st.integers(),
)


@given(
    reported=st.lists(st.tuples(st.text(), facts), max_size=30),
    buffer=st.integers(1, 12),
    part_bytes=st.integers(200, 900),
)
def test_any_facts_give_lines_that_parse_without_gaps(reported, buffer, part_bytes):
    async def keep(directory):
        async with small_trace(directory, buffer, part_bytes) as tracer:
            for actor, fact in reported:
                tracer.record(actor, fact)
        return tracer.dropped, read(directory)

    with TemporaryDirectory() as directory:
        dropped, records = trio.run(keep, Path(directory))
    counted = [record["count"] for record in records if record["k"] == "dropped"]
    assert is_gap_free(records)
    assert len(records) - 2 - len(counted) + dropped == len(reported)
    assert sum(counted) == dropped


@pytest.mark.parametrize("names", [False, True])
async def test_a_user_is_named_only_if_that_was_asked_for(names, tmp_path):
    user = "user://idp.ex/alice"
    sender = SenderIdentity("hyperty-runtime://a.ex/ra", user, VouchedBy.IDENTITY_PROVIDER)
    ends = "hyperty://a.ex/1", "hyperty://b.ex/2"
    async with open_trace(tmp_path, "ra", names=names) as tracer:
        for identity in (sender, None, SenderIdentity(sender.runtime)):
            message = Message(1, MessageType.CREATE, *ends, {}, identity)
            tracer.message("bus", Op.SUBMIT, message)
            tracer.record("bus", tracer.message_fact(Op.RELAY, message))
    told = [record.get("user") for record in read(tmp_path) if record["k"] == "msg"]
    shown = user if names else "192b6a6305ee2dfb"
    assert told == [shown, shown, None, None, None, None]
    text = "".join(part.read_text() for part in tmp_path.rglob("*.jsonl"))
    assert ("alice" in text) is names
