"""The session of a runtime, as the bus holds it."""

from typing import final

import attrs

from actors.node.links.port import Port
from actors.node.policy_hook import Asker
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import Granted, OutboundMessage, Refused
from specs.dialects.dialect import Dialect
from specs.identity import Identity


@final
@attrs.define(eq=False)
class Session:
    """A runtime's session and the link that has it.

    Attributes:
        asker: What policy may know of the sender over this session.
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
        """The identity of the login that opened it; None: there was none."""
        return self.asker.identity


@final
@attrs.frozen
class Outcome:
    """Outcome of an open request.

    Attributes:
        waiting: What is to be written to the link after the answer, in order.
    """

    verdict: Granted | Refused | None
    waiting: tuple[OutboundMessage, ...] = ()
