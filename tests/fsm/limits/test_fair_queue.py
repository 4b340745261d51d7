"""When each of several submitters may submit again (R11)."""

import math

import pytest

from fsm.limits.rates import FairQueue
from specs.limits.bus import CONTENTION, SUBMIT_BURST, SUBMIT_RATE

A, B = "alice", "bob"


def test_a_single_sender_is_never_delayed():
    """R11."""
    core = FairQueue()
    assert all(core.may_continue(A, A, 1.0) for _ in range(10_000))
    assert core.deadline() == math.inf


def test_a_sender_beyond_its_share_waits_while_another_wants_one():
    """R11: a burst is free; then the rate counts."""
    core = FairQueue()
    core.may_continue(B, B, 1.0)
    at_once = [core.may_continue(A, A, 1.0) for _ in range(SUBMIT_BURST + 3)]
    assert at_once == [True] * SUBMIT_BURST + [False] * 3
    assert turns(core) == pytest.approx([1.0 + n / SUBMIT_RATE for n in (1, 2, 3)])


def turns(core):
    """When each of those who wait has its turn, if somebody looks in time."""
    found = []
    while core.deadline() < math.inf:
        now = core.deadline()
        found += [now for _ in core.due(now)]
    return found


def test_permits_that_could_not_be_given_in_time_are_not_made_up_for():
    """R11: after a pause those who wait come one by one, as they would have before it."""
    core = FairQueue()
    for by in (B, *[A] * (SUBMIT_BURST + 5)):
        core.may_continue(by, by, 1.0)
    assert (core.due(2.0), core.due(2.0)) == ([A], [])
    assert turns(core) == pytest.approx([2.0 + n / SUBMIT_RATE for n in (1, 2, 3, 4)])


def test_each_waiting_sender_has_permits_of_its_own():
    """R11."""
    core = FairQueue()
    for by in (B, *[A, B] * (SUBMIT_BURST + 1)):
        core.may_continue(by, by, 1.0)
    assert [sorted(core.due(now)) for now in (2.0, 3.0)] == [[A, B], []]


def test_a_sender_within_its_share_is_not_delayed_by_one_beyond_it():
    """R11."""
    core = FairQueue()
    for _ in range(1000):
        core.may_continue(A, A, 1.0)
    assert core.may_continue(B, B, 1.0)


def test_when_the_other_has_gone_there_is_no_share_to_keep_to():
    """R11."""
    core = FairQueue()
    core.may_continue(B, B, 1.0)
    for _ in range(SUBMIT_BURST + 1):
        core.may_continue(A, A, 1.0)
    later = 1.0 + CONTENTION + 0.001
    assert core.may_continue(A, A, later)


def test_the_first_sender_is_not_delayed_by_absent_ones():
    """R11."""
    assert FairQueue().may_continue(A, A, 0.0)
