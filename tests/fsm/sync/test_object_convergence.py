"""All copies come to be what the reporter has, whatever happens on the way (I-D1..I-D8, I-D12).

Writers, observers that come, leave and come back without a memory, losses, repeats,
messages that overtake each other, partitions. That each rule can be broken is shown on
cores with one defect each.
"""

import math

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fsm.machines.sync.observer_copy import State
from fsm.sync.copy import ObserverCore
from fsm.sync.leases import RepeatsCore
from fsm.sync.reporter import ReportedObject
from specs.limits.protocol import READ_PAUSE, REPLY_TIMEOUT
from specs.limits.sync import QUIET, REPEAT_FIRST, REPEAT_LAST
from tests.fsm.sync.object_world import HA, OUTSIDER, ObjectWorld
from tests.support.chance import examples

PATHS = st.sampled_from(
    ["title", "a", "a.b", "a.c.d", "items", "items.0", "items.1.done", "title.x"]
)
VALUES = st.sampled_from([0, 1, True, "x", "milk", ["milk", "eggs"], {"b": 2}, None])
ELEMENTS = st.lists(
    st.sampled_from(["milk", "eggs", 1, True, {"done": True}, {"done": 1}]), max_size=2
)
PLACES = st.integers(0, 2)
ARRIVALS = st.sampled_from(["taken", "taken", "taken", "doubled", "lost"])
DEPARTURES = st.sampled_from(["taken", "taken", "lost"])
REPEATED = 2 * REPEAT_LAST + REPLY_TIMEOUT
"""Seconds after which no copy of an object that is there may differ: its last change came again."""
ASKED = QUIET + REPEAT_LAST + REPLY_TIMEOUT
"""Seconds after which nobody may keep a copy of what is gone: who heard nothing has asked."""


class Convergence(RuleBasedStateMachine):
    """Random days of one object."""

    reporter, copy, repeats = ReportedObject, ObserverCore, RepeatsCore

    def __init__(self):
        super().__init__()
        self.world = ObjectWorld(self.reporter, self.copy, self.repeats)

        for side in self.world.sides[:2]:
            self.world.at_reporter(("authorise", side.observer))
        self.world.join(self.world.sides[0])
        self.world.deliver_all()

    def side(self, place):
        return self.world.sides[place]

    def one_of(self, place, has_something):
        """Return one of the sides of which something is so, if there is one."""
        there = [side for side in self.world.sides if has_something(side) and not side.is_cut]
        return there[place % len(there)] if there else None

    # --- writers

    @rule(path=PATHS, value=VALUES)
    def set(self, path, value):
        self.world.change(HA, path, value)

    @rule(path=PATHS, elements=ELEMENTS, operation=st.sampled_from(["add", "remove"]))
    def edit_array(self, path, elements, operation):
        self.world.change(HA, path, elements, operation)

    @rule(place=PLACES, path=PATHS, who=st.sampled_from(["observer", "outsider"]))
    def a_outsider_or_observer_writes(self, place, path, who):
        by = OUTSIDER if who == "outsider" else self.side(place).observer
        self.world.change(by, path, 7)

    # --- who comes and goes

    @rule(place=PLACES)
    def come(self, place):
        side = self.one_of(place, lambda one: not one.is_there)
        if side is not None:
            self.world.join(side)

    @rule(place=PLACES)
    def leave(self, place):
        side = self.one_of(place, lambda one: one.is_there)
        if side is not None:
            self.world.leave(side)

    @rule(place=PLACES)
    def restart(self, place):
        self.world.crash(self.side(place))
        self.world.join(self.side(place))

    @precondition(lambda self: self.world.undecided)
    @rule(place=PLACES, yes=st.sampled_from([True, True, True, False]))
    def decide(self, place, yes):
        self.world.decide(place, yes)

    # --- the way between them

    @rule(place=PLACES, at=st.integers(0, 5), fate=ARRIVALS)
    def arrives(self, place, at, fate):
        side = self.one_of(place, lambda one: one.arriving)
        if side is not None:
            self.world.arrives(side, at, fate)

    @rule(place=PLACES, fate=DEPARTURES)
    def departs(self, place, fate):
        side = self.one_of(place, lambda one: one.leaving)
        if side is not None:
            self.world.departs(side, fate)

    @rule(place=PLACES)
    def link_breaks(self, place):
        """All that was on its way to an observer is lost, and nobody is notified."""
        self.side(place).arriving.clear()

    @rule(place=PLACES)
    def all_is_well_for_a_moment(self, place):
        side = self.side(place)
        while not side.is_cut and (side.leaving or side.arriving):
            if side.leaving:
                self.world.departs(side, "taken")
            if side.arriving:
                self.world.arrives(side, 0, "taken")

    @rule(place=PLACES, is_cut=st.booleans())
    def partition(self, place, is_cut):
        self.side(place).is_cut = is_cut

    @rule(seconds=st.sampled_from([0.5, READ_PAUSE, REPEAT_FIRST, REPLY_TIMEOUT, REPEAT_LAST]))
    def time_passes(self, seconds):
        self.world.wait(seconds)

    # --- always

    @invariant()
    def an_incomplete_copy_has_a_deadline(self):
        for side in self.world.sides:
            if side.is_there and side.copy.state is not State.LIVE:
                assert side.copy.deadline() < math.inf

    def teardown(self):
        """All is well again, and nothing happens any more but what both ends do themselves."""
        self.world.settle(REPEATED)
        assert self.world.differing() == [], "copies differ at rest (I-D4)"


class Losses(Convergence):
    """The same, and more often nobody hears of the last change."""

    @rule(path=PATHS, value=VALUES)
    def set_while_all_links_are_down(self, path, value):
        self.world.change(HA, path, value)
        for side in self.world.sides:
            side.arriving.clear()


class Deletions(Convergence):
    """The same, and at any time the object is deleted."""

    @rule(who=st.sampled_from(["reporter", "outsider"]))
    def delete(self, who):
        self.world.delete(HA if who == "reporter" else OUTSIDER)

    @rule()
    def delete_while_all_links_are_down(self):
        self.world.delete(HA)
        for side in self.world.sides:
            side.arriving.clear()

    @precondition(lambda self: self.world.is_deleted)
    @rule()
    def the_notices_are_delivered(self):
        self.world.at_reporter(("notified",))

    def teardown(self):
        self.world.delete(HA)
        self.world.deliver_all()
        self.world.at_reporter(("notified",))
        self.world.settle(ASKED)
        assert self.world.reporter.observers == ()
        assert self.world.differing() == [], "copies of what is gone (I-D4)"


COMMON = settings(suppress_health_check=list(HealthCheck))
TestConvergence = Convergence.TestCase
TestConvergence.settings = settings(COMMON, max_examples=examples(60), stateful_step_count=40)
TestLosses = Losses.TestCase
TestLosses.settings = settings(COMMON, max_examples=examples(20), stateful_step_count=40)
TestDeletions = Deletions.TestCase
TestDeletions.settings = settings(COMMON, max_examples=examples(40), stateful_step_count=30)
