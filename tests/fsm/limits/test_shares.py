"""What a hyperty works on at a time: of no peer so much that another must wait for it (L2)."""

from fsm.limits.shares import WorkShares

MOST, ROOM, EACH = 16, 12, 8


def shares():
    return WorkShares(MOST, ROOM, EACH)


def begun_of(some, peer, count):
    return sum(some.enter(peer, number)[0] for number in range(count))


def test_a_peer_leaves_half_of_what_is_free_to_others():
    some = shares()
    assert [begun_of(some, peer, 9) for peer in "abcde"] == [8, 4, 2, 1, 1]
