"""No host has all the connections there are (L6)."""

from fsm.limits.shares import HostShares


def test_a_host_has_its_share_and_others_have_theirs():
    shares = HostShares(4, 2)
    assert [shares.enter("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert [shares.enter(f"192.0.2.{n}") for n in (2, 3, 4)] == [True, True, False]


def test_a_left_host_frees_its_own_share_and_the_common_one():
    shares = HostShares(2, 1)
    assert shares.enter("192.0.2.1")
    assert shares.enter("192.0.2.2")
    shares.leave("192.0.2.1")
    assert not shares.enter("192.0.2.2")
    assert shares.enter("192.0.2.1")


def test_addresses_of_one_site_are_one_host():
    """Whoever has an IPv6 address has its /64 (RFC 4291)."""
    shares = HostShares(9, 1)
    assert shares.enter("2001:db8::1")
    assert not shares.enter("2001:db8::2")
    assert shares.enter("2001:db8:0:1::1")


def test_an_absent_host_is_not_remembered():
    shares = HostShares(9, 2)
    for number in range(1000):
        assert shares.enter(f"198.51.100.{number}")
        shares.leave(f"198.51.100.{number}")
    assert len(shares) == 0
