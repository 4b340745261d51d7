"""Whoever was started by somebody that is gone ends too."""

import os
import signal
import subprocess
import sys

import pytest
import trio

from actors.cli.command_error import ExitCode
from actors.demo.child import until_parent_ends, until_stopped
from tests.support.command import PYTHON, ROOT

SLEEPER = "import os, signal; print(os.getpid(), flush=True); signal.pause()"


async def tether(code):
    return await trio.lowlevel.open_process(
        [*PYTHON, "actors.demo.child", "run", sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


async def test_a_command_ends_when_its_starter_is_gone():
    process = await tether(SLEEPER)
    pid = int(await process.stdout.receive_some())
    await process.stdin.aclose()
    assert await process.wait() == ExitCode.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_status_of_the_command_is_passed_on():
    process = await tether("raise SystemExit(7)")
    assert await process.wait() == 7


@pytest.fixture
def stdin(monkeypatch):
    """The writing end of this process's stdin."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "wb") as end:
        monkeypatch.setattr("sys.stdin", stream)
        yield end


async def test_the_end_of_stdin_ends_the_work_in_order(stdin):
    cleaned = []

    async def work():
        try:
            stdin.close()
            await trio.sleep_forever()
        finally:
            cleaned.append(True)

    assert await until_parent_ends(lambda: until_stopped(work)) is ExitCode.INTERRUPTED
    assert cleaned


async def test_work_that_comes_to_its_end_is_left_alone(stdin):
    assert await until_parent_ends(lambda: until_stopped(trio.lowlevel.checkpoint)) is ExitCode.OK


async def test_a_signal_ends_the_work():
    async def work():
        signal.raise_signal(signal.SIGTERM)
        await trio.sleep_forever()

    assert await until_stopped(work) is ExitCode.INTERRUPTED
