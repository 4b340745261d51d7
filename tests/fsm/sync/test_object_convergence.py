"""All copies come to be what the reporter has, whatever happens on the way (I-D1..I-D8, I-D12).

Writers, observers that come, leave and come back without a memory, losses, repeats,
messages that overtake each other, partitions. That each rule can be broken is shown on
cores with one defect each.
"""

import math

import attrs
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fsm.machines.sync.observer_copy import State, Trigger
from fsm.sync.copy import ObserverCore
from fsm.sync.leases import RepeatsCore
from fsm.sync.reporter import ReportedObject
from fsm.sync.value.value import apply_change
from specs.limits.protocol import READ_PAUSE, REPLY_TIMEOUT
from specs.limits.sync import QUIET, REPEAT_FIRST, REPEAT_LAST
from tests.support.chance import examples
from tests.support.object_world import HA, OUTSIDER, ObjectWorld, written

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


# --- edits that were once predicted wrongly -----------------------------------------------------

DONE = {"done": True}
EDITS = [
    ([("items", [DONE, DONE], "add"), ("items.1.done", [], "add")], [{"done": []}, DONE]),
    ([("items", [DONE, DONE], "add"), ("items.1.done", 7, None)], [{"done": 7}, DONE]),
    ([("items", [1, True], "add"), ("items", [True], "remove")], [1]),
    ([("items", [{"done": 1}, DONE], "add"), ("items", [DONE], "remove")], [{"done": 1}]),
]


@pytest.mark.parametrize(("edits", "added"), EDITS)
def test_equal_elements_are_edited_one_by_one_and_true_is_not_removed_as_one(edits, added):
    world = ObjectWorld()
    side = world.sides[0]
    world.at_reporter(("authorise", side.observer))
    world.join(side)
    world.deliver_all()

    for edit in edits:
        world.change(HA, *edit)
    world.deliver_all()

    assert written(world.reporter.snapshot.data["items"]) == written(["milk", *added])
    assert world.differing() == []


# --- defects ------------------------------------------------------------------------------------


class AppliesWhateverComes(ObserverCore):
    """No look at versions: what comes is applied."""

    def _take(self, change, now, pause=0.0):
        if self.state is not State.LIVE:
            super()._take(change, now, pause)
            return
        self._port.step(self._entity.step(Trigger.CHANGED))
        self.version, self.data = change.version, apply_change(self.data, change)
        self._port.show(self.version, self.data, change)


class ReadsNothing(ObserverCore):
    """A gap is seen, and nothing is done about it."""

    def __init__(self, *terms):
        super().__init__(*terms)
        self._port.read = lambda _number: None


class StartsTooEarly(ObserverCore):
    """Changes that come before the snapshot are applied."""

    def _take(self, change, now, pause=0.0):
        if self.state is State.SYNCING and change.version > self.version:
            self.version, self.data = change.version, apply_change(self.data, change)
            self._port.show(self.version, self.data, change)
        else:
            super()._take(change, now, pause)


class NeverEnds(ObserverCore):
    """Who has left still applies what comes: the state is not looked at."""

    def change(self, change, now):
        if self.state is State.DELETED:
            self._port.show(change.version, apply_change(self.data, change), change)
        super().change(change, now)


class WritesElsewhere(ObserverCore):
    """A nested attribute is written where its first part is."""

    def _take(self, change, now, pause=0.0):
        path = (change.attribute or "").rpartition(".")[2]
        super()._take(attrs.evolve(change, attribute=path), now, pause)


class NeverAsks(ObserverCore):
    """A copy that hears nothing for long thinks nothing of it."""

    def _hear(self, now):
        pass


class SaysNothingTwice(RepeatsCore):
    """The last change is said once."""

    def due_change(self, now, is_observed):
        super().due_change(now, is_observed)


class SnapshotFirst(ReportedObject):
    """The snapshot is given out before the observer is added."""

    def _accept(self, observer, now, why=""):
        there = self._subscriptions[observer]
        self._port.grant(there.requests, {})
        super()._accept(observer, now, why)


class OldSnapshot(ReportedObject):
    """Whoever subscribes gets the object as it was created."""

    def __init__(self, created, port, allowed):
        super().__init__(created, port, allowed)
        self._first = created

    def _accept(self, observer, now, why=""):
        newest, self.snapshot = self.snapshot, self._first
        super()._accept(observer, now, why)
        self.snapshot = newest


class AnybodyWrites(ReportedObject):
    """Who writes is not looked at."""

    def _refusal(self, by):
        return super()._refusal(self.snapshot.reporter)


class NothingNewNothingCounted(ReportedObject):
    """A change that changes nothing has no version of its own."""

    def _change(self, by, change):
        before = self.snapshot
        super()._change(by, change)
        if self.snapshot.data == before.data:
            self.snapshot = before
            _, published = self._port.done.pop()
            self._port.publish(attrs.evolve(published, version=before.version))


class NobodyLeaves(ReportedObject):
    """Who unsubscribes stays an observer."""

    def unsubscribe(self, observer, manager):
        pass


class DeletedInWords(ReportedObject):
    """A deleted object is changed on."""

    def change(self, by, change):
        was, self.is_deleted = self.is_deleted, False
        refusal, self.is_deleted = super().change(by, change), was
        return refusal


DEFECTS = [
    (Convergence, "copy", AppliesWhateverComes, "I-D12|I-D3"),
    (Convergence, "copy", ReadsNothing, "I-D4"),
    (Convergence, "copy", StartsTooEarly, "I-D[45]"),
    (Convergence, "copy", NeverEnds, "I-D7"),
    (Convergence, "copy", WritesElsewhere, "what the reporter had then"),
    (Deletions, "copy", NeverAsks, "what is gone"),
    (Losses, "repeats", SaysNothingTwice, "I-D4"),
    (Convergence, "reporter", SnapshotFirst, "I-D6"),
    (Convergence, "reporter", OldSnapshot, "not the newest"),
    (Convergence, "reporter", AnybodyWrites, "I-D1"),
    (Convergence, "reporter", NothingNewNothingCounted, "I-D2"),
    (Convergence, "reporter", NobodyLeaves, "who left is no observer"),
    (Deletions, "reporter", DeletedInWords, "I-D8"),
]
# Which examples are tried depends on the modules that are loaded: Hypothesis takes constants from
# them. A search ends with the first example that fails, so a high limit costs nothing.
SEARCH = settings(
    COMMON, max_examples=4000, stateful_step_count=40, derandomize=True, database=None,
    phases=[Phase.generate], print_blob=False, report_multiple_bugs=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("days", "part", "defect", "rule_broken"), DEFECTS, ids=[row[2].__name__ for row in DEFECTS]
)
def test_each_defect_of_a_core_is_found(days, part, defect, rule_broken):
    broken = type(defect.__name__, (days,), {part: defect})
    with pytest.raises(AssertionError, match=rule_broken):
        run_state_machine_as_test(broken, settings=SEARCH)
