"""What errors of the layers below mean to somebody at a terminal."""

from typing import TypeAlias

from actors.cli.command_error import CommandError
from actors.cli.exit_code import ExitCode
from specs.errors import ProtoflyError

__all__ = ["Meanings", "meant"]

Meanings: TypeAlias = tuple[tuple[type[ProtoflyError], ExitCode, str], ...]
"""For each error the exit status, and what to do; empty: the error says so itself."""


def meant(error: ProtoflyError, meanings: Meanings) -> CommandError | None:
    """Return the sentence and the status for an error; None: it is not among these."""
    for kind, code, advice in meanings:
        if isinstance(error, kind):
            return CommandError(f"{error}; {advice}" if advice else str(error), code)
    return None
