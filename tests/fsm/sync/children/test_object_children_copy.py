"""Copies of an object's children find their own gaps: SYN-24, I-D4, I-D10."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fsm.sync.children import ChildOp, ChildSet
from specs.child import RESOURCES, child_name
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import QUIET, REASSERTIONS, REPEAT_LAST
from specs.message import MessageType as Act
from tests.support.chance import examples
from tests.support.children_world import ChildrenWorld, lone_children, told_children

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


def test_a_copy_that_has_what_the_sign_says_reads_nothing():
    core = begun()
    one = op(Act.CREATE, 1, 1)
    told_children(core, "take", one, 0.0)
    told_children(core, "hear_sign", shows(one)[1], 1.0)
    assert core.deadline() == math.inf


def test_a_copy_that_is_doubted_reads_at_once_and_keeps_what_comes_meanwhile():
    core, first, second = begun(), op(Act.CREATE, 1, 1), op(Act.CREATE, 2, 2)
    told_children(core, "doubt", 3.0)
    assert core.deadline() == 3.0
    assert told_children(core, "time_over", 3.0) == [("read", 1)]
    told_children(core, "take", second, 3.5)
    told_children(core, "become", shows(first)[0], 4.0)
    assert {*core.children} == {first.name, second.name}
    assert core.deadline() == 3.5 + QUIET


def test_what_comes_while_a_doubted_copy_waits_for_its_next_read_settles_nothing():
    """The reporter hears no signs of its own object: only a read ends its doubt."""
    core, first = begun(), op(Act.CREATE, 1, 1)
    told_children(core, "doubt", 3.0)
    assert told_children(core, "time_over", 3.0) == [("read", 1)]
    told_children(core, "read_failed", 1, 3.0)
    due = core.deadline()
    told_children(core, "take", op(Act.CREATE, 2, 2), 3.5, is_reported=True)
    assert core.deadline() == due < math.inf
    assert told_children(core, "time_over", due) == [("read", 2)]
    told_children(core, "become", shows(first)[0], due)
    assert (core.deadline(), first.name in core.children) == (math.inf, True)


def test_a_copy_that_is_ahead_of_the_sign_reads_nothing():
    """The sign is of a time that the copy has gone through."""
    core, first, second = begun(), op(Act.CREATE, 1, 1), op(Act.CREATE, 2, 2)
    told_children(core, "take", first, 0.0)
    told_children(core, "take", second, 0.0)
    told_children(core, "hear_sign", shows(first)[1], 1.0)
    assert core.deadline() == math.inf


def test_messages_in_transit_are_awaited_and_lost_ones_are_read():
    core, one = begun(), op(Act.CREATE, 1, 1)
    shown, sign = shows(one)
    told_children(core, "hear_sign", sign, 1.0)
    assert core.deadline() == 1.0 + READ_PAUSE
    assert told_children(core, "time_over", 1.5) == []
    assert told_children(core, "time_over", 2.0) == [("read", 1)]
    assert told_children(core, "become", shown, 2.1) == [("shown", f"{HB}#1", "v", 1)]
    assert core.deadline() == math.inf


def test_a_timely_change_needs_no_read():
    core, one = begun(), op(Act.CREATE, 1, 1)
    told_children(core, "hear_sign", shows(one)[1], 1.0)
    told_children(core, "take", one, 1.5)
    assert core.deadline() == math.inf


def test_a_read_that_fails_is_made_again_later_and_later():
    core = begun()
    told_children(core, "hear_sign", shows(op(Act.CREATE, 1, 1))[1], 0.0)
    pauses = []
    now = core.deadline()
    for _ in range(4):
        ((_, number),) = told_children(core, "time_over", now)
        told_children(core, "read_failed", number, now)
        pauses.append(core.deadline() - now)
        now = core.deadline()
    assert pauses == [2.0, 4.0, 8.0, 16.0]


def test_an_unanswered_read_is_repeated():
    core = begun()
    told_children(core, "hear_sign", shows(op(Act.CREATE, 1, 1))[1], 0.0)
    told_children(core, "time_over", 1.0)
    assert told_children(core, "time_over", core.deadline()) == [("read", 2)]


def test_changes_during_a_read_apply_on_top_of_it():
    core, old, new = begun(), op(Act.CREATE, 1, 1), op(Act.CREATE, 2, 2)
    shown, sign = shows(old)
    told_children(core, "hear_sign", sign, 0.0)
    told_children(core, "time_over", 1.0)
    told_children(core, "take", new, 1.1)
    told_children(core, "become", shown, 1.2)
    assert core.children.sign == shows(old, new)[1]


def test_a_change_before_the_snapshot_applies_on_top_of_it():
    core, old, new = lone_children(HC), op(Act.CREATE, 1, 1), op(Act.UPDATE, 1, 2, "new")
    told_children(core, "take", new, 0.0)
    told_children(core, "become", shows(old)[0], 0.1)
    assert core.children.find(f"{HB}#1").value == "new"


def test_an_object_that_shows_no_children_is_not_read_for_them_again_and_again():
    core = lone_children(HC)
    told_children(core, "become", None, 0.0)
    assert core.deadline() == math.inf


def test_children_beyond_the_limit_are_read_again():
    core = begun()
    told_children(core, "hear_sign", shows(op(Act.CREATE, 1, 1))[1], 0.0)
    told_children(core, "time_over", 1.0)
    told_children(core, "become", None, 1.1)
    assert core.deadline() < math.inf


def quiet(shown):
    """A copy whose reporter shows this, and gives no sign after a child of another."""
    core, lost = begun(), op(Act.CREATE, 1, 7)
    told_children(core, "take", lost, 1.0)
    told_children(core, "take", lost, 2.0)
    told_children(core, "take", op(Act.CREATE, 8, 8, creator=HC), 2.0)
    assert told_children(core, "time_over", QUIET) == []
    assert told_children(core, "time_over", 1.0 + QUIET) == [("read", 1)]
    return core, told_children(core, "become", shown, 2.0 + QUIET)


@pytest.mark.parametrize("shown", [{}, {RESOURCES: {}}])
def test_a_child_that_its_reporter_never_had_goes_without_a_sign(shown):
    core, effects = quiet(shown)
    again = ("say_again", Act.UPDATE, f"{HC}#8", "v")
    assert effects == [("gone", f"{HB}#1"), again]
    assert core.deadline() == math.inf


@pytest.mark.parametrize("shown", [None, {RESOURCES: {f"{HB}#1": {"value": "other"}}}])
def test_a_reporter_without_signs_and_versions_is_read_once(shown):
    """Upstream's reporters give neither: what was heard counts."""
    core, effects = quiet(shown)
    assert effects == []
    assert core.children.find(f"{HB}#1").value == "v"
    assert core.deadline() == math.inf


def test_a_check_that_fails_is_made_again_until_a_sign_comes():
    core, lost = begun(), op(Act.CREATE, 1, 7)
    told_children(core, "take", lost, 0.0)
    ((_, number),) = told_children(core, "time_over", QUIET)
    told_children(core, "read_failed", number, QUIET)
    told_children(core, "take", op(Act.CREATE, 8, 8, creator=HC), QUIET)
    assert core.deadline() <= QUIET + REPEAT_LAST
    told_children(core, "hear_sign", core.children.sign, QUIET + 1.0)
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


def test_a_creator_says_again_that_its_child_is_deleted():
    core, made = begun(HB), op(Act.CREATE, 1, 1)
    told_children(core, "take", made, 0.0)
    told_children(core, "take", op(Act.DELETE, 1, 2), 0.0)
    shown, sign = shows(made, op(Act.CREATE, 9, 9, creator=HA))
    told_children(core, "hear_sign", sign, 0.0)
    told_children(core, "time_over", core.deadline())
    effects = told_children(core, "become", shown, 5.0)
    assert ("say_again", Act.DELETE, f"{HB}#1", None) in effects
    assert core.children.find(f"{HB}#1") is None


def test_a_report_counts_of_others_and_not_of_the_own_children():
    """P2P-30, I-D10: a copy knows what its own hyperty has said."""
    core = begun(HC)
    mine = op(Act.CREATE, 1, 1, "mine", HC)
    told_children(core, "take", mine, 0.0)
    assert (
        told_children(core, "take", op(Act.UPDATE, 1, 9, "forged", HC), 0.0, is_reported=True) == []
    )
    assert told_children(core, "take", op(Act.DELETE, 1, 9, None, HC), 0.0, is_reported=True) == []
    theirs = op(Act.UPDATE, 2, 2)
    assert told_children(core, "take", theirs, 0.0, is_reported=True) == [
        ("shown", theirs.name, "v", 2)
    ]
    assert told_children(core, "take", theirs, 0.0) == []
    assert told_children(core, "hear_sign", shows(mine, theirs)[1], 0.0) == []
    assert core.deadline() == math.inf


class Children(RuleBasedStateMachine):
    """Whatever is lost, doubled or late: at rest all have what the keeper has."""

    def __init__(self):
        super().__init__()
        self.world, self.is_cut = ChildrenWorld(NAMES), False

    @initialize(linked=st.sets(st.sampled_from(NAMES)), is_cut=st.booleans())
    def begin(self, linked, is_cut):
        """Some are behind links (P2P-30); no child may ever reach the keeper."""
        self.world, self.is_cut = ChildrenWorld(NAMES, linked), is_cut

    @rule(name=st.sampled_from(NAMES), is_lost=st.booleans(), is_unheard=st.booleans())
    def create(self, name, is_lost, is_unheard):
        is_lost = is_lost or self.is_cut
        self.world.create(name, self.world.last_id, is_lost=is_lost, is_unheard=is_unheard)

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def change(self, name, data):
        mine = self.world.copies[name].children.names_of(name)
        if mine:
            act = data.draw(st.sampled_from([Act.UPDATE, Act.DELETE]))
            self.world.say(name, act, data.draw(st.sampled_from(mine)), self.world.last_id)

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


TestChildren = Children.TestCase
TestChildren.settings = settings(max_examples=examples(60), stateful_step_count=40)
