"""The open requests to a back end, against a model of them (CON-07)."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.registry.relay import (
    Broke,
    Came,
    Deliver,
    GiveUp,
    Late,
    Left,
    Refuse,
    RelayCore,
    RelayLimits,
    Start,
    Tick,
    Wanted,
)
from specs.reply_code import Code

FULL = "too many requests wait for the back end"
LIMITS = RelayLimits(parallel=2, waiting=3, patience=10.0)


class Relay(RuleBasedStateMachine):
    """Who is asked for, since when, in which lane; and whether each has been answered once."""

    def __init__(self):
        super().__init__()
        self.core = RelayCore(LIMITS)
        self.now = 0.0
        self.asked = {}
        self.running = []
        self.waiting = []
        self.over = set()

    def feed(self, happened):
        for effect in self.core.feed(happened, self.now):
            number = effect.number
            match effect:
                case Start():
                    assert self.waiting.pop(self.next_in_line()) == number
                    self.running.append(number)
                case Late():
                    assert number in self.over
                case Deliver() | Refuse() | GiveUp():
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
        self.feed(Wanted(number, by, lane))

    @rule(which=st.integers(0, 20))
    def comes(self, which):
        if which in self.asked and which not in self.waiting:
            self.feed(Came(which))

    @rule(which=st.integers(0, 20))
    def breaks(self, which):
        if which in self.asked and which not in self.waiting:
            self.feed(Broke(which, "gone"))

    @rule(by=st.sampled_from(["r1", "r2"]))
    def leaves(self, by):
        self.feed(Left(by))
        assert all(self.asked[one][0] != by for one in (*self.running, *self.waiting))

    @rule(seconds=st.sampled_from([1.0, 9.0, 10.0]))
    def time_passes(self, seconds):
        self.now += seconds
        self.feed(Tick())
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


def refusals(effects):
    return [int(one.code) for one in effects if isinstance(one, Refuse)]


def test_each_kind_of_failure_has_its_code():
    core = RelayCore(RelayLimits(parallel=1, waiting=1, patience=10.0))
    core.feed(Wanted(1, "r1"), 0.0)
    core.feed(Wanted(2, "r1"), 0.0)
    assert refusals(core.feed(Wanted(3, "r1"), 0.0)) == [503]
    assert refusals(core.feed(Broke(1, "reset"), 1.0)) == [502]
    assert refusals(core.feed(Tick(), 10.0)) == [504]


@pytest.mark.parametrize("late", [Came(1), Broke(1, "reset")])
def test_an_answer_to_an_ended_request_is_late(late):
    core = RelayCore(LIMITS)
    core.feed(Wanted(1, "r1"), 0.0)
    core.feed(Came(1), 0.0)
    assert core.feed(late, 0.0) == [Late(1)]


def starts(effects):
    return [one.number for one in effects if isinstance(one, Start)]


def test_one_that_fills_the_queue_is_refused_and_others_are_not():
    """CON-07."""
    core = RelayCore(RelayLimits(parallel=1, waiting=4, patience=10.0))
    for number in range(5):
        core.feed(Wanted(number, "flooder", "lane"), 0.0)
    assert core.feed(Wanted(5, "other"), 0.0) == [Refuse(4, Code.UNAVAILABLE, FULL)]
    assert core.feed(Wanted(6, "other"), 0.0) == [Refuse(3, Code.UNAVAILABLE, FULL)]
    assert core.feed(Wanted(7, "other"), 0.0) == [Refuse(7, Code.UNAVAILABLE, FULL)]


def test_a_user_of_many_sessions_takes_no_place_of_others():
    """CON-07."""
    core = RelayCore(RelayLimits(parallel=1, waiting=4, patience=10.0, each=1))
    for number in range(5):
        core.feed(Wanted(number, f"session {number}", None, "flooder"), 0.0)
    assert core.feed(Wanted(5, "other"), 0.0) == [Refuse(4, Code.UNAVAILABLE, FULL)]
    again = Wanted(6, "session 6", None, "flooder")
    assert core.feed(again, 0.0) == [Refuse(6, Code.UNAVAILABLE, FULL)]


def test_one_has_its_share_of_what_is_under_way():
    """CON-07."""
    core = RelayCore(RelayLimits(parallel=4, waiting=9, patience=10.0, each=2))
    begun = [starts(core.feed(Wanted(number, "slow"), 0.0)) for number in range(4)]
    assert begun == [[0], [1], [], []]
    assert starts(core.feed(Wanted(4, "other"), 0.0)) == [4]
    assert starts(core.feed(Came(1), 0.0)) == [2]
