"""The errors of a message node that its operator has to act on."""

from pathlib import Path
from typing import final

from specs.errors import ProtoflyError

__all__ = ["RegistryFileError"]


@final
class RegistryFileError(ProtoflyError):
    """The file of the domain registry cannot be used.

    Attributes:
        path: The file.
        reason: Why not, as half a sentence.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot use the registry file {path}: {reason}")
        self.path = path
        self.reason = reason
