"""A node releases the stub of another domain that was idle (PFY-03, MN-19, STB-15)."""

import pytest

from fsm.machines.stub_connection import State
from specs.limits.protocol import PEER_OFFENCES
from specs.message import Message, MessageType, reply_to, stamped
from tests.fsm.catalogue.foreign_table import NODE, STUB, B, Table

SM = "domain://msg-node.b.ex/sm"
IDLE = 60.0


def asked(number=1, kind=MessageType.CREATE, to="hyperty://b.ex/hb", **body):
    return Message(number, kind, f"{NODE}/sm", to, body)


def answered(table, request, now):
    table.posted(STUB, stamped(reply_to(request, 200), STUB), now)


@pytest.fixture
def table():
    """A table with a stub that is live, and whose first request is answered."""
    table = Table({B}, IDLE)
    table.send(asked(), 0)
    assert table.core.deadline() < IDLE
    table.ready(STUB, 0)
    table.status(STUB, State.LIVE, "")
    answered(table, asked(), 1)
    return table


def tick(table, now):
    assert table.core.deadline() == now
    return table.tick(now)


def ends(calls):
    return [(one.kind, one.stub, one.why) for one in calls] == [("end", STUB, "it was idle")]


def test_messages_that_wait_are_refused_if_the_node_leaves(table):
    tick(table, 1 + IDLE)
    table.send(asked(2), 61)
    table.leave()
    (refused,) = table.gone(STUB, "ended", 62)
    assert (refused.message.id, refused.code) == (2, 503)


def test_messages_that_wait_for_the_successor_of_an_offender_are_refused(table):
    """R11: an answer for each, also when the stub that ends has offended too often."""
    tick(table, 1 + IDLE)
    table.send(asked(2), 61)
    forged = Message(1, MessageType.UPDATE, "hyperty://b.ex/hb", "hyperty://a.ex/o/changes")
    for _ in range(PEER_OFFENCES):
        table.posted(STUB, forged, 61)
    (refused,) = table.gone(STUB, "ended", 62)
    assert (refused.kind, refused.message.id, refused.code) == ("refuse", 2, 503)


def test_a_subscription_keeps_the_stub_until_it_is_given_up(table):
    path = {"resources": ["comm://b.ex/1/changes"]}
    subscribe = asked(2, MessageType.SUBSCRIBE, SM, **path)
    table.send(subscribe, 1)
    answered(table, subscribe, 1)
    assert tick(table, 1 + IDLE) == []
    unsubscribe = asked(3, MessageType.UNSUBSCRIBE, SM, **path)
    table.send(unsubscribe, 2 * IDLE)
    answered(table, unsubscribe, 2 * IDLE)
    assert ends(tick(table, 3 * IDLE))
