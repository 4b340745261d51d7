"""A guard that makes simultaneous use by two tasks an error."""

from types import TracebackType
from typing import Final, final

import trio

__all__ = ["Turn"]


@final
class Turn:
    """An operation that one task at a time may do.

    It is entered by `with`, around the awaits that must not overlap. A second task gets
    `trio.BusyResourceError`, which is a bug of this process, never of the peer.
    """

    __slots__ = ("_doing", "_taken")

    def __init__(self, doing: str) -> None:
        self._doing: Final = doing
        self._taken = False

    @property
    def is_taken(self) -> bool:
        """Whether a task is inside."""
        return self._taken

    def __enter__(self) -> None:
        if self._taken:
            raise trio.BusyResourceError(f"another task is already {self._doing}")
        self._taken = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._taken = False
