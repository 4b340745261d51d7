"""The node's side of a session, without a node (I-M1..I-M4, I-M12)."""

from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import (
    Granted,
    SessionPort,
    SessionRequest,
)
from tests.support.link_calls import Calls, Told

R = "hyperty-runtime://a.ex/ra"

asks = Calls(SessionPort)


def lone_session(key="k"):
    return Told(SessionPort, lambda port: NodeSessionCore(key, R, port))


def asked(link, token=None, fresh=None, *more, **named):
    """Return what a link asks for."""
    return SessionRequest(link, token, fresh, *more, **named)


def kind(one):
    if isinstance(one, Granted):
        return "grant"
    return getattr(one, "name", "step")


# ---- what a session that goes on has lost
