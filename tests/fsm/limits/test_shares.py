"""What a hyperty works on at a time: of no peer so much that another must wait for it (L2)."""

from hypothesis import given
from hypothesis import strategies as st

from fsm.limits.shares import OpenShares, WorkShares

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


# ---- requests of one process


def test_senders_of_a_process_take_turns_at_a_receiver():
    some = OpenShares(4, 3)

    def enters(sender):
        if some.enter(sender):
            return True
        some.wait(sender, sender)
        return False

    assert [enters("a") for _ in range(6)] == [True] * 3 + [False] * 3
    assert [enters("b") for _ in range(3)] == [True, False, False]
    assert [some.leave("a") for _ in range(3)] == ["a", "b", "a"]
    assert some.leave("b") == "b"


def test_who_gives_up_is_not_given_a_place():
    some = OpenShares(1, 1)
    assert some.enter("a")
    assert not some.enter("b")
    some.wait("b", "b")
    some.give_up("b", "b")
    assert some.leave("a") is None
    assert some.is_idle


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["enter", "leave", "give up"]))))
def test_no_place_is_given_twice_and_none_stays_empty(moves):
    some = OpenShares(4, 2)
    has, waits = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    for sender, move in moves:
        if move == "enter":
            is_open = some.enter(sender)
            (has if is_open else waits)[sender] += 1
            if not is_open:
                some.wait(sender, sender)
        elif move == "leave" and has[sender]:
            has[sender] -= 1
            following = some.leave(sender)
            if following is not None:
                waits[following] -= 1
                has[following] += 1
        elif move == "give up" and waits[sender]:
            waits[sender] -= 1
            some.give_up(sender, sender)
        assert sum(has.values()) <= 4
        assert max(has.values()) <= 2
        assert min(waits.values()) >= 0
        # Nobody waits beside a place that is free to them.
        assert not any(waits[one] and has[one] < 2 and sum(has.values()) < 4 for one in "abc")
        assert some.is_idle == (not any(has.values()) and not any(waits.values()))
