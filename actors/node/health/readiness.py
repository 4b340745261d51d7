"""Which parts of a node can serve, as each part says of itself."""

from enum import StrEnum, unique
from types import MappingProxyType
from typing import final

__all__ = ["Part", "Readiness"]


@final
@unique
class Part(StrEnum):
    """Parts without which a node cannot serve."""

    NODE = "node"
    FRONT_DOOR = "front-door"
    BUS = "bus"
    REGISTRY = "registry"
    KEYS = "identity-keys"


@final
class Readiness:
    """What stands between a node and its service; a new one is about to start.

    Attributes:
        missing: By part, why it cannot serve, as half a sentence.
    """

    def __init__(self) -> None:
        self._missing: dict[Part, str] = {Part.NODE: "it is starting"}
        self.missing = MappingProxyType(self._missing)

    def ready(self, part: Part) -> None:
        """Note that a part can serve."""
        self._missing.pop(part, None)

    def lacking(self, part: Part, why: str) -> None:
        """Note that a part cannot serve, and why."""
        self._missing[part] = why
