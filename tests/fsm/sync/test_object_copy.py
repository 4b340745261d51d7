"""An observer's copy of a data object (SYN-12, SYN-16, SYN-17, I-D3..I-D5, I-D8, I-D12)."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fsm.engine import Step
from fsm.errors import UndeclaredTransitionError
from fsm.machines.sync.observer_copy import OBSERVER_COPY, State
from fsm.sync.copy import (
    Applied,
    Changed,
    CopyTimeOver,
    GivenUp,
    NotFound,
    ObserveBegun,
    ObserverCore,
    ObserverGone,
    ReadFailed,
    ReadNeeded,
    Recalled,
    SnapshotRead,
    WithdrawnByReporter,
)
from fsm.sync.leases import RepeatsCore
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import Authorised, ChangeAsked, Granted, Published, SubscribeAsked
from specs.bodies.sync import Change, ChangeObject, DataObject
from specs.limits.protocol import EARLY_CHANGES, READ_PAUSE, REPLY_TIMEOUT
from specs.limits.sync import GONE_READS, QUIET, REPEAT_LAST
from tests.support.chance import examples

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
RA, SM, URL = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb/sm", "comm://a.ex/o1"
BEGUN = ObserveBegun()


def snapshot(version, **data):
    return SnapshotRead(DataObject(HA, RA, data or {"t": version}, URL, version))


def change(version):
    return Changed(Change(attribute="t", value=version, version=version))


def fed(copy, *inputs, now=0.0):
    return [effect for happened in inputs for effect in copy.feed(happened, now)]


def reported(*inputs):
    return fed(ObserverCore(URL, HB), *inputs)


def said(effects):
    return [effect for effect in effects if not isinstance(effect, Step)]


def versions(effects):
    return [each.version for each in effects if isinstance(each, Applied)]


def steps(effects):
    return [(each.old, each.cause, each.new) for each in effects if isinstance(each, Step)]


# --- the table ----------------------------------------------------------------------------

LIVE = (BEGUN, snapshot(1))
STALE = (*LIVE, change(3))
RECALLED = Recalled(2, {"t": 2})

HISTORIES = {
    "given up after a restart": (BEGUN, RECALLED, GivenUp()),
    "refused": (BEGUN, GivenUp("403")),
    "deleted before the snapshot": (BEGUN, WithdrawnByReporter()),
    "early changes, then live": (BEGUN, change(2), snapshot(1), GivenUp("leaves")),
    "next, old, read again": (*LIVE, change(2), change(1), snapshot(2), WithdrawnByReporter()),
    "a gap, read over": (*STALE, change(4), ReadFailed(1), snapshot(4), GivenUp("leaves")),
    "a gap, left": (*STALE, GivenUp("leaves")),
    "a gap, deleted": (*STALE, WithdrawnByReporter()),
}


def test_the_histories_of_a_copy_take_every_row_of_its_table_and_no_other():
    taken = {step for story in HISTORIES.values() for step in steps(reported(*story))}
    assert taken == {(row.source, row.trigger, row.target) for row in OBSERVER_COPY.rows}


@pytest.mark.parametrize("story", HISTORIES.values(), ids=list(HISTORIES))
def test_each_history_of_a_copy_ends_at_rest_and_stays_there(story):
    copy = ObserverCore(URL, HB)
    fed(copy, *story)
    assert copy.state in OBSERVER_COPY.may_end
    assert copy.deadline() == math.inf
    assert fed(copy, BEGUN, snapshot(9), change(9), ReadFailed(1), CopyTimeOver()) == []


def test_a_copy_is_known_by_object_and_observer():
    assert reported(BEGUN) == [Step("observer_copy", f"{URL}|{HB}", None, "syncing", "observe")]


def test_an_idle_copy_is_sent_nothing():
    with pytest.raises(UndeclaredTransitionError):
        reported(change(1))


# --- after a restart ------------------------------------------------------------------------


def test_a_stored_value_is_shown_until_the_object_is_there_and_read_first():
    """SYN-25, M-52: who has not subscribed yet may not read."""
    copy = ObserverCore(URL, HB)
    assert said(fed(copy, BEGUN, RECALLED)) == [Applied(2, {"t": 2})]
    assert (copy.state, copy.deadline()) == ("stale", math.inf)
    assert said(fed(copy, change(4), CopyTimeOver())) == []
    assert said(fed(copy, snapshot(3))) == [Applied(3, {"t": 3}), Applied(4, {"t": 4})]


def test_a_stored_value_is_ignored_by_a_copy_that_has_the_object():
    copy = ObserverCore(URL, HB)
    assert versions(fed(copy, BEGUN, snapshot(3), RECALLED)) == [3]
    assert copy.version == 3


# --- versions -------------------------------------------------------------------------------


def test_nothing_is_applied_before_the_snapshot():
    copy = ObserverCore(URL, HB)
    assert said(fed(copy, BEGUN, change(2))) == []
    assert said(fed(copy, snapshot(1))) == [Applied(1, {"t": 1}), Applied(2, {"t": 2})]


def test_old_changes_are_ignored():
    copy = ObserverCore(URL, HB)
    fed(copy, BEGUN, snapshot(3))
    assert said(fed(copy, change(2), change(3))) == []
    assert copy.data == {"t": 3}


def test_a_gap_is_read_over_and_what_came_meanwhile_is_applied():
    copy = ObserverCore(URL, HB)
    assert said(fed(copy, *STALE))[1:] == [ReadNeeded(1)]
    assert said(fed(copy, change(4))) == []
    assert said(fed(copy, snapshot(3))) == [Applied(3, {"t": 3}), Applied(4, {"t": 4})]
    assert (copy.version, copy.data) == (4, {"t": 4})


def test_changes_that_overtook_each_other_before_the_snapshot_are_put_in_order():
    assert versions(reported(BEGUN, change(4), change(2), change(3), snapshot(1))) == [1, 2, 3, 4]


def test_an_answer_that_is_older_than_the_gap_closes_nothing_and_the_next_read_takes_its_time():
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE, change(5))
    assert said(fed(copy, snapshot(3), now=1.0)) == [Applied(3, {"t": 3})]
    assert (copy.state, copy.deadline()) == (State.STALE, 1.0 + READ_PAUSE)
    assert said(fed(copy, CopyTimeOver(), now=1.0 + READ_PAUSE)) == [ReadNeeded(2)]
    assert versions(fed(copy, snapshot(5), now=3.0)) == [5]


@pytest.mark.parametrize("start", [(BEGUN,), STALE], ids=["syncing", "stale"])
def test_more_early_changes_than_are_kept_are_a_gap_and_no_silent_loss(start):
    copy, last = ObserverCore(URL, HB), EARLY_CHANGES + 10
    fed(copy, *start, *(change(version) for version in range(4, last + 1)))
    fed(copy, snapshot(3))
    assert copy.state is State.STALE
    assert copy.version == 3
    fed(copy, CopyTimeOver(), now=READ_PAUSE)
    assert fed(copy, snapshot(last))[-1] == Applied(last, {"t": last})
    assert copy.state is State.LIVE


def test_the_newest_early_change_is_kept_whenever_it_came():
    copy, last = ObserverCore(URL, HB), EARLY_CHANGES + 10
    fed(copy, BEGUN, change(last + 1), *(change(version) for version in range(2, last + 1)))
    effects = fed(copy, snapshot(last - 2))
    assert versions(effects) == [last - 2, last - 1, last, last + 1]


# --- reads and time ---------------------------------------------------------------------------


def test_a_read_that_fails_is_made_again_after_a_pause():
    copy = ObserverCore(URL, HB)
    fed(copy, *STALE)
    assert said(fed(copy, ReadFailed(1, "503"), now=2.0)) == []
    assert said(fed(copy, CopyTimeOver(), now=2.0)) == []
    assert copy.deadline() == 2.0 + READ_PAUSE
    assert fed(copy, CopyTimeOver(), now=2.0 + READ_PAUSE) == [ReadNeeded(2)]


def test_a_read_fails_once():
    copy = ObserverCore(URL, HB)
    assert [len(fed(copy, *inputs)) for inputs in (STALE, [ReadFailed(1)], [ReadFailed(1)])][
        1:
    ] == [1, 0]


def test_an_unanswered_read_is_repeated_after_the_time_of_the_table():
    copy = ObserverCore(URL, HB)
    fed(copy, *STALE, now=1.0)
    assert copy.deadline() == 1.0 + REPLY_TIMEOUT
    step, again = fed(copy, CopyTimeOver(), now=1.0 + REPLY_TIMEOUT)
    assert (step.cause, again) == ("read-failed", ReadNeeded(2))


def test_changes_that_come_meanwhile_do_not_prolong_the_wait():
    copy = ObserverCore(URL, HB)
    fed(copy, *STALE)
    fed(copy, change(4), now=5.0)
    assert copy.deadline() == REPLY_TIMEOUT


@pytest.mark.parametrize("late", [(1, 2.0), (3, 40.0)], ids=["an older read", "no read"])
def test_a_failure_that_is_not_of_the_read_under_way_changes_nothing(late):
    number, now = late
    copy = ObserverCore(URL, HB)
    fed(copy, *STALE)
    fed(copy, CopyTimeOver(), now=REPLY_TIMEOUT)
    assert fed(copy, ReadFailed(number), now=now) == []


@pytest.mark.parametrize("start", [STALE, (*LIVE, CopyTimeOver())], ids=["stale", "quiet"])
def test_an_object_that_is_not_found_is_looked_for_until_it_counts_as_gone(start):
    copy, now, pauses = ObserverCore(URL, HB), QUIET, []
    fed(copy, *start[:-1])
    read = fed(copy, start[-1], now=now)[-1]
    while copy.state is not State.DELETED:
        effects = fed(copy, NotFound(read.read, "404"), now=now)
        if copy.deadline() < math.inf:
            pauses.append(copy.deadline() - now)
            now = copy.deadline()
            read = fed(copy, CopyTimeOver(), now=now)[-1]
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert len(pauses) == GONE_READS - 1
    assert said(effects) == [ObserverGone("404")]


def test_an_object_that_is_found_again_was_never_gone():
    copy = ObserverCore(URL, HB)
    fed(copy, *STALE)
    for read in range(1, GONE_READS):
        fed(copy, NotFound(read), now=100.0 * read)
        fed(copy, CopyTimeOver(), now=100.0 * read + 50)
    fed(copy, snapshot(3), now=1000.0)
    assert (copy.state, copy.version) == (State.LIVE, 3)
    fed(copy, CopyTimeOver(), now=1000.0 + QUIET)
    fed(copy, NotFound(GONE_READS + 1), now=1001.0 + QUIET)
    assert copy.state is State.LIVE


def test_a_failed_older_read_has_no_effect():
    copy = ObserverCore(URL, HB)
    fed(copy, *STALE)
    fed(copy, CopyTimeOver(), now=REPLY_TIMEOUT)
    assert fed(copy, NotFound(1), now=40.0) == []


def test_a_read_that_fails_after_the_copy_went_live_changes_nothing():
    assert steps(reported(*STALE, snapshot(3), ReadFailed(1)))[-1] == ("stale", "snapshot", "live")


def test_a_snapshot_that_does_not_come_in_time_is_given_up():
    copy = ObserverCore(URL, HB)
    fed(copy, BEGUN)
    assert said(fed(copy, CopyTimeOver(), now=REPLY_TIMEOUT - 0.1)) == []
    (gone,) = said(fed(copy, CopyTimeOver(), now=REPLY_TIMEOUT))
    assert gone == ObserverGone("no snapshot came in time")


def test_a_deleted_object_changes_no_more():
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE)
    assert said(fed(copy, WithdrawnByReporter())) == [ObserverGone("deleted by its reporter")]
    assert fed(copy, change(2)) == []


# --- silence ------------------------------------------------------------------------------------


def test_a_live_copy_that_hears_nothing_for_long_reads_and_stays_live():
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE, now=1.0)
    assert copy.deadline() == 1.0 + QUIET
    assert fed(copy, CopyTimeOver(), now=QUIET) == []
    assert fed(copy, CopyTimeOver(), now=1.0 + QUIET) == [ReadNeeded(1)]
    assert copy.state is State.LIVE


@pytest.mark.parametrize("heard", [change(2), change(1), snapshot(1)], ids=["new", "old", "read"])
def test_any_change_postpones_the_read(heard):
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE)
    fed(copy, heard, now=5.0)
    assert copy.deadline() == 5.0 + QUIET


@pytest.mark.parametrize(
    "failed", [(), (ReadFailed(1, "503"),)], ids=["silence", "refused for now"]
)
def test_a_read_of_a_quiet_copy_that_fails_is_made_again_later(failed):
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE)
    fed(copy, CopyTimeOver(), now=QUIET)
    fed(copy, *failed, now=QUIET + 1.0)
    assert copy.deadline() == QUIET + REPEAT_LAST
    assert fed(copy, CopyTimeOver(), now=QUIET + REPEAT_LAST) == [ReadNeeded(2)]


def test_a_quiet_copy_gets_missed_changes_by_its_read():
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE)
    fed(copy, CopyTimeOver(), now=QUIET)
    (applied,) = said(fed(copy, snapshot(9), now=QUIET + 1.0))
    assert (applied, applied.change) == (Applied(9, {"t": 9}), None)
    assert fed(copy, change(10), now=QUIET + 2.0)[-1] == Applied(10, {"t": 10})


def test_the_end_that_a_quiet_copy_has_missed_it_finds_by_its_read():
    copy = ObserverCore(URL, HB)
    fed(copy, *LIVE)
    fed(copy, CopyTimeOver(), now=QUIET)
    assert said(fed(copy, GivenUp("404"), now=QUIET + 1.0)) == [ObserverGone("404")]


def test_a_copy_without_periodic_reads_does_not_read_when_quiet():
    copy = ObserverCore(URL, HB, quiet=math.inf)
    fed(copy, *LIVE)
    assert copy.deadline() == math.inf


# --- values ---------------------------------------------------------------------------------------


def test_each_value_is_frozen_and_shares_what_did_not_change():
    copy = ObserverCore(URL, HB)
    fed(copy, BEGUN, snapshot(1, kept={"deep": [1]}, t=1))
    before = copy.data
    (applied,) = said(fed(copy, change(2)))
    assert copy.data["kept"] is before["kept"]
    assert applied.change == change(2).change
    for write in (lambda: before.update(t=9), lambda: applied.data["kept"]["deep"].append(2)):
        with pytest.raises(TypeError):
            write()


def test_an_element_is_added_once_however_often_it_is_said():
    """SYN-15, I-D12."""
    copy = ObserverCore(URL, HB)
    added = Changed(Change(2, "all", ["x"], "array", "add"))
    fed(copy, BEGUN, snapshot(1, all=[]), added, added)
    fed(copy, snapshot(2, all=["x"]), added)
    assert copy.data == {"all": ["x"]}


# --- both ends ----------------------------------------------------------------------------------


class BothEnds(RuleBasedStateMachine):
    """A reporter, an observer, and messages between them that are lost, doubled, overtaken."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.reporter = ReporterCore(DataObject(HA, RA, {}, URL))
        self.repeats = RepeatsCore()
        self.are_repeats_lost = False
        self.copy = ObserverCore(URL, HB)
        self.history = {1: {}}
        self.changes, self.answers = [], []
        self.reads, self.is_synced = 0, False
        self.reporter.feed(Authorised(HB))
        self.take(BEGUN)
        granted = self.reporter.feed(SubscribeAsked(HB, SM))[-1]
        assert isinstance(granted, Granted)
        self.answers.append(SnapshotRead(granted.snapshot))

    def take(self, happened):
        before, is_read = self.copy.version, isinstance(happened, SnapshotRead)
        for effect in self.copy.feed(happened, self.now):
            if isinstance(effect, Applied):
                assert self.is_synced or is_read
                assert effect.version == before + 1 or (is_read and effect.version > before)
                assert effect.data == self.history[effect.version]
                before, is_read = effect.version, False
                self.is_synced = True
            elif isinstance(effect, ReadNeeded):
                self.reads = effect.read
                self.answers.append(SnapshotRead(self.reporter.snapshot))

    @rule(are_lost=st.booleans())
    def weather(self, are_lost):
        """Repeats get through, or none of them ever does."""
        self.are_repeats_lost = are_lost

    @rule(attribute=st.sampled_from("ab"), value=st.integers(0, 3))
    def write(self, attribute, value):
        self.changes.append(self.publish(attribute, value))

    def publish(self, attribute, value):
        change = ChangeObject(URL, attribute, value)
        (published,) = self.reporter.feed(ChangeAsked(HA, change))
        assert isinstance(published, Published)
        self.history[published.change.version] = self.reporter.snapshot.data
        self.repeats.published(self.reporter.snapshot, published.change, self.now)
        return Changed(published.change)

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
            self.take(answer if fate == "taken" else ReadFailed(self.reads))

    @precondition(lambda self: self.is_synced)
    @rule(seconds=st.sampled_from([0.5, READ_PAUSE, REPLY_TIMEOUT]))
    def time_passes(self, seconds):
        self.now += seconds
        self.take(CopyTimeOver())

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
            repeated = self.repeats.due(self.now, lambda _: True)
            if repeated is not None and not self.are_repeats_lost:
                self.take(Changed(repeated.change))
            self.take(CopyTimeOver())
            while self.answers:
                self.take(self.answers.pop(0))


TestBothEnds = BothEnds.TestCase
TestBothEnds.settings = settings(max_examples=examples(60), stateful_step_count=40)
