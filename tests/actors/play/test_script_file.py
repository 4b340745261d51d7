"""Scenario files, read: what is understood, and what is said of what is not."""

import orjson
import pytest

from actors.play.script.addresses import MACROS
from actors.play.script.hop import Ride, read_hop, read_place
from actors.play.script.reader import ScriptError, read_script, read_script_lines
from actors.play.script.steps import FaultStep, Flag, MessageStep, StateStep
from specs.reply_code import DropReason
from tests.support.recorded import GOLDEN

READ = {"id": 1, "type": "read", "from": "HA", "to": "HB", "body": {"resource": "OBJ/changes"}}
MESSAGE = {"sc": "S", "n": 1, "k": "msg", "hop": "HA>RA.bus", "msg": READ}
STATE = {"sc": "S", "n": 2, "k": "state", "machine": "stub", "key": "SA", "old": None, "new": "x"}


def read(*lines):
    return read_script_lines("file", [orjson.dumps(line) for line in lines])


def test_the_golden_file_holds_34_scenarios_of_420_steps():
    scenarios = read_script(GOLDEN)
    assert (len(scenarios), sum(len(one.steps) for one in scenarios)) == (34, 420)


def test_macros_are_written_out_where_addresses_stand():
    (scenario,) = read(MESSAGE, STATE)
    message, state = scenario.steps
    assert isinstance(message, MessageStep)
    assert isinstance(state, StateStep)
    assert message.message.from_ == MACROS["HA"]
    assert message.message.body == {"resource": f"{MACROS['OBJ']}/changes"}
    assert state.key == (MACROS["SA"],)
    assert message.hop.text == "HA>RA.bus"


def test_marks_of_a_message_are_read():
    (scenario,) = read(MESSAGE | {"event": True, "drop": "loop: seen before", "p2p": "L1"})
    (step,) = scenario.steps
    assert isinstance(step, MessageStep)
    assert step.flags == {Flag.EVENT}
    assert (step.drop, step.link) == (DropReason.LOOP, "L1")


def test_empty_lines_and_remarks_are_nothing():
    lines = [b"", orjson.dumps({"sc": "S", "n": 1, "k": "fault", "what": "w", "note_": 1}), b" "]
    (scenario,) = read_script_lines("file", lines)
    assert scenario.steps == (FaultStep(number=1, what="w"),)


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ([b"{"], 1, "is no JSON"),
        ([b"[]"], 1, "is no JSON object"),
        ([b""], 0, "holds no step"),
        ([{}], 1, "sc is missing"),
        ([MESSAGE, MESSAGE], 2, "number the steps upwards"),
        ([MESSAGE | {"n": 0}], 1, "n must be a whole number"),
        ([MESSAGE | {"k": "song"}], 1, "k must be one of msg, state"),
        ([MESSAGE | {"colour": 1}], 1, "unknown fields colour"),
        ([MESSAGE | {"hop": ">RA.bus"}], 1, "does not begin with a place"),
        ([MESSAGE | {"hop": "HA>"}], 1, "does not end with a place"),
        ([MESSAGE | {"hop": "HA}"}], 1, "cannot be read from '}'"),
        ([MESSAGE | {"hop": "HA~wire~=L1=HB"}], 1, "two links without a place"),
        ([MESSAGE | {"msg": READ | {"type": "sing"}}], 1, "msg is no message"),
        ([MESSAGE | {"drop": "tired"}], 1, "drop must begin with one of"),
        ([MESSAGE | {"deliver_to": [1]}], 1, "deliver_to must be a list of texts"),
        ([MESSAGE, STATE | {"key": 1}], 2, "key must be a text or a list"),
        ([MESSAGE, STATE | {"old": 1}], 2, "old must be a text"),
        ([{"sc": "S", "n": 1, "k": "time", "dt": "long"}], 1, "dt must be a number of seconds"),
        (
            [{"sc": "S", "n": 1, "k": "authz", "at": "RA.bus", "ref": 7, "decision": "deny"}],
            1,
            "ref 7 is no message step",
        ),
        (
            [{"sc": "S", "n": 1, "k": "table", "table": "t", "op": "eat", "at": "RA", "key": "x"}],
            1,
            "op must be one of add, del, upd",
        ),
    ],
)
def test_a_line_that_is_wrong_is_told_by_file_line_and_reason(lines, line, what):
    raw = [one if isinstance(one, bytes) else orjson.dumps(one) for one in lines]
    with pytest.raises(ScriptError, match=what.replace("(", "\\(")) as caught:
        read_script_lines("some.jsonl", raw)
    assert (caught.value.file, caught.value.line) == ("some.jsonl", line)
    assert str(caught.value).startswith("some.jsonl")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ScriptError, match="cannot be read"):
        read_script(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    ("drop", "is_lost", "reason"),
    [
        ("lost", True, None),
        ("lost: on the way", True, None),
        ("loop: again", False, DropReason.LOOP),
    ],
)
def test_a_message_is_lost_by_the_network_or_dropped_by_somebody(drop, is_lost, reason):
    (scenario,) = read(MESSAGE | {"drop": drop})
    assert (scenario.steps[0].is_lost, scenario.steps[0].drop) == (is_lost, reason)


@pytest.mark.parametrize(
    ("text", "rides"),
    [
        ("HA>RA.bus", [Ride.HANDED]),
        ("SA~wire~MN.a", [Ride.WIRE]),
        ("HA>..>HB", [Ride.UNSAID]),
        ("RA.sm>..MN.b..>PH", [Ride.UNSAID, Ride.UNSAID]),
        ("HA>..=L1=..>HB", [Ride.LINK]),
        ("HB>RB.bus>PH/conn/2=L2=..>RC.bus>HC", [Ride.HANDED, Ride.HANDED, Ride.LINK, Ride.HANDED]),
        ("MN.a(queue)", []),
    ],
)
def test_a_way_is_read_leg_by_leg(text, rides):
    assert [carrier.ride for carrier in read_hop(text).carriers] == rides


@pytest.mark.parametrize(
    ("text", "root", "part", "note"),
    [
        ("RA.bus", "RA", "bus", ""),
        ("MN.a", "MN.a", "", ""),
        ("MN.a.session", "MN.a", "session", ""),
        ("MN.a.stub(b.ex)", "MN.a", "stub", "b.ex"),
        ("HA(OBJ)", "HA", "", "OBJ"),
        ("sandbox(HA)", "sandbox", "", "HA"),
        ("C1 reporter", "C1", "reporter", ""),
        ("PH/conn/1", "PH/conn/1", "", ""),
    ],
)
def test_a_place_is_a_root_a_part_and_a_note(text, root, part, note):
    place = read_place(text)
    assert (place.root, place.part, place.note) == (root, part, note)


def test_several_receivers_stand_in_braces():
    hop = read_hop("HB>..>{HA,RA.sm}")
    assert [place.text for place in hop.last] == ["HA", "RA.sm"]
