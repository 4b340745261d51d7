"""The policy hook of a runtime: one call per message that is not exempt (BUS-11)."""

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
    """The reason why a Message BUS does not admit a message.

    Attributes:
        reason: Drop reason for the ledger and the trace.
        why: Reason for people, as half a sentence.
        code: Reply code for a request; None: no answer.
        in_place: Reply code for a component that awaits the answer in place if `code` is None.
    """

    reason: DropReason
    why: str
    code: Code | None = None
    in_place: Code = Code.MALFORMED


class Policy(ABC):
    """Decides whether a message may pass."""

    @abstractmethod
    def refusal(self, message: Message, by: str) -> str | None:
        """Return why a message may not pass, for people; None: it may. Must not wait or raise.

        Args:
            message: The message, with a checked sender.
            by: Address under which it was submitted.
        """


@final
class _PermitAll(Policy):
    @override
    def refusal(self, message: Message, by: str) -> str | None:
        return None


PERMIT_ALL: Final[Policy] = _PermitAll()
"""The default of a runtime: each message may pass (POL-15)."""
