"""What came out of an actor: the one place where any exception is caught."""

from types import TracebackType
from typing import final

__all__ = ["Crash"]


@final
class Crash:
    """Hold an exception of what ran inside, so that a supervisor can decide.

    Cancellation and the interrupts of the interpreter pass through: they are not
    the actor's. A group of one is taken for what is in it.

    Attributes:
        error: What was raised; None if nothing was.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> "Crash":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        self.error = error
        return True
