"""Names of runtimes belong to the users who opened them first (S6, MN-21)."""

import math

import pytest

from fsm.session.runtime_names import (
    NameForgotten,
    NameKept,
    Owner,
    RuntimeNames,
)
from specs.limits.node import NAME_LIFE
from specs.reply_code import Code

ALICE, BOB = Owner("https://idp.ex", "user://idp.ex/alice"), Owner("https://idp.ex", "bob")
NAMESAKE = Owner("https://other.ex", ALICE.user)
R = [f"hyperty-runtime://a.ex/r{n}" for n in range(6)]


def opened(names, runtime, owner=ALICE, now=0.0):
    assert names.refusal(runtime, owner, now) is None
    return names.open_session(runtime, owner, now)


def is_empty(names):
    return not (names._names or names._idle or names._of or names._with)


def test_a_name_belongs_to_its_first_user():
    names = RuntimeNames()
    assert opened(names, R[0]) == [NameKept(R[0], ALICE)]
    for other in (BOB, NAMESAKE, None):
        refusal = names.refusal(R[0], other, 1.0)
        assert refusal.code == Code.CONFLICT
        assert "belongs to another user" in refusal.why
    assert opened(names, R[0], now=1.0) == []


def test_it_stays_the_users_for_thirty_days_after_the_last_session():
    names = RuntimeNames()
    opened(names, R[0])
    assert names.refusal(R[0], BOB, 10 * NAME_LIFE) is not None
    assert names.end_session(R[0], 100.0) == [NameKept(R[0], ALICE, 100.0)]
    assert names.refusal(R[0], BOB, 99.0 + NAME_LIFE) is not None
    assert names.refusal(R[0], BOB, 100.0 + NAME_LIFE) is None
    assert opened(names, R[0], BOB, 100.0 + NAME_LIFE) == [
        NameForgotten(R[0]), NameKept(R[0], BOB),
    ]  # fmt: skip


def test_each_session_begins_the_thirty_days_anew():
    names = RuntimeNames()
    opened(names, R[0])
    names.end_session(R[0], 100.0)
    opened(names, R[0], now=NAME_LIFE)
    assert names.end_session(R[0], NAME_LIFE + 1) == [NameKept(R[0], ALICE, NAME_LIFE + 1)]
    assert names.refusal(R[0], BOB, 2 * NAME_LIFE) is not None


def test_a_released_name_is_free_when_its_session_ends():
    names = RuntimeNames()
    opened(names, R[0])
    kept = NameKept(R[0], ALICE, is_released=True)
    assert names.release(R[0], ALICE) == (Code.ACCEPTED, [kept])
    assert names.release(R[0], ALICE) == (Code.ACCEPTED, [])
    assert names.refusal(R[0], BOB, 1.0) is not None
    assert names.end_session(R[0], 2.0) == [NameForgotten(R[0])]
    assert is_empty(names)
    opened(names, R[0], BOB, 2.0)


def test_a_name_out_of_use_is_free_at_once():
    names = RuntimeNames()
    opened(names, R[0])
    names.end_session(R[0], 1.0)
    assert names.release(R[0], ALICE) == (Code.OK, [NameForgotten(R[0])])
    assert is_empty(names)


@pytest.mark.parametrize("thief", [BOB, NAMESAKE])
def test_only_its_user_releases_a_name(thief):
    names = RuntimeNames()
    opened(names, R[0])
    assert names.release(R[0], thief) == (Code.NOT_FOUND, [])
    assert names.release(R[1], ALICE) == (Code.NOT_FOUND, [])
    assert names.end_session(R[0], 1.0) == [NameKept(R[0], ALICE, 1.0)]


def test_an_open_takes_a_release_back():
    names = RuntimeNames()
    opened(names, R[0])
    names.release(R[0], ALICE)
    assert opened(names, R[0]) == [NameKept(R[0], ALICE)]
    names.end_session(R[0], 1.0)
    assert names.refusal(R[0], BOB, 2.0) is not None


def test_a_name_without_a_login_costs_nothing():
    names = RuntimeNames()
    assert names.refusal(R[0], None, 0.0) is None
    assert names.end_session(R[0], 1.0) == []
    assert is_empty(names)


def test_a_user_has_so_many_names_and_no_more():
    names = RuntimeNames(each=2, together=99)
    opened(names, R[0])
    opened(names, R[1])
    refusal = names.refusal(R[2], ALICE, 1.0)
    assert (refusal.code, "has 2 names" in refusal.why) == (Code.CONFLICT, True)
    assert "such as" not in refusal.why
    names.end_session(R[1], 1.0)
    assert f"release one, such as {R[1]}" in names.refusal(R[2], ALICE, 2.0).why
    opened(names, R[1], now=2.0)
    opened(names, R[2], BOB)
    names.end_session(R[1], 3.0)
    opened(names, R[3], now=3.0 + NAME_LIFE)


def test_the_user_with_the_most_names_makes_room_for_others():
    names = RuntimeNames(each=9, together=4)
    opened(names, R[5], BOB)
    names.end_session(R[5], 0.0)
    for nth in range(3):
        opened(names, R[nth])
        names.end_session(R[nth], 3.0 - nth)
    carol = Owner("https://idp.ex", "carol")
    assert opened(names, R[3], carol, 4.0) == [NameForgotten(R[2]), NameKept(R[3], carol)]
    assert names.refusal(R[5], carol, 4.0) is not None
    assert len(names) == 4


def test_names_that_are_all_in_use_make_no_room():
    names = RuntimeNames(each=9, together=2)
    opened(names, R[0])
    opened(names, R[1], BOB)
    assert names.refusal(R[2], BOB, 0.0).code == Code.UNAVAILABLE
    assert names.refusal(R[1], BOB, 0.0) is None
    assert names.refusal(R[2], None, 0.0) is None


def test_names_come_back_from_an_earlier_process():
    """Those with a session have it still; of the others, the process ended with it."""
    kept = [
        NameKept(R[0], ALICE),
        NameKept(R[1], ALICE),
        NameKept(R[2], BOB, 50.0),
        NameKept(R[3], BOB, -NAME_LIFE),
        NameKept(R[4], BOB, is_released=True),
        NameKept(R[5], BOB, is_released=True),
    ]
    names = RuntimeNames()
    changes = names.restore(kept, {R[0], R[5]}, 100.0)
    assert set(changes) == {
        NameKept(R[1], ALICE, 100.0), NameForgotten(R[3]), NameForgotten(R[4]),
    }  # fmt: skip
    assert names.end_session(R[0], 200.0) == [NameKept(R[0], ALICE, 200.0)]
    assert names.end_session(R[5], 200.0) == [NameForgotten(R[5])]
    assert {one.runtime: one.left for one in names._names.values()} == {
        R[0]: 200.0, R[1]: 100.0, R[2]: 50.0,
    }  # fmt: skip
    assert list(names._idle) == [R[2], R[1], R[0]]


def test_names_that_are_over_are_forgotten_when_others_come():
    names = RuntimeNames()
    for nth, runtime in enumerate(R):
        opened(names, runtime)
        names.end_session(runtime, float(nth))
    assert names.open_session(R[0], ALICE, NAME_LIFE + 3.5) == [
        *(NameForgotten(one) for one in R[:4]), NameKept(R[0], ALICE),
    ]  # fmt: skip
    assert len(names) == 3
    assert math.inf in {one.left for one in names._names.values()}
