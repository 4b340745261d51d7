"""A node's mirror of the rows of its group, and how its own writes end."""

import pytest

from fsm.group.kinds import OwnerRow, RowRefusal, owner_key
from fsm.group.policies import POLICY_KEY, PolicyRow, read_policies
from fsm.group.row_form import write_row
from fsm.group.rows import (
    AllUnanswered,
    Applied,
    Change,
    Conflicted,
    Current,
    Done,
    Forget,
    Gap,
    Lost,
    Put,
    Read,
    Rejected,
    Remove,
    RowsCore,
    Seen,
    Unanswered,
    Withdrawn,
    Written,
)
from fsm.policy.model import Book
from specs.limits import group as limits
from specs.limits.group import GROUP_BATCH, GROUP_RETRY

H = "hyperty://a.ex/h"
K = owner_key(H)
MINE, OTHERS, LATER = (OwnerRow(H, one) for one in ("mine", "others", "later"))
POLICIES = PolicyRow(3, Book(sets=(), version=3))


def seen(row, revision, key=K):
    return Seen(key, None if row is None else write_row(row), revision)


def conflict(put, row, revision):
    return Conflicted(put.number, None if row is None else write_row(row), revision)


@pytest.fixture
def core():
    return RowsCore()


def sent(core, row=MINE, ticket=1, now=0.0):
    """A change that is under way."""
    assert core.feed(Change(row, ticket), now) == []
    (put,) = core.writes(now)
    return put


# ---- rows of others


def test_rows_of_others_come_change_and_go(core):
    assert core.feed(seen(OTHERS, 1), 0.0) == [Applied(OTHERS, 1)]
    assert core.feed(seen(LATER, 2), 0.0) == [Applied(LATER, 2, OTHERS)]
    assert core.row(K) == LATER
    assert core.feed(seen(None, 3), 0.0) == [Withdrawn(LATER, 3)]
    assert core.row(K) is None
    assert core.feed(seen(None, 3), 0.0) == []


def test_what_comes_late_or_again_changes_nothing(core):
    core.feed(seen(LATER, 5), 0.0)

    assert core.feed(seen(LATER, 5), 0.0) == []
    assert core.feed(seen(OTHERS, 4), 0.0) == []
    assert core.feed(seen(None, 4), 0.0) == []
    assert core.row(K) == LATER


def test_a_row_that_is_written_again_as_it_was_is_no_news(core):
    core.feed(seen(OTHERS, 1), 0.0)
    assert core.feed(seen(OTHERS, 2), 0.0) == []
    assert sent(core).expected == 2


def test_a_removal_that_was_missed_may_have_the_revision_of_the_row(core):
    core.feed(seen(OTHERS, 7), 0.0)
    assert core.feed(seen(None, 7), 0.0) == [Withdrawn(OTHERS, 7)]


def test_rows_that_cannot_be_read_are_named_and_end_what_was_there(core):
    core.feed(seen(OTHERS, 1), 0.0)

    malformed, unknown = Rejected(K, RowRefusal.MALFORMED), RowRefusal.UNKNOWN_KIND
    assert core.feed(Seen(K, b"{", 2), 0.0) == [Withdrawn(OTHERS, 2), malformed]
    assert core.feed(Seen("odd/x", b"{}", 3), 0.0) == [Rejected("odd/x", unknown)]
    assert core.feed(Seen("odd/x", None, 4), 0.0) == []
    assert core.rows == {}
    # It can be written over.
    assert sent(core).expected == 2


def test_a_mirror_has_an_end(core, monkeypatch):
    monkeypatch.setattr("fsm.group.rows.GROUP_ROWS", 2)
    rejected = []
    for number in range(4):
        row = OwnerRow(f"h{number}", "r")
        news = core.feed(seen(row, number + 1, row.key), 0.0)
        rejected += [one for one in news if isinstance(one, Rejected)]

    assert len(core.rows) == 2
    too_many = RowRefusal.TOO_MANY
    assert rejected == [Rejected("owner/h2", too_many), Rejected("owner/h3", too_many)]


@pytest.mark.parametrize("value", [write_row(POLICIES), b"{"])
def test_the_policies_are_heeded_also_beyond_the_end_of_the_mirror(core, monkeypatch, value):
    monkeypatch.setattr("fsm.group.rows.GROUP_ROWS", 1)
    core.feed(seen(OTHERS, 1), 0.0)

    there = read_policies(value)
    assert core.feed(Seen(POLICY_KEY, value, 2), 0.0) == [Applied(there, 2)]
    assert core.feed(Seen(POLICY_KEY, None, 3), 0.0) == [Withdrawn(there, 3)]


# ---- own writes


def test_a_change_is_written_with_the_revision_known_and_done(core):
    core.feed(seen(OTHERS, 4), 0.0)
    put = sent(core)

    assert put == Put(put.number, K, write_row(MINE), 4)
    assert core.writes(0.0) == ()
    assert core.row(K) == MINE
    assert core.feed(Written(put.number, 6), 0.0) == [Done(K, (1,))]
    assert core.rows == {K: MINE}
    assert core.is_settled
    # What a watch tells of its own writes is known.
    assert core.feed(seen(MINE, 6), 0.0) == []


def test_a_removal_is_a_write_too(core):
    core.feed(seen(OTHERS, 4), 0.0)
    core.feed(Remove(K, 3), 0.0)
    (put,) = core.writes(0.0)

    assert (put.value, put.expected) == (None, 4)
    assert core.row(K) is None
    assert core.feed(Written(put.number, 5), 0.0) == [Done(K, (3,))]
    assert core.feed(seen(OTHERS, 4), 0.0) == []
    assert core.feed(seen(None, 5), 0.0) == []
    assert core.rows == {}


def test_changes_of_one_row_are_merged_while_a_write_is_under_way(core):
    first = sent(core)
    core.feed(Change(OTHERS, 2), 0.0)
    core.feed(Change(LATER, 3), 0.0)

    assert core.writes(0.0) == ()
    assert core.row(K) == LATER
    assert core.feed(Written(first.number, 1), 0.0) == [Done(K, (1,))]
    (second,) = core.writes(0.0)
    assert (second.value, second.expected) == (write_row(LATER), 1)
    assert core.feed(Written(second.number, 2), 0.0) == [Done(K, (2, 3))]


def test_changes_are_written_in_the_order_in_which_they_came_and_in_batches(core):
    rows = [OwnerRow(f"h{number}", "r") for number in range(GROUP_BATCH + 3)]
    for row in rows:
        core.feed(Change(row), 0.0)

    first, second = core.writes(0.0), core.writes(0.0)
    assert [put.key for put in (*first, *second)] == [row.key for row in rows]
    assert (len(first), len(second)) == (GROUP_BATCH, 3)


def test_a_change_that_is_so_already_is_done_at_once(core):
    core.feed(seen(OTHERS, 4), 0.0)
    assert core.feed(Change(OTHERS, 1), 0.0) == [Done(K, (1,))]
    core.feed(Change(MINE, 2), 0.0)
    assert core.feed(Change(OTHERS, 3), 0.0) == [Done(K, (2, 3))]
    assert core.writes(0.0) == ()


def test_a_node_that_writes_too_much_is_full(core):
    for number in range(limits.GROUP_WRITES):
        assert not core.is_full
        core.feed(Change(OwnerRow(f"h{number}", "r")), 0.0)
    assert core.is_full


def test_a_change_without_a_link_that_waits_is_done_without_a_word(core):
    put = sent(core, ticket=None)
    assert core.feed(Written(put.number, 1), 0.0) == []


# ---- conflicts


def test_a_conflict_loses_the_change_and_names_what_is_there(core):
    put = sent(core)
    core.feed(Change(LATER, 2), 0.0)

    (lost,) = core.feed(conflict(put, OTHERS, 3), 0.0)
    assert lost == Lost(K, (1, 2), LATER, OTHERS)
    assert lost.revision == 3
    assert core.rows == {K: OTHERS}
    assert core.is_settled
    assert sent(core, ticket=4).expected == 3


def test_a_row_that_was_removed_meanwhile_is_a_conflict(core):
    core.feed(seen(OTHERS, 4), 0.0)
    put = sent(core)

    assert core.feed(conflict(put, None, 5), 0.0) == [Lost(K, (1,), MINE, None)]
    assert core.rows == {}
    assert core.feed(seen(OTHERS, 4), 0.0) == []


def test_what_another_wrote_before_the_change_was_sent_loses_it_unsent(core):
    core.feed(Change(MINE, 1), 0.0)

    assert core.feed(seen(OTHERS, 2), 0.0) == [Lost(K, (1,), MINE, OTHERS)]
    assert core.writes(0.0) == ()


def test_if_another_wrote_the_same_it_is_done(core):
    core.feed(Change(MINE, 1), 0.0)
    assert core.feed(seen(MINE, 2), 0.0) == [Done(K, (1,))]
    assert core.writes(0.0) == ()


def test_news_while_a_write_is_under_way_wait_for_its_answer(core):
    put = sent(core)

    assert core.feed(seen(MINE, 1), 0.0) == []
    assert core.feed(seen(OTHERS, 2), 0.0) == []
    assert core.feed(Written(put.number, 1), 0.0) == [Done(K, (1,)), Applied(OTHERS, 2, MINE)]


def test_a_later_change_than_the_one_written_is_lost_by_such_news(core):
    put = sent(core)
    core.feed(Change(LATER, 2), 0.0)
    core.feed(seen(OTHERS, 2), 0.0)

    answered = core.feed(Written(put.number, 1), 0.0)
    assert answered == [Done(K, (1,)), Lost(K, (2,), LATER, OTHERS)]


def test_who_wants_what_is_under_way_waits_for_it_and_nothing_is_written_twice(core):
    put = sent(core)
    assert core.feed(Change(MINE, 2), 0.0) == []

    answered = core.feed(Written(put.number, 1), 0.0)
    assert answered == [Done(K, (1,)), Done(K, (2,))]
    assert core.is_settled


def test_of_a_conflict_and_the_news_the_newest_counts(core):
    put = sent(core)
    core.feed(seen(LATER, 5), 0.0)

    assert core.feed(conflict(put, OTHERS, 3), 0.0) == [Lost(K, (1,), MINE, LATER)]


def test_a_conflict_that_the_news_outdate_by_the_row_itself_is_none(core):
    """An earlier attempt was made once the row that the later one met had gone."""
    put = sent(core)
    core.feed(seen(OTHERS, 3), 0.0)
    core.feed(seen(MINE, 5), 0.0)

    assert core.feed(conflict(put, OTHERS, 3), 0.0) == [Done(K, (1,))]
    assert core.rows == {K: MINE}


# ---- unknown outcomes


def test_a_write_of_unknown_outcome_is_made_again_as_it_was(core):
    put = sent(core)
    core.feed(Unanswered(put.number), 0.0)
    core.feed(Change(LATER, 2), 0.0)

    assert core.writes(0.1) == ()
    assert core.deadline(0.1) == GROUP_RETRY
    (again,) = core.writes(GROUP_RETRY)
    assert again == Put(again.number, K, write_row(MINE), 0)
    assert again.number != put.number
    assert core.feed(Written(again.number, 3), 1.0) == [Done(K, (1,))]
    assert [one.value for one in core.writes(1.0)] == [write_row(LATER)]


def test_a_first_attempt_that_was_made_after_all_is_known_by_the_refusal(core):
    put = sent(core)
    core.feed(Unanswered(put.number), 0.0)
    (again,) = core.writes(GROUP_RETRY)

    assert core.feed(conflict(again, MINE, 3), 1.0) == [Done(K, (1,))]


def test_a_late_answer_to_an_attempt_that_was_given_up_counts_for_nothing(core):
    put = sent(core)
    core.feed(Unanswered(put.number), 0.0)
    (again,) = core.writes(GROUP_RETRY)

    assert core.feed(conflict(put, OTHERS, 2), 1.0) == []
    assert core.feed(Written(again.number, 3), 1.0) == [Done(K, (1,))]


def test_if_nothing_under_way_is_answered_any_more_all_of_it_is_made_again(core):
    put = sent(core)
    core.feed(Change(OwnerRow("hyperty://a.ex/h2", "mine"), 2), 0.0)
    (other,) = core.writes(0.0)

    assert core.feed(AllUnanswered(), 1.0) == []
    assert core.feed(Written(put.number, 1), 1.0) == []
    again = core.writes(1.0 + GROUP_RETRY)
    assert [one.key for one in again] == [put.key, other.key]


@pytest.mark.parametrize("first", ["news", "silence"])
def test_a_watch_tells_an_unknown_outcome(core, first):
    put = sent(core)
    inputs = [seen(MINE, 3), Unanswered(put.number)]
    effects = [core.feed(one, 0.0) for one in (inputs if first == "news" else inputs[::-1])]

    assert effects == [[], [Done(K, (1,))]]
    assert core.is_settled


def test_a_watch_tells_that_an_unknown_write_was_not_made(core):
    put = sent(core)
    core.feed(Unanswered(put.number), 0.0)

    assert core.feed(seen(OTHERS, 3), 0.0) == [Lost(K, (1,), MINE, OTHERS)]
    assert core.is_settled


# ---- watches that begin anew


def test_what_does_not_come_again_has_gone(core):
    gone, kept = OwnerRow("h1", "r"), OwnerRow("h2", "r")
    core.feed(seen(gone, 1, gone.key), 0.0)
    core.feed(seen(kept, 2, kept.key), 0.0)

    core.feed(Gap("owner/"), 0.0)
    assert not core.is_current
    assert core.feed(seen(kept, 2, kept.key), 0.0) == []
    assert core.feed(Current("owner/"), 0.0) == [Withdrawn(gone, 2)]
    assert core.is_current
    assert core.rows == {kept.key: kept}


def test_rows_below_other_prefixes_stay(core):
    core.feed(seen(OTHERS, 1), 0.0)
    core.feed(Gap("path/"), 0.0)
    assert core.feed(Current("path/"), 0.0) == []
    assert core.rows == {K: OTHERS}


def test_only_a_read_tells_of_a_row_that_was_written_meanwhile(core):
    core.feed(Gap(""), 0.0)
    put = sent(core)
    core.feed(Written(put.number, 9), 0.0)

    assert core.feed(Current(""), 0.0) == [Read(K, 9)]
    assert core.feed(Seen(K, write_row(MINE), 9, is_read=True), 0.0) == []
    assert core.rows == {K: MINE}
    assert core.feed(Seen(K, None, 9, is_read=True), 0.0) == [Withdrawn(MINE, 9)]


def test_a_write_that_is_under_way_is_read_when_it_is_answered(core):
    core.feed(seen(OTHERS, 5), 0.0)
    core.feed(Gap(""), 0.0)
    put = sent(core)

    assert core.feed(Current(""), 0.0) == []
    assert core.feed(Written(put.number, 9), 0.0) == [Done(K, (1,)), Read(K, 9)]


def test_a_removed_row_that_a_write_expects_is_a_conflict(core):
    core.feed(seen(OTHERS, 5), 0.0)
    put = sent(core)
    core.feed(Gap(""), 0.0)
    core.feed(seen(OwnerRow("h2", "r"), 8, owner_key("h2")), 0.0)

    assert core.feed(Current(""), 0.0) == []
    assert core.feed(Unanswered(put.number), 0.0) == [Lost(K, (1,), MINE, None)]


# ---- fenced


def test_a_fenced_node_forgets_all_and_hears_no_late_answer(core):
    put = sent(core)
    core.feed(Change(LATER, 2), 0.0)
    other = OwnerRow("h2", "r")
    core.feed(seen(other, 8, other.key), 0.0)

    assert core.feed(Forget(), 0.0) == [Withdrawn(other, 8)]
    assert core.feed(Written(put.number, 9), 0.0) == []
    assert core.is_settled
    assert core.writes(9.0) == ()
    # An engine that begins anew counts its revisions from one.
    assert core.feed(seen(other, 1, other.key), 0.0) == [Applied(other, 1)]
