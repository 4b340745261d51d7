"""What is not told is not judged: quarantine, missing ends, holes, drops."""

import gzip

import pytest

from fsm.judge.trace_line import FIELDS, Flaw, Verdict
from spark.errors import SparkFailedError, TraceMissingError
from spark.findings import NodeFindings, judge_node
from spark.load import read_source
from spark.pipeline import Question, validate
from spark.run import Order, carry_out, convert
from specs.trace import Fact, Kind, trace_folder
from tests.support.trace.trace_files import record, records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

TOLD = records(whole(session("open", "detached", "open", "closed")))


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


BAD_LINES = {
    "torn": ('{"run":"r1","node', "no JSON"),
    "empty": ("", "no JSON"),
    "list": ("[]", "no JSON object"),
    "null": ("null", "no JSON object"),
    "number as text": (TOLD[1] | {"ln": "2"}, "ln is no int"),
    "text as number": (TOLD[1] | {"key": 7}, "key is no str"),
    "no run": (without(TOLD[1], "run"), "run is missing"),
    "strange kind": (TOLD[1] | {"k": "gossip"}, "k is no kind of record"),
    "strange op": (TOLD[1] | {"op": "jump"}, "op is neither step nor refused"),
    "no machine": (without(TOLD[1], "machine"), "machine is missing"),
    "no new state": (without(TOLD[1], "new"), "new is missing"),
}

DROPPED = [TOLD[0], record(Fact(k=Kind.DROPPED, count=9), 2)]
FLAWED = {
    Flaw.NO_START: [record(Fact(k=Kind.LINK), 1), record(Fact(k=Kind.END), 2)],
    Flaw.NO_END: TOLD[:3],
    Flaw.GAP: [*TOLD[:4], *TOLD[5:]],
    Flaw.DROPPED: [*DROPPED, record(Fact(k=Kind.END), 3)],
}
NAME = "a/b %2F=é"
"""A name that stands in the path otherwise than in the records."""


def packed(path, until=None):
    """Replace a part by its gzip, or by the beginning of it."""
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes())[:until])
    path.unlink()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """One run in which each node tells less than it should in a way of its own."""
    directory = tmp_path_factory.mktemp("run")

    def write(node, lines, **more):
        named = [line if isinstance(line, str) else line | {"node": node} for line in lines]
        return write_trace(directory / f"node={node}", named, **more)

    write("bad", [*TOLD, *(line for line, _ in BAD_LINES.values())])
    write("spoilt", [*TOLD[:2], "garbage", *TOLD[3:]])
    write("alice", TOLD)
    write("killed", [*records(whole(session("open", "detached")))[:-1], '{"run":"r1","no'])
    write("silent", [])
    for flaw, told in FLAWED.items():
        write(flaw.value, told)
    packed(write("packed", TOLD[:3]))
    write("packed", TOLD[3:], part=1)
    write_trace(directory / trace_folder("r1", NAME), records(whole([]), "r1", NAME))
    write_trace(directory / trace_folder("r2", NAME), [])
    return directory


@pytest.fixture(scope="module")
def found(spark_session, directory):
    return validate(spark_session, Question(traces=(str(directory),)))


def test_a_converted_trace_is_judged_like_its_source(spark_session, directory, found, tmp_path):
    target = str(tmp_path / "parquet")
    assert convert(spark_session, [str(directory)], target) == found.quarantined

    again = validate(spark_session, Question(traces=(target,)))

    assert again.nodes == found.nodes
    assert (again.verdict, again.by_claim) == (found.verdict, found.by_claim)
    assert again.bad_lines == found.bad_lines
    assert again.machines == found.machines
    fields = spark_session.read.parquet(target).schema.fieldNames()
    assert sorted(fields) == sorted(FIELDS)


def nodes(found, *names):
    return [one for one in found.nodes if one.node in names]


def test_lines_that_are_no_records_are_quarantined_with_file_line_and_reason(found, directory):
    file = f"{directory}/node=bad/part-00000.jsonl"
    told = [bad for bad in found.bad_lines if bad.file == file]

    assert [bad.reason for bad in told] == [reason for _, reason in BAD_LINES.values()]
    assert [bad.line for bad in told] == list(range(7, 7 + len(BAD_LINES)))
    assert [node.quarantined for node in nodes(found, "bad")] == [len(BAD_LINES)]
    assert found.quarantined == len(found.bad_lines) == len(BAD_LINES) + 2


def test_a_missing_record_makes_the_whole_incomplete_and_not_wrong(found):
    assert (found.verdict, found.violations) == (Verdict.INCOMPLETE, 0)
    whole = {node.node for node in found.nodes if node.verdict is Verdict.CONFORMANT}
    assert whole == {"alice", "packed", NAME}
    assert {node.verdict for node in found.nodes} == {Verdict.CONFORMANT, Verdict.INCOMPLETE}


@pytest.mark.parametrize("flaw", Flaw)
def test_the_verdict_on_a_trace_with_one_flaw_names_it(found, flaw):
    assert [node.flaws for node in nodes(found, flaw.value)] == [{flaw}]


def test_a_record_that_was_spoilt_on_disk_is_one_that_is_missing(found):
    (spoilt,) = nodes(found, "spoilt")
    assert (spoilt.missing, spoilt.quarantined, spoilt.violations) == (1, 1, 0)


def test_a_killed_process_spoils_its_own_trace_only(found):
    told = {node.node: (node.verdict.value, node.flaws) for node in nodes(found, "alice", "killed")}
    assert told == {"alice": ("conformant", set()), "killed": ("incomplete", {Flaw.NO_END})}


def test_a_node_without_records_is_not_forgotten(found):
    (silent,) = nodes(found, "silent")
    assert (silent.verdict, silent.records) == (Verdict.INCOMPLETE, 0)


def test_rotated_and_packed_parts_are_one_trace(found):
    (node,) = nodes(found, "packed")
    assert (node.verdict, node.records) == (Verdict.CONFORMANT, 6)


def test_a_run_without_records_is_not_hidden_by_another_of_the_same_name(found):
    told = [(node.run, node.records, node.verdict.value) for node in nodes(found, NAME)]
    assert told == [("r1", 2, "conformant"), ("r2", 0, "incomplete")]


QUOTED = ("alice:8080", "a b", "ü", "a+b", "50%")


def test_a_node_whose_name_is_quoted_in_paths_is_one_node(spark_session, tmp_path):
    for name in QUOTED:
        told = records(whole([]), "r1", name)
        write_trace(tmp_path / trace_folder("r1", name), [*told, "garbage"])

    found = validate(spark_session, Question(traces=(str(tmp_path),)))

    assert {node.node: node.quarantined for node in found.nodes} == dict.fromkeys(QUOTED, 1)
    files = {bad.file for bad in found.bad_lines}
    assert files == {str(part) for part in tmp_path.rglob("part-*")}


def test_lines_are_numbered_across_the_pieces_of_a_file(spark_session, tmp_path):
    spark_session.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        write_trace(tmp_path, ["?" if n % 100 == 0 else f'{{"n":{n}}}' for n in range(1, 2001)])
        found = validate(spark_session, Question(traces=(str(tmp_path),)))
    finally:
        spark_session.conf.unset("spark.sql.files.maxPartitionBytes")
    assert found.quarantined == 2000
    assert [bad.line for bad in found.bad_lines] == list(range(1, 21))


def node_findings(**changed):
    counts = {"records": 6, "missing": 0, "doubled": 0, "quarantined": 0, "violations": 0}
    names = {"run": "r1", "node": "alice", "verdict": Verdict.INCOMPLETE, "flaws": frozenset()}
    return NodeFindings(**(names | counts | changed))


GAP = {"missing": 1, "flaws": frozenset({Flaw.GAP})}
VERDICTS = {
    "nothing wrong": ({}, False, "conformant"),
    "violation first": (GAP | {"violations": 1}, False, "violations"),
    "bad line": ({"quarantined": 1}, False, "incomplete"),
    "bad line allowed": ({"quarantined": 1}, True, "conformant"),
    "gap explained": (GAP | {"quarantined": 1}, True, "conformant"),
    "gap too wide": (GAP | {"quarantined": 1, "missing": 2}, True, "incomplete"),
    "doubled": (GAP | {"quarantined": 1, "doubled": 1}, True, "incomplete"),
    "no end": ({"flaws": frozenset({Flaw.NO_END})}, True, "incomplete"),
}


@pytest.mark.parametrize(("changed", "allowed", "verdict"), VERDICTS.values(), ids=VERDICTS.keys())
def test_a_node_is_judged_by_what_is_wrong_and_what_is_allowed(changed, allowed, verdict):
    assert judge_node(node_findings(**changed), is_quarantine_allowed=allowed) == verdict


def test_a_file_and_a_node_are_traces_too(spark_session, tmp_path):
    write_trace(tmp_path / "run" / "node=alice", TOLD)
    bobs = write_trace(tmp_path / "other" / "node=bob", records(whole([]), "r2", "bob"))
    found = validate(
        spark_session, Question(traces=(str(tmp_path / "run" / "node=alice"), str(bobs)))
    )
    assert (found.verdict, found.events) == (Verdict.CONFORMANT, 8)
    assert [node.node for node in found.nodes] == ["alice", "bob"]


def test_one_run_or_all_are_judged_and_no_file_twice(spark_session, tmp_path):
    """Two runs of one name have the same numbers and keys."""
    runs = [tmp_path / f"run={run}" for run in ("r1", "r2")]
    for run, place in zip(("r1", "r2"), runs, strict=True):
        write_trace(place / "node=ra", records(whole(session("open", "closed")), run, "ra"))
    part = runs[0] / "node=ra" / "part-00000.jsonl"

    def lines(*places):
        return read_source(spark_session, [str(place) for place in places]).records.count()

    assert [lines(place) for place in (tmp_path, runs[0], part)] == [8, 4, 4]
    assert lines(*runs) == lines(tmp_path, *runs, part) == 8


@pytest.mark.parametrize("place", ["missing", "file:///nowhere/at/all", "empty"])
def test_no_trace_is_an_error_of_its_own(spark_session, tmp_path, place):
    (tmp_path / "empty").mkdir()
    path = place if "://" in place else str(tmp_path / place)
    with pytest.raises(TraceMissingError, match="no trace at"):
        validate(spark_session, Question(traces=(path,)))


@pytest.mark.parametrize("only", [False, True])
def test_of_a_packed_file_that_is_cut_off_the_beginning_is_judged(spark_session, tmp_path, only):
    packed(write_trace(tmp_path / "run=r1" / "node=alice", TOLD), until=-12)
    asked = Question(traces=(str(tmp_path / "run=r1"),), is_of_machines=only)

    outcome = carry_out(spark_session, Order(question=asked, report=tmp_path / "report"))

    assert outcome.findings.verdict is Verdict.INCOMPLETE
    assert "the rest of the file cannot be unpacked" in outcome.findings.bad_lines[0].reason


def test_a_file_that_cannot_be_read_is_named_in_one_sentence(spark_session, tmp_path):
    write_trace(tmp_path, TOLD).with_name("part-00001.parquet").write_bytes(b"PAR1 no more")
    folder = tmp_path / "run=r1" / "node=alice"
    folder.mkdir(parents=True)
    (tmp_path / "part-00001.parquet").rename(folder / "part-00001.parquet")
    with pytest.raises(SparkFailedError, match=r"^cannot read .*part-00001.parquet: .*anew"):
        carry_out(spark_session, Order(question=Question(traces=(str(tmp_path),))))
