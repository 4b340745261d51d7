"""Who gives way when a node holds too much (RELIABILITY L2)."""

import math

import attrs

from fsm.session.node_session_io import OutboundMessage
from fsm.session.outbox_budget import OutboxBudget
from specs.dialects.dialect import PLAIN
from specs.message import Message, MessageType

MESSAGE = Message(1, MessageType.UPDATE, "comm://a.ex/1", "comm://a.ex/1/changes")


def entry(size):
    return OutboundMessage(MESSAGE, b"x" * size, {})


def test_a_spelling_counts_once_as_well():
    """N3: a message is written once for all who spell alike, and then it is there twice."""
    budget, update = OutboxBudget(math.inf), entry(10_000)
    budget.hold(update)
    budget.hold(update)
    before = budget.used
    update.spelt[attrs.evolve(PLAIN, string_ids=True)] = b"y" * 11_000

    budget.reweigh(update)
    budget.reweigh(update)
    assert budget.used == before + 11_000

    budget.release(update)
    budget.release(update)
    assert budget.used == 0
