"""Names of runtimes belong to the users who opened them first (S6, MN-21)."""

from fsm.session.runtime_names import NameForgotten, NameKept, Owner, RuntimeNames
from specs.limits.node import NAME_LIFE
from specs.reply_code import Code

ALICE, BOB = Owner("https://idp.ex", "user://idp.ex/alice"), Owner("https://idp.ex", "bob")
R = [f"hyperty-runtime://a.ex/r{n}" for n in range(6)]


def opened(names, runtime, owner=ALICE, now=0.0):
    assert names.refusal(runtime, owner, now) is None
    return names.open_session(runtime, owner, now)


def is_empty(names):
    return not (names._names or names._idle or names._of or names._with)


def test_a_name_out_of_use_is_free_at_once():
    names = RuntimeNames()
    opened(names, R[0])
    names.end_session(R[0], 1.0)
    assert names.release(R[0], ALICE) == (Code.OK, [NameForgotten(R[0])])
    assert is_empty(names)


def test_an_open_takes_a_release_back():
    names = RuntimeNames()
    opened(names, R[0])
    names.release(R[0], ALICE)
    assert opened(names, R[0]) == [NameKept(R[0], ALICE)]
    names.end_session(R[0], 1.0)
    assert names.refusal(R[0], BOB, 2.0) is not None


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


def test_names_that_are_all_in_use_make_no_room():
    names = RuntimeNames(each=9, together=2)
    opened(names, R[0])
    opened(names, R[1], BOB)
    assert names.refusal(R[2], BOB, 0.0).code == Code.UNAVAILABLE
    assert names.refusal(R[1], BOB, 0.0) is None
    assert names.refusal(R[2], None, 0.0) is None
