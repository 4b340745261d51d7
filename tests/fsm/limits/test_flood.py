"""Who says too much for too long (R11, S17)."""

import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.limits.rates import FloodCore

RATE, BURST, PATIENCE = 10.0, 5, 2.0
LONG = 20.0


@attrs.define
class SandboxHostModel:
    """Takes what comes when it comes, one after the other, and pauses as ordered.

    Attributes:
        late: Seconds by which it wakes too late after the n-th pause.
        work: Seconds it needs for each unit.
    """

    late: list[float] = attrs.field(factory=lambda: [0.0])
    work: float = 0.0
    core: FloodCore = attrs.field(factory=lambda: FloodCore(RATE, BURST, PATIENCE))
    now: float = 0.0
    waited: float = 0.0
    said: list[float] = attrs.field(factory=list)

    def take(self, came):
        """Take one that came then; tell whether to go on."""
        idle = max(came - self.now, 0.0)
        self.now += idle
        self.waited += idle
        pause = self.core.spend(self.now, self.waited)
        self.said.append(pause)
        self.now += self.work
        if 0 < pause < math.inf:
            self.now += pause + self.late[len(self.said) % len(self.late)]
        return pause < math.inf

    def hears(self, arrivals):
        """Take all, until it is a flood; tell whether it was none."""
        return all(map(self.take, arrivals))


def steadily(since, every, count):
    return [since + every * number for number in range(count)]


def test_a_burst_passes_and_then_the_rate_holds():
    keeper = SandboxHostModel()
    assert keeper.hears([0.0] * (BURST + 3))
    assert keeper.said[:BURST] == [0.0] * BURST
    assert all(0 < pause <= 1 / RATE + 1e-9 for pause in keeper.said[BURST:])


def test_a_continuous_flood_is_found():
    keeper = SandboxHostModel()
    assert not keeper.hears([0.0] * 1000)
    assert len(keeper.said) >= BURST + PATIENCE * RATE
    assert PATIENCE - 1e-9 <= keeper.now <= PATIENCE + 2 / RATE


@given(late=st.lists(st.floats(0, 0.3), min_size=1), work=st.floats(0, 0.5 / RATE))
def test_a_flood_is_found_despite_late_checks(late, work):
    keeper = SandboxHostModel(late, work)
    assert not keeper.hears([0.0] * 10_000)
    assert keeper.now < 4 * PATIENCE


@given(
    burst=st.integers(0, BURST),
    share=st.floats(0.5, 1.0),
    late=st.lists(st.floats(0, 0.3), min_size=1),
)
def test_a_burst_and_then_no_more_than_the_rate_is_no_flood(burst, share, late):
    every = 1 / (RATE * share)
    arrivals = [0.0] * burst + steadily(every, every, int(LONG / every))
    assert SandboxHostModel(late).hears(arrivals)


@given(
    excess=st.integers(1, 50),
    share=st.floats(0.5, 1.0, exclude_max=True),
    late=st.lists(st.floats(0, 0.02), min_size=1),
)
def test_too_large_a_burst_is_none_if_what_was_held_back_is_soon_worked_off(excess, share, late):
    soon = 0.9 * PATIENCE * RATE * (1 - share)
    every = 1 / (RATE * share)
    arrivals = [0.0] * (BURST + min(excess, int(soon)))
    assert SandboxHostModel(late).hears(arrivals + steadily(every, every, int(LONG / every)))


@given(jitter=st.lists(st.floats(0, 2 / RATE), min_size=2, max_size=20))
def test_uneven_sending_within_the_rate_is_no_flood(jitter):
    even = steadily(0.1, 1.01 / RATE, 300)
    arrivals = [one + jitter[place % len(jitter)] for place, one in enumerate(even)]
    assert SandboxHostModel().hears([0.0] * BURST + sorted(arrivals))


def test_messages_in_pairs_after_the_requested_delay_are_no_flood():
    pairs = [at for at in steadily(1 / RATE, 2.02 / RATE, 150) for _ in range(2)]
    assert SandboxHostModel().hears([0.0] * BURST + pairs)


def test_a_sender_with_pauses_is_no_flood():
    arrivals = [at for since in range(50) for at in [2.4 * since] * (BURST + 17)]
    assert SandboxHostModel().hears(arrivals)


def test_a_slow_sandbox_host_reports_no_flood_below_the_rate():
    work = 0.9 / RATE
    every = 1 / (0.95 * RATE)
    assert SandboxHostModel(work=work).hears([0.0] * BURST + steadily(every, every, 300))


@pytest.mark.parametrize("quiet", [0.5, 1.0, 5.0])
def test_a_flood_after_a_quiet_time_is_found_as_soon(quiet):
    keeper = SandboxHostModel()
    every = 1.01 / RATE
    assert keeper.hears([0.0] * BURST + steadily(every, every, int(quiet / every)))
    begun = keeper.now
    assert not keeper.hears([begun] * 1000)
    assert keeper.now - begun <= BURST / RATE + PATIENCE + 2 / RATE
