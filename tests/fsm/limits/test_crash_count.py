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


def test_one_crash_too_many_is_said_once():
    count = CrashCount()
    said = [count.count_crash(0.0) for _ in range(2 * (SANDBOX_RESTARTS + 1))]
    assert said == 2 * [*[False] * SANDBOX_RESTARTS, True]
