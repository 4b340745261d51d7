"""The policy hook of a runtime's bus: one call per message that is not exempt (BUS-11)."""

from abc import ABC, abstractmethod
from typing import Final, final

from typing_extensions import override

from specs.message import Message

__all__ = ["PERMIT_ALL", "Policy"]


class Policy(ABC):
    """Decides whether a message may pass."""

    @abstractmethod
    def refusal(self, message: Message, by: str) -> str | None:
        """Say why a message may not pass; None: it may. Must not wait or raise.

        Args:
            message: Its source has been checked.
            by: Under which address it was submitted.
        """


@final
class _PermitAll(Policy):
    @override
    def refusal(self, message: Message, by: str) -> str | None:
        return None


PERMIT_ALL: Final[Policy] = _PermitAll()
"""The default of a runtime: nothing applicable means permit (POL-15)."""
