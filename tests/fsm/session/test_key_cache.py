"""When keys are got anew: when they are old, or for a key nobody knows, but not too often."""

import pytest

from fsm.session.assertion import KeyCacheCore
from specs.limits.node import KEYS_STALE

FRESH, PAUSE = 300.0, 5.0


def cache(got_at=None):
    core = KeyCacheCore(FRESH, PAUSE)
    if got_at is not None:
        core.tried(got_at)
        core.got(got_at)
    return core


def test_the_first_login_causes_the_keys_to_be_fetched():
    core = cache()

    assert core.is_due(0.0)
    assert not core.are_usable(0.0)


@pytest.mark.parametrize(("age", "due"), [(0.0, False), (299.9, False), (300.0, True)])
def test_keys_are_got_anew_when_they_are_no_longer_fresh(age, due):
    assert cache(1000.0).is_due(1000.0 + age) is due


def test_an_unknown_key_has_them_got_but_only_after_the_pause():
    core = cache(1000.0)

    assert not core.may_be_tried(1004.9)
    assert core.may_be_tried(1005.0)


def test_an_attempt_that_failed_is_followed_by_the_pause():
    core = cache()
    core.tried(10.0)

    assert not core.is_due(14.9)
    assert core.is_due(15.0)


def test_keys_with_a_failing_source_are_used_until_they_are_stale():
    core = cache(1000.0)
    for after in range(300, 3600, 10):
        core.tried(1000.0 + after)

    assert core.are_usable(1000.0 + KEYS_STALE - 1)
    assert not core.are_usable(1000.0 + KEYS_STALE)
