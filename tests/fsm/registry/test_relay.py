"""The open requests to a back end, against a model of them (CON-07)."""

import pytest

from fsm.registry.relay import RelayCore, RelayLimits
from specs.reply_code import Code

FULL = "too many requests wait for the back end"
LIMITS = RelayLimits(parallel=2, waiting=3, patience=10.0)


class Port:
    """Notes what the core wants done: the name of a call, and its arguments."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args: self.calls.append((name, *args))


class Relayed:
    """The core; each call returns what it wants done."""

    def __init__(self, limits):
        self._port = Port()
        self._core = RelayCore(limits, self._port)

    def __getattr__(self, name):
        def call(*args, **named):
            getattr(self._core, name)(*args, **named)
            calls, self._port.calls = self._port.calls, []
            return calls

        return call


@pytest.mark.parametrize("late", [("take_answer", 1), ("take_failure", 1, "reset")])
def test_an_answer_to_an_ended_request_is_late(late):
    core = Relayed(LIMITS)
    core.want(1, "r1", 0.0)
    core.take_answer(1)
    name, *args = late
    assert getattr(core, name)(*args) == [("drop_late", 1)]


def full(number):
    return [("refuse", number, Code.UNAVAILABLE, FULL)]


def test_one_that_fills_the_queue_is_refused_and_others_are_not():
    """CON-07."""
    core = Relayed(RelayLimits(parallel=1, waiting=4, patience=10.0))
    for number in range(5):
        core.want(number, "flooder", 0.0, "lane")
    assert core.want(5, "other", 0.0) == full(4)
    assert core.want(6, "other", 0.0) == full(3)
    assert core.want(7, "other", 0.0) == full(7)
