"""The answer to one ask: sent once, needs no room, never blocks the one who answers."""

from enum import Enum, auto
from typing import Generic, TypeVar, final

import trio

from actors.kit.errors import ReplyTwiceError
from actors.kit.supervision.waits import Wait

__all__ = ["Reply"]

R = TypeVar("R")


class _State(Enum):
    OPEN = auto()
    ANSWERED = auto()
    ABANDONED = auto()


@final
class Reply(Generic[R]):
    """The one-shot way back of an ask; it travels inside the message.

    The actor that gets it answers by `send` or `fail`, now or later, itself or
    through others. An answer that nobody waits for any more goes nowhere.
    """

    __slots__ = ("_answered", "_error", "_state", "_value", "_wait")

    def __init__(self, wait: Wait | None = None) -> None:
        self._answered = trio.Event()
        self._state = _State.OPEN
        self._value: list[R] = []
        self._error: Exception | None = None
        self._wait = wait

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits for the answer."""
        return self._state is _State.OPEN

    def send(self, value: R) -> None:
        """Answer.

        Raises:
            ReplyTwiceError: It has been answered before.
        """
        if self._close():
            self._value.append(value)

    def fail(self, error: Exception) -> None:
        """Answer with an error: the asker gets it raised.

        Raises:
            ReplyTwiceError: It has been answered before.
        """
        if self._close():
            self._error = error

    def lose(self, error: Exception) -> None:
        """End the wait because nobody is left to answer; called by the kit."""
        if self._state is _State.OPEN:
            self.fail(error)
            self._state = _State.ABANDONED

    def abandon(self) -> None:
        """Stop waiting; called by the kit when the asker is gone."""
        if self._state is _State.OPEN:
            self._state = _State.ABANDONED

    def defer(self) -> None:
        """Note that the asked actor serves others before it answers; called by the kit."""
        if self._wait is not None:
            self._wait.is_over = True

    async def get(self) -> R:
        """Wait for the answer and return it, or raise what it failed with.

        Cancelled: the answer, if it still comes, goes nowhere.
        """
        await self._answered.wait()
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _close(self) -> bool:
        if self._state is _State.ANSWERED:
            raise ReplyTwiceError
        if self._state is _State.ABANDONED:
            return False
        self._state = _State.ANSWERED
        self.defer()
        self._answered.set()
        return True
