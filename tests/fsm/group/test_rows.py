"""A node's mirror of the rows of its group, and how its own writes end."""

import pytest

from fsm.group.kinds import OwnerRow, RowRefusal, owner_key
from fsm.group.policies import POLICY_KEY, PolicyRow, read_policies
from fsm.group.row_form import write_row
from fsm.group.rows import Put, RowsCore, RowsPort
from fsm.policy.model import Book
from specs.limits import group as limits
from specs.limits.group import GROUP_BATCH, GROUP_RETRY
from tests.support.link_calls import Calls, Told, is_asked

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


def conflict(core, put, row, revision):
    return core.take_conflict(put.number, None if row is None else write_row(row), revision)


@pytest.fixture
def core():
    return Told(RowsPort, RowsCore)


def sent(core, row=MINE, ticket=1, now=0.0):
    """A change that is under way."""
    assert core.change(K, row, ticket) == []
    (put,) = core.writes(now)
    return put


# ---- rows of others


def test_rows_of_others_come_change_and_go(core):
    assert seen(core, OTHERS, 1) == [asks.apply(OTHERS, 1)]
    assert seen(core, LATER, 2) == [asks.apply(LATER, 2)]
    assert core.core.row(K) == LATER
    assert seen(core, None, 3) == [asks.withdraw(LATER, 3)]
    assert core.core.row(K) is None
    assert seen(core, None, 3) == []


def test_what_comes_late_or_again_changes_nothing(core):
    seen(core, LATER, 5)

    assert seen(core, LATER, 5) == []
    assert seen(core, OTHERS, 4) == []
    assert seen(core, None, 4) == []
    assert core.core.row(K) == LATER


def test_a_row_that_is_written_again_as_it_was_is_no_news(core):
    seen(core, OTHERS, 1)
    assert seen(core, OTHERS, 2) == []
    assert sent(core).expected == 2


def test_a_removal_that_was_missed_may_have_the_revision_of_the_row(core):
    seen(core, OTHERS, 7)
    assert seen(core, None, 7) == [asks.withdraw(OTHERS, 7)]


def test_rows_that_cannot_be_read_are_named_and_end_what_was_there(core):
    seen(core, OTHERS, 1)

    malformed, unknown = asks.refuse(K, RowRefusal.MALFORMED), RowRefusal.UNKNOWN_KIND
    assert core.take_row(K, b"{", 2) == [malformed, asks.withdraw(OTHERS, 2)]
    assert core.take_row("odd/x", b"{}", 3) == [asks.refuse("odd/x", unknown)]
    assert core.take_row("odd/x", None, 4) == []
    assert core.rows == {}
    # It can be written over.
    assert sent(core).expected == 2


def test_a_mirror_has_an_end(core, monkeypatch):
    monkeypatch.setattr("fsm.group.rows.GROUP_ROWS", 2)
    rejected = []
    for number in range(4):
        row = OwnerRow(f"h{number}", "r")
        news = seen(core, row, number + 1, row.key)
        rejected += [one for one in news if is_asked(one, "refuse")]

    assert len(core.rows) == 2
    too_many = RowRefusal.TOO_MANY
    assert rejected == [asks.refuse("owner/h2", too_many), asks.refuse("owner/h3", too_many)]


@pytest.mark.parametrize("value", [write_row(POLICIES), b"{"])
def test_the_policies_are_heeded_also_beyond_the_end_of_the_mirror(core, monkeypatch, value):
    monkeypatch.setattr("fsm.group.rows.GROUP_ROWS", 1)
    seen(core, OTHERS, 1)

    there = read_policies(value)
    assert core.take_row(POLICY_KEY, value, 2) == [asks.apply(there, 2)]
    assert core.take_row(POLICY_KEY, None, 3) == [asks.withdraw(there, 3)]


# ---- own writes


def test_a_change_is_written_with_the_revision_known_and_done(core):
    seen(core, OTHERS, 4)
    put = sent(core)

    assert put == Put(put.number, K, write_row(MINE), 4)
    assert core.writes(0.0) == ()
    assert core.core.row(K) == MINE
    assert core.take_written(put.number, 6) == [done(MINE, 6, 1)]
    assert core.rows == {K: MINE}
    assert core.is_settled
    # What a watch tells of its own writes is known.
    assert seen(core, MINE, 6) == []


def test_a_removal_is_a_write_too(core):
    seen(core, OTHERS, 4)
    core.change(K, None, 3)
    (put,) = core.writes(0.0)

    assert (put.value, put.expected) == (None, 4)
    assert core.core.row(K) is None
    assert core.take_written(put.number, 5) == [done(None, 5, 3)]
    assert seen(core, OTHERS, 4) == []
    assert seen(core, None, 5) == []
    assert core.rows == {}


def test_changes_of_one_row_are_merged_while_a_write_is_under_way(core):
    first = sent(core)
    core.change(K, OTHERS, 2)
    core.change(K, LATER, 3)

    assert core.writes(0.0) == ()
    assert core.core.row(K) == LATER
    assert core.take_written(first.number, 1) == [done(MINE, 1, 1)]
    (second,) = core.writes(0.0)
    assert (second.value, second.expected) == (write_row(LATER), 1)
    assert core.take_written(second.number, 2) == [done(LATER, 2, 2, 3)]


def test_changes_are_written_in_the_order_in_which_they_came_and_in_batches(core):
    rows = [OwnerRow(f"h{number}", "r") for number in range(GROUP_BATCH + 3)]
    for row in rows:
        core.change(row.key, row)

    first, second = core.writes(0.0), core.writes(0.0)
    assert [put.key for put in (*first, *second)] == [row.key for row in rows]
    assert (len(first), len(second)) == (GROUP_BATCH, 3)


def test_a_change_that_is_so_already_is_done_at_once(core):
    seen(core, OTHERS, 4)
    assert core.change(K, OTHERS, 1) == [done(OTHERS, 4, 1)]
    core.change(K, MINE, 2)
    assert core.change(K, OTHERS, 3) == [done(OTHERS, 4, 2, 3)]
    assert core.writes(0.0) == ()


def test_a_node_that_writes_too_much_is_full(core):
    for number in range(limits.GROUP_WRITES):
        assert not core.is_full
        core.change(owner_key(f"h{number}"), OwnerRow(f"h{number}", "r"))
    assert core.is_full


def test_a_change_without_a_link_that_waits_is_done_without_a_word(core):
    put = sent(core, ticket=None)
    assert core.take_written(put.number, 1) == []


# ---- conflicts


def test_a_conflict_loses_the_change_and_names_what_is_there(core):
    put = sent(core)
    core.change(K, LATER, 2)

    assert conflict(core, put, OTHERS, 3) == lost(OTHERS, 3, 1, 2)
    assert core.rows == {K: OTHERS}
    assert core.is_settled
    assert sent(core, ticket=4).expected == 3


def test_a_row_that_was_removed_meanwhile_is_a_conflict(core):
    seen(core, OTHERS, 4)
    put = sent(core)

    assert conflict(core, put, None, 5) == [
        asks.withdraw(MINE, 5, is_lost=True),
        asks.lose(K, (1,)),
    ]
    assert core.rows == {}
    assert seen(core, OTHERS, 4) == []


def test_what_another_wrote_before_the_change_was_sent_loses_it_unsent(core):
    core.change(K, MINE, 1)

    assert seen(core, OTHERS, 2) == lost(OTHERS, 2, 1)
    assert core.writes(0.0) == ()


def test_if_another_wrote_the_same_it_is_done(core):
    core.change(K, MINE, 1)
    assert seen(core, MINE, 2) == [done(MINE, 2, 1)]
    assert core.writes(0.0) == ()


def test_news_while_a_write_is_under_way_wait_for_its_answer(core):
    put = sent(core)

    assert seen(core, MINE, 1) == []
    assert seen(core, OTHERS, 2) == []
    assert core.take_written(put.number, 1) == [done(MINE, 1, 1), asks.apply(OTHERS, 2)]


def test_a_later_change_than_the_one_written_is_lost_by_such_news(core):
    put = sent(core)
    core.change(K, LATER, 2)
    seen(core, OTHERS, 2)

    answered = core.take_written(put.number, 1)
    assert answered == [done(MINE, 1, 1), *lost(OTHERS, 2, 2)]


def test_who_wants_what_is_under_way_waits_for_it_and_nothing_is_written_twice(core):
    put = sent(core)
    assert core.change(K, MINE, 2) == []

    answered = core.take_written(put.number, 1)
    assert answered == [done(MINE, 1, 1), done(MINE, 1, 2)]
    assert core.is_settled


def test_of_a_conflict_and_the_news_the_newest_counts(core):
    put = sent(core)
    seen(core, LATER, 5)

    assert conflict(core, put, OTHERS, 3) == lost(LATER, 5, 1)


def test_a_conflict_that_the_news_outdate_by_the_row_itself_is_none(core):
    """An earlier attempt was made once the row that the later one met had gone."""
    put = sent(core)
    seen(core, OTHERS, 3)
    seen(core, MINE, 5)

    assert conflict(core, put, OTHERS, 3) == [done(MINE, 5, 1)]
    assert core.rows == {K: MINE}


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


def test_a_first_attempt_that_was_made_after_all_is_known_by_the_refusal(core):
    put = sent(core)
    core.take_silence(put.number, 0.0)
    (again,) = core.writes(GROUP_RETRY)

    assert conflict(core, again, MINE, 3) == [done(MINE, 3, 1)]


def test_a_late_answer_to_an_attempt_that_was_given_up_counts_for_nothing(core):
    put = sent(core)
    core.take_silence(put.number, 0.0)
    (again,) = core.writes(GROUP_RETRY)

    assert conflict(core, put, OTHERS, 2) == []
    assert core.take_written(again.number, 3) == [done(MINE, 3, 1)]


def test_if_nothing_under_way_is_answered_any_more_all_of_it_is_made_again(core):
    put = sent(core)
    core.change(owner_key("h2"), OwnerRow("h2", "mine"), 2)
    (other,) = core.writes(0.0)

    assert core.lose_answers(1.0) == []
    assert core.take_written(put.number, 1) == []
    again = core.writes(1.0 + GROUP_RETRY)
    assert [one.key for one in again] == [put.key, other.key]


@pytest.mark.parametrize("first", ["news", "silence"])
def test_a_watch_tells_an_unknown_outcome(core, first):
    put = sent(core)
    if first == "news":
        effects = [seen(core, MINE, 3), core.take_silence(put.number, 0.0)]
    else:
        effects = [core.take_silence(put.number, 0.0), seen(core, MINE, 3)]

    assert effects == [[], [done(MINE, 3, 1)]]
    assert core.is_settled


def test_a_watch_tells_that_an_unknown_write_was_not_made(core):
    put = sent(core)
    core.take_silence(put.number, 0.0)

    assert seen(core, OTHERS, 3) == lost(OTHERS, 3, 1)
    assert core.is_settled


# ---- watches that begin anew


def test_what_does_not_come_again_has_gone(core):
    gone, kept = OwnerRow("h1", "r"), OwnerRow("h2", "r")
    seen(core, gone, 1, gone.key)
    seen(core, kept, 2, kept.key)

    core.begin_watch("owner/")
    assert not core.is_current
    assert seen(core, kept, 2, kept.key) == []
    assert core.end_list("owner/") == [asks.withdraw(gone, 2)]
    assert core.is_current
    assert core.rows == {kept.key: kept}


def test_rows_below_other_prefixes_stay(core):
    seen(core, OTHERS, 1)
    core.begin_watch("path/")
    assert core.end_list("path/") == []
    assert core.rows == {K: OTHERS}


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


# ---- fenced


def test_a_fenced_node_forgets_all_and_hears_no_late_answer(core):
    put = sent(core)
    core.change(K, LATER, 2)
    other = OwnerRow("h2", "r")
    seen(core, other, 8, other.key)

    assert core.forget() == [asks.withdraw(other, 8)]
    assert core.take_written(put.number, 9) == []
    assert core.is_settled
    assert core.writes(9.0) == ()
    # An engine that begins anew counts its revisions from one.
    assert seen(core, other, 1, other.key) == [asks.apply(other, 1)]
