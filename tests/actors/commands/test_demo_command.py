"""`python -m actors demo`: three real processes, and what becomes of them."""

import os
import signal
import subprocess
from contextlib import aclosing

import orjson
import pytest
import trio

from actors.commands.exit_code import ExitCode
from tests.support.command import PYTHON, ROOT, call

QUICK = ("--json", "--requests", "20", "--p2p", "unix")


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


async def test_an_interrupted_demonstration_leaves_no_process_behind(tmp_path):
    demo = await perform(tmp_path)
    await demo.until("link to bob is live")
    demo.process.send_signal(signal.SIGINT)
    with trio.fail_after(10):
        assert await demo.process.wait() == ExitCode.INTERRUPTED
    assert set(demo.pids) == {"node", "bob"}
    assert not any(is_alive(pid) for pid in demo.pids.values())


async def test_a_child_that_is_killed_is_told_in_one_sentence(tmp_path):
    demo = await perform(tmp_path)
    await demo.until("link to bob is live")
    os.kill(demo.pids["bob"], signal.SIGKILL)
    with trio.fail_after(20):
        assert await demo.process.wait() == ExitCode.FAILED
    assert (await all_said(demo.process.stderr))[-1].startswith(
        "protofly: bob ended with status -9"
    )
    assert not any(is_alive(pid) for pid in demo.pids.values())


async def test_traces_of_another_run_are_not_overwritten(tmp_path):
    (tmp_path / "node=alice").mkdir()
    ended = await call("demo", *QUICK, "--trace", str(tmp_path))
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1


@pytest.mark.spark
@pytest.mark.timeout(300)
async def test_the_demonstration_shows_every_step_and_a_conformant_trace(tmp_path):
    """The main job: session, node path, link, cut, return, goodbye, verdict."""
    ended = await call("demo", *QUICK, "--trace", str(tmp_path))
    assert ended.status == ExitCode.OK
    *lines, result = [orjson.loads(line) for line in ended.out]
    texts = [line["text"] for line in lines]
    steps = [
        "session open",
        "no listener for",
        "first request answered by way of the node",
        "[*] -> created (started)",
        "link to bob is live",
        "20 requests by the node",
        "20 requests by the link",
        "cut the socket under the link",
        "link to bob is live again",
        "none lost, none doubled",
        "closed in good order",
        "all three processes ended in good order",
        "verdict conformant",
        "report.html",
    ]
    found = [next(n for n, text in enumerate(texts) if step in text) for step in steps]
    assert found == sorted(found)
    assert result["ok"] is True
    figures = result["figures"]
    assert (figures["lost"], figures["doubled"]) == (0, 0)
    assert figures["fell_back"] > 0
    assert figures["node"]["requests"] == figures["link"]["requests"] == 20
    assert result["verdict"]["verdict"] == "conformant"
    assert (tmp_path / "report" / "report.html").exists()
