"""What a command tells the person who typed it.

What the exit status of a command says.
"""

from enum import IntEnum
from typing import final

from specs.errors import ProtoflyError

__all__ = ["CommandError", "ExitCode"]


class ExitCode(IntEnum):
    """Exit statuses, the same for all commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    REFUSED = 4
    CANNOT_CONNECT = 5
    TIMEOUT = 6
    INTERRUPTED = 130


@final
class CommandError(ProtoflyError):
    """What went wrong, why, and what to do, for the person who typed the command."""

    def __init__(self, sentence: str, code: ExitCode) -> None:
        super().__init__(sentence)
        self.code = code
