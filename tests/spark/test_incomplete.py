"""What is not told is not judged: quarantine, missing ends, holes, drops."""

import gzip

import pytest

from fsm.judge.trace_line import Flaw, Verdict
from spark.errors import SparkFailedError, TraceMissingError
from spark.findings import NodeFindings, Quarantine, judge_node
from spark.pipeline import validate
from spark.run import Order, carry_out
from specs.trace import Fact, Kind, trace_folder
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
    assert {bad.file for bad in found.bad_lines} == {f"file:{path}"}
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


def node_findings(**changed):
    counts = {"records": 6, "missing": 0, "doubled": 0, "quarantined": 0, "violations": 0}
    names = {"run": "r1", "node": "alice", "verdict": Verdict.INCOMPLETE, "flaws": frozenset()}
    return NodeFindings(**(names | counts | changed))


GAP = {"missing": 1, "flaws": frozenset({Flaw.GAP})}
VERDICTS = {
    "nothing wrong": ({}, Quarantine.COUNTS, "conformant"),
    "violation first": (GAP | {"violations": 1}, Quarantine.COUNTS, "violations"),
    "bad line": ({"quarantined": 1}, Quarantine.COUNTS, "incomplete"),
    "bad line allowed": ({"quarantined": 1}, Quarantine.ALLOWED, "conformant"),
    "gap explained": (GAP | {"quarantined": 1}, Quarantine.ALLOWED, "conformant"),
    "gap too wide": (GAP | {"quarantined": 1, "missing": 2}, Quarantine.ALLOWED, "incomplete"),
    "doubled": (GAP | {"quarantined": 1, "doubled": 1}, Quarantine.ALLOWED, "incomplete"),
    "no end": ({"flaws": frozenset({Flaw.NO_END})}, Quarantine.ALLOWED, "incomplete"),
}


@pytest.mark.parametrize(("changed", "allowed", "verdict"), VERDICTS.values(), ids=VERDICTS.keys())
def test_a_node_is_judged_by_what_is_wrong_and_what_is_allowed(changed, allowed, verdict):
    assert judge_node(node_findings(**changed), allowed) == verdict


DROPPED = [TOLD[0], record(Fact(k=Kind.DROPPED, count=9), 2)]
FLAWED = {
    Flaw.NO_START: [record(Fact(k=Kind.LINK), 1), record(Fact(k=Kind.END), 2)],
    Flaw.NO_END: TOLD[:3],
    Flaw.GAP: [*TOLD[:4], *TOLD[5:]],
    Flaw.DROPPED: [*DROPPED, record(Fact(k=Kind.END), 3)],
}


def test_a_trace_with_one_flaw_is_incomplete(spark_session, tmp_path):
    for flaw, told in FLAWED.items():
        write_trace(tmp_path / f"node={flaw}", [record | {"node": flaw.value} for record in told])
    found = validate(spark_session, [str(tmp_path)])
    assert {node.node: node.flaws for node in found.nodes} == {flaw: {flaw} for flaw in Flaw}
    assert {node.verdict for node in found.nodes} == {Verdict.INCOMPLETE}
    assert (found.verdict, found.violations) == (Verdict.INCOMPLETE, 0)


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


def packed(path, until=None):
    """Replace a part by its gzip, or by the beginning of it."""
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes())[:until])
    path.unlink()


def test_a_file_and_a_node_and_rotated_packed_parts_are_traces_too(spark_session, tmp_path):
    packed(write_trace(tmp_path / "run" / "node=alice", TOLD[:3]))
    write_trace(tmp_path / "run" / "node=alice", TOLD[3:], part=1)
    bobs = write_trace(tmp_path / "other" / "node=bob", records(whole([]), "r2", "bob"))
    found = validate(spark_session, [str(tmp_path / "run" / "node=alice"), str(bobs)])
    assert (found.verdict, found.events) == (Verdict.CONFORMANT, 8)
    assert [node.node for node in found.nodes] == ["alice", "bob"]


def test_a_run_that_told_nothing_is_not_hidden_by_another_of_the_same_name(spark_session, tmp_path):
    """Also where the name stands in the path otherwise than in the records."""
    name = "a/b %2F=é"
    write_trace(tmp_path / trace_folder("r1", name), records(whole([]), "r1", name))
    assert validate(spark_session, [str(tmp_path)]).verdict is Verdict.CONFORMANT
    write_trace(tmp_path / trace_folder("r2", name), [])
    found = validate(spark_session, [str(tmp_path)])
    assert found.verdict is Verdict.INCOMPLETE
    assert [(node.run, node.node, node.records) for node in found.nodes] == [
        ("r1", name, 2),
        ("r2", name, 0),
    ]


def test_one_run_or_all_are_judged_and_no_file_twice(spark_session, tmp_path):
    """Two runs of one name have the same numbers and keys."""
    runs = [tmp_path / f"run={run}" for run in ("r1", "r2")]
    for run, place in zip(("r1", "r2"), runs, strict=True):
        write_trace(place / "node=ra", records(whole(session("open", "closed")), run, "ra"))
    part = runs[0] / "node=ra" / "part-00000.jsonl"

    def events(*places):
        found = validate(spark_session, [str(place) for place in places])
        assert found.verdict is Verdict.CONFORMANT
        return found.events

    assert [events(place) for place in (tmp_path, runs[0], part)] == [8, 4, 4]
    assert events(*runs) == events(tmp_path, *runs, part) == 8


@pytest.mark.parametrize("place", ["missing", "file:///nowhere/at/all", "empty"])
def test_no_trace_is_an_error_of_its_own(spark_session, tmp_path, place):
    (tmp_path / "empty").mkdir()
    path = place if "://" in place else str(tmp_path / place)
    with pytest.raises(TraceMissingError, match="no trace at"):
        validate(spark_session, [path])


def test_a_file_that_is_damaged_as_such_is_named_in_one_sentence(spark_session, tmp_path):
    packed(write_trace(tmp_path, TOLD), until=40)
    with pytest.raises(SparkFailedError, match=r"^Spark could not finish: .*part-00000.jsonl.gz$"):
        carry_out(spark_session, Order(traces=(str(tmp_path),)))
