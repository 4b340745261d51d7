"""A scenario made from the trace of a run does what the run did, and a change of it is found."""

import orjson
import pytest
import trio
from click.testing import CliRunner

import actors
from tests.conformance.play import __main__ as player
from tests.conformance.play.script import read_script
from tests.conformance.record import main
from tests.support.trace.recorded import GOLDEN

NEW = GOLDEN.parent / "new-scenarios.jsonl"


def record(run, *options):
    """Make a scenario from a run; return the result of the command, and the file."""
    file = run / "made.jsonl"
    return CliRunner().invoke(main, [str(run), "-o", str(file), *options]), file


def play(file, *options):
    return CliRunner().invoke(player.main, [str(file), *map(str, options)])


@pytest.fixture
def hello(tmp_path):
    """A scenario that was played, with a trace: requests in a runtime and between two domains."""
    given = [{"given": "node", "domain": f"{one}.ex"} for one in "ab"]
    given += [{"given": "runtime", "is": one} for one in ("RA", "RB")]
    given += [{"given": "hyperty", "is": f"H{one[-1]}", "in": one} for one in ("RA", "RB")]
    hops = [
        ("send", "HA", "HA>RA.bus>SAB~wire~MN.b~wire~SB>RB.bus>HB", 1, "read", "HA", "HB"),
        ("answer", "HB", "HB>RB.bus>SB~wire~MN.b~wire~SAB>RA.bus>HA", 1, "response", "HB", "HA"),
        ("send", "HB", "HB>RB.bus", 1, "read", "HB", "hyperty://b.ex/nobody"),
    ]
    lines = list(given)
    for number, (act, by, hop, *ends) in enumerate(hops, start=1):
        message = dict(zip(("id", "type", "from", "to"), ends, strict=True))
        body = {"code": 200} if act == "answer" else {}
        step = {"n": number, "k": "msg", "hop": hop, "msg": {**message, "body": body}}
        lines += [{"do": act, "by": by}, step]
    file = tmp_path / "hello.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps({"sc": "hello", **line}) for line in lines))
    assert play(file, "--trace", tmp_path / "run").exit_code == 0
    return file, tmp_path / "run"


def test_a_scenario_made_from_a_play_has_its_steps(hello):
    file, run = hello
    result, made = record(run, "--replay")

    assert result.output.endswith("recorded passed, 4 steps\n")
    (before,), (after,) = read_script(file), read_script(made)
    hops = [step.hop.text.replace("h1", "HA").replace("h2", "HB") for step in after.steps]
    assert hops[:2] == [step.hop.text for step in before.steps[:2]]
    # The node says that there is no such hyperty.
    assert hops[2:] == ["HB>RB.bus>SB~wire~MN.b", "MN.b~wire~SB>RB.bus>HB"]
    assert (after.steps[3].synthetic, after.steps[3].msg.code) == (True, 404)


def test_a_changed_step_is_named(hello):
    _, made = record(hello[1])
    made.write_bytes(made.read_bytes().replace(b'"code":404', b'"code":403'))

    result = play(made)
    assert result.exit_code == 1
    assert "recorded differs at step 4\n" in result.output


class Sensor(actors.Hyperty):
    async def on_subscribe(self, url, observer):
        """Accept every observer."""


async def observe(trace):
    """Run a sensor and its observer, which leaves after two changes."""
    async with (
        actors.open_node("a.ex", trace=trace) as node,
        actors.open_runtime("a.ex", "cellar", node=node.url, trace=trace) as cellar,
        actors.open_runtime("a.ex", "kitchen", node=node.url, trace=trace) as kitchen,
    ):
        sensor, display = await cellar.deploy(Sensor), await kitchen.deploy(actors.Hyperty)
        async with (
            sensor.report("ctxt", {"celsius": 19}) as reported,
            display.observe(reported.url) as copy,
        ):
            for celsius in (20, 21):
                await reported.set("celsius", celsius)
                await copy.wait_for(lambda value, now=celsius: value["celsius"] == now)


def test_a_scenario_made_from_a_program_observes_and_changes_its_object(tmp_path):
    trio.run(observe, tmp_path)
    result, made = record(tmp_path, "--replay")

    assert result.exit_code == 0, result.output
    acts = [orjson.loads(line).get("do") for line in made.read_bytes().splitlines()]
    expected = ["observe", "answer", "change", "change", "send", "send"]
    assert [act for act in acts if act] == expected


@pytest.mark.parametrize(
    ("name", "why"),
    [("link-cut", "had a direct link"), ("observer-vanishes", "the link of a session broke")],
)
def test_what_no_line_expresses_is_refused(name, why, tmp_path):
    play(NEW, "--scenario", name, "--trace", tmp_path)

    result, _ = record(tmp_path)
    assert result.exit_code == 2
    assert why in result.output


def test_a_missing_trace_is_refused(hello):
    (part,) = hello[1].glob("run=*/node=*msg-node.b*/*.jsonl")
    part.unlink()

    assert "which has no trace here" in record(hello[1])[0].output


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda lines: lines[:4] + lines[5:], "is damaged at record 6: record 5 is missing"),
        (lambda lines: [*lines[:4], lines[4][:-9], *lines[5:]], ", line 5: "),
    ],
)
def test_a_damaged_trace_is_refused(hello, spoil, why):
    (part,) = hello[1].glob("run=*/node=*msg-node.b*/*.jsonl")
    part.write_bytes(b"\n".join([*spoil(part.read_bytes().splitlines()), b""]))

    result, _ = record(hello[1])
    assert (result.exit_code, why in " ".join(result.output.split())) == (2, True), result.output
