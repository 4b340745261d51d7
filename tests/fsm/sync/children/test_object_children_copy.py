"""Copies of an object's children find their own gaps: SYN-24, I-D4, I-D10."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fsm.sync.children import ChildOp, ChildSet
from specs.bodies.object import ChildWindow
from specs.child import RESOURCES, child_name
from specs.limits.sync import QUIET, REASSERTIONS
from specs.message import MessageType as Act
from tests.fsm.sync.children.children_world import ChildrenWorld, lone_children, told_children
from tests.support.chance import examples

HA, HB, HC = "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty://c.ex/hc"
NAMES = (HA, HB, HC)


def op(act, number, version, value="v", creator=HB):
    return ChildOp(act, child_name(creator, number), creator, number, version, value)


def shows(*ops):
    kept = ChildSet()
    for one in ops:
        kept.take(one)
    return {RESOURCES: kept.shown()}, kept.sign


def begun(keeper=HC, shown=None):
    core = lone_children(keeper)
    told_children(core, "become", shown or {}, 0.0)
    return core


def test_a_timely_change_needs_no_read():
    core, one = begun(), op(Act.CREATE, 1, 1)
    told_children(core, "hear_sign", shows(one)[1], 1.0)
    told_children(core, "take", one, 1.5)
    assert core.deadline() == math.inf


def quiet(shown):
    """A copy whose reporter shows this, and gives no sign after a child of another."""
    core, lost = begun(), op(Act.CREATE, 1, 7)
    told_children(core, "take", lost, 1.0)
    told_children(core, "take", lost, 2.0)
    told_children(core, "take", op(Act.CREATE, 8, 8, creator=HC), 2.0)
    assert told_children(core, "time_over", QUIET) == []
    assert told_children(core, "time_over", 1.0 + QUIET) == [("read", 1)]
    return core, told_children(core, "become", shown, 2.0 + QUIET)


@pytest.mark.parametrize("shown", [None, {RESOURCES: {f"{HB}#1": {"value": "other"}}}])
def test_a_reporter_without_signs_and_versions_is_read_once(shown):
    """Upstream's reporters give neither: what was heard counts."""
    core, effects = quiet(shown)
    assert effects == []
    assert core.children.find(f"{HB}#1").value == "v"
    assert core.deadline() == math.inf


def test_a_child_said_during_a_read_needs_a_sign_of_its_own():
    core, lost, next_lost = begun(), op(Act.CREATE, 1, 7), op(Act.CREATE, 2, 8)
    told_children(core, "take", lost, 0.0)
    told_children(core, "time_over", QUIET)
    told_children(core, "take", next_lost, QUIET + 1.0)
    told_children(core, "become", {RESOURCES: {}}, QUIET + 2.0)
    assert [*core.children] == [next_lost.name]
    assert core.deadline() == 1.0 + 2 * QUIET


@pytest.mark.parametrize("has_come", [False, True])
def test_a_creator_says_again_what_was_lost_a_few_times(has_come):
    core = begun(HB)
    made = op(Act.CREATE, 1, 1)
    told_children(core, "take", made, 0.0)
    told_children(core, "take", op(Act.UPDATE, 1, 2, "new"), 0.0)
    shown, sign = shows(made, op(Act.CREATE, 9, 9, creator=HA))
    said = []
    for tries in range(REASSERTIONS + 1):
        told_children(core, "hear_sign", sign, tries * 1000.0)
        told_children(core, "time_over", core.deadline())
        effects = told_children(core, "become", shown, tries * 1000.0 + 500)
        said.append([one for one in effects if one[0] == "say_again"])
        if has_come:
            told_children(core, "hear_sign", core.children.sign, tries * 1000.0 + 600)
    again = [("say_again", Act.UPDATE, f"{HB}#1", "new")]
    assert said == [again] * REASSERTIONS + [again if has_come else []]
    assert core.children.find(f"{HB}#1").value == ("new" if has_come else "v")


class Children(RuleBasedStateMachine):
    """Whatever is lost, doubled or late: at rest all have what the keeper has."""

    def __init__(self):
        super().__init__()
        self.world, self.is_cut, self.phantoms = ChildrenWorld(NAMES), False, 0

    @initialize(
        linked=st.sets(st.sampled_from(NAMES)),
        is_cut=st.booleans(),
        window=st.sampled_from([None, ChildWindow(last=3), ChildWindow(last=2, seconds=60)]),
    )
    def begin(self, linked, is_cut, window):
        """Some are behind links (P2P-30); no child may ever reach the keeper."""
        self.world, self.is_cut = ChildrenWorld(NAMES, linked, window), is_cut

    @rule(name=st.sampled_from(NAMES), is_lost=st.booleans(), is_unheard=st.booleans())
    def create(self, name, is_lost, is_unheard):
        is_lost = is_lost or self.is_cut
        self.phantoms += is_lost
        self.world.create(name, self.world.last_id, is_lost=is_lost, is_unheard=is_unheard)

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def change(self, name, data):
        mine = self.world.copies[name].children.names_of(name)
        if mine:
            act = data.draw(st.sampled_from([Act.UPDATE, Act.DELETE]))
            self.world.say(name, act, data.draw(st.sampled_from(mine)), self.world.last_id)

    @precondition(lambda self: len(self.world.keeper))
    @rule(data=st.data())
    def end(self, data):
        self.world.end(data.draw(st.sampled_from([*self.world.keeper])))

    @rule(data=st.data(), times=st.sampled_from([0, 1, 1, 2]))
    def deliver(self, data, times):
        waiting = [way for way, ops in self.world.ways.items() if ops]
        if waiting:
            self.world.deliver(*data.draw(st.sampled_from(waiting)), times=times)

    @rule(name=st.sampled_from(NAMES))
    def tell_sign(self, name):
        self.world.tell_sign(name)

    @rule(seconds=st.sampled_from([0.5, 2.0, 90.0]))
    def wait(self, seconds):
        self.world.wait(seconds)

    @precondition(lambda self: self.world.reads)
    @rule(is_lost=st.booleans())
    def read(self, is_lost):
        self.world.read(is_lost=is_lost)

    @invariant()
    def what_is_reported_is_what_is_there(self):
        for name, copy in self.world.copies.items():
            there = {child: copy.children.find(child).value for child in copy.children}
            assert self.world.shown[name] == there

    def teardown(self):
        assert self.world.rest()
        kept = self.world.keeper
        there = {child: kept.find(child).value for child in kept}
        assert all(shown == there for shown in self.world.shown.values())
        for name, copy in self.world.copies.items():
            self.world.tell_sign(name)
            # A child that never reached the keeper may hide that another one is missed.
            missed = len(self.world.left - self.world.known[name])
            assert copy.missed >= missed - self.phantoms


TestChildren = Children.TestCase
TestChildren.settings = settings(max_examples=examples(60), stateful_step_count=40)
