"""The identity of a runtime as the sender of messages between its own hyperties."""

from typing import final

import attrs

from specs.identity import SenderIdentity

__all__ = ["OwnSender"]


@final
@attrs.define(slots=True, eq=False)
class OwnSender:
    """The runtime and its user; the stub of the own node writes it at each session.

    Attributes:
        identity: What the node tells the receivers of this runtime's messages. Before the first
            session, and of a node that does not say so: the runtime, with no user.
    """

    identity: SenderIdentity

    @classmethod
    def of(cls, runtime: str) -> "OwnSender":
        """Return that of a runtime that has no session yet."""
        return cls(SenderIdentity(runtime))
