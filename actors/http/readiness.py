"""The readiness of a process: the parts without which it cannot serve."""

from enum import StrEnum, unique
from types import MappingProxyType
from typing import final


@final
@unique
class Part(StrEnum):
    """Parts that a node or runtime needs to serve; `NODE` and `RUNTIME` stand for the whole."""

    NODE = "node"
    LISTENER = "listener"
    BUS = "bus"
    REGISTRY = "registry"
    KEYS = "identity-keys"
    ENGINE = "engine"
    POLICIES = "policies"
    RUNTIME = "runtime"
    SESSION = "session"
    HYPERTIES = "hyperties"


@final
class Readiness:
    """The reasons why a process cannot serve; at first, that it is starting.

    Args:
        whole: Stands for the whole process; while it is missing, no other part is probed.

    Attributes:
        missing: Reasons by part, as half a sentence.
    """

    def __init__(self, whole: Part = Part.NODE) -> None:
        self.whole = whole
        self._missing: dict[Part, str] = {whole: "it is starting"}
        self.missing = MappingProxyType(self._missing)

    def ready(self, part: Part) -> None:
        """Record that a part can serve."""
        self._missing.pop(part, None)

    def lacking(self, part: Part, why: str) -> None:
        """Record that a part cannot serve.

        Args:
            part: Part of the process.
            why: The reason.
        """
        self._missing[part] = why
