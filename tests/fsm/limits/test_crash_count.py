"""How often something may crash (R11)."""

from fsm.limits.rates import CrashCount
from specs.limits.protocol import SANDBOX_RESTARTS, SANDBOX_SECONDS


def test_crashes_count_for_a_minute():
    count = CrashCount()
    assert [count.count_crash(float(at)) for at in range(SANDBOX_RESTARTS)] == [
        False
    ] * SANDBOX_RESTARTS
    assert not count.count_crash(SANDBOX_SECONDS)
    assert not count.is_calm(SANDBOX_SECONDS + 1)
    assert not count.is_calm(2 * SANDBOX_SECONDS - 0.5)
    assert count.is_calm(2 * SANDBOX_SECONDS)


def test_a_crash_still_counts_just_before_its_minute_is_over():
    count = CrashCount()
    for _ in range(SANDBOX_RESTARTS):
        assert not count.count_crash(0.0)
    assert count.count_crash(SANDBOX_SECONDS - 0.1)


def test_nothing_has_crashed_at_first():
    assert CrashCount().is_calm(0.0)


def test_one_crash_too_many_is_said_once():
    count = CrashCount()
    said = [count.count_crash(0.0) for _ in range(2 * (SANDBOX_RESTARTS + 1))]
    assert said == 2 * [*[False] * SANDBOX_RESTARTS, True]
