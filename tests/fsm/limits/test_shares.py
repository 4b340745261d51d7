"""What a hyperty works on at a time: of no peer so much that another must wait for it (L2)."""

from hypothesis import given
from hypothesis import strategies as st

from fsm.limits.shares import WorkShares

MOST, ROOM, EACH = 16, 12, 8


def shares():
    return WorkShares(MOST, ROOM, EACH)


def begun_of(some, peer, count):
    return sum(some.enter(peer, number)[0] for number in range(count))


def test_a_peer_leaves_half_of_what_is_free_to_others():
    some = shares()
    assert [begun_of(some, peer, 9) for peer in "abcde"] == [8, 4, 2, 1, 1]


def test_what_waits_begins_in_order_and_by_turns():
    some = WorkShares(4, ROOM, EACH)
    for number in range(4):
        some.enter("a", ("a", number))
        some.enter("b", ("b", number))
    order = []
    for peer in ("a", "b", "a", "a"):
        order += [work for _, work in some.leave(peer)]
    for peer in "ab":
        numbers = [number for one, number in order if one == peer]
        assert numbers == sorted(numbers)
        assert numbers
    assert some.clear()
    assert some.leave("b") == []


def test_work_without_room_is_given_up_by_the_peer_with_most():
    some = shares()
    assert begun_of(some, "a", 8 + EACH) == 8
    assert some.enter("a", "over its share") == (False, "over its share")
    assert begun_of(some, "b", 4 + ROOM - EACH) == 4
    assert some.enter("c", "now") == (True, None)
    begun_of(some, "c", 1)
    assert some.enter("c", "late") == (False, 8 + EACH - 1), "the last of the peer with most"
    assert len(some.clear()) == ROOM


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_all_work_begins_once_or_is_given_up(steps):
    some, running, came, done, given_up = shares(), [], 0, [], []
    for peer, comes in steps:
        if comes:
            begins, refused = some.enter(peer, came)
            if begins:
                running.append((peer, came))
            if refused is not None:
                given_up.append(refused)
            came += 1
        elif running:
            ended, number = running.pop(0)
            done.append(number)
            running += some.leave(ended)
    while running:
        ended, number = running.pop(0)
        done.append(number)
        running += some.leave(ended)
    assert sorted(done + given_up) == list(range(came))
    assert some.clear() == []
