"""Processes of the command, forked from one that has imported it: nearly all of a start is imports.

They are processes as others: they are killed and stopped, have descriptors of their own, and
end by themselves. Cold starts are shown by the examples, the documents and the demo.
"""

import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

import attrs
import click
import orjson
import trio

from actors.__main__ import main
from actors.cli.group import SUMMARIES, command_of

__all__ = ["WarmProcess", "start_warm"]

_ROOT: Final = Path(__file__).parents[2]
_LIMIT: Final = 1 << 16
_FIRST: Final = Lock()


@attrs.define(eq=False)
class WarmProcess:
    """A process of `python -m actors ...`, in the words of `trio.Process`."""

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

    async def wait(self) -> int:
        while (status := self.poll()) is None:
            await trio.lowlevel.wait_readable(self._ends)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def start_warm(
    arguments: Sequence[str], env: Mapping[str, str], out: int, err: int
) -> WarmProcess:
    """Start `python -m actors ARGUMENTS` at the root of the source, with nothing to read.

    Args:
        arguments: What follows the name of the program.
        env: Its environment.
        out: Descriptor of its stdout; stays open here.
        err: Descriptor of its stderr; stays open here.
    """
    with _FIRST:
        _, origin = _origin()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        request = orjson.dumps([arguments, dict(env)])
        socket.send_fds(origin, [request], [out, err, theirs.fileno()])
    await trio.lowlevel.wait_readable(ours)
    pid, [handle], _, _ = socket.recv_fds(ours, _LIMIT, 1)
    return WarmProcess(int(pid), handle, ours)


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
            text, fds, _, _ = socket.recv_fds(control, _LIMIT, 3)
            if not text:
                sys.exit()
            pid = os.fork()
            if pid == 0:
                waiting.close()
                return _become(*orjson.loads(text), *fds)
            handle = os.pidfd_open(pid)
            *streams, ends = fds
            for stream in streams:
                os.close(stream)
            reports = socket.socket(fileno=ends)
            socket.send_fds(reports, [str(pid).encode()], [handle])
            waiting.register(handle, selectors.EVENT_READ, (pid, reports))


def _report_end(handle: int, pid: int, reports: socket.socket) -> None:
    os.close(handle)
    _, status = os.waitpid(pid, 0)
    # A test that has failed waits for nobody.
    with reports, suppress(OSError):
        reports.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(
    arguments: list[str], env: Mapping[str, str], out: int, err: int, ends: int
) -> list[str]:
    os.environ.clear()
    os.environ.update(env)
    with open(os.devnull) as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for fd in (out, err, ends):
        os.close(fd)
    return arguments


if __name__ == "__main__":
    _import_commands()
    with socket.socket(fileno=os.dup(0)) as control:
        sys.argv = ["protofly", *_fork_each(control)]
    main()
