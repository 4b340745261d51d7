"""Who may knock, and who makes room (RELIABILITY L5, L6)."""

import math

import pytest

from fsm.limits.rates import Rate
from fsm.limits.shares import UnauthenticatedLinks, host_key
from specs.limits.protocol import ACCEPT_GRACE

ANY = Rate(math.inf, 1)


def test_the_oldest_of_a_host_gives_way_to_the_next_one():
    outsiders = UnauthenticatedLinks(ANY, most=2000, most_per_host=100)
    first, *_ = (outsiders.knock("192.0.2.1", 0.0) for _ in range(100))
    other = outsiders.knock("192.0.2.2", 0.0)

    assert other[1] is None
    assert outsiders.knock("192.0.2.1", 0.0)[1] == first[0]
    assert len(outsiders) == 101


def test_the_oldest_of_all_gives_way_when_the_node_is_full():
    outsiders = UnauthenticatedLinks(ANY, most=3, most_per_host=2)
    first, second, _ = (outsiders.knock(f"192.0.2.{n}", 0.0) for n in range(3))

    assert outsiders.knock("192.0.2.9", 0.0)[1] == first[0]
    assert outsiders.knock("192.0.2.9", 0.0)[1] == second[0]
    assert len(outsiders) == 3


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


def test_a_connection_with_a_session_counts_no_longer():
    outsiders = UnauthenticatedLinks(ANY, most=1, most_per_host=1)
    known = outsiders.knock("192.0.2.1", 0.0)
    outsiders.forget(known[0])
    outsiders.forget(known[0])

    assert outsiders.knock("192.0.2.1", 0.0)[1] is None


def test_a_host_with_too_many_connections_is_refused_and_no_other():
    outsiders = UnauthenticatedLinks(Rate(20.0, 100), most=2000, most_per_host=2000)
    let_in = [outsiders.knock("192.0.2.1", 0.0) for _ in range(300)]

    assert sum(one is not None for one in let_in) == 100
    assert outsiders.knock("192.0.2.2", 0.0) is not None


def test_hosts_are_forgotten_with_their_connections():
    outsiders = UnauthenticatedLinks(ANY, most=10, most_per_host=1)
    for number in range(1000):
        outsiders.forget(outsiders.knock(f"192.0.2.{number}", 0.0)[0])

    assert (len(outsiders), outsiders._by_host) == (0, {})


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
    ],
)
def test_ipv6_hosts_are_counted_by_their_site(one, other, is_same):
    assert (host_key(one) == host_key(other)) is is_same
