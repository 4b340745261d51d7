"""A session as the bus holds it."""

from typing import final

import attrs

from actors.node.links.port import Port
from actors.node.policy_hook import Asker
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import Granted, Parcel, Refused
from specs.dialects.dialect import Dialect
from specs.identity import Identity

__all__ = ["Outcome", "Session"]


@final
@attrs.define(eq=False)
class Session:
    """A runtime's session and the link that has it.

    Attributes:
        core: Decides.
        stub: The address session control comes from.
        asker: What policy may know of whoever sends over this session.
        port: The link that has the session; None while detached.
        dialect: How the runtime spelt over its last link; None while it has one (N3).
    """

    core: NodeSessionCore
    stub: str
    asker: Asker
    port: Port | None = None
    dialect: Dialect | None = None

    @property
    def identity(self) -> Identity | None:
        """Who vouched for it when it was opened; None: nobody did."""
        return self.asker.identity


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
