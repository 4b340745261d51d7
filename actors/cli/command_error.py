"""The exit statuses of commands, and the error that ends one with a sentence."""

from enum import IntEnum
from typing import final

from specs.errors import ProtoflyError


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
    """A sentence for the user of a command: the failure, its cause, and what to do."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.CONFIGURATION) -> None:
        super().__init__(sentence)
        self.code = code
