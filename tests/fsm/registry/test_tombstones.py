"""Whose released addresses were, remembered as long as nobody has them again (I-A7, C-44)."""

from fsm.registry.allocation import Tombstones

A, RA, RB = "comm://a.ex/1", "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"


def test_a_released_address_was_its_owners_and_is_spent():
    stones = Tombstones()
    stones.bury(A, RA)
    assert (stones.was_of(A, RA), stones.was_of(A, RB)) == (True, False)
    assert stones.is_spent(A)


def test_an_address_with_an_owner_again_takes_no_memory():
    stones = Tombstones()
    stones.bury(A, RA)
    stones.lift(A)
    assert (len(stones), stones.is_spent(A), stones.was_of(A, RA)) == (0, False, False)


def test_the_last_holder_of_an_address_is_known():
    stones = Tombstones()
    stones.bury(A, RA)
    stones.bury(A, RB)
    assert (len(stones), stones.was_of(A, RA), stones.was_of(A, RB)) == (1, False, True)
