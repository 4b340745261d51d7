"""Processes of Python, forked from one that has imported the product: most of a start is imports.

They are processes as others: they are killed and stopped, have descriptors of their own, and
end by themselves. Cold starts are shown by the README's program, the sandboxes and the demo.
"""

import gc
import importlib
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from types import ModuleType
from typing import Final

import attrs
import click
import orjson
import trio

from actors.cli.group import SUMMARIES, command_of

_ROOT: Final = Path(__file__).parents[2]
_LIMIT: Final = 1 << 16
_FIRST: Final = Lock()


@attrs.define(eq=False)
class WarmProcess:
    """A process of `python ...`, in the words of `subprocess.Popen`."""

    pid: int
    _handle: int
    _ends: socket.socket
    _status: int | None = None

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """Return how it ended, in the words of `subprocess`, or nothing if it has not."""
        if self._status is None:
            try:
                reported = self._ends.recv(_LIMIT, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            self._status = int(reported)
            os.close(self._handle)
            self._ends.close()
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        while (status := self.poll()) is None:
            if not select.select([self._ends], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("python", timeout or 0.0)
        return status

    async def ended(self) -> int:
        """Wait for its end while other tasks go on."""
        while (status := self.poll()) is None:
            await trio.lowlevel.wait_readable(self._ends)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _environ() -> dict[str, str]:
    """Return the variables of this process; pytest may take one away meanwhile."""
    found = ((name, os.environ.get(name)) for name in [*os.environ])
    return {name: value for name, value in found if value is not None}


def fork_warm(
    arguments: Sequence[str],
    streams: tuple[int | None, int, int],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = _ROOT,
) -> WarmProcess:
    """Start `python ARGUMENTS`.

    Args:
        arguments: `-c PROGRAM`, `-m MODULE` or a path, and what follows it.
        streams: Descriptors of its stdin, stdout and stderr, which stay open here; a stdin of None
            has nothing to read.
        env: Its environment; None: that of this process.
        cwd: Where it runs.
    """
    with _FIRST:
        _, origin = _origin()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = orjson.dumps([arguments, _environ() if env is None else dict(env), str(cwd)])
    with theirs, open(os.devnull) as nothing:  # noqa: PTH123 - a device
        stdin, *others = streams
        given = nothing.fileno() if stdin is None else stdin
        socket.send_fds(origin, [request], [given, *others, theirs.fileno()])
    pid, [handle], _, _ = socket.recv_fds(ours, _LIMIT, 1)
    return WarmProcess(int(pid), handle, ours)


def run_warm(
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path = _ROOT,
    timeout: float = 200,
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` to its end, with nothing to read; see `fork_warm`."""
    texts = [*map(str, arguments)]
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        process = fork_warm(texts, (None, out.fileno(), err.fileno()), env=env, cwd=cwd)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(texts, status, out.read(), err.read())


@cache
def _origin() -> tuple[object, socket.socket]:
    """Start the process from which others are forked; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__]
    with theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), cwd=_ROOT)  # noqa: S603 - our own
    return process, ours


def _import_commands() -> None:
    for name in SUMMARIES:
        command = command_of(name)
        if isinstance(command, click.Group):
            with click.Context(command) as context:
                for below in command.list_commands(context):
                    command.get_command(context, below)
    gc.freeze()


def _fork_each(control: socket.socket) -> list[str]:
    """Fork a process for each request; return in each of them, with its arguments."""
    waiting = selectors.DefaultSelector()
    waiting.register(control, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is not None:
                waiting.unregister(key.fd)
                _report_end(key.fd, *key.data)
                continue
            text, fds, _, _ = socket.recv_fds(control, _LIMIT, 4)
            if not text:
                sys.exit()
            arguments, env, cwd = orjson.loads(text)
            _import_main(arguments)
            pid = os.fork()
            if pid == 0:
                waiting.close()
                _become(env, cwd, *fds)
                return arguments
            handle = os.pidfd_open(pid)
            *streams, ends = fds
            for stream in streams:
                os.close(stream)
            reports = socket.socket(fileno=ends)
            socket.send_fds(reports, [str(pid).encode()], [handle])
            waiting.register(handle, selectors.EVENT_READ, (pid, reports))


def _import_main(arguments: list[str]) -> None:
    """Import what `-m` names, once for all that run it."""
    if arguments[0] == "-m":
        with suppress(ImportError):
            importlib.import_module(arguments[1])
            importlib.import_module(f"{arguments[1]}.__main__")


def _report_end(handle: int, pid: int, reports: socket.socket) -> None:
    os.close(handle)
    _, status = os.waitpid(pid, 0)
    # A test that has failed waits for nobody.
    with reports, suppress(OSError):
        reports.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(env: Mapping[str, str], cwd: str, *fds: int) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for stream, fd in enumerate(fds[:3]):
        os.dup2(fd, stream)
    for fd in fds:
        os.close(fd)


def _run(arguments: list[str]) -> None:
    """Do as `python ARGUMENTS` does."""
    first, *rest = arguments
    match first:
        case "-m":
            sys.argv = rest
            sys.path[0] = os.getcwd()  # noqa: PTH109 - as Python writes it
            for imported in (rest[0], f"{rest[0]}.__main__"):  # else it warns
                sys.modules.pop(imported, None)
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        case "-c":
            sys.argv = [first, *rest[1:]]
            sys.path[0] = ""
            sys.modules["__main__"] = module = ModuleType("__main__")
            exec(compile(rest[0], "<string>", "exec"), vars(module))  # noqa: S102 - our own
        case _:
            sys.argv = arguments
            sys.path[0] = str(Path(first).parent)
            runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    _import_commands()
    with socket.socket(fileno=os.dup(0)) as control:
        arguments = _fork_each(control)
    _run(arguments)
