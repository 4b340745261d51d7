"""The seam of the policy engine: asked once per message, before any effect (POL-01, I-M8)."""

from abc import ABC, abstractmethod
from enum import StrEnum, unique
from typing import Final, final

import attrs
from typing_extensions import override

from specs.message import Message

__all__ = ["PERMIT_ALL", "Decision", "Policy", "Ruling"]


@final
@unique
class Decision(StrEnum):
    """What the policy engine can say of a message."""

    PERMIT = "permit"
    DENY = "deny"


@final
@attrs.frozen
class Ruling:
    """A decision and where it comes from.

    Attributes:
        policy: Name of what decided.
        why: Half a sentence for whoever is refused.
    """

    decision: Decision
    policy: str
    why: str = ""


class Policy(ABC):
    """Decides whether a message may have any effect."""

    @abstractmethod
    def judge(self, message: Message, by: str | None) -> Ruling:
        """Rule on a message that came over the session of `by`, if it has one yet."""


@final
class _PermitAll(Policy):
    _ruling: Final = Ruling(Decision.PERMIT, "default")

    @override
    def judge(self, message: Message, by: str | None) -> Ruling:
        return self._ruling


PERMIT_ALL: Final[Policy] = _PermitAll()
"""Nothing applies, and the default for registered sessions is to permit (POL-15)."""
