"""The child processes of the demonstration: started, listened to, and never left behind."""

import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, final

import attrs
import trio

from actors.cli.command_error import CommandError, ExitCode
from actors.demo.director import Director
from actors.demo.line import Line, What, read_line
from specs.limits.protocol import DRAIN_TIMEOUT, GOODBYE_TIMEOUT

__all__ = ["Cast", "open_cast"]

_READ: Final = 65_536
"""Bytes read from a child's stdout at once (ours)."""


@final
@attrs.frozen
class _Ended:
    """A child's stdout came to its end."""

    who: str


@final
class Cast:
    """The children that are running, and what they say."""

    def __init__(self, nursery: trio.Nursery, director: Director) -> None:
        self._nursery = nursery
        self._director = director
        self._processes: dict[str, trio.Process] = {}
        self._said, self._heard = trio.open_memory_channel[Line | _Ended](0)

    async def start(self, who: str, command: Sequence[str]) -> None:
        """Start a child in a session of its own, so that Ctrl-C reaches only us.

        Its stdin is a pipe that ends when we do: by that it knows that we are gone.
        """
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._processes[who] = process
        self._nursery.start_soon(self._listen, who, process)

    async def _listen(self, who: str, process: trio.Process) -> None:
        if process.stdout is None:
            return
        rest = b""
        async for piece in process.stdout:
            *lines, rest = (rest + piece).split(b"\n")
            for raw in lines:
                line = read_line(who, raw)
                if line is not None:
                    await self._said.send(line)
        await self._said.send(_Ended(who))

    async def expect(self, who: str, what: What) -> Line:
        """Show what the children say until one says what is expected.

        Raises:
            CommandError: A child ended before.
        """
        while True:
            heard = await self._heard.receive()
            if isinstance(heard, _Ended):
                raise await self._died(heard.who)
            self._director.line(heard)
            if (heard.who, heard.what) == (who, what):
                return heard

    async def _died(self, who: str) -> CommandError:
        status = await self._processes[who].wait()
        return CommandError(
            f"{who} ended with status {status} before its time; its own messages say why",
            ExitCode.FAILED,
        )

    async def stop(self, who: str) -> None:
        """Tell a child to go, and show what it says until it has gone.

        Raises:
            CommandError: It did not go in good order.
        """
        process = self._processes[who]
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        await self.ended(who)

    async def ended(self, who: str) -> None:
        """Show what the children say until one has gone by itself.

        Raises:
            CommandError: It did not go in good order, or another one went.
        """
        while True:
            heard = await self._heard.receive()
            if isinstance(heard, Line):
                self._director.line(heard)
            elif heard.who == who:
                break
            else:
                raise await self._died(heard.who)
        if await self._processes[who].wait() != 0:
            raise await self._died(who)

    async def end_all(self) -> None:
        """Leave no child behind: ask, wait in bounded time, then kill."""
        with trio.move_on_after(DRAIN_TIMEOUT):
            await self._send(signal.SIGTERM)
        await self._send(signal.SIGKILL)

    async def _send(self, number: signal.Signals) -> None:
        running = [one for one in self._processes.values() if one.poll() is None]
        for process in running:
            process.send_signal(number)
        for process in running:
            await process.wait()


@asynccontextmanager
async def open_cast(director: Director) -> AsyncIterator[Cast]:
    """Run children while inside; on leaving, however that happens, all are gone."""
    async with trio.open_nursery() as nursery:
        cast = Cast(nursery, director)
        try:
            yield cast
        finally:
            with trio.move_on_after(DRAIN_TIMEOUT + GOODBYE_TIMEOUT, shield=True):
                await cast.end_all()
        nursery.cancel_scope.cancel()
