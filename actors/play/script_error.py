"""What is wrong with a scenario file."""

from typing import final

from specs.errors import ProtoflyError

__all__ = ["ScriptError"]


@final
class ScriptError(ProtoflyError):
    """A scenario file cannot be played; who wrote it must act.

    Attributes:
        file: The file.
        line: Its line, from 1; 0 for the file as a whole.
        what: What is wrong, and what to do, as half a sentence.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        where = f"{file}, line {line}" if line else file
        super().__init__(f"{where}: {what}")
        self.file = file
        self.line = line
        self.what = what
