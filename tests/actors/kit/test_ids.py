"""Ids never go back, not even over a restart."""

from hypothesis import given
from hypothesis import strategies as st

from actors.kit.ids import IdSource


@given(st.lists(st.sampled_from(["a", "b", "c"])), st.integers(min_value=0))
def test_ids_of_one_sender_strictly_increase_from_above_the_start(senders, start):
    ids = IdSource(start)
    given_to = [(sender, ids.next(sender)) for sender in senders]

    for sender in set(senders):
        numbers = [number for name, number in given_to if name == sender]
        assert numbers == list(range(start + 1, start + 1 + len(numbers)))
