"""The demonstration: three real processes, what is shown of them, and what becomes of them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from examples.demo.play import NODE, DemoError, judge, open_child, until
from examples.demo.story import ACTS, Line, Narrator, Story, short
from specs.trace import trace_folder
from tests.support.command import PYTHON, ROOT
from tests.support.trace.trace_files import records, session, whole, write_trace

pytestmark = pytest.mark.timeout(240)

COMMAND = (*PYTHON, "examples.demo")
QUICK = ("--json", "--requests", "20", "--p2p", "unix")


async def said_by(*options):
    return await trio.run_process(
        [*COMMAND, *options], capture_stdout=True, capture_stderr=True, check=False, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--web", "--p2p", "unix"), b"--p2p does not apply to"),
        (("--web", "--requests", "20"), b"--requests does not apply to"),
        (("--http", "127.0.0.1:0"), b"--http applies only to"),
        (("--p2p", "carrier-pigeon"), b"Invalid value for '--p2p'"),
        (("--requests", "1"), b"Invalid value for '--requests'"),
        (
            ("--trace", "/dev/null/traces"),
            b"Invalid value for --trace: /dev/null/traces: Not a dir",
        ),
    ],
)
async def test_an_option_without_effect_or_meaning_is_refused(options, said):
    ended = await said_by(*options)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert said in ended.stderr


async def test_without_spark_nothing_is_begun_that_could_not_be_judged():
    program = (
        "import sys; sys.modules['pyspark'] = None; import runpy; "
        "runpy.run_module('examples.demo', run_name='__main__')"
    )
    ended = await trio.run_process(
        [sys.executable, "-c", program],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        cwd=ROOT,
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"install protofly with its extra 'spark'" in ended.stderr


def processes_of(folder):
    """Processes whose command line names a directory, by their number."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder).encode() in words:
            found[int(place.parent.name)] = words
    return found


async def begun(folder):
    """Start a demonstration, and return it when its link is live."""
    process = await trio.lowlevel.open_process(
        [*COMMAND, *QUICK, "--trace", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    said = b""
    while b"link to bob: live" not in said:
        piece = await process.stdout.receive_some()
        assert piece, "it has ended"
        said += piece
    return process


async def all_ended(folder):
    with trio.fail_after(60):
        while processes_of(folder):  # noqa: ASYNC110 - they are no children of ours
            await trio.sleep(0.05)


@pytest.mark.parametrize(
    ("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
async def test_a_demonstration_that_is_stopped_leaves_no_process_behind(tmp_path, how, status):
    demo = await begun(tmp_path)
    assert len(processes_of(tmp_path)) == 5, "itself, and two programs with a leash each"
    demo.send_signal(how)
    assert await demo.wait() == status
    await all_ended(tmp_path)


async def test_a_program_that_is_killed_is_reported_in_one_sentence(tmp_path):
    demo = await begun(tmp_path)
    (bob,) = [
        number
        for number, words in processes_of(tmp_path).items()
        if b"bob" in words and b"examples.demo.leash" not in words
    ]
    os.kill(bob, signal.SIGKILL)
    assert await demo.wait() == 1
    errors = b"".join([piece async for piece in demo.stderr]).decode()
    assert errors.splitlines()[-1].startswith(
        "Error: the demonstration failed: bob ended with status 137"
    )
    await all_ended(tmp_path)


async def test_a_program_that_does_not_become_ready_is_reported_in_one_sentence():
    with pytest.RaisesGroup(DemoError) as raised:
        async with open_child("node", "node", "--no-such-option"):
            pytest.fail("it is ready")
    assert str(raised.value.exceptions[0]).startswith("node ended with status 2")


async def test_what_does_not_come_ends_the_demonstration(autojump_clock):
    with pytest.raises(DemoError, match="nothing came"):
        await until(lambda: False, "nothing came")


def promised():
    """Act, process, and the events that it has to show there, in order."""
    return [
        (number, who, events.split())
        for number, act in enumerate(ACTS, 1)
        for who, events in act.events.items()
    ]


def was_shown(act, who, events, lines):
    shown = iter([line["event"] for line in lines if (line["act"], line["who"]) == (act, who)])
    return all(event in shown for event in events)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_demonstration_shows_every_step_and_a_conformant_trace(tmp_path):
    """The main job: session, node path, link, cut, return, goodbye, verdict.

    A run in the same directory that was killed before is none of this demonstration's.
    """
    killed = tmp_path / trace_folder("20260101T000000.000000Z-00000000", "alice")
    write_trace(killed, records(session("open")))
    ended = await said_by(*QUICK, "--trace", str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, b"")
    *lines, result = map(json.loads, ended.stdout.splitlines())
    headings = [line["text"] for line in lines if line["what"] == "act"]
    assert headings == [*(act.title for act in ACTS), "The verdict on the three traces"]
    assert lines == sorted(lines, key=lambda line: line["act"])
    assert [one for one in promised() if not was_shown(*one, lines)] == []
    assert result["ok"] is True
    figures = result["figures"]
    assert figures["fell_back"] > 0
    assert figures["node"]["count"] == figures["link"]["count"] == 20
    verdict = result["verdict"]
    assert verdict["verdict"] == "conformant"
    assert [verdict[one]["verdict"] for one in ("steps", "messages")] == ["conformant"] * 2
    assert (verdict["messages"]["claims"], verdict["messages"]["missing"]) == (118, 0)
    assert len(verdict["steps"]["checked"]) == 118
    assert (tmp_path / "report" / "report.html").exists()
    said = [line["text"] for line in lines if line["act"] == len(ACTS) + 1]
    assert any(text.startswith("messages conformant: 118 claims") for text in said)
    assert any(text.startswith("not checked: ") for text in said)


class Shown:
    """Keeps the lines that are shown, with the numbers of their acts."""

    def __init__(self):
        self.lines = []

    def __call__(self, line, act):
        self.lines.append((act, line.who, line.text))


def test_what_comes_before_its_act_waits_for_it():
    shown = Shown()
    story = Story(shown)
    story.begin()
    story.take(Line("alice", "early", "link-started"))
    story.take(Line("alice", "of no act"))
    story.take(Line("node", "here", "ready"))
    assert [text for _, _, text in shown.lines] == [ACTS[0].title, "of no act", "here"]
    story.begin()
    story.begin()
    assert shown.lines[-2:] == [(3, "demo", ACTS[2].title), (3, "alice", "early")]


def test_what_an_act_lacks_is_named():
    story = Story(Shown())
    story.begin()
    story.begin()
    for event in ("no-listener", "answered"):
        story.take(Line("alice", "", event))
    assert story.missing == "alice: resolved-to-node answered"


def resolved(to, route):
    return {"k": "resolve", "op": "done", "to": to, "result": route, "why": "w"}


def test_a_route_is_told_when_it_is_another_one():
    narrator = Narrator("alice", "hyperty://a.example/12345678-90ab")
    stub = "hyperty-runtime://a.example/alice/protostub/1"
    told = [narrator.line(resolved(narrator.target, stub)) for _ in range(2)]
    assert told == [
        Line("alice", "hyperty 12345678 is reached by alice/protostub/1, w", "resolved-to-node"),
        None,
    ]
    assert narrator.line(resolved("hyperty://a.example/other", stub)) is None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("hyperty-runtime://a.ex/alice/sm", "alice/sm"),
        ("connection://a.ex/0123456789/changes", "connection 01234567/changes"),
        ("domain://msg-node.a.ex/sm", "msg-node.a.ex/sm"),
        ("no address", "no address"),
        (None, "no address"),
    ],
)
def test_addresses_are_shortened_to_what_a_person_reads(address, said):
    assert short(address) == said


@pytest.mark.spark
@pytest.mark.timeout(300)
async def test_the_verdict_is_that_of_both_judges(tmp_path):
    """Each step is right, but there is no trace of the two others."""
    facts = whole([*session("open", "closed")])
    write_trace(tmp_path / trace_folder("r1", "alice"), records(facts))
    shown = Shown()
    verdict = await judge([tmp_path / "run=r1"], tmp_path, Story(shown))
    assert verdict["verdict"] == "incomplete"
    assert {verdict[one]["verdict"] for one in ("steps", "messages")} == {"incomplete"}
    flaws = [text for _, _, text in shown.lines if text.startswith("incomplete: ")]
    assert [flaw.split()[1] for flaw in flaws] == [f"{NODE}:", "bob:"]


async def test_a_judge_that_says_nothing_is_an_error(tmp_path):
    with pytest.raises(DemoError, match="could not be judged"):
        await judge([tmp_path / "run=none"], tmp_path, Story(Shown()))
