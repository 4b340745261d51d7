"""The open requests to a back end, against a model of them (CON-07)."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

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


class Relay(RuleBasedStateMachine):
    """Who is asked for, since when, in which lane; and whether each has been answered once."""

    def __init__(self):
        super().__init__()
        self.port = Port()
        self.core = RelayCore(LIMITS, self.port)
        self.now = 0.0
        self.asked = {}
        self.running = []
        self.waiting = []
        self.over = set()

    def look(self):
        calls, self.port.calls = self.port.calls, []
        for name, number, *_ in calls:
            match name:
                case "send":
                    assert self.waiting.pop(self.next_in_line()) == number
                    self.running.append(number)
                case "drop_late":
                    assert number in self.over
                case "deliver" | "refuse" | "give_up":
                    assert number not in self.over
                    self.over.add(number)
                    mine = self.running if number in self.running else self.waiting
                    mine.remove(number)

    def next_in_line(self):
        busy = {self.asked[one][1] for one in self.running} - {None}
        return next(i for i, one in enumerate(self.waiting) if self.asked[one][1] not in busy)

    @rule(by=st.sampled_from(["r1", "r2"]), lane=st.sampled_from([None, "a", "b"]))
    def want(self, by, lane):
        number = len(self.asked)
        self.asked[number] = by, lane, self.now
        self.waiting.append(number)
        self.core.want(number, by, self.now, lane)
        self.look()

    @rule(which=st.integers(0, 20))
    def comes(self, which):
        if which in self.asked and which not in self.waiting:
            self.core.take_answer(which)
            self.look()

    @rule(which=st.integers(0, 20))
    def breaks(self, which):
        if which in self.asked and which not in self.waiting:
            self.core.take_failure(which, "gone")
            self.look()

    @rule(by=st.sampled_from(["r1", "r2"]))
    def leaves(self, by):
        self.core.leave(by)
        self.look()
        assert all(self.asked[one][0] != by for one in (*self.running, *self.waiting))

    @rule(seconds=st.sampled_from([1.0, 9.0, 10.0]))
    def time_passes(self, seconds):
        self.now += seconds
        self.core.tick(self.now)
        self.look()
        assert all(self.asked[one][2] + 10.0 > self.now for one in (*self.running, *self.waiting))

    @invariant()
    def bounds_hold(self):
        assert len(self.running) <= LIMITS.parallel
        assert len(self.waiting) <= LIMITS.waiting
        lanes = [self.asked[one][1] for one in self.running if self.asked[one][1]]
        assert len(set(lanes)) == len(lanes)
        assert len(self.core) == len(self.running) + len(self.waiting)

    @invariant()
    def a_waiting_request_waits_for_its_lane(self):
        if self.waiting and len(self.running) < LIMITS.parallel:
            busy = {self.asked[one][1] for one in self.running}
            assert all(self.asked[one][1] in busy - {None} for one in self.waiting)

    @invariant()
    def the_deadline_is_that_of_the_oldest_request(self):
        due = [self.asked[one][2] + 10.0 for one in (*self.running, *self.waiting)]
        assert self.core.deadline() == min(due, default=float("inf"))


TestRelay = Relay.TestCase


def refusals(calls):
    return [int(code) for name, _, code, *_ in (one for one in calls if one[0] == "refuse")]


def sent(calls):
    return [number for name, number, *_ in calls if name == "send"]


def test_each_kind_of_failure_has_its_code():
    core = Relayed(RelayLimits(parallel=1, waiting=1, patience=10.0))
    core.want(1, "r1", 0.0)
    core.want(2, "r1", 0.0)
    assert refusals(core.want(3, "r1", 0.0)) == [503]
    assert refusals(core.take_failure(1, "reset")) == [502]
    assert refusals(core.tick(10.0)) == [504]


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


def test_a_user_of_many_sessions_takes_no_place_of_others():
    """CON-07."""
    core = Relayed(RelayLimits(parallel=1, waiting=4, patience=10.0, each=1))
    for number in range(5):
        core.want(number, f"session {number}", 0.0, user="flooder")
    assert core.want(5, "other", 0.0) == full(4)
    assert core.want(6, "session 6", 0.0, user="flooder") == full(6)


def test_one_has_its_share_of_what_is_under_way():
    """CON-07."""
    core = Relayed(RelayLimits(parallel=4, waiting=9, patience=10.0, each=2))
    assert [sent(core.want(number, "slow", 0.0)) for number in range(4)] == [[0], [1], [], []]
    assert sent(core.want(4, "other", 0.0)) == [4]
    assert sent(core.take_answer(1)) == [2]
