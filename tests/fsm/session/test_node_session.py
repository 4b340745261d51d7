"""The node's side of a session, without a node (I-M1..I-M4, I-M12)."""

from fsm.engine import Step
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import (
    Granted,
    Liveness,
    OutboundMessage,
    SessionPort,
    SessionRequest,
)
from specs.message import Message, MessageType
from tests.support.link_calls import Calls, Told

TOKEN = "t" * 64
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


def entry(n=1, size=10):
    return OutboundMessage(Message(n, MessageType.CREATE, "a://b/c", R), b"x" * size)


def opened(liveness=Liveness.PINGED):
    core = lone_session(f"mn|{R}")
    core.open(asked(1, None, TOKEN, liveness), 0.0)
    return core


def detached():
    core = opened()
    core.note_life(0.0)
    core.lose_link(1, "lost", 0.0)
    return core


def test_a_session_that_moves_leaves_its_link_and_what_waits():
    """I-M15."""
    waits = entry()
    away = detached()
    away.wait(waits)
    steps = [one for core in (opened(), away) for one in core.move_away("there", 1.0)]

    cut, lost, *moves = steps
    assert (cut.link, lost.new) == (1, "detached")
    assert [(one.old, one.new) for one in moves if isinstance(one, Step)] == [
        ("detached", "moved")
    ] * 2
    assert [one for one in moves if kind(one) == "move"] == [asks.move(()), asks.move((waits,))]
