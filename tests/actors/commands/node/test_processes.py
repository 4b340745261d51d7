"""`node --processes`: real processes of one node command, which listen on one port."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio

from actors.cli.group import ExitCode
from actors.commands.node.processes import open_processes
from actors.kit.errors import PartEndedError
from actors.node.config import NodeConfig
from specs.limits.group import PROCESS_START
from tests.support.command import below, serving, typed
from tests.support.nats_server import needs_server
from transports.engine.server import find_program
from transports.errors import LocalServerError

DOMAIN = "a.example"
NODE = ("node", "--domain", DOMAIN, "--allow-legacy", "--processes", "2", "--log", "info")

NAMELESS = signal.SIGRTMIN + 1
"""A real-time signal without a name of its own."""

pytestmark = pytest.mark.timeout(240)


class Log:
    """What the processes write to standard error."""

    def __init__(self, stream):
        self._stream = stream
        self._text = ""

    async def until(self, pattern):
        """Read until a line matches; what came before it has no traceback, and is forgotten."""
        while (found := re.search(rf"^.*{pattern}.*$", self._text, re.MULTILINE)) is None:
            piece = await self._stream.receive_some()
            assert piece, f"nothing has logged {pattern}"
            self._text += piece.decode()
        assert "Traceback" not in self._text[: found.end()]
        self._text = self._text[found.end() :]
        return found[0]


@asynccontextmanager
async def running(*options):
    """The command with its log, from when all processes are ready."""
    outer, inner = os.pipe()
    with os.fdopen(inner, "wb") as stderr:
        async with (
            trio.lowlevel.FdStream(outer) as stream,
            serving(*NODE, *options, stderr=stderr) as parent,
        ):
            yield parent, Log(stream)


def members(parent):
    """Return the processes that run as nodes."""
    return _members_of(parent.process.pid)


def _members_of(above):
    return {pid for pid in below(above) if b".node.member" in _words(pid)}


def _words(pid):
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


async def end_of(handles):
    """Wait until processes have ended."""
    for handle in handles:
        await trio.lowlevel.wait_readable(handle)
        os.close(handle)


@needs_server
async def test_a_process_that_hangs_at_its_start_does_not_keep_others_from_theirs():
    async with running() as (parent, log):
        one, two = (process["pid"] for process in parent.ready["processes"])
        os.kill(one, signal.SIGKILL)
        await log.until("part started again.*part=node-1")
        while not (new := members(parent) - {one, two}):
            await trio.lowlevel.checkpoint()
        (again,) = new
        os.kill(again, signal.SIGSTOP)
        os.kill(two, NAMELESS)
        line = await log.until("part started again.*part=node-2")
        assert f'why="node 2 was ended by signal {NAMELESS}"' in line
        await log.until("event=ready node_name=2")
        os.kill(again, signal.SIGCONT)
        await log.until("event=ready node_name=1")


@needs_server
async def test_a_process_that_is_not_ready_in_time_has_failed_to_start(monkeypatch, mock_clock):
    monkeypatch.setattr("sys.argv", ["protofly", *NODE])
    mock_clock.rate = 1

    async def let_time_pass():
        while not _members_of(os.getpid()):
            await trio.lowlevel.checkpoint()
        mock_clock.jump(PROCESS_START)

    late = f"node [12] was not ready within {PROCESS_START:g} s"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(let_time_pass)
        with pytest.raises(ExceptionGroup) as caught:
            async with open_processes(NodeConfig(domain=DOMAIN), ["", ""]):
                pass
    assert caught.group_contains(PartEndedError, match=late)


@needs_server
async def test_nothing_is_left_of_a_parent_that_is_killed():
    async with running() as (parent, _):
        children = [os.pidfd_open(pid) for pid in below(parent.process.pid)]
        assert len(children) >= 3
        parent.process.kill()
        await end_of(children)


@needs_server
@pytest.mark.long
async def test_a_process_that_cannot_come_back_ends_all_with_its_status(tmp_path):
    file = tmp_path / "node.toml"
    file.write_text("[node]")
    async with running("--config", str(file)) as (parent, log):
        children = [os.pidfd_open(pid) for pid in below(parent.process.pid)]
        file.unlink()
        os.kill(parent.ready["processes"][0]["pid"], signal.SIGKILL)
        for _ in range(3):
            await log.until("part started again.*part=node-1")
        assert await parent.process.ended() == ExitCode.CONFIGURATION
        assert "its own messages say why" in await log.until("protofly: node 1 has ended")
        await end_of(children)


@needs_server
@pytest.mark.long
async def test_the_end_of_the_server_is_that_of_all():
    async with running() as (parent, log):
        ended = {pid: os.pidfd_open(pid) for pid in below(parent.process.pid)}
        (server,) = [pid for pid in ended if _program(pid) == "nats-server"]
        os.kill(server, signal.SIGKILL)
        assert await parent.process.ended() == ExitCode.FAILED
        await log.until("protofly: nats-server has ended by itself")
        await end_of(ended.values())


def _program(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_a_process_whose_parent_has_told_it_nothing_ends_without_a_word():
    words = [sys.executable, "-m", "actors.commands.node.member", *NODE]
    done = subprocess.run(words, input=b"", capture_output=True, check=False)  # noqa: S603 - ours
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def start(_, *http):
    """The start of the processes."""
    return typed(*NODE, *(word for place in http for word in ("--http", place)))


def dry_run(folder, *http):
    """The check of a file with the options of the processes."""
    file = folder / "node.toml"
    lines = [f"http = '{place}'" for place in http]
    file.write_text("\n".join([f"[node]\ndomain = '{DOMAIN}'\nprocesses = 2", *lines]))
    return typed("config", "check", "--ports", str(file))


begins = pytest.mark.parametrize("begin", [start, dry_run])


@begins
@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (None, "there is no nats-server"),
        ("/bin/true", "/bin/true is no NATS server from 2.11 on"),
    ],
)
def test_a_server_that_is_not_there_is_reported(tmp_path, monkeypatch, begin, program, complaint):
    monkeypatch.setattr("shutil.which", lambda _, path=None: program)
    ended = begin(tmp_path)
    assert ended.status == ExitCode.CONFIGURATION
    (told,) = ended.err
    assert complaint in told


def test_a_server_program_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o700)
    monkeypatch.setattr("shutil.which", lambda _, path=None: str(program))
    with pytest.raises(LocalServerError, match=r"does not state its version within 0\.1 s"):
        find_program(patience=0.1)


@needs_server
@begins
def test_too_few_ports_are_reported(tmp_path, begin):
    ended = begin(tmp_path, "127.0.0.1:65535")
    assert ended.status == ExitCode.CONFIGURATION
    (told,) = ended.err
    assert "there are no 2 ports from 65535 on; correct --http" in told


def second_of_two():
    """Serve at a port behind a free one; the system gives neither to others that ask for any."""
    for port in range(20_000 + os.getpid() % 5000, 32_000, 2):
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            return socket.create_server(("127.0.0.1", port + 1))
    raise AssertionError("no two ports are free")


@needs_server
@pytest.mark.parametrize(
    ("begin", "status"), [(start, ExitCode.FAILED), (dry_run, ExitCode.CONFIGURATION)]
)
def test_each_port_of_http_must_be_free(tmp_path, begin, status):
    with second_of_two() as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        first = f"127.0.0.1:{taken.getsockname()[1] - 1}"
        ended = begin(tmp_path, first)
    assert ended.status == status
    (told,) = ended.err
    assert place in told
    assert "choose another place with --http" in told
