"""The readiness of a process: the parts without which it cannot serve."""

from enum import StrEnum, unique
from types import MappingProxyType
from typing import final

__all__ = ["Part", "Readiness"]


@final
@unique
class Part(StrEnum):
    """Parts without which a node or a runtime cannot serve; the first of each is its whole."""

    NODE = "node"
    LISTENER = "listener"
    BUS = "bus"
    REGISTRY = "registry"
    KEYS = "identity-keys"
    RUNTIME = "runtime"
    SESSION = "session"
    HYPERTIES = "hyperties"


@final
class Readiness:
    """The reasons why a process cannot serve yet; a new one is about to start.

    Args:
        whole: The process as a whole; while it is missing, no other part is asked.

    Attributes:
        missing: By part, why it cannot serve, as half a sentence.
    """

    def __init__(self, whole: Part = Part.NODE) -> None:
        self.whole = whole
        self._missing: dict[Part, str] = {whole: "it is starting"}
        self.missing = MappingProxyType(self._missing)

    def ready(self, part: Part) -> None:
        """Note that a part can serve."""
        self._missing.pop(part, None)

    def lacking(self, part: Part, why: str) -> None:
        """Note that a part cannot serve, and why.

        Args:
            part: Part of the process.
            why: The reason.
        """
        self._missing[part] = why
