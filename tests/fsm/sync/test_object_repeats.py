"""When the last change of an object is published again (I-D4)."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.sync.leases import RepeatsCore
from specs.bodies.object import Change, DataObject
from specs.limits.sync import REPEAT_LAST, REPEAT_SPACING
from tests.support.chance import examples

HA, RA, URL = "hyperty://a.ex/ha", "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"


def object_of(url=URL, reporter=HA, version=2):
    return DataObject(reporter, RA, {}, url, version)


def change(version=2):
    return Change(version, "t", version)


def is_always_observed(_url):
    return True


def reported(core, until, is_observed=is_always_observed):
    """When something is repeated, and what."""
    said = []
    while (now := core.deadline()) <= until:
        repeated = core.due_change(now, is_observed)
        if repeated is not None:
            said.append((now, repeated[0], repeated[1].version))
    return said


def published(core, url=URL, version=2, now=0.0, reporter=HA):
    core.published(object_of(url, reporter, version), change(version), now)


def test_one_more_observer_changes_nothing():
    core = RepeatsCore()
    published(core)
    core.observed(URL, 1.0)
    core.observed("comm://a.ex/never-changed", 1.0)
    assert reported(core, 6.0) == [(2.0, URL, 2), (6.0, URL, 2)]


class Repeating(RuleBasedStateMachine):
    """Objects that are changed, observed, left and deleted at any time."""

    def __init__(self):
        super().__init__()
        self.core, self.now, self.last_repeat = RepeatsCore(), 0.0, -math.inf
        self.versions, self.since, self.observed = {}, {}, set()

    urls = st.sampled_from([f"comm://a.ex/o{number}" for number in range(4)])

    @rule(url=urls)
    def write(self, url):
        self.versions[url] = self.versions.get(url, 1) + 1
        self.since[url] = self.now
        published(self.core, url, self.versions[url], self.now)

    @rule(url=urls)
    def come(self, url):
        self.observed.add(url)
        self.since[url] = self.now
        self.core.observed(url, self.now)

    @rule(url=urls)
    def leave(self, url):
        self.observed.discard(url)

    @rule(url=urls)
    def forget(self, url):
        self.versions.pop(url, None)
        self.core.forget(url)

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 70.0]))
    def wait(self, seconds):
        until = self.now + seconds
        while self.core.deadline() <= until:
            self.now = max(self.now, self.core.deadline())
            self.ask()
        self.now = until

    def ask(self):
        repeated = self.core.due_change(self.now, self.observed.__contains__)
        if repeated is not None:
            assert repeated[0] in self.observed
            assert repeated[1].version == self.versions[repeated[0]]
            assert self.now - self.last_repeat > REPEAT_SPACING - 1e-9
            self.last_repeat = self.since[repeated[0]] = self.now

    @invariant()
    def no_observer_waits_longer_than_the_longest_pause(self):
        for url in self.observed & set(self.versions):
            assert self.now - self.since[url] <= REPEAT_LAST + 4 * REPEAT_SPACING


TestRepeating = Repeating.TestCase
TestRepeating.settings = settings(max_examples=examples(60), stateful_step_count=40)
