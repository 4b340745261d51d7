"""Scenario files, read: what is understood, and what is said of what is not."""

import re

import orjson
import pytest

from specs.reply_code import DropReason
from tests.conformance.play.script.addresses import MACROS
from tests.conformance.play.script.hop import Ride, read_hop, read_place
from tests.conformance.play.script.reader import ScriptError, read_script, read_script_lines
from tests.conformance.play.script.steps import CallStep, MessageStep, StateStep
from tests.conformance.play.script.vocabulary import LinkCut, Send
from tests.support.trace.recorded import GOLDEN

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
    assert step.marks == ["event"]
    assert (step.drop, step.link) == (DropReason.LOOP, "L1")


def test_empty_lines_and_remarks_are_nothing():
    lines = [b"", orjson.dumps({"sc": "S", "n": 1, "k": "call", "what": "w", "note_": 1}), b" "]
    (scenario,) = read_script_lines("file", lines)
    assert scenario.steps == (CallStep(number=1, what="w"),)


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ([b"{"], 1, "is no JSON"),
        ([b"[]"], 1, "is no JSON object"),
        ([b""], 0, "holds no step"),
        ([{}], 1, "sc is missing"),
        ([MESSAGE, MESSAGE], 2, "number the steps upwards"),
        ([MESSAGE | {"n": 0}], 1, "n must be >= 1"),
        ([MESSAGE | {"k": "song"}], 1, "there is no k 'song'; the nearest known is"),
        ([MESSAGE | {"colour": 1}], 1, "unknown field colour: the nearest known is 'control'"),
        (
            [{"sc": "S", "n": 1, "k": "fault", "what": "link cuts"}],
            1,
            "write a fault before it; the nearest known is 'link cut'",
        ),
        ([MESSAGE | {"hop": ">RA.bus"}], 1, "does not begin with a place"),
        ([MESSAGE | {"hop": "HA>"}], 1, "does not end with a place"),
        ([MESSAGE | {"hop": "HA}"}], 1, "cannot be read from '}'"),
        ([MESSAGE | {"hop": "HA~wire~=L1=HB"}], 1, "two links without a place"),
        ([MESSAGE | {"msg": READ | {"type": "sing"}}], 1, "msg is no message"),
        ([MESSAGE | {"drop": "tired"}], 1, "drop must begin with one of"),
        ([MESSAGE | {"deliver_to": [1]}], 1, "deliver_to[0] must be text"),
        ([MESSAGE, STATE | {"key": 1}], 2, "key must be a text or a list"),
        ([MESSAGE, STATE | {"old": 1}], 2, "old must be text"),
        ([{"sc": "S", "n": 1, "k": "time", "dt": "long"}], 1, "dt must be a number, not 'long'"),
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
def test_a_line_that_is_wrong_is_reported_by_file_line_and_reason(lines, line, what):
    raw = [one if isinstance(one, bytes) else orjson.dumps(one) for one in lines]
    with pytest.raises(ScriptError, match=re.escape(what)) as caught:
        read_script_lines("some.jsonl", raw)
    assert (caught.value.file, caught.value.line) == ("some.jsonl", line)
    assert str(caught.value).startswith("some.jsonl")


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(ScriptError, match="cannot be read"):
        read_script(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    ("drop", "is_lost", "reason"),
    [
        ("lost", True, "lost"),
        ("lost: on the way", True, "lost"),
        ("loop: again", False, DropReason.LOOP),
    ],
)
def test_a_message_is_lost_by_the_network_or_dropped_by_a_component(drop, is_lost, reason):
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
        ("..>RA.bus>HA", [Ride.UNSAID, Ride.HANDED]),
        ("..~wire~SB", [Ride.WIRE]),
        ("..=L1=PHC>RB.bus", [Ride.LINK, Ride.HANDED]),
        ("HA>RA.bus>..", [Ride.HANDED]),
    ],
)
def test_a_hop_is_read_place_by_place(text, rides):
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


GIVEN = [
    {"sc": "S", "given": "node", "domain": "a.ex"},
    {"sc": "S", "given": "runtime", "is": "RA"},
    {"sc": "S", "given": "hyperty", "is": "HA", "in": "RA"},
]
SEND = {"sc": "S", "do": "send", "by": "HA"}
CUT = {"sc": "S", "fault": "link cut", "between": ["RA", "MNA"]}


def test_given_and_do_lines_are_read():
    (scenario,) = read(*GIVEN, SEND, MESSAGE, CUT, {"sc": "S", "n": 2, "k": "time", "dt": 1})
    assert [one.is_ for one in scenario.setting.hyperties] == [MACROS["HA"]]
    assert scenario.actions == {
        1: (Send(by=MACROS["HA"]),),
        2: (LinkCut(between=(MACROS["RA"], MACROS["MNA"])),),
    }


def given(number, **changes):
    return [{**line, **changes} if n == number else line for n, line in enumerate(GIVEN)]


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        (given(2, given="hyprty"), 3, "no given 'hyprty'; the nearest known is 'hyperty'"),
        ([*GIVEN, SEND | {"do": "sent"}], 4, "no do 'sent'; the nearest known is 'send'"),
        ([CUT | {"fault": "link cuts"}], 1, "no fault 'link cuts'; the nearest known is 'link"),
        ([{"sc": "S", "giben": "node"}], 1, "is missing; the nearest known is 'given'"),
        (given(1, p2b=True), 2, "unknown field p2b: the nearest known is 'p2p'"),
        (given(1, p2p="yes"), 2, "p2p must be true or false"),
        (given(1, **{"is": "nowhere"}), 2, "is 'nowhere' is no address"),
        (given(0, domain="b.ex"), 2, "no node of a.ex is given; the nearest known is 'b.ex'"),
        (given(2, **{"in": "RB"}), 3, "in: hyperty-runtime://b.ex/rb is not given; the nearest"),
        ([*GIVEN, SEND | {"by": "HA2"}], 4, "by: hyperty://a.ex/ha2 is not given"),
        ([*GIVEN, CUT | {"between": ["RA"]}], 4, "between must name two"),
        (given(2, status="away"), 3, "status must be one of live, disconnected"),
        ([MESSAGE, *GIVEN], 2, "given lines stand before all others"),
    ],
)
def test_a_word_that_is_not_known_is_refused_with_the_nearest_that_is(lines, line, what):
    step = {"sc": "S", "n": 9, "k": "time", "dt": 1}
    with pytest.raises(ScriptError) as caught:
        read(*lines, step)
    assert caught.value.line == line
    assert what in str(caught.value)


def test_something_done_needs_a_step_behind_it():
    with pytest.raises(ScriptError, match="a step that must be seen is missing"):
        read(*GIVEN, MESSAGE, SEND)


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (MESSAGE | {"hop": "HAA>RA.bus"}, "nothing given is called 'HAA'; the nearest known is"),
        (
            STATE | {"machine": "stob"},
            "machine must name a machine, not 'stob'; the nearest known is 'stub'",
        ),
    ],
)
def test_a_place_or_machine_that_is_not_known_is_refused(step, what):
    with pytest.raises(ScriptError) as caught:
        read(*GIVEN, step)
    assert caught.value.line == len(GIVEN) + 1
    assert what in str(caught.value)


def test_the_steps_of_the_golden_scenarios_are_those_of_the_protocol():
    """Only lines that say what is given, done or broken stand between them."""
    played = [orjson.loads(line) for line in GOLDEN.read_bytes().splitlines()]
    steps = (GOLDEN.parent / "golden-steps.jsonl").read_bytes().splitlines()
    assert [one for one in played if "k" in one] == [orjson.loads(line) for line in steps]
    assert not [one for one in played if "k" not in one and "n" in one]
