"""When a silent sandbox process is ended, and when it is waited for (SEC-33, R11, S17)."""

import math

import pytest

from fsm.limits.timers import IDLE, ProcessorTime, Sign, SignsOfLife
from specs.limits.foreign_code import SANDBOX_NICE, SANDBOX_STARVED, SANDBOX_TURN
from specs.limits.protocol import LATE, REPLY_TIMEOUT, SANDBOX_BEAT, SANDBOX_SILENCE


def silence_of(ran, waited):
    """Return the seconds until a process is ended that has these shares of a second."""
    signs = SignsOfLife()
    signs.alive(0.0)
    begun = signs.due
    assert signs.timed_out(begun, IDLE) is Sign.ASK
    while True:
        now = signs.due
        used = ProcessorTime(ran * (now - begun), waited * (now - begun))
        if signs.timed_out(now, used) is Sign.END:
            return now - begun


@pytest.mark.parametrize(
    ("ran", "waited", "silence"),
    [
        pytest.param(1.0, 0.0, SANDBOX_SILENCE, id="spins"),
        pytest.param(0.0, 0.0, SANDBOX_SILENCE, id="sleeps"),
        pytest.param(0.1, 0.9, SANDBOX_SILENCE, id="spins beside others"),
        pytest.param(0.0, 0.4, SANDBOX_SILENCE, id="sleeps beside others"),
        pytest.param(0.001, 0.999, SANDBOX_STARVED, id="is starved"),
        pytest.param(0.03, 0.97, SANDBOX_SILENCE + 2 * SANDBOX_BEAT, id="has had its turn late"),
    ],
)
def test_a_silent_process_is_ended_unless_it_waits_for_a_processor(ran, waited, silence):
    assert silence_of(ran, waited) == silence


def test_what_it_had_before_it_was_asked_does_not_count():
    signs = SignsOfLife()
    signs.alive(0.0)
    signs.timed_out(signs.due, ProcessorTime(9.0, 0.0))
    assert signs.timed_out(signs.due, ProcessorTime(9.1, 4.9)) is Sign.WAIT


def test_one_that_gave_a_sign_late_is_asked_anew():
    signs = SignsOfLife()
    assert signs.due == math.inf
    signs.alive(0.0)
    signs.timed_out(signs.due, IDLE)
    assert signs.timed_out(signs.due, ProcessorTime(0.1, 4.9)) is Sign.WAIT
    signs.alive(signs.due)
    assert not signs.is_owed
    assert signs.timed_out(signs.due, ProcessorTime(0.2, 9.9)) is Sign.ASK


def test_a_host_that_was_held_up_itself_waits_once_more():
    signs = SignsOfLife()
    signs.alive(0.0)
    signs.timed_out(signs.due, IDLE)
    now = signs.due + LATE + 0.1
    assert signs.timed_out(now, IDLE) is Sign.WAIT
    assert signs.due == now + SANDBOX_SILENCE
    assert signs.timed_out(signs.due + LATE, IDLE) is Sign.END
    assert signs.silence(signs.due) == SANDBOX_SILENCE


def test_callers_hear_of_its_end_before_they_give_up():
    """A process of least priority has its turn in this time, if others leave it anything."""
    assert SANDBOX_BEAT + SANDBOX_STARVED < REPLY_TIMEOUT
    assert SANDBOX_TURN < SANDBOX_SILENCE / SANDBOX_NICE
