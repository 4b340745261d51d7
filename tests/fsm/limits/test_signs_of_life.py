"""When a silent sandbox process is ended, and when it is waited for (SEC-33, R11, S17)."""

from fsm.limits.timers import IDLE, ProcessorTime, Sign, SignsOfLife
from specs.limits.foreign_code import SANDBOX_NICE, SANDBOX_STARVED, SANDBOX_TURN
from specs.limits.protocol import LATE, REPLY_TIMEOUT, SANDBOX_BEAT, SANDBOX_SILENCE


def test_what_it_had_before_it_was_asked_does_not_count():
    signs = SignsOfLife()
    signs.alive(0.0)
    signs.timed_out(signs.due, ProcessorTime(9.0, 0.0))
    assert signs.timed_out(signs.due, ProcessorTime(9.1, 4.9)) is Sign.WAIT


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
