"""A node's mirror of the rows of its group, and how its own writes end."""

from functools import partial

import pytest

from fsm.group.kinds import OwnerRow, owner_key
from fsm.group.policies import POLICY_KEY, PolicyRow, read_policies
from fsm.group.row_form import write_row
from fsm.group.rows import Put, RowsCore, RowsPort
from fsm.policy.model import Book
from specs.limits.group import GROUP_RETRY
from tests.support.link_calls import Calls, Told

H = "hyperty://a.ex/h"
K = owner_key(H)
MINE, OTHERS, LATER = (OwnerRow(H, one) for one in ("mine", "others", "later"))
POLICIES = PolicyRow(3, Book(sets=(), version=3))


asks = Calls(RowsPort)


def done(row, revision, *tickets):
    return asks.confirm(K, row, revision, tickets)


def lost(row, revision, *tickets):
    """What another has written counts, instead of what the node has changed."""
    return [asks.apply(row, revision), asks.lose(K, tickets)]


def seen(core, row, revision, key=K):
    return core.take_row(key, None if row is None else write_row(row), revision)


@pytest.fixture
def core():
    return Told(RowsPort, RowsCore)


def sent(core, row=MINE, ticket=1, now=0.0):
    """A change that is under way."""
    assert core.change(K, row, ticket) == []
    (put,) = core.writes(now)
    return put


# ---- rows of others


@pytest.mark.parametrize("value", [write_row(POLICIES), b"{"])
def test_the_policies_are_heeded_also_beyond_the_end_of_the_mirror(value):
    core = Told(RowsPort, partial(RowsCore, most=1))
    seen(core, OTHERS, 1)

    there = read_policies(value)
    assert core.take_row(POLICY_KEY, value, 2) == [asks.apply(there, 2)]
    assert core.take_row(POLICY_KEY, None, 3) == [asks.withdraw(there, 3)]


# ---- conflicts


def test_what_another_wrote_before_the_change_was_sent_loses_it_unsent(core):
    core.change(K, MINE, 1)

    assert seen(core, OTHERS, 2) == lost(OTHERS, 2, 1)
    assert core.writes(0.0) == ()


# ---- unknown outcomes


def test_a_write_of_unknown_outcome_is_made_again_as_it_was(core):
    put = sent(core)
    core.take_silence(put.number, 0.0)
    core.change(K, LATER, 2)

    assert core.writes(0.1) == ()
    assert core.deadline(0.1) == GROUP_RETRY
    (again,) = core.writes(GROUP_RETRY)
    assert again == Put(again.number, K, write_row(MINE), 0)
    assert again.number != put.number
    assert core.take_written(again.number, 3) == [done(MINE, 3, 1)]
    assert [one.value for one in core.writes(1.0)] == [write_row(LATER)]


# ---- watches that begin anew


def test_only_a_read_tells_of_a_row_that_was_written_meanwhile(core):
    core.begin_watch("")
    put = sent(core)
    core.take_written(put.number, 9)

    assert core.end_list("") == [asks.read(K, 9)]
    assert core.take_row(K, write_row(MINE), 9, is_read=True) == []
    assert core.rows == {K: MINE}
    assert core.take_row(K, None, 9, is_read=True) == [asks.withdraw(MINE, 9)]


def test_a_write_that_is_under_way_is_read_when_it_is_answered(core):
    seen(core, OTHERS, 5)
    core.begin_watch("")
    put = sent(core)

    assert core.end_list("") == []
    assert core.take_written(put.number, 9) == [done(MINE, 9, 1), asks.read(K, 9)]


def test_a_removed_row_that_a_write_expects_is_a_conflict(core):
    seen(core, OTHERS, 5)
    put = sent(core)
    core.begin_watch("")
    seen(core, OwnerRow("h2", "r"), 8, owner_key("h2"))

    assert core.end_list("") == []
    assert core.take_silence(put.number, 0.0) == [
        asks.withdraw(MINE, 8, is_lost=True),
        asks.lose(K, (1,)),
    ]
