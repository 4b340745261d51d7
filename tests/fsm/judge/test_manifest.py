"""The manifest: who took part, and what follows if the traces do not agree with it."""

import json

import attrs
import pytest
from click.testing import CliRunner

from fsm.__main__ import cli
from fsm.judge.trace_files import Manifest, ManifestError, Participant, read_manifest
from fsm.judge.verdict import judge_run
from tests.support.trace.damage import write_whole
from tests.support.trace.histories import reported

RA, RB, RC = (f"hyperty-runtime://a.ex/{name}" for name in ("ra", "rb", "rc"))
HISTORY = "@ra\nbus add listeners RA/ua loader\n@rb\nbus add listeners RB/ua loader\n"
OPENED = "x open L kind=p2p a=RB b=RC\n"


def differences(*participants, history=HISTORY):
    judged = judge_run(reported(history), manifest=Manifest(participants))
    return [(one.node, one.reason) for one in judged.missing]


BOTH = (Participant(RA, "ra"), Participant(RB, "rb"))


def test_a_declared_participant_with_a_trace_is_complete():
    assert differences(*BOTH) == []
    assert differences(Participant(RA), Participant(RB)) == []
    assert differences(Participant(RA, "ra", "run"), Participant(RB)) == []


def test_a_participant_declared_as_traced_needs_a_trace_even_if_unmentioned():
    assert differences(*BOTH, Participant(RC, "rc")) == [
        ("rc", f"the manifest declares {RC} traced, and it has no trace here")
    ]


def test_a_run_that_is_declared_has_to_be_there_itself():
    assert differences(Participant(RA, "ra", "other"), BOTH[1]) == [
        ("ra", f"the manifest declares {RA} traced, and it has no trace here"),
        ("ra", "the manifest does not declare this process"),
    ]


def test_a_mentioned_participant_declared_as_untraced_is_not_missed():
    history = HISTORY + OPENED
    assert len(differences(*BOTH, history=history)) == 1
    assert differences(*BOTH, Participant(RC, traced=False), history=history) == []


def test_a_mentioned_participant_declared_as_traced_is_missed_once():
    assert len(differences(*BOTH, Participant(RC), history=HISTORY + OPENED)) == 1


def test_a_trace_that_is_not_declared_makes_the_verdict_incomplete():
    assert differences(BOTH[0]) == [("rb", "the manifest does not declare this process")]


def test_a_trace_of_a_declared_untraced_participant_makes_the_verdict_incomplete():
    assert differences(BOTH[0], Participant(RB, traced=False)) == [
        ("rb", f"the manifest declares {RB} untraced, and here is its trace")
    ]


def test_a_process_that_is_another_than_declared_makes_the_verdict_incomplete():
    assert differences(BOTH[0], Participant(RC, "rb")) == [
        ("rb", f"the manifest declares this process as {RC}, and it is {RB}")
    ]


def test_a_written_manifest_is_read_again(tmp_path):
    manifest = Manifest((*BOTH, Participant(RC, traced=False), Participant(RA, "ra", "r2")))
    place = tmp_path / "manifest.json"
    place.write_text(manifest.text())

    assert read_manifest(place) == manifest


ROW = {"address": RA}
WRONG = {
    "no JSON": ("{", "it is no JSON"),
    "a list": ([], 'it is no object with "schema": "protofly.manifest/1"'),
    "another form": ({"schema": "protofly.trace/1"}, "it is no object with"),
    "nobody": ({"participants": []}, "participants is no list of objects, or empty"),
    "a typing error": ({"participants": [ROW], "partcipants": []}, "has a field 'partcipants'"),
    "a text": ({"participants": ["ra"]}, "participants[0] is no object"),
    "no address": ({"participants": [{"node": "ra"}]}, "participants[0] has no address"),
    "a name": ({"participants": [ROW, {"address": "rb"}]}, "participants[1].address 'rb' is no"),
    "a number": ({"participants": [ROW | {"node": 7}]}, "participants[0].node must be text"),
    "a word": ({"participants": [ROW | {"traced": "no"}]}, "traced must be true or false"),
    "a run of nobody": ({"participants": [ROW | {"run": "r"}]}, "a run, and no node"),
    "twice": ({"participants": [ROW, ROW]}, "participants[1] is there twice"),
    "unknown": ({"participants": [ROW | {"name": "ra"}]}, "participants[0] has a field 'name'"),
}


@pytest.mark.parametrize(("wrong", "reason"), WRONG.values(), ids=WRONG.keys())
def test_an_invalid_manifest_is_refused_with_its_reason(wrong, reason, tmp_path):
    place = tmp_path / "manifest.json"
    if isinstance(wrong, dict):
        wrong = {"schema": "protofly.manifest/1"} | wrong
    place.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))

    with pytest.raises(ManifestError) as caught:
        read_manifest(place)

    assert str(caught.value).startswith(f"cannot use the manifest {place}: ")
    assert reason in str(caught.value)


def judged(tmp_path, *participants):
    lines = [attrs.evolve(one, wall_ns=1) for one in reported(HISTORY)]
    write_whole(tmp_path / "traces", lines)
    place = tmp_path / "manifest.json"
    place.write_text(Manifest(participants).text())
    return CliRunner().invoke(cli, ["judge", str(tmp_path / "traces"), "--manifest", str(place)])


def test_the_command_takes_a_manifest(tmp_path):
    assert judged(tmp_path, *BOTH).exit_code == 0


def test_the_command_names_participants_without_a_trace(tmp_path):
    done = judged(tmp_path, *BOTH, Participant(RC, "rc"))

    assert done.exit_code == 1
    assert done.stdout.startswith(f"incomplete: trace of rc: the manifest declares {RC} traced")


def test_a_manifest_that_is_not_there_is_a_usage_error(tmp_path):
    done = CliRunner().invoke(cli, ["judge", str(tmp_path), "--manifest", str(tmp_path / "no")])

    assert done.exit_code == 2
    assert "cannot use the manifest" in done.output
