"""What a command tells the person who typed it."""

from typing import final

from actors.cli.exit_code import ExitCode
from specs.errors import ProtoflyError

__all__ = ["CommandError"]


@final
class CommandError(ProtoflyError):
    """What went wrong, why, and what to do, for the person who typed the command.

    Attributes:
        code: The exit status.
    """

    def __init__(self, sentence: str, code: ExitCode) -> None:
        super().__init__(sentence)
        self.code = code
