"""Who gives way when a node holds too much (RELIABILITY L2)."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fsm.cores.outbox_budget import OutboxBudget


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


def test_nobody_gives_way_while_there_is_room():
    assert shed(100, [60, 40])[0] == []


def test_the_largest_goes_first_and_no_more_than_needed():
    gone, budget = shed(100, [10, 90, 30])

    assert gone == [1]
    assert not budget.is_exceeded


def test_an_eighth_is_freed_so_that_the_next_look_is_far_away():
    gone, budget = shed(800, [1] * 801)

    assert len(gone) == 101
    assert budget.used == 700


def test_without_a_limit_nobody_ever_gives_way():
    assert shed(math.inf, [2**60])[0] == []


@given(st.integers(1, 1000), st.lists(st.integers(0, 300), max_size=30))
def test_who_stays_holds_no_more_than_who_had_to_go(limit, sizes):
    gone, budget = shed(limit, sizes)

    kept = [size for who, size in enumerate(sizes) if who not in gone]
    assert not budget.is_exceeded
    assert not gone or max(kept, default=0) <= min(sizes[who] for who in gone)
