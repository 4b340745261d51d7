"""The answer to one ask: sent once, without waiting."""

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
    """The one-shot answer channel of an ask; it is part of the message.

    The actor that gets the message answers by `send` or `fail`, at once or later, itself or
    through others. An answer for which nobody waits any more is dropped.
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
        """Whether the asker still waits for the answer."""
        return self._state is _State.OPEN

    def send(self, value: R) -> None:
        """Answer with a value.

        Raises:
            ReplyTwiceError: The ask was answered before.
        """
        if self._close():
            self._value.append(value)

    def fail(self, error: Exception) -> None:
        """Answer with an exception, which the asker gets raised.

        Raises:
            ReplyTwiceError: The ask was answered before.
        """
        if self._close():
            self._error = error

    def lose(self, error: Exception) -> None:
        """End the wait because no actor is left to answer; called by the kit."""
        if self._state is _State.OPEN:
            self.fail(error)
            self._state = _State.ABANDONED

    def abandon(self) -> None:
        """Drop the answer from now on; called by the kit when the asker has given up."""
        if self._state is _State.OPEN:
            self._state = _State.ABANDONED

    def defer(self) -> None:
        """Note that the actor handles other messages before it answers; called by the kit."""
        if self._wait is not None:
            self._wait.is_over = True

    async def get(self) -> R:
        """Wait for the answer and return it.

        If cancelled, an answer that still comes is dropped. One that has come is returned all
        the same, and the next checkpoint raises the cancellation: an actor whose answer found
        the reply open has given it to the asker.

        Raises:
            ActorStoppedError: The actor stopped or crashed before it answered.
            Exception: What the actor answered by `fail`.
        """
        try:
            await self._answered.wait()
        except trio.Cancelled:
            if self._state is not _State.ANSWERED:
                raise
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
