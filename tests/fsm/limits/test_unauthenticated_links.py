"""Who may knock, and who makes room (RELIABILITY L5, L6)."""

import math

from fsm.limits.rates import Rate
from fsm.limits.shares import UnauthenticatedLinks
from specs.limits.protocol import ACCEPT_GRACE

ANY = Rate(math.inf, 1)


def test_the_oldest_of_a_host_gives_way_to_the_next_one():
    outsiders = UnauthenticatedLinks(ANY, most=2000, most_per_host=100)
    first, *_ = (outsiders.knock("192.0.2.1", 0.0) for _ in range(100))
    other = outsiders.knock("192.0.2.2", 0.0)

    assert other[1] is None
    assert outsiders.knock("192.0.2.1", 0.0)[1] == first[0]
    assert len(outsiders) == 101


def test_a_full_node_has_room_for_as_many_as_have_had_their_time():
    outsiders = UnauthenticatedLinks(ANY, most=3, most_per_host=2)
    first = outsiders.knock("192.0.2.1", 5.0)
    assert outsiders.room(5.0) == 2

    outsiders.knock("192.0.2.2", 5.0)
    outsiders.knock("192.0.2.3", 5.0 + ACCEPT_GRACE / 2)
    assert outsiders.room(5.0 + 0.9 * ACCEPT_GRACE) == 0
    assert outsiders.room(5.0 + ACCEPT_GRACE) == 2
    assert outsiders.knock("192.0.2.4", 5.0 + ACCEPT_GRACE)[1] == first[0]
    assert outsiders.room(5.0 + ACCEPT_GRACE) == 1
