"""Sandboxes as processes: nothing of them is left, whatever happens (MN-20, R11, I-B11)."""

import errno
import os
import resource
import signal
from functools import partial
from pathlib import Path

import pytest
import trio

from actors.pipe import code, process
from actors.pipe.plan import PipeMessage, SandboxError, Word, write_message
from actors.pipe.process import ProcessSandboxes, _log_errors, open_process_sandbox
from fsm.limits.shares import SandboxAdmission, SandboxTotals
from fsm.limits.timers import IDLE
from specs.limits.foreign_code import SANDBOX_LOG_BURST, SANDBOX_LOG_RATE, SANDBOXES
from specs.limits.protocol import SANDBOX_MEMORY
from transports.errors import LinkError

pytestmark = pytest.mark.timeout(240)


def numbers():
    return [int(one.name) for one in Path("/proc/self/fd").iterdir()]


def descriptors():
    return len(numbers())


def children():
    own = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(own.read_text().split())


async def test_a_hundred_sandboxes_leave_no_descriptor_and_no_process():
    async with open_process_sandbox("first"):
        pass
    before, others = descriptors(), children()
    for number in range(100):
        async with open_process_sandbox(f"{number}.ex"):
            pass
    assert descriptors() == before
    assert children() <= others


async def test_a_sandbox_that_is_killed_from_outside_is_reported_by_its_pipe():
    before = children()
    async with open_process_sandbox("b.ex") as link:
        (pid,) = children() - before
        os.kill(int(pid), signal.SIGKILL)
        with pytest.raises(LinkError), trio.fail_after(60):
            await link.receive()
    assert children() <= before


async def test_a_process_that_has_started_has_had_processor_time():
    """SEC-33: a pipe knows how long its process ran and waited for a processor."""
    async with open_process_sandbox("b.ex") as link:
        with trio.fail_after(30):
            while link.processor_time().ran < 0.005:  # noqa: ASYNC110 - the kernel has no event for it
                await trio.sleep(0.01)
        assert 0 <= link.processor_time().waited < 30
    assert link.processor_time() == IDLE


class Complaints(trio.abc.ReceiveStream):
    """What a process without end says to nobody: as much as anybody reads."""

    def __init__(self):
        self.read = 0

    async def receive_some(self, max_bytes=None):
        await trio.lowlevel.checkpoint()
        self.read += max_bytes
        return b"x" * (max_bytes - 1) + b"\n"

    async def aclose(self):
        await trio.lowlevel.checkpoint()


async def test_a_sandbox_that_writes_much_to_stderr_is_throttled(autojump_clock):
    """R11: what a sandbox writes to its stderr costs its host no more than so much a second."""
    complaints, seconds = Complaints(), 10
    with trio.move_on_after(seconds):
        await _log_errors(complaints, "b.ex", 1)
    most = SANDBOX_LOG_BURST + seconds * SANDBOX_LOG_RATE
    assert most - 2 <= complaints.read / 4096 <= most + 2


async def test_a_sandbox_whose_limits_do_not_fit_into_the_total_is_refused():
    """SEC-32, T16: without a cgroup the sum of the limits of all is bounded."""
    sandboxes, before = ProcessSandboxes(SandboxTotals(2 * SANDBOX_MEMORY)), children()
    async with sandboxes.open("a.ex"):
        async with sandboxes.open("b.ex"):
            with pytest.raises(SandboxError, match=r"may use 512 MiB of memory, and 2 of 256"):
                async with sandboxes.open("c.ex"):
                    pass
            assert len(children() - before) == 2
        async with sandboxes.open("c.ex"):
            pass


async def test_a_sandbox_that_cannot_start_counts_for_nothing(monkeypatch):
    sandboxes = ProcessSandboxes(SandboxTotals(SANDBOX_MEMORY))
    monkeypatch.setattr(code, "PACKAGE_FILES", 0)
    with pytest.raises(SandboxError, match="may import 0 modules"):
        async with sandboxes.open("a.ex", partial(code.code_of, "tests.support.runtime.rough")):
            pass
    async with sandboxes.open("a.ex"):
        pass


def test_where_no_runtime_has_totals_the_number_is_bounded():
    """A node's: they are those of other domains."""
    admission = SandboxAdmission(process._AMPLE, is_grouped=False)
    assert [admission.enter() for _ in range(SANDBOXES)] == [None] * SANDBOXES
    assert admission.enter() == f"{SANDBOXES} sandbox processes run already"


class Unwilling:
    """A kernel that takes no process into a cgroup."""

    def add(self, pid):
        raise PermissionError(errno.EPERM, "Operation not permitted")


async def test_a_process_that_cannot_join_its_cgroup_runs_no_code():
    before = children()
    sandboxes = ProcessSandboxes()
    sandboxes._begin()
    sandboxes._group = Unwilling()
    with pytest.raises(SandboxError, match="its cgroup does not take its process"):
        async with sandboxes.open("a.ex"):
            pass
    assert children() <= before


async def test_a_sandbox_that_has_stopped_is_killed_all_the_same():
    """A spinning process and a stopped one are alike to whoever keeps them: silent."""
    before = children()
    async with open_process_sandbox("b.ex") as link:
        (pid,) = children() - before
        os.kill(int(pid), signal.SIGSTOP)
        await link.send(write_message(PipeMessage(Word.PING)))
    assert children() <= before


@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4, 5])
async def test_without_descriptors_a_start_fails_and_leaves_nothing(spare):
    async with open_process_sandbox("first"):
        pass
    before, others = descriptors(), children()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0) for _ in range(max(numbers()) + 1 - before)]
    held = descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (held - 1 + spare, hard))
    try:
        with pytest.raises(SandboxError):
            async with open_process_sandbox("b.ex"):
                pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in taken:
            os.close(one)
    assert descriptors() == before
    assert children() <= others
