"""The policy hook of a runtime's bus: one call per message that is not exempt (BUS-11).

Why a Message BUS lets a message go no further.
"""

from abc import ABC, abstractmethod
from typing import Final, final

import attrs
from typing_extensions import override

from specs.message import Message
from specs.reply_code import Code, DropReason

__all__ = ["PERMIT_ALL", "Policy", "Refusal"]


@final
@attrs.frozen(slots=True)
class Refusal:
    """Why a message is not admitted.

    Attributes:
        code: What a request is answered with; None: nothing, it ends silently.
        in_place: What somebody who awaits the answer in place is told if it is nothing.
    """

    reason: DropReason
    why: str
    code: Code | None = None
    in_place: Code = Code.MALFORMED


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
