"""Interface of the policy engine, which judges a message before the node acts (POL-01, I-M8)."""

from abc import ABC, abstractmethod
from typing import Final

import attrs
from typing_extensions import override

from actors.policy.engine import Decision, Ruling
from specs.addresses.address import is_node
from specs.identity import Identity, SenderIdentity, VouchedBy
from specs.message import Message


@attrs.frozen
class Asker:
    """Known facts about the sender of a message, for policies: runtime, login and identity.

    Attributes:
        runtime: The session's runtime, in canonical form; None: there is no session yet.
        identity: Login of the runtime; None: no login.
        sender: Sender of the messages, as receivers see it; None: there is no session, or it is
            the session of another domain's node, which carries messages of several senders.
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
    """Interface of a policy engine: decides whether a message may have any effect."""

    @abstractmethod
    def judge(self, message: Message, asker: Asker) -> Ruling:
        """Return the ruling on a message that came over a session, or that requests one.

        Args:
            message: The message.
            asker: Session or link of the sender.
        """


class _PermitAll(Policy):
    _ruling: Final = Ruling(Decision.PERMIT, "default")

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        return self._ruling


PERMIT_ALL: Final[Policy] = _PermitAll()
"""Policy that permits every message of a registered session (POL-15)."""
