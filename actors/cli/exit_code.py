"""What the exit status of a command says."""

from enum import IntEnum

__all__ = ["ExitCode"]


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
