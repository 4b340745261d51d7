"""How the sessions of a node stand, for whoever wants to see them."""

from actors.node.messages import SessionView
from actors.node.session.exchange import Exchange
from actors.node.session.session import Session

__all__ = ["views"]


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
