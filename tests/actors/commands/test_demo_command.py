"""`python -m actors demo`: three real processes, and what becomes of them."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, aclosing, contextmanager

import orjson
import pytest
import trio

from actors.cli.command_error import ExitCode
from actors.demo.script import ACTS
from actors.kit.trace_file import open_trace
from tests.support.command import PYTHON, ROOT, call, typed

pytestmark = pytest.mark.timeout(120)

QUICK = ("--json", "--requests", "20", "--p2p", "unix")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--web", "--p2p", "unix"), "--p2p does not apply to"),
        (("--web", "--requests", "20"), "--requests does not apply to"),
        (("--web", "--monitor"), "--monitor does not apply to"),
        (("--http", "127.0.0.1:0"), "--http applies only to"),
    ],
)
def test_options_without_an_effect_are_refused(options, said):
    ended = typed("demo", *options)
    assert (ended.status, ended.out) == (ExitCode.USAGE, [])
    assert said in ended.err[-1]


class Performance:
    """A demonstration that runs, and what it has said."""

    def __init__(self, process):
        self.process = process
        self.pids = {}
        self._rest = b""

    async def lines(self):
        async for piece in self.process.stdout:
            *whole, self._rest = (self._rest + piece).split(b"\n")
            for raw in whole:
                line = orjson.loads(raw)
                if "pid" in line:
                    self.pids[line["who"]] = line["pid"]
                yield line

    async def until(self, text):
        async with aclosing(self.lines()) as lines:
            async for line in lines:
                if text in line["text"]:
                    return line
        raise AssertionError(f"it ended without {text!r}")


@contextmanager
def watched(pids):
    """Processes that can be awaited although they are no children of ours."""
    with ExitStack() as stack:
        handles = [os.pidfd_open(pid) for pid in pids]
        for handle in handles:
            stack.callback(os.close, handle)
        yield handles


async def perform(traces):
    return Performance(
        await trio.lowlevel.open_process(
            [*PYTHON, "actors", "demo", *QUICK, "--trace", str(traces)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
    )


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def all_said(stream):
    return b"".join([piece async for piece in stream]).decode().splitlines()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_demonstration_leaves_no_process_behind(tmp_path, how):
    demo = await perform(tmp_path)
    await demo.until("link to bob: live")
    demo.process.send_signal(how)
    assert await demo.process.wait() == ExitCode.INTERRUPTED
    assert set(demo.pids) == {"node", "bob", "alice"}
    assert not any(is_alive(pid) for pid in demo.pids.values())


async def test_a_demonstration_that_is_killed_leaves_no_process_behind(tmp_path):
    demo = await perform(tmp_path)
    await demo.until("link to bob: live")
    with watched(demo.pids.values()) as children:
        demo.process.kill()
        await demo.process.wait()
        for child in children:
            await trio.lowlevel.wait_readable(child)


async def test_a_child_that_is_killed_is_reported_in_one_sentence(tmp_path):
    demo = await perform(tmp_path)
    await demo.until("link to bob: live")
    os.kill(demo.pids["bob"], signal.SIGKILL)
    assert await demo.process.wait() == ExitCode.FAILED
    assert (await all_said(demo.process.stderr))[-1].startswith(
        "protofly: bob ended with status -9"
    )
    assert not any(is_alive(pid) for pid in demo.pids.values())


def promised():
    """Act, process, and the steps it has to show there, in order."""
    return [(n, who, beats) for n, act in enumerate(ACTS, 1) for who, beats in act.beats.items()]


def was_shown(act, who, beats, lines):
    shown = iter([line["beat"] for line in lines if (line["act"], line["who"]) == (act, who)])
    return all(beat in shown for beat in beats)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_demonstration_shows_every_step_and_a_conformant_trace(tmp_path):
    """The main job: session, node path, link, cut, return, goodbye, verdict.

    A run that was killed before, in the same directory, is none of this demonstration's.
    """
    async with open_trace(tmp_path, "alice"):
        (killed,) = tmp_path.glob("run=*/node=alice/part-*.jsonl")
        before = killed.read_bytes()
    killed.write_bytes(before)
    ended = await call("demo", *QUICK, "--trace", str(tmp_path))
    assert ended.status == ExitCode.OK
    *lines, result = [orjson.loads(line) for line in ended.out]
    assert all(line["schema"].startswith("protofly.") for line in lines)
    headings = [line["text"] for line in lines if line["what"] == "act"]
    assert headings == [act.title for act in ACTS]
    assert lines == sorted(lines, key=lambda line: line["act"])
    assert [one for one in promised() if not was_shown(*one, lines)] == []
    assert result["ok"] is True
    figures = result["figures"]
    assert (figures["lost"], figures["doubled"]) == (0, 0)
    assert figures["fell_back"] > 0
    assert figures["node"]["requests"] == figures["link"]["requests"] == 20
    verdict = result["verdict"]
    assert verdict["verdict"] == "conformant"
    assert [verdict[one]["verdict"] for one in ("steps", "messages")] == ["conformant"] * 2
    assert (verdict["messages"]["claims"], verdict["messages"]["missing"]) == (118, 0)
    assert len(verdict["steps"]["checked"]) == 118
    assert (tmp_path / "report" / "report.html").exists()
    assert killed.read_bytes() == before
    said = [line["text"] for line in lines if line["act"] == len(ACTS)]
    assert any(text.startswith("messages conformant: 118 claims") for text in said)
    assert any(text.startswith("not checked: ") for text in said)


async def test_without_spark_nothing_is_begun_that_could_not_be_judged():
    program = "import sys; sys.modules['pyspark'] = None; import actors.__main__ as m; m.main()"
    command = [sys.executable, "-c", program, "demo"]
    done = await trio.run_process(
        command, check=False, capture_stdout=True, capture_stderr=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (ExitCode.CONFIGURATION, b"")
    assert b"install protofly with its extra 'spark'" in done.stderr
