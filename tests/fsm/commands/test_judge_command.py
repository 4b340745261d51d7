"""`python -m fsm judge`: what a person and a script see."""

import gzip
import json

import attrs
import pytest
from click.testing import CliRunner

from fsm.__main__ import cli
from fsm.judge.trace_line import wire_name
from tests.fsm.judge.claims.cases import ANSWERED, ASKED, RUNTIME
from tests.support.trace.histories import reported
from tests.support.trace.trace_files import write_trace

KEPT = RUNTIME + ASKED + ANSWERED
BROKEN = KEPT + ANSWERED


def run(*args):
    return CliRunner().invoke(cli, ["judge", *map(str, args)])


def write(directory, history):
    """Write a story as the processes in it would have."""
    for number, line in enumerate(reported(history)):
        fields = {wire_name(name): value for name, value in attrs.asdict(line).items()}
        there = {name: value for name, value in fields.items() if value is not None}
        record = {**there, "wall_ns": 0, "mono_ns": 0}
        write_trace(directory / f"node={line.node}", [record], number)
    return directory


UNDECLARED = "x step address URL [*] release released"


def test_a_broken_machine_is_reported(tmp_path):
    done = run(write(tmp_path, UNDECLARED))

    assert done.exit_code == 1
    claim, first, verdict = done.stdout.splitlines()
    assert claim.startswith("declared_step broken 1 time by machine address: Every step is ")
    assert first.startswith("  first at ra, record ")
    assert verdict.startswith("violations: ")
    assert verdict.endswith(", 1 broken")


def test_json_has_an_object_for_each_claim_that_the_steps_of_a_machine_break(tmp_path):
    again = "x step session K open lose detached"
    done = run(write(tmp_path, f"{UNDECLARED}\n{again}\n{again}"), "--json")

    *broken, judged = map(json.loads, done.stdout.splitlines())
    assert {one["schema"] for one in broken if "machine" in one} == {"protofly.broken-claim/1"}
    reported = {(one["machine"], one["id"]): one["times"] for one in broken if "machine" in one}
    assert reported["address", "declared_step"] == 1
    assert sum(reported.values()) == judged["steps_broken"]
    (step,) = (one for one in broken if one.get("machine") == "address")
    assert (step["about"], step["nodes"], step["text"][:11]) == ("URL", ["ra"], "Every step ")


def test_parts_that_are_named_in_another_order_are_sorted_before_they_are_judged(tmp_path):
    write(tmp_path, KEPT)
    parts = sorted(tmp_path.rglob("part-*.jsonl"))
    for number, part in enumerate(reversed(parts)):
        part.rename(part.with_name(f"part-{number + 50000}.jsonl"))

    assert run(tmp_path).stdout.startswith(f"conformant: {len(parts)} records, ")


def test_the_parts_of_a_process_may_lie_in_several_folders_and_overlap(tmp_path):
    write(tmp_path, KEPT)
    lines = [part.read_text() for part in sorted(tmp_path.rglob("part-*.jsonl"))]
    shuffled = "".join([*lines[1::2], *lines[6::4]])
    for part in tmp_path.rglob("part-*.jsonl"):
        part.unlink()
    for place, text in {"a": "".join(lines[::4]), "b": shuffled, "c": lines[2]}.items():
        (tmp_path / place).mkdir()
        (tmp_path / place / "part-0.jsonl").write_text(text)

    assert run(tmp_path).stdout.startswith(f"conformant: {len(lines)} records, ")


def test_json_is_one_object_per_broken_claim_then_the_judgement(tmp_path):
    done = run(write(tmp_path, BROKEN), "--json")

    broken, judged = map(json.loads, done.stdout.splitlines())
    assert (broken["claim"], broken["id"]) == ("one final", "I-T2")
    assert (broken["times"], broken["nodes"]) == (1, ["ra"])
    assert (judged["verdict"], judged["findings"], judged["flaws"]) == ("violations", 1, {})
    assert judged["missing"] == 0


def test_several_places_are_judged_together(tmp_path):
    crossed = "x open L1 kind=p2p\nx {} read 1 HA>HB stub=PQ link=L1 seq=1 digest={} via=PQ\n"
    sent = write(tmp_path / "a", "@ra\n" + crossed.format("xmit", "one"))
    came = write(tmp_path / "b", "@rb\n" + crossed.format("rcv", "other"))

    # Alone, each tells of the other, of which there is no trace.
    assert "incomplete: 4 records" in run(sent).stdout
    assert "incomplete: 4 records" in run(came).stdout
    assert "violations: 8 records" in run(sent, came).stdout


@pytest.mark.parametrize("cut", [-9, -1, 60, 5, 1], ids=str)
def test_of_a_packed_file_that_is_cut_off_the_beginning_is_judged(tmp_path, cut):
    (part, *_) = write(tmp_path / "run", KEPT).rglob("part-00000.jsonl")
    packed = tmp_path / "part-0.jsonl.gz"
    packed.write_bytes(gzip.compress(part.read_bytes() * 50)[:cut])
    done = run(packed, "--json")

    assert done.exit_code == 1
    assert "the rest of the file cannot be unpacked" in done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["verdict"] == "incomplete"
