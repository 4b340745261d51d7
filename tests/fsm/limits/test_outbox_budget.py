"""Who gives way when a node holds too much (RELIABILITY L2)."""

import math
from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.session.node_session_io import OutboundMessage
from fsm.session.outbox_budget import OutboxBudget, weight
from specs.dialects.dialect import PLAIN
from specs.message import Message, MessageType

MESSAGE = Message(1, MessageType.UPDATE, "comm://a.ex/1", "comm://a.ex/1/changes")
ROOM_PER_QUEUE = 64
"""Bytes that one more queue of a shared message may cost at most."""


def entry(size):
    return OutboundMessage(MESSAGE, b"x" * size, {})


def shed(limit, sizes):
    """Let a node hold so much; return who had to give way, in order, and what is left."""
    budget = OutboxBudget(limit)
    held = dict(enumerate(sizes))
    budget.count(sum(sizes))
    gone = []
    if budget.is_exceeded:
        for who in budget.largest_first([(size, who) for who, size in held.items()]):
            gone.append(who)
            budget.count(-held.pop(who))
    return gone, budget


def test_no_link_gives_way_below_the_budget():
    assert shed(100, [60, 40])[0] == []


def test_the_largest_goes_first_and_no_more_than_needed():
    gone, budget = shed(100, [10, 90, 30])

    assert gone == [1]
    assert not budget.is_exceeded


def test_an_eighth_is_freed_so_that_the_next_look_is_far_away():
    gone, budget = shed(800, [1] * 801)

    assert len(gone) == 101
    assert budget.used == 700


def test_without_a_limit_no_link_gives_way():
    assert shed(math.inf, [2**60])[0] == []


@given(st.integers(1, 1000), st.lists(st.integers(0, 300), max_size=30))
def test_a_remaining_link_holds_no_more_than_the_closed_ones(limit, sizes):
    gone, budget = shed(limit, sizes)

    kept = [size for who, size in enumerate(sizes) if who not in gone]
    assert not budget.is_exceeded
    assert not gone or max(kept, default=0) <= min(sizes[who] for who in gone)


def test_a_message_for_many_queues_counts_once():
    """RELIABILITY L2: what is counted is memory that there is."""
    budget, update = OutboxBudget(math.inf), entry(10_000)
    for _ in range(1000):
        budget.hold(update)

    once = weight(1, 10_000)
    assert once < budget.used <= once + 1000 * ROOM_PER_QUEUE


def test_a_message_counts_until_the_last_queue_has_released_it():
    budget, update = OutboxBudget(math.inf), entry(10_000)
    for _ in range(3):
        budget.hold(update)
    budget.release(update)
    budget.release(update)
    assert budget.used > weight(1, 10_000)

    budget.release(update)

    assert budget.used == 0


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


def test_half_of_the_budget_makes_frames_small():
    budget = OutboxBudget(100)
    budget.count(50)
    assert not budget.is_tight

    budget.count(1)

    assert budget.is_tight


ACTS = st.lists(
    st.tuples(st.sampled_from(["hold", "release", "spell"]), st.integers(0, 4)), max_size=60
)


@given(ACTS, st.lists(st.integers(0, 5000), min_size=5, max_size=5))
def test_the_count_equals_the_held_memory_and_the_shares_make_the_whole(acts, sizes):
    """RELIABILITY L2: at any time, whoever holds what together with whom."""
    budget, entries = OutboxBudget(math.inf), [entry(size) for size in sizes]
    queues = Counter()
    for act, which in acts:
        if act == "hold":
            budget.hold(entries[which])
            queues[which] += 1
        elif act == "release" and queues[which]:
            budget.release(entries[which])
            queues[which] -= 1
        elif act == "spell":
            spelling = attrs.evolve(PLAIN, text_key=f"text {len(entries[which].spelt)}")
            entries[which].spelt[spelling] = b"z" * 100
            if queues[which]:
                budget.reweigh(entries[which])

    held = [which for which, count in queues.items() if count]
    spelt = sum(100 * len(entries[which].spelt) for which in held)
    text = sum(weight(1, sizes[which]) for which in held) + spelt
    assert 0 <= budget.used - text <= ROOM_PER_QUEUE * queues.total()
    shares = [budget.share([entries[which]]) for which in queues.elements()]
    assert sum(shares) == pytest.approx(budget.used)
