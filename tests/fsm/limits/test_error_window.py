"""How many malformed messages are borne (RELIABILITY L4)."""

import math

from fsm.limits.rates import ErrorWindow


def test_ten_in_a_minute_are_borne_and_the_eleventh_is_not():
    errors = ErrorWindow(10)

    assert all(errors.add(1, float(second)) for second in range(10))
    assert not errors.add(1, 59.9)


def test_errors_older_than_a_minute_are_forgotten():
    errors = ErrorWindow(10)

    assert all(errors.add(1, 6.1 * number) for number in range(1000))


def test_many_at_once_are_as_many_one_by_one():
    assert ErrorWindow(10).add(10, 0.0)
    assert not ErrorWindow(10).add(11, 0.0)


def test_without_a_limit_everything_is_borne_and_nothing_kept():
    errors = ErrorWindow(math.inf)

    assert all(errors.add(65, 0.0) for _ in range(100))
    assert not errors._times


def test_no_more_is_remembered_than_decides():
    errors = ErrorWindow(10)
    for _ in range(100):
        errors.add(65, 0.0)

    assert len(errors._times) == 11
