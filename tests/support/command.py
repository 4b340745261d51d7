"""Commands as a person runs them, as processes of this interpreter or within this one."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import attrs
import click
import orjson
import pytest
import structlog
import trio
from click.testing import CliRunner

from actors.__main__ import main
from actors.cli.command_error import CommandError

ROOT = Path(__file__).parents[2]
PYTHON = (sys.executable, "-m")


@attrs.frozen
class Ended:
    """How a command ended."""

    status: int
    out: list[str]
    err: list[str]


def called(command: click.Command, *arguments: str) -> Ended:
    """Run a command within this process; what it raises is told as `enter` tells it."""
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    out, err = result.stdout.splitlines(), result.stderr.splitlines()
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
    configured = structlog.get_config()
    with CliRunner().isolation(env=env) as (out, err, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["protofly", *arguments])
        with pytest.raises(SystemExit) as exiting:
            main()
        told = [stream.getvalue().decode().splitlines() for stream in (out, err)]
    structlog.configure(**configured)
    return Ended(int(exiting.value.code or 0), *told)


async def call(*arguments: str, env: dict[str, str] | None = None) -> Ended:
    """Run `python -m actors ...` to its end."""
    done = await trio.run_process(
        [*PYTHON, "actors", *arguments],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        stdin=b"",
        cwd=ROOT,
        env=env,
    )
    return Ended(
        done.returncode, done.stdout.decode().splitlines(), done.stderr.decode().splitlines()
    )


@attrs.frozen
class Serving:
    """A command that serves, and its ready line."""

    process: trio.Process
    ready: dict[str, object]

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    async def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return await self.process.wait()


@asynccontextmanager
async def serving(
    *arguments: str, env: dict[str, str] | None = None, stderr: BinaryIO | None = None
) -> AsyncIterator[Serving]:
    """Run a command that serves, from its ready line on; it is gone afterwards."""
    process = await trio.lowlevel.open_process(
        [*PYTHON, "actors", *arguments], stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT, env=env
    )
    try:
        line = b""
        while not line.endswith(b"\n"):
            piece = await process.stdout.receive_some()
            assert piece, "it ended before it was ready"
            line += piece
        yield Serving(process, orjson.loads(line))
    finally:
        if process.poll() is None:
            process.kill()
        await process.stdout.aclose()
        with trio.CancelScope(shield=True):
            await process.wait()
