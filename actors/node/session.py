"""A session as the bus holds it."""

from typing import final

import attrs

from actors.node.policy import Asker
from actors.node.port import Port
from fsm.cores.node_session import NodeSessionCore
from fsm.cores.node_session_terms import Granted, Parcel, Refused
from specs.dialect import Dialect
from specs.identity import Identity

__all__ = ["Outcome", "Session"]


@final
@attrs.define(eq=False)
class Session:
    """A runtime's session and the link that has it.

    Attributes:
        core: Decides.
        stub: The address session control comes from.
        port: The link that has the session; None while detached.
        dialect: How the runtime spelt over its last link; None while it has one (N3).
        identity: Who vouched for it when it was opened; None: nobody did.
    """

    core: NodeSessionCore
    stub: str
    port: Port | None = None
    dialect: Dialect | None = None
    identity: Identity | None = None

    @property
    def asker(self) -> Asker:
        """What policy may know of whoever sends over this session."""
        return Asker(self.core.runtime, self.identity)


@final
@attrs.frozen
class Outcome:
    """What became of a wish for a session.

    Attributes:
        verdict: Whether the link has it.
        waiting: What is to be written to the link after the answer, in order.
    """

    verdict: Granted | Refused | None
    waiting: tuple[Parcel, ...] = ()
