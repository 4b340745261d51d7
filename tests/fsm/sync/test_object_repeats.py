"""When the last change of an object is published again (I-D4)."""

import math
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fsm.sync.leases import RepeatsCore
from specs.bodies.object import Change, DataObject
from specs.limits.protocol import MESSAGE_RATE, P2P_TIMEOUT
from specs.limits.sync import PART_REPEATS, REPEAT_FIRST, REPEAT_LAST, REPEAT_SPACING
from tests.support.chance import examples

HA, RA, URL = "hyperty://a.ex/ha", "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"
PART = f"{RA}/p2phandler/h1"


def object_of(url=URL, reporter=HA, version=2):
    return DataObject(reporter, RA, {}, url, version)


def change(version=2):
    return Change(version, "t", version)


def is_always_observed(_url):
    return True


def is_never_observed(_url):
    return False


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


def test_the_last_change_is_said_again_at_pauses_that_double_up_to_a_bound():
    core = RepeatsCore()
    published(core)
    times = [when for when, _, _ in reported(core, 300.0)]
    assert times[:6] == [2.0, 6.0, 14.0, 30.0, 62.0, 122.0]
    assert times[-1] - times[-2] == REPEAT_LAST


def test_a_repeat_is_the_same_change():
    core = RepeatsCore()
    published(core)
    assert core.due_change(REPEAT_FIRST, is_always_observed) == (URL, change())


def test_a_new_change_ends_the_repeats_of_the_one_before():
    core = RepeatsCore()
    published(core)
    published(core, version=3, now=1.5)
    assert reported(core, 8.0) == [(3.5, URL, 3), (7.5, URL, 3)]


def test_a_continuous_writer_repeats_nothing():
    core = RepeatsCore()
    for number in range(100):
        published(core, version=number + 2, now=float(number))
        assert reported(core, float(number)) == []


def test_an_unobserved_object_is_not_repeated_until_an_observer_joins():
    core = RepeatsCore()
    published(core)
    assert reported(core, 10.0, is_never_observed) == []
    assert core.deadline() == math.inf
    core.observed(URL, 20.0)
    assert reported(core, 150.0) == [(80.0, URL, 2), (140.0, URL, 2)]


def test_one_more_observer_changes_nothing():
    core = RepeatsCore()
    published(core)
    core.observed(URL, 1.0)
    core.observed("comm://a.ex/never-changed", 1.0)
    assert reported(core, 6.0) == [(2.0, URL, 2), (6.0, URL, 2)]


def test_a_change_by_a_part_of_the_runtime_is_repeated_a_few_times_only():
    core = RepeatsCore()
    published(core, reporter=PART)
    times = [when for when, _, _ in reported(core, 1000.0)]
    assert len(times) == PART_REPEATS
    assert times[-1] > P2P_TIMEOUT
    assert core.deadline() == math.inf
    core.observed(URL, 20.0)
    assert core.deadline() == math.inf


def test_a_forgotten_change_is_not_repeated():
    core = RepeatsCore()
    published(core)
    core.forget(URL)
    core.forget("comm://a.ex/unknown")
    assert reported(core, 100.0) == []


def test_many_that_are_due_at_once_keep_a_distance_and_none_is_left_out():
    core = RepeatsCore()
    urls = [f"comm://a.ex/o{number}" for number in range(2000)]
    for url in urls:
        published(core, url)
    said = reported(core, 2 * 2000 * REPEAT_SPACING)
    times = [when for when, _, _ in said]
    assert min(later - sooner for sooner, later in pairwise(times)) > 0.049
    assert 1 / REPEAT_SPACING <= MESSAGE_RATE / 4
    assert {url for _, url, _ in said} == set(urls)


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
