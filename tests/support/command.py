"""Commands as a person runs them, as processes of this interpreter or within this one."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO

import attrs
import click
import orjson
import pytest
import trio
from click.testing import CliRunner

from actors.__main__ import main
from actors.cli.group import CommandError
from tests.support.log import unchanged_log
from tests.support.warm import WarmProcess, fork_warm

ROOT = Path(__file__).parents[2]
PYTHON = (sys.executable, "-m")


@attrs.frozen
class Ended:
    """How a command ended."""

    status: int
    out: list[str]
    err: list[str]


def called(command: click.Command, *arguments: str) -> Ended:
    """Run a command within this process; its exceptions are reported as by `enter`."""
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    out, err = lines_of(result.stdout), lines_of(result.stderr)
    match result.exception:
        case None:
            return Ended(result.return_value or 0, out, err)
        case CommandError() as error:
            return Ended(error.code, out, [*err, f"protofly: {error}"])
        case click.ClickException() as error:
            return Ended(error.exit_code, out, [*err, error.format_message()])
        case error:
            raise error


def typed(*arguments: str, env: dict[str, str] | None = None) -> Ended:
    """Run `python -m actors ...` to its end within this process, which saves the start of one."""
    isolated = CliRunner().isolation(env=env)
    with unchanged_log(), isolated as (out, err, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["protofly", *arguments])
        with pytest.raises(SystemExit) as exiting:
            main()
        reported = [lines_of(stream.getvalue().decode()) for stream in (out, err)]
    return Ended(int(exiting.value.code or 0), *reported)


async def call(
    *arguments: str, env: dict[str, str] | None = None, stdin: int | None = None
) -> Ended:
    """Run `python -m actors ...` to its end."""
    with TemporaryFile() as out, TemporaryFile() as err:
        command = ["-m", "actors", *arguments]
        process = fork_warm(command, (stdin, out.fileno(), err.fileno()), env=env)
        try:
            status = await process.ended()
        finally:
            process.kill()
        return Ended(status, *(_lines(file) for file in (out, err)))


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return lines_of(file.read().decode())


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; unlike `splitlines` this hides no character that ends one."""
    return text.removesuffix("\n").split("\n") if text else []


@attrs.define
class Serving:
    """A command that serves, and its ready line."""

    process: WarmProcess
    ready: dict[str, object]
    _out: trio.abc.ReceiveStream
    _rest: bytes = b""

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    async def line(self) -> dict[str, object] | None:
        """Return the next line of the output after the ready line; None: it has ended."""
        while b"\n" not in self._rest:
            piece = await self._out.receive_some()
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return orjson.loads(line)

    async def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return await self.process.ended()


@asynccontextmanager
async def serving(
    *arguments: str,
    env: dict[str, str] | None = None,
    stdin: int | None = None,
    stderr: BinaryIO | None = None,
) -> AsyncIterator[Serving]:
    """Run a command that serves, from its ready line on; it is gone afterwards."""
    outer, inner = os.pipe()
    async with trio.lowlevel.FdStream(outer) as out:
        try:
            errors = 2 if stderr is None else stderr.fileno()
            process = fork_warm(["-m", "actors", *arguments], (stdin, inner, errors), env=env)
        finally:
            os.close(inner)
        try:
            line = b""
            while b"\n" not in line:
                piece = await out.receive_some()
                assert piece, "it ended before it was ready"
                line += piece
            ready, _, rest = line.partition(b"\n")
            yield Serving(process, orjson.loads(ready), out, rest)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.ended()


def below(pid: int) -> Iterator[int]:
    """Return the processes that a process has started, and those that they have."""
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from below(child)
