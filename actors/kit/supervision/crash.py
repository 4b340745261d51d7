"""The crash of an actor: the one place where any exception is caught."""

from collections.abc import Callable
from types import TracebackType
from typing import Final, final

__all__ = ["Crash"]


@final
class Crash:
    """Hold an exception of the block, so that a supervisor can decide.

    Cancellation and interrupts of the interpreter pass through. A group of a single exception
    counts as that exception.

    Args:
        heard: Called with the exception at once. Of a group that also holds cancellation or an
            interrupt, it is called with the exceptions, and the rest passes through; without it
            such a group passes through as a whole.

    Attributes:
        error: The exception; None if there was none.
    """

    __slots__ = ("_heard", "error")

    def __init__(self, heard: Callable[[Exception], None] | None = None) -> None:
        self._heard: Final = heard
        self.error: Exception | None = None

    def __enter__(self) -> "Crash":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception):
            self._hold(error)
            return True
        if self._heard is not None and isinstance(error, BaseExceptionGroup):
            errors, rest = error.split(Exception)
            if isinstance(errors, Exception) and rest is not None:
                self._hold(errors)
                raise rest from None
        return False

    def _hold(self, error: Exception) -> None:
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        self.error = error
        if self._heard is not None:
            self._heard(error)
