"""An observer's copy of a data object (SYN-12, SYN-16, SYN-17, I-D3..I-D5, I-D8, I-D12)."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fsm.engine import Step
from fsm.machines.sync.observer_copy import OBSERVER_COPY, State
from fsm.sync.leases import RepeatsCore
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.limits.protocol import EARLY_CHANGES, READ_PAUSE, REPLY_TIMEOUT
from specs.limits.sync import GONE_READS, QUIET
from tests.support import lone_report
from tests.support.chance import examples
from tests.support.lone_copy import lone_copy, told, without_steps

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
RA, SM, URL = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb/sm", "comm://a.ex/o1"
BEGUN = ("begin",)


def snapshot(version, **data):
    return ("become", DataObject(HA, RA, data or {"t": version}, URL, version))


def change(version):
    return ("change", Change(attribute="t", value=version, version=version))


def reported(*inputs):
    return told(lone_copy(URL, HB), *inputs)


def versions(effects):
    return [each[1] for each in without_steps(effects) if each[0] == "show"]


def steps(effects):
    return [(each.old, each.cause, each.new) for each in effects if isinstance(each, Step)]


# --- the table ----------------------------------------------------------------------------

LIVE = (BEGUN, snapshot(1))
STALE = (*LIVE, change(3))
RECALLED = ("recall", 2, {"t": 2})

HISTORIES = {
    "given up after a restart": (BEGUN, RECALLED, ("give_up", "")),
    "refused": (BEGUN, ("give_up", "403")),
    "deleted before the snapshot": (BEGUN, ("delete",)),
    "early changes, then live": (BEGUN, change(2), snapshot(1), ("give_up", "leaves")),
    "next, old, read again": (*LIVE, change(2), change(1), snapshot(2), ("delete",)),
    "a gap, read over": (
        *STALE,
        change(4),
        ("read_failed", 1, ""),
        snapshot(4),
        ("give_up", "leaves"),
    ),
    "a gap, left": (*STALE, ("give_up", "leaves")),
    "a gap, deleted": (*STALE, ("delete",)),
}


def test_the_histories_of_a_copy_take_every_row_of_its_table_and_no_other():
    taken = {step for story in HISTORIES.values() for step in steps(reported(*story))}
    assert taken == {(row.source, row.trigger, row.target) for row in OBSERVER_COPY.rows}


@pytest.mark.parametrize("story", HISTORIES.values(), ids=list(HISTORIES))
def test_each_history_of_a_copy_ends_at_rest_and_stays_there(story):
    copy = lone_copy(URL, HB)
    told(copy, *story)
    assert copy.state in OBSERVER_COPY.may_end
    assert copy.deadline() == math.inf
    assert told(copy, BEGUN, snapshot(9), change(9), ("read_failed", 1, ""), ("time_over",)) == []


# --- versions -------------------------------------------------------------------------------


def test_nothing_is_applied_before_the_snapshot():
    copy = lone_copy(URL, HB)
    assert without_steps(told(copy, BEGUN, change(2))) == []
    assert without_steps(told(copy, snapshot(1))) == [("show", 1, {"t": 1}), ("show", 2, {"t": 2})]


def test_a_gap_is_read_over_and_what_came_meanwhile_is_applied():
    copy = lone_copy(URL, HB)
    assert without_steps(told(copy, *STALE))[1:] == [("read", 1)]
    assert without_steps(told(copy, change(4))) == []
    assert without_steps(told(copy, snapshot(3))) == [("show", 3, {"t": 3}), ("show", 4, {"t": 4})]
    assert (copy.version, copy.data) == (4, {"t": 4})


def test_the_newest_early_change_is_kept_whenever_it_came():
    copy, last = lone_copy(URL, HB), EARLY_CHANGES + 10
    told(copy, BEGUN, change(last + 1), *(change(version) for version in range(2, last + 1)))
    effects = told(copy, snapshot(last - 2))
    assert versions(effects) == [last - 2, last - 1, last, last + 1]


# --- reads and time ---------------------------------------------------------------------------


def test_an_object_that_is_found_again_was_never_gone():
    copy = lone_copy(URL, HB)
    told(copy, *STALE)
    for read in range(1, GONE_READS):
        told(copy, ("not_found", read, ""), now=100.0 * read)
        told(copy, ("time_over",), now=100.0 * read + 50)
    told(copy, snapshot(3), now=1000.0)
    assert (copy.state, copy.version) == (State.LIVE, 3)
    told(copy, ("time_over",), now=1000.0 + QUIET)
    told(copy, ("not_found", GONE_READS + 1, ""), now=1001.0 + QUIET)
    assert copy.state is State.LIVE


def test_a_failed_older_read_has_no_effect():
    copy = lone_copy(URL, HB)
    told(copy, *STALE)
    told(copy, ("time_over",), now=REPLY_TIMEOUT)
    assert told(copy, ("not_found", 1, ""), now=40.0) == []


# --- both ends ----------------------------------------------------------------------------------


class BothEnds(RuleBasedStateMachine):
    """A reporter, an observer, and messages between them that are lost, doubled, overtaken."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.reporter = lone_report.lone_report(DataObject(HA, RA, {}, URL))
        self.repeats = RepeatsCore()
        self.are_repeats_lost = False
        self.copy = lone_copy(URL, HB)
        self.history = {1: {}}
        self.changes, self.answers = [], []
        self.reads, self.is_synced = 0, False
        self.reporter.do("authorise", HB)
        self.take(BEGUN)
        name, _, snapshot, *_ = lone_report.told(self.reporter, ("subscribe", HB, SM))[-1]
        assert name == "grant"
        self.answers.append(("become", snapshot))

    def take(self, happened):
        before, is_read = self.copy.version, happened[0] == "become"
        for name, *arguments in without_steps(told(self.copy, happened, now=self.now)):
            if name == "show":
                version, data = arguments
                assert self.is_synced or is_read
                assert version == before + 1 or (is_read and version > before)
                assert data == self.history[version]
                before, is_read = version, False
                self.is_synced = True
            elif name == "read":
                self.reads = arguments[0]
                self.answers.append(("become", self.reporter.snapshot))

    @rule(are_lost=st.booleans())
    def weather(self, are_lost):
        """Repeats get through, or none of them ever does."""
        self.are_repeats_lost = are_lost

    @rule(attribute=st.sampled_from("ab"), value=st.integers(0, 3))
    def write(self, attribute, value):
        self.changes.append(self.publish(attribute, value))

    def publish(self, attribute, value):
        change = ChangeObject(URL, attribute, value)
        ((name, published),) = lone_report.told(self.reporter, ("change", HA, change))
        assert name == "publish"
        self.history[published.version] = self.reporter.snapshot.data
        self.repeats.published(self.reporter.snapshot, published, self.now)
        return ("change", published)

    @precondition(lambda self: self.changes)
    @rule(at=st.integers(0, 9), fate=st.sampled_from(["taken", "taken", "doubled", "lost"]))
    def change_travels(self, at, fate):
        travelling = self.changes.pop(min(at, len(self.changes) - 1))
        if fate == "doubled":
            self.changes.append(travelling)
        if fate != "lost":
            self.take(travelling)

    @precondition(lambda self: self.answers)
    @rule(at=st.integers(0, 3), fate=st.sampled_from(["taken", "lost", "failed"]))
    def answer_travels(self, at, fate):
        if not self.is_synced:
            fate = "taken"
        answer = self.answers.pop(min(at, len(self.answers) - 1))
        if fate != "lost":
            self.take(answer if fate == "taken" else ("read_failed", self.reads, ""))

    @precondition(lambda self: self.is_synced)
    @rule(seconds=st.sampled_from([0.5, READ_PAUSE, REPLY_TIMEOUT]))
    def time_passes(self, seconds):
        self.now += seconds
        self.take(("time_over",))

    @invariant()
    def waits_for_something_always(self):
        assert self.copy.deadline() < math.inf

    def teardown(self):
        """Quiet: what was lost is lost, nothing is written any more."""
        while self.answers:
            self.take(self.answers.pop(0))
        self.settle()
        assert self.copy.state is State.LIVE
        assert (self.copy.version, self.copy.data) == (
            self.reporter.snapshot.version,
            self.reporter.snapshot.data,
        )

    def settle(self):
        """Let time pass; what becomes due is done, and reads are answered."""
        until = self.now + QUIET + 2 * REPLY_TIMEOUT
        while self.now < until:
            self.now = min(until, self.copy.deadline(), self.repeats.deadline())
            repeated = self.repeats.due_change(self.now, lambda _: True)
            if repeated is not None and not self.are_repeats_lost:
                self.take(("change", repeated[1]))
            self.take(("time_over",))
            while self.answers:
                self.take(self.answers.pop(0))


TestBothEnds = BothEnds.TestCase
TestBothEnds.settings = settings(max_examples=examples(60), stateful_step_count=40)
