"""Scenario files, read: what is understood, and what is said of what is not."""

import orjson
import pytest

from tests.conformance.play import script
from tests.conformance.play.script import HANDED, MACROS, UNSAID, WIRE
from tests.support.trace.recorded import GOLDEN

READ = {"id": 1, "type": "read", "from": "HA", "to": "HB", "body": {"resource": "OBJ/changes"}}
MESSAGE = {"sc": "S", "n": 1, "k": "msg", "hop": "HA>RA.bus", "msg": READ}
STATE = {"sc": "S", "n": 2, "k": "state", "machine": "stub", "key": "SA", "old": None, "new": "x"}
TIME = {"sc": "S", "n": 9, "k": "time", "dt": 1}
GIVEN = [
    {"sc": "S", "given": "node", "domain": "a.ex"},
    {"sc": "S", "given": "runtime", "is": "RA"},
    {"sc": "S", "given": "hyperty", "is": "HA", "in": "RA"},
]
SEND = {"sc": "S", "do": "send", "by": "HA"}
CUT = {"sc": "S", "fault": "link cut", "between": ["RA", "MN.a"]}


def read(*lines):
    raw = [line if isinstance(line, bytes) else orjson.dumps(line) for line in lines]
    return script.read_script_lines("file", raw)


def test_the_golden_file_holds_34_scenarios_of_420_steps():
    scenarios = script.read_script(GOLDEN)
    assert (len(scenarios), sum(len(one.steps) for one in scenarios)) == (34, 420)


def test_the_steps_of_the_golden_scenarios_are_those_of_the_protocol():
    """Only lines that say what is given, done or broken stand between them."""
    played = [orjson.loads(line) for line in GOLDEN.read_bytes().splitlines()]
    steps = (GOLDEN.parent / "golden-steps.jsonl").read_bytes().splitlines()
    assert [one for one in played if "k" in one] == [orjson.loads(line) for line in steps]
    assert not [one for one in played if "k" not in one and "n" in one]


def test_lines_are_read():
    drop = {"drop": "loop: seen before", "event": True, "note_": 1}
    (scenario,) = read(*GIVEN, SEND, MESSAGE | drop, b" ", CUT, STATE)
    message, state = scenario.steps
    assert [one.is_ for one in scenario.hyperties] == [MACROS["HA"]]
    assert [one.by for one in scenario.actions[1]] == [MACROS["HA"]]
    assert [one.between for one in scenario.actions[2]] == [(MACROS["RA"], MACROS["MNA"])]
    assert (message.msg.from_, message.hop.text) == (MACROS["HA"], "HA>RA.bus")
    assert message.msg.body == {"resource": f"{MACROS['OBJ']}/changes"}
    assert (message.drop, message.event, message.dup, message.is_lost) == (
        "loop",
        True,
        None,
        False,
    )
    assert (state.machine, state.key, state.old) == ("stub_connection", (MACROS["SA"],), None)
    with pytest.raises(AttributeError):
        _ = state.colour


def given(number, **changes):
    return [*(line | changes if n == number else line for n, line in enumerate(GIVEN)), TIME]


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ([b"{"], 1, "unexpected end"),
        ([b"[]"], 1, "it is no JSON object with sc"),
        ([{}], 1, "it is no JSON object with sc"),
        ([b""], 0, "it holds no step"),
        ([MESSAGE, MESSAGE], 2, "number the steps upwards"),
        ([MESSAGE | {"k": "song"}], 1, "there is no k 'song'; the nearest known is"),
        ([MESSAGE | {"colour": 1}], 1, "unknown field colour: end the name of a remark with _"),
        ([{"sc": "S", "n": 1, "k": "fault", "what": "x"}], 1, "write a fault before it"),
        ([{"sc": "S", "n": 1, "k": "time"}], 1, "dt is missing"),
        ([TIME | {"dt": "long"}], 1, "dt: must be a number, not 'long'"),
        ([MESSAGE | {"hop": ">RA.bus"}], 1, "does not begin with a place"),
        ([MESSAGE | {"hop": "HA>"}], 1, "does not end with a place"),
        ([MESSAGE | {"hop": "HA}"}], 1, "has a sign that is none of a hop"),
        ([MESSAGE | {"hop": "HA~wire~=L1=HB"}], 1, "two links without a place"),
        ([MESSAGE | {"hop": "HAA>RA.bus"}], 1, "nothing given is called 'HAA'; the nearest"),
        ([MESSAGE | {"hop": "HA>RA.buss"}], 1, "no part 'buss'; the nearest known is 'bus'"),
        ([MESSAGE | {"msg": READ | {"type": "sing"}}], 1, "msg: "),
        ([MESSAGE | {"msg": READ | {"bodi": {}}}], 1, "no key 'bodi'; the nearest known is 'body'"),
        ([MESSAGE | {"drop": "tired"}], 1, "it begins with no reason, but 'tired'; the nearest"),
        ([MESSAGE | {"deliver_to": [1]}], 1, "deliver_to: value[0]: must be text"),
        ([STATE | {"old": 1}], 1, "old: must be text"),
        ([STATE | {"machine": "stob"}], 1, "no machine, but 'stob'; the nearest known is 'stub'"),
        ([{"sc": "S", "n": 1, "k": "authz", "at": "RA", "ref": 7, "decision": "deny"}], 1, "ref 7"),
        (given(2, given="hyprty"), 3, "no given 'hyprty'; the nearest known is 'hyperty'"),
        (given(1, p2b=True), 2, "the nearest known is 'p2p'"),
        (given(1, p2p="yes"), 2, "p2p: must be true or false"),
        (given(1, **{"is": "nowhere"}), 2, "is: 'nowhere' is no address"),
        (given(0, domain="b.ex"), 2, "no node of a.ex is given; the nearest known is 'b.ex'"),
        (given(2, **{"in": "RB"}), 3, "in: hyperty-runtime://b.ex/rb is not given; the nearest"),
        (given(2, status="away"), 3, "status: must be one of 'live', 'disconnected'"),
        ([*GIVEN, SEND | {"by": "HA2"}, TIME], 4, "by: hyperty://a.ex/ha2 is not given"),
        ([*GIVEN, CUT | {"between": ["RA"]}, TIME], 4, "between: it must name two"),
        ([*GIVEN, CUT | {"between": ["RA", "MNA"]}, TIME], 4, "'MNA' is not the name of this"),
        ([*GIVEN, SEND | {"by": "hyperty://a.ex/ha"}, TIME], 4, "write 'HA'"),
        ([*GIVEN, MESSAGE | {"hop": "HA>RA.bus>SA~wire~MNA"}], 4, "write 'MN.a'"),
        ([MESSAGE, *GIVEN, TIME], 2, "given lines stand before all others"),
        ([*GIVEN, MESSAGE, SEND], 5, "S does not end with a step"),
    ],
)
def test_a_line_that_is_wrong_is_reported_by_file_line_and_reason(lines, line, what):
    with pytest.raises(script.ScriptError) as caught:
        read(*lines)
    assert (caught.value.line, str(caught.value)[:4]) == (line, "file")
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rides"),
    [
        ("HA>RA.bus", [HANDED]),
        ("SA~wire~MN.a", [WIRE]),
        ("HA>..>HB", [UNSAID]),
        ("RA.sm>..MN.b..>PH", [UNSAID, UNSAID]),
        ("HA>..=L1=..>HB", ["=L1="]),
        ("HB>RB.bus>PH/conn/2=L2=..>RC.bus>HC", [HANDED, HANDED, "=L2=", HANDED]),
        ("MN.a(queue)", []),
        ("..>RA.bus>HA", [UNSAID, HANDED]),
        ("..~wire~SB", [WIRE]),
        ("..=L1=PHC>RB.bus", ["=L1=", HANDED]),
        ("HA>RA.bus>..", [HANDED]),
    ],
)
def test_a_hop_is_read_place_by_place(text, rides):
    assert list(script.read_hop(text).carriers) == rides


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("RA.bus", ("RA", "bus", "")),
        ("MN.a", ("MN.a", "", "")),
        ("MN.a.session", ("MN.a", "session", "")),
        ("MN.a.stub(b.ex)", ("MN.a", "stub", "b.ex")),
        ("HA(OBJ)", ("HA", "", "OBJ")),
        ("sandbox(HA)", ("sandbox", "", "HA")),
        ("C1 reporter", ("C1", "reporter", "")),
        ("PH/conn/1", ("PH/conn/1", "", "")),
    ],
)
def test_a_place_is_a_root_a_part_and_a_note(text, parts):
    assert script.read_place(text) == (text, *parts)


def test_several_receivers_stand_in_braces():
    hop = script.read_hop("HB>..>{HA,RA.sm}")
    assert [place.text for place in hop.stations[-1]] == ["HA", "RA.sm"]
