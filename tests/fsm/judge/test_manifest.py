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


def differences(*participants, history=HISTORY):
    judged = judge_run(reported(history), manifest=Manifest(participants))
    return [(one.node, one.reason) for one in judged.missing]


BOTH = (Participant(RA, "ra"), Participant(RB, "rb"))


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


def test_the_command_names_participants_without_a_trace(tmp_path):
    done = judged(tmp_path, *BOTH, Participant(RC, "rc"))

    assert done.exit_code == 1
    assert done.stdout.startswith(f"incomplete: trace of rc: the manifest declares {RC} traced")
