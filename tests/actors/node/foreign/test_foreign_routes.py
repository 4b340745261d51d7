"""The ways to the node of another domain: its session here, and the stub that leads to it."""

import pytest

from actors.node.session.foreign_routes import ForeignRoutes
from specs.message import Message, MessageType

PEER, H, O = "domain://msg-node.b.ex", "hyperty://a.ex/h", "comm://a.ex/o"  # noqa: E741
CHILDREN = f"{O}/children/resources"
BODY = {"resource": f"{H}#1", "value": "v"}


@pytest.mark.parametrize("has_session", [True, False])
def test_a_change_of_a_child_takes_the_way_of_the_new_child(has_session):
    """I-B7, SYN-24: by two ways it could come first."""
    routes = ForeignRoutes("a.ex", {"b.ex"})
    for kind in (MessageType.CREATE, MessageType.UPDATE, MessageType.DELETE):
        message = Message(1, kind, H, CHILDREN, BODY)
        assert routes.is_for_stub(PEER, message, has_session=has_session)


def test_other_events_and_answers_go_back_over_the_session():
    """MN-18: also those about children."""
    routes = ForeignRoutes("a.ex", {"b.ex"})
    change = Message(1, MessageType.UPDATE, O, f"{O}/changes", {"version": 2})
    answer = Message(1, MessageType.RESPONSE, CHILDREN, "hyperty://b.ex/h", {"code": 200})
    for message in (change, answer):
        assert not routes.is_for_stub(PEER, message, has_session=True)
        assert routes.is_for_stub(PEER, message, has_session=False)
