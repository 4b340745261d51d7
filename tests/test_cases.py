"""Large tables that one test goes through."""

import pytest

from tests.support.cases import for_each


def test_all_cases_are_tried_and_each_failure_says_whose_it_is():
    tried = []

    @for_each([(1, 1), (2, 3), (3, 3), (4, 5)], lambda case: f"{case[0]} is {case[1]}")
    def is_equal(one, other):
        """As the table says."""
        tried.append(one)
        assert one == other

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases") as caught:
        is_equal()

    assert tried == [1, 2, 3, 4]
    notes = [failure.__notes__ for failure in caught.value.exceptions]
    assert notes == [["case 2 is 3"], ["case 4 is 5"]]
    assert (is_equal.__name__, is_equal.__doc__) == ("is_equal", "As the table says.")


def test_an_error_that_does_not_come_is_a_failure():
    @for_each("ab")
    def is_no_number(text):
        with pytest.raises(ValueError, match="invalid literal"):
            int(text, 11)

    with pytest.raises(BaseExceptionGroup) as caught:
        is_no_number()

    (failure,) = caught.value.exceptions
    assert failure.__notes__ == ["case a"]


def test_an_interrupt_ends_it():
    @for_each("ab")
    def interrupted(text):
        raise KeyboardInterrupt(text)

    with pytest.raises(KeyboardInterrupt, match="a"):
        interrupted()
