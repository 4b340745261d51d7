"""The shares of users: counted over all runtimes of a user, and returned."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fsm.limits.shares import Share, UserShares, UserTurns, json_bytes
from fsm.machines.registration import State
from fsm.registry.records import Create, Row
from specs.limits.node import USER_PATHS, USER_RECORD_BYTES
from specs.limits.protocol import MAX_SUBSCRIPTIONS
from specs.reply_code import Code
from tests.support.lone_paths import lone_paths, told
from tests.support.lone_registry import LoneRegistry, leave, tell

ALICE = "user://a.ex/alice"


def user_of(runtime):
    return runtime.partition("-")[0]


def shares():
    return UserShares("things", Share(10, 1000), Share(15, math.inf), user_of)


def test_a_limit_counts_over_all_runtimes_of_a_user():
    some = shares()
    some.take("alice-1", 5, 100)
    some.take("alice-2", 5, 100)
    refused = some.refusal("alice-3", 1, 1)
    assert (refused.code, refused.why) == (Code.TOO_LARGE, "a user has at most 10 things")
    assert some.refusal("bob-1", 5, 1) is None
    assert some.refusal("bob-1", 6, 1).code is Code.UNAVAILABLE


def test_bytes_count_too_and_who_shrinks_is_not_refused():
    some = shares()
    some.take("alice-1", 1, 990)
    assert some.refusal("alice-2", 0, 11).why == "a user has at most 1000 bytes of things"
    assert some.refusal("alice-2", 0, -11) is None


@given(st.lists(st.tuples(st.sampled_from(["a-1", "a-2", "b-1"]), st.integers(1, 9))))
def test_what_is_given_back_leaves_nothing(takes):
    some = shares()
    for runtime, count in takes:
        some.take(runtime, count, 10 * count)
    for runtime, count in takes:
        some.take(runtime, -count, -10 * count)
    assert (len(some), some.size) == (0, 0)
    assert some.refusal("a-1", 10, 1000) is None


def test_paths_are_counted_over_all_sessions_of_a_user():
    core = lone_paths(user_of)
    sessions = USER_PATHS // MAX_SUBSCRIPTIONS
    for session in range(sessions):
        resources = tuple(f"comm://a.ex/{session}/{one}" for one in range(MAX_SUBSCRIPTIONS))
        assert told(core, "subscribe", f"alice-{session}", resources)
    (refused,) = told(core, "subscribe", "alice-x", ("comm://a.ex/x",))
    assert refused.why == f"a user has at most {USER_PATHS} paths"
    assert len(told(core, "subscribe", "bob-1", ("comm://a.ex/x",))) == 2
    told(core, "remove_runtime", "alice-0")
    assert len(told(core, "subscribe", "alice-x", ("comm://a.ex/x",))) == 2


def create(number, runtime, users, size=15_000):
    url = f"hyperty://a.ex/{runtime[-1]}{number}"
    value = {"url": url, "runtime": runtime, "user": ALICE, "x": "x" * size}
    return Create(url, runtime, runtime, value, users=users)


def filled(core, runtime, users):
    """Register until that is refused; return the refusal and how many were registered."""
    for number in range(10_000):
        *_, answer = core.feed(create(number, runtime, users), 0.0)
        if answer.code is not Code.OK:
            return answer, number
    raise AssertionError


def test_records_are_counted_for_the_user_of_the_login():
    core, alice, bob = LoneRegistry(), frozenset({ALICE}), frozenset({"user://a.ex/bob"})
    answer, number = filled(core, "r1", alice)
    assert answer.why == f"a user has at most {USER_RECORD_BYTES} bytes of records"
    assert 1000 < number < USER_RECORD_BYTES // 15_000
    assert core.feed(create(0, "r2", alice), 0.0)[-1].code is Code.TOO_LARGE
    # Where nobody logs in, a name proves nothing: each runtime counts for itself.
    assert core.feed(create(0, "r3", None), 0.0)[-1].code is Code.OK
    refused = create(0, "r4", bob)
    assert core.feed(refused, 0.0)[-1].code is not Code.TOO_LARGE
    # When a record is over, its share is returned.
    core.settle()
    core.feed(leave("r1", "gone"), 0.0)
    core.feed(tell.tick(), 1e9)
    core.feed(tell.tick(), 2e9)
    assert filled(core, "r2", alice)[1] > 1000


def test_kept_records_count_for_the_user_that_they_name():
    kept = [
        Row(f"hyperty://a.ex/{one}", "r1", State.LIVE, 0.0, {"user": ALICE, "x": "x" * 15_000}, one)
        for one in range(USER_RECORD_BYTES // 15_000 - 500)
    ]
    core = LoneRegistry(kept)
    _, number = filled(core, "r2", frozenset({ALICE}))
    assert number < 500


def test_a_record_is_kept_as_its_text():
    value = {"user": ALICE, "x": [[] for _ in range(4000)]}
    row = Row("hyperty://a.ex/1", "r1", State.LIVE, 0.0, value)
    assert row.value == value
    assert row.cost < json_bytes(value) / 10


def test_a_full_queue_of_turns_loses_the_newest_of_whom_most_waits():
    turns = UserTurns(4)
    assert [turns.put(f"a{one}", "a") for one in range(3)] == [None] * 3
    assert turns.put("b0", "b") is None
    assert turns.put("a3", "a") == "a3"
    assert turns.put("c0", "c") == "a2"
    assert turns.put("b1", "b") == "b1"
    assert turns.put("d0", "d") == "a1"
    assert turns.put("e0", "e") == "e0"
    assert [turns.take() for _ in range(len(turns))] == ["a0", "b0", "c0", "d0"]
