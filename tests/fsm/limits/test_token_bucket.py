"""Token buckets, against a bucket that counts its tokens (RELIABILITY L5)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.limits.rates import Rate, TokenBuckets


class Bucket:
    """The plain way: so many tokens, filled up as time passes."""

    def __init__(self, rate):
        self.rate, self.tokens, self.at = rate, float(rate.burst), 0.0

    def spend(self, count, now):
        filled = self.tokens + (now - self.at) * self.rate.per_second
        self.tokens, self.at = min(self.rate.burst, filled) - count, now
        return max(0.0, -self.tokens / self.rate.per_second)


RATES = st.builds(Rate, st.sampled_from([0.5, 3.0, 100.0]), st.integers(1, 200))
STEPS = st.lists(st.tuples(st.floats(0, 10), st.integers(1, 65)), max_size=40)


@given(RATES, STEPS)
def test_a_sender_waits_as_long_as_a_bucket_of_tokens_says(rate, steps):
    meter, bucket, now = TokenBuckets(rate), Bucket(rate), 0.0
    for pause, count in steps:
        now += pause
        assert meter.spend("a", count, now) == pytest.approx(bucket.spend(count, now), abs=1e-6)


@given(RATES, STEPS)
def test_a_sender_that_waits_as_reported_keeps_to_the_rate(rate, steps):
    meter, now, sent = TokenBuckets(rate), 0.0, 0
    for pause, count in steps:
        now += pause
        now += meter.spend("a", count, now)
        sent += count
        assert sent <= rate.burst + now * rate.per_second + 1e-6


def test_a_burst_passes_at_once_and_then_one_at_a_time():
    meter = TokenBuckets(Rate(20.0, 100))

    assert sum(meter.try_spend("host", 0.0) for _ in range(500)) == 100
    assert sum(meter.try_spend("host", 1.0) for _ in range(500)) == 20


def test_a_refused_try_costs_nothing():
    meter = TokenBuckets(Rate(1.0, 1))
    assert meter.try_spend("host", 0.0)
    for _ in range(1000):
        meter.try_spend("host", 0.5)

    assert meter.try_spend("host", 1.0)


def test_each_has_a_bucket_of_its_own():
    meter = TokenBuckets(Rate(1.0, 1))

    assert meter.spend("a", 10, 0.0) == 9.0
    assert meter.spend("b", 1, 0.0) == 0.0


def test_without_a_limit_no_sender_waits():
    meter = TokenBuckets(Rate(math.inf, 1))

    assert meter.spend("a", 10**9, 0.0) == 0.0
    assert meter.try_spend("a", 0.0)
    assert len(meter) == 0


def test_only_recently_busy_senders_take_memory():
    meter = TokenBuckets(Rate(20.0, 100))
    for number in range(100_000):
        meter.spend(f"host-{number}", 1, number / 1000)

    assert len(meter) < 500  # a bucket that lacks one token is full after 50 ms
