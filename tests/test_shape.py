"""A stand-in of another shape than the function of the product is refused."""

import pytest

from actors.runtime.bus.delivery import Deliveries
from tests.support.shape import Stand, assert_same_shape


def test_a_stand_in_that_cannot_be_called_as_the_function_is_refused():
    with pytest.raises(AssertionError, match="cannot stand in"):
        assert_same_shape(Deliveries.give, lambda *_: True)


def test_one_of_the_same_shape_is_taken():
    assert_same_shape(Deliveries.give, lambda *_, **__: True)


def test_what_is_no_function_is_not_looked_at():
    assert_same_shape(None, lambda: None)


class Door:
    def open(self, key):
        return key


def test_a_stand_in_that_nothing_has_called_is_known():
    stand = Stand()
    stand.setattr(Door, "open", lambda _, key: f"other {key}")
    assert [what.endswith("Door'>.open") for what in stand.silent] == [True]
    assert Door().open("a") == "other a"
    assert not stand.silent
    stand.undo()
    assert Door().open("a") == "a"


def test_a_stand_in_of_another_shape_is_refused_for_an_object_too():
    stand, door = Stand(), Door()
    with pytest.raises(AssertionError, match="cannot stand in"):
        stand.setattr(door, "open", lambda: None)
    stand.setattr(door, "open", lambda key: key)
    stand.undo()
