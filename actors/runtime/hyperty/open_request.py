"""A request whose provisional answers its sender reads while the receiver is at work."""

from collections import deque
from typing import Final, final

import trio

from specs.message import Message

PROGRESS_KEPT: Final = 64
"""Provisional answers that wait to be read; the oldest leaves for a further one (our choice)."""


@final
class OpenRequest:
    """The answers to a request, as they come: `async for` yields the final one last.

    Provisional answers are yielded if they have a value; of those that wait, the newest
    `PROGRESS_KEPT` are kept.
    """

    def __init__(self) -> None:
        self._progress: deque[Message] = deque(maxlen=PROGRESS_KEPT)
        self._answer: Message | None = None
        self._is_over = self._is_left = False
        self._change = trio.Event()

    def note(self, answer: Message) -> None:
        """Keep a provisional answer until it is read; called by the client."""
        if answer.value is not None:
            self._progress.append(answer)
            self._change.set()

    def end(self, answer: Message) -> None:
        """Keep the final answer; called by the client."""
        self._answer = answer
        self._change.set()

    def close(self) -> None:
        """End all waits, as the block of the request is left; called by the client."""
        self._is_left = True
        self._change.set()

    def __aiter__(self) -> "OpenRequest":
        return self

    async def __anext__(self) -> Message:
        """Return the next answer, and wait if none is there. If cancelled, none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._progress and self._answer is None:
            await self._wait()
        if self._progress:
            return self._progress.popleft()
        if self._is_over or self._answer is None:
            raise StopAsyncIteration
        self._is_over = True
        return self._answer

    async def answer(self) -> Message:
        """Wait for the final answer and return it, also again; provisional ones are skipped.

        If cancelled, nothing has changed.

        Raises:
            trio.ClosedResourceError: The block of the request was left before; so does the
                iteration.
        """
        await trio.lowlevel.checkpoint()
        while (answer := self._answer) is None:
            await self._wait()
        self._progress.clear()
        return answer

    async def _wait(self) -> None:
        if self._is_left:
            raise trio.ClosedResourceError("the request was given up: its block was left")
        if self._change.is_set():
            self._change = trio.Event()
        await self._change.wait()
