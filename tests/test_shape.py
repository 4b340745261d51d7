"""A stand-in of another shape than the function of the product is refused."""

import pytest

from actors.runtime.bus.delivery import Deliveries
from tests.support.shape import assert_same_shape


def test_a_stand_in_that_cannot_be_called_as_the_function_is_refused():
    with pytest.raises(AssertionError, match="cannot stand in"):
        assert_same_shape(Deliveries.give, lambda *_: True)


def test_one_of_the_same_shape_is_taken():
    assert_same_shape(Deliveries.give, lambda *_, **__: True)


def test_what_is_no_function_is_not_looked_at():
    assert_same_shape(None, lambda: None)
