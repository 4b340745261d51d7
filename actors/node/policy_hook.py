"""The seam of the policy engine: asked once per message, before any effect (POL-01, I-M8)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum, unique
from typing import Final, final

import attrs
from typing_extensions import override

from specs.addresses.address import is_node
from specs.identity import Identity, SenderIdentity, VouchedBy
from specs.message import Message

__all__ = ["PERMIT_ALL", "Asker", "Decision", "Policy", "Ruling"]


@final
@unique
class Decision(StrEnum):
    """Decision of the enforcement point about a message."""

    PERMIT = "permit"
    DENY = "deny"


@final
@attrs.frozen
class Ruling:
    """A decision and where it comes from.

    Attributes:
        obligations: What has been done along with it, for the trace (I-K3).
        version: Of the policies by which was decided; None: they have none.
        direction: Whether the message is going `out`, to another domain, or comes `in`
            (POL-17).
        marked: The message as it goes on, if the policy has it changed (POL-13).
        after: What is to be done when the message has gone, or was refused; once.
    """

    decision: Decision
    policy: str
    why: str = ""
    obligations: tuple[str, ...] = ()
    version: int | None = None
    direction: str = "in"
    marked: Message | None = None
    after: Callable[[], object] | None = None


@final
@attrs.frozen
class Asker:
    """Over whose session a message came.

    Attributes:
        runtime: The session's runtime, in canonical form; None: it has no session yet.
        identity: Identity of it; None: no login.
        sender: Sender of its messages, as their receivers get it; None: they are of several, as it
            is the session of the node of another domain, or there is no session.
    """

    runtime: str | None = None
    identity: Identity | None = None
    sender: SenderIdentity | None = attrs.field(init=False, eq=False)

    @sender.default
    def _sender(self) -> SenderIdentity | None:
        if self.runtime is None or is_node(self.runtime):
            return None
        if self.identity is None:
            return SenderIdentity(self.runtime)
        return SenderIdentity(self.runtime, self.identity.user, VouchedBy.IDENTITY_PROVIDER)


class Policy(ABC):
    """Decides whether a message may have any effect."""

    @abstractmethod
    def judge(self, message: Message, asker: Asker) -> Ruling:
        """Rule on a message that came over a session, or that asks for one.

        Args:
            message: The message.
            asker: Session or link of the sender.
        """


@final
class _PermitAll(Policy):
    _ruling: Final = Ruling(Decision.PERMIT, "default")

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        return self._ruling


PERMIT_ALL: Final[Policy] = _PermitAll()
"""Nothing applies, and the default for registered sessions is to permit (POL-15)."""
