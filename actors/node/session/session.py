"""A session as the bus holds it.

How the sessions of a node stand, for whoever wants to see them.

What is told of a session when it moves: a trace record, a line of the log, a count.
"""

from types import MappingProxyType
from typing import Final, final

import attrs
import structlog

from actors.kit.tally import Tally
from actors.node.links.port import Port
from actors.node.messages import SessionView
from actors.node.policy_hook import Asker
from actors.node.session.exchange import Exchange
from actors.node.trace import Witness
from fsm.engine import Step
from fsm.machines.session import State, Trigger
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import Granted, Parcel, Refused
from specs.dialects.dialect import Dialect
from specs.identity import Identity

__all__ = ["Outcome", "Session", "note", "views"]

_log = structlog.get_logger("actors.node")

_EVENTS: Final = MappingProxyType(
    {
        Trigger.OPENED: "session opened",
        Trigger.LINK_LOST: "session detached",
        Trigger.REOPENED: "session reopened",
        Trigger.CLOSE: "session closed",
        Trigger.EXPIRE: "session expired",
    }
)
"""Names of the log's events; they stay."""

_OVER: Final = (State.CLOSED, State.EXPIRED)


def note(witness: Witness, runtime: str, step: Step) -> None:
    """Tell that the session of a runtime has moved."""
    witness.step(step)
    why = {"why": step.why} if step.why else {}
    _log.info(_EVENTS[Trigger(step.cause)], runtime=runtime, **why)
    if step.new in _OVER:
        witness.counters.count(Tally.SESSIONS_ENDED, State(step.new))


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


def views(exchange: Exchange) -> tuple[SessionView, ...]:
    """Show every session."""
    return tuple(_view(exchange, runtime, one) for runtime, one in exchange.sessions.items())


def _view(exchange: Exchange, runtime: str, session: Session) -> SessionView:
    return SessionView(
        runtime,
        str(session.core.state),
        None if session.port is None else session.port.name,
        exchange.tables.allocation.owned_by(runtime),
        exchange.tables.subscriptions.resources_of(runtime),
    )
