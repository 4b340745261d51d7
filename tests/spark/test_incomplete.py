"""What is not told is not judged: quarantine, missing ends, holes, drops."""

import pytest

from fsm.trace_line import Flaw, Verdict
from spark.errors import TraceMissingError
from spark.findings import Quarantine
from spark.pipeline import validate
from specs.trace import Fact, Kind
from tests.support.trace_files import record, records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

TOLD = records(whole(session("open", "detached", "open", "closed")))


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


BAD_LINES = {
    "torn": ('{"run":"r1","node', "no JSON"),
    "empty": ("", "no JSON"),
    "list": ("[]", "no JSON object"),
    "null": ("null", "no JSON object"),
    "number as text": (TOLD[1] | {"ln": "2"}, "a field that is a number holds something else"),
    "text as number": (TOLD[1] | {"key": 7}, "key is no text"),
    "no run": (without(TOLD[1], "run"), "run is missing"),
    "strange kind": (TOLD[1] | {"k": "gossip"}, "k is no kind of record"),
    "strange op": (TOLD[1] | {"op": "jump"}, "op is neither step nor refused"),
    "no machine": (without(TOLD[1], "machine"), "machine is missing"),
    "no new state": (without(TOLD[1], "new"), "new is missing"),
}


def test_lines_that_are_no_records_are_quarantined_with_file_line_and_reason(
    spark_session, tmp_path
):
    path = write_trace(tmp_path / "node=alice", [*TOLD, *(line for line, _ in BAD_LINES.values())])
    found = validate(spark_session, [str(tmp_path)])

    assert [bad.reason for bad in found.bad_lines] == [reason for _, reason in BAD_LINES.values()]
    assert [bad.line for bad in found.bad_lines] == list(range(7, 7 + len(BAD_LINES)))
    assert {bad.file for bad in found.bad_lines} == {path.as_uri().replace("%3D", "=")}
    assert found.quarantined == len(BAD_LINES)
    assert found.verdict is Verdict.INCOMPLETE


def test_lines_are_numbered_across_the_pieces_of_a_file(spark_session, tmp_path):
    spark_session.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        write_trace(tmp_path, ["?" if n % 100 == 0 else f'{{"n":{n}}}' for n in range(1, 2001)])
        found = validate(spark_session, [str(tmp_path)])
    finally:
        spark_session.conf.unset("spark.sql.files.maxPartitionBytes")
    assert found.quarantined == 2000
    assert [bad.line for bad in found.bad_lines] == list(range(1, 21))


def test_a_record_spoilt_on_disk_makes_the_trace_incomplete_not_wrong(spark_session, tmp_path):
    write_trace(tmp_path, [*TOLD[:2], "garbage", *TOLD[3:]])
    found = validate(spark_session, [str(tmp_path)])
    assert (found.verdict, found.violations) == (Verdict.INCOMPLETE, 0)


def test_quarantined_lines_may_be_allowed(spark_session, tmp_path):
    write_trace(tmp_path, [*TOLD[:2], "garbage", *TOLD[3:]])
    found = validate(spark_session, [str(tmp_path)], Quarantine.ALLOWED)
    assert (found.verdict, found.quarantined) == (Verdict.CONFORMANT, 1)


def test_allowed_lines_excuse_no_record_that_is_not_there(spark_session, tmp_path):
    write_trace(tmp_path, [*TOLD[:1], "garbage", *TOLD[3:]])
    found = validate(spark_session, [str(tmp_path)], Quarantine.ALLOWED)
    assert found.verdict is Verdict.INCOMPLETE


DROPPED = [TOLD[0], record(Fact(k=Kind.DROPPED, count=9), 2)]
FLAWED = {
    Flaw.NO_START: [record(Fact(k=Kind.LINK), 1), record(Fact(k=Kind.END), 2)],
    Flaw.NO_END: TOLD[:3],
    Flaw.GAP: [*TOLD[:4], *TOLD[5:]],
    Flaw.DROPPED: [*DROPPED, record(Fact(k=Kind.END), 3)],
}


@pytest.mark.parametrize("flaw", list(Flaw))
def test_a_trace_with_one_flaw_is_incomplete(spark_session, tmp_path, flaw):
    write_trace(tmp_path / "node=alice", FLAWED[flaw])
    found = validate(spark_session, [str(tmp_path)])
    assert (found.verdict, found.violations) == (Verdict.INCOMPLETE, 0)
    assert [node.flaws for node in found.nodes] == [{flaw}]


def test_a_killed_process_spoils_its_own_trace_only(spark_session, tmp_path):
    write_trace(tmp_path / "node=alice", TOLD)
    bobs = records(whole(session("open", "detached")), "r2", "bob")[:-1]
    write_trace(tmp_path / "node=bob", [*bobs, '{"run":"r2","no'])
    found = validate(spark_session, [str(tmp_path)])

    assert {node.node: node.verdict.value for node in found.nodes} == {
        "alice": "conformant",
        "bob": "incomplete",
    }
    assert found.verdict is Verdict.INCOMPLETE


def test_a_node_that_told_nothing_is_not_forgotten(spark_session, tmp_path):
    write_trace(tmp_path / "node=alice", TOLD)
    write_trace(tmp_path / "node=bob", [])
    found = validate(spark_session, [str(tmp_path)])
    assert found.verdict is Verdict.INCOMPLETE
    assert [(node.node, node.records) for node in found.nodes] == [("alice", 6), ("bob", 0)]


def test_a_file_and_a_node_and_rotated_parts_are_traces_too(spark_session, tmp_path):
    write_trace(tmp_path / "run" / "node=alice", TOLD[:3])
    write_trace(tmp_path / "run" / "node=alice", TOLD[3:], part=1)
    bobs = write_trace(tmp_path / "other" / "node=bob", records(whole([]), "r2", "bob"))
    found = validate(spark_session, [str(tmp_path / "run" / "node=alice"), str(bobs)])
    assert (found.verdict, found.events) == (Verdict.CONFORMANT, 8)


@pytest.mark.parametrize("place", ["missing", "file:///nowhere/at/all", "empty"])
def test_no_trace_is_an_error_of_its_own(spark_session, tmp_path, place):
    (tmp_path / "empty").mkdir()
    path = place if "://" in place else str(tmp_path / place)
    with pytest.raises(TraceMissingError, match="no trace at"):
        validate(spark_session, [path])
