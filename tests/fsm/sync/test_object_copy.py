"""An observer's copy of a data object (SYN-12, SYN-16, SYN-17, I-D3..I-D5, I-D8, I-D12)."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fsm.engine import Step
from fsm.machines.sync.observer_copy import OBSERVER_COPY, State
from fsm.sync.leases import RepeatsCore
from fsm.table import UndeclaredTransitionError
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.limits.protocol import EARLY_CHANGES, READ_PAUSE, REPLY_TIMEOUT
from specs.limits.sync import GONE_READS, QUIET, REPEAT_LAST
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


def test_a_copy_is_known_by_object_and_observer():
    assert reported(BEGUN) == [Step("observer_copy", f"{URL}|{HB}", None, "syncing", "observe")]


def test_an_idle_copy_is_sent_nothing():
    with pytest.raises(UndeclaredTransitionError):
        reported(change(1))


# --- after a restart ------------------------------------------------------------------------


def test_a_stored_value_is_shown_until_the_object_is_there_and_read_first():
    """SYN-25, M-52: who has not subscribed yet may not read."""
    copy = lone_copy(URL, HB)
    assert without_steps(told(copy, BEGUN, RECALLED)) == [("show", 2, {"t": 2})]
    assert (copy.state, copy.deadline()) == ("stale", math.inf)
    assert without_steps(told(copy, change(4), ("time_over",))) == []
    assert without_steps(told(copy, snapshot(3))) == [("show", 3, {"t": 3}), ("show", 4, {"t": 4})]


def test_a_stored_value_is_ignored_by_a_copy_that_has_the_object():
    copy = lone_copy(URL, HB)
    assert versions(told(copy, BEGUN, snapshot(3), RECALLED)) == [3]
    assert copy.version == 3


# --- versions -------------------------------------------------------------------------------


def test_nothing_is_applied_before_the_snapshot():
    copy = lone_copy(URL, HB)
    assert without_steps(told(copy, BEGUN, change(2))) == []
    assert without_steps(told(copy, snapshot(1))) == [("show", 1, {"t": 1}), ("show", 2, {"t": 2})]


def test_old_changes_are_ignored():
    copy = lone_copy(URL, HB)
    told(copy, BEGUN, snapshot(3))
    assert without_steps(told(copy, change(2), change(3))) == []
    assert copy.data == {"t": 3}


def test_a_gap_is_read_over_and_what_came_meanwhile_is_applied():
    copy = lone_copy(URL, HB)
    assert without_steps(told(copy, *STALE))[1:] == [("read", 1)]
    assert without_steps(told(copy, change(4))) == []
    assert without_steps(told(copy, snapshot(3))) == [("show", 3, {"t": 3}), ("show", 4, {"t": 4})]
    assert (copy.version, copy.data) == (4, {"t": 4})


def test_changes_that_overtook_each_other_before_the_snapshot_are_put_in_order():
    assert versions(reported(BEGUN, change(4), change(2), change(3), snapshot(1))) == [1, 2, 3, 4]


def test_an_answer_that_is_older_than_the_gap_closes_nothing_and_the_next_read_takes_its_time():
    copy = lone_copy(URL, HB)
    told(copy, *LIVE, change(5))
    assert without_steps(told(copy, snapshot(3), now=1.0)) == [("show", 3, {"t": 3})]
    assert (copy.state, copy.deadline()) == (State.STALE, 1.0 + READ_PAUSE)
    assert without_steps(told(copy, ("time_over",), now=1.0 + READ_PAUSE)) == [("read", 2)]
    assert versions(told(copy, snapshot(5), now=3.0)) == [5]


@pytest.mark.parametrize("start", [(BEGUN,), STALE], ids=["syncing", "stale"])
def test_more_early_changes_than_are_kept_are_a_gap_and_no_silent_loss(start):
    copy, last = lone_copy(URL, HB), EARLY_CHANGES + 10
    told(copy, *start, *(change(version) for version in range(4, last + 1)))
    told(copy, snapshot(3))
    assert copy.state is State.STALE
    assert copy.version == 3
    told(copy, ("time_over",), now=READ_PAUSE)
    assert told(copy, snapshot(last))[-1] == ("show", last, {"t": last})
    assert copy.state is State.LIVE


def test_the_newest_early_change_is_kept_whenever_it_came():
    copy, last = lone_copy(URL, HB), EARLY_CHANGES + 10
    told(copy, BEGUN, change(last + 1), *(change(version) for version in range(2, last + 1)))
    effects = told(copy, snapshot(last - 2))
    assert versions(effects) == [last - 2, last - 1, last, last + 1]


# --- reads and time ---------------------------------------------------------------------------


def test_a_read_that_fails_is_made_again_after_a_pause():
    copy = lone_copy(URL, HB)
    told(copy, *STALE)
    assert without_steps(told(copy, ("read_failed", 1, "503"), now=2.0)) == []
    assert without_steps(told(copy, ("time_over",), now=2.0)) == []
    assert copy.deadline() == 2.0 + READ_PAUSE
    assert told(copy, ("time_over",), now=2.0 + READ_PAUSE) == [("read", 2)]


def test_a_read_fails_once():
    copy = lone_copy(URL, HB)
    told(copy, *STALE)
    assert [len(told(copy, ("read_failed", 1, ""))) for _ in range(2)] == [1, 0]


def test_an_unanswered_read_is_repeated_after_the_time_of_the_table():
    copy = lone_copy(URL, HB)
    told(copy, *STALE, now=1.0)
    assert copy.deadline() == 1.0 + REPLY_TIMEOUT
    step, again = told(copy, ("time_over",), now=1.0 + REPLY_TIMEOUT)
    assert (step.cause, again) == ("read-failed", ("read", 2))


def test_changes_that_come_meanwhile_do_not_prolong_the_wait():
    copy = lone_copy(URL, HB)
    told(copy, *STALE)
    told(copy, change(4), now=5.0)
    assert copy.deadline() == REPLY_TIMEOUT


@pytest.mark.parametrize("late", [(1, 2.0), (3, 40.0)], ids=["an older read", "no read"])
def test_a_failure_that_is_not_of_the_read_under_way_changes_nothing(late):
    number, now = late
    copy = lone_copy(URL, HB)
    told(copy, *STALE)
    told(copy, ("time_over",), now=REPLY_TIMEOUT)
    assert told(copy, ("read_failed", number, ""), now=now) == []


@pytest.mark.parametrize("start", [STALE, (*LIVE, ("time_over",))], ids=["stale", "quiet"])
def test_an_object_that_is_not_found_is_looked_for_until_it_counts_as_gone(start):
    copy, now, pauses = lone_copy(URL, HB), QUIET, []
    told(copy, *start[:-1])
    read = told(copy, start[-1], now=now)[-1]
    while copy.state is not State.DELETED:
        effects = told(copy, ("not_found", read[1], "404"), now=now)
        if copy.deadline() < math.inf:
            pauses.append(copy.deadline() - now)
            now = copy.deadline()
            read = told(copy, ("time_over",), now=now)[-1]
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert len(pauses) == GONE_READS - 1
    assert without_steps(effects) == [("end", "404")]


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


def test_a_read_that_fails_after_the_copy_went_live_changes_nothing():
    taken = steps(reported(*STALE, snapshot(3), ("read_failed", 1, "")))
    assert taken[-1] == ("stale", "snapshot", "live")


def test_a_snapshot_that_does_not_come_in_time_is_given_up():
    copy = lone_copy(URL, HB)
    told(copy, BEGUN)
    assert without_steps(told(copy, ("time_over",), now=REPLY_TIMEOUT - 0.1)) == []
    (gone,) = without_steps(told(copy, ("time_over",), now=REPLY_TIMEOUT))
    assert gone == ("end", "no snapshot came in time")


def test_a_deleted_object_changes_no_more():
    copy = lone_copy(URL, HB)
    told(copy, *LIVE)
    assert without_steps(told(copy, ("delete",))) == [("end", "deleted by its reporter")]
    assert told(copy, change(2)) == []


# --- silence ------------------------------------------------------------------------------------


def test_a_live_copy_that_hears_nothing_for_long_reads_and_stays_live():
    copy = lone_copy(URL, HB)
    told(copy, *LIVE, now=1.0)
    assert copy.deadline() == 1.0 + QUIET
    assert told(copy, ("time_over",), now=QUIET) == []
    assert told(copy, ("time_over",), now=1.0 + QUIET) == [("read", 1)]
    assert copy.state is State.LIVE


@pytest.mark.parametrize("heard", [change(2), change(1), snapshot(1)], ids=["new", "old", "read"])
def test_any_change_postpones_the_read(heard):
    copy = lone_copy(URL, HB)
    told(copy, *LIVE)
    told(copy, heard, now=5.0)
    assert copy.deadline() == 5.0 + QUIET


@pytest.mark.parametrize(
    "failed", [(), (("read_failed", 1, "503"),)], ids=["silence", "refused for now"]
)
def test_a_read_of_a_quiet_copy_that_fails_is_made_again_later(failed):
    copy = lone_copy(URL, HB)
    told(copy, *LIVE)
    told(copy, ("time_over",), now=QUIET)
    told(copy, *failed, now=QUIET + 1.0)
    assert copy.deadline() == QUIET + REPEAT_LAST
    assert told(copy, ("time_over",), now=QUIET + REPEAT_LAST) == [("read", 2)]


def test_a_quiet_copy_gets_missed_changes_by_its_read():
    copy = lone_copy(URL, HB)
    told(copy, *LIVE)
    told(copy, ("time_over",), now=QUIET)
    (applied,) = without_steps(told(copy, snapshot(9), now=QUIET + 1.0))
    assert (applied, copy.port.changes[-1]) == (("show", 9, {"t": 9}), None)
    assert told(copy, change(10), now=QUIET + 2.0)[-1] == ("show", 10, {"t": 10})


def test_the_end_that_a_quiet_copy_has_missed_it_finds_by_its_read():
    copy = lone_copy(URL, HB)
    told(copy, *LIVE)
    told(copy, ("time_over",), now=QUIET)
    assert without_steps(told(copy, ("give_up", "404"), now=QUIET + 1.0)) == [("end", "404")]


def test_a_copy_without_periodic_reads_does_not_read_when_quiet():
    copy = lone_copy(URL, HB, quiet=math.inf)
    told(copy, *LIVE)
    assert copy.deadline() == math.inf


# --- values ---------------------------------------------------------------------------------------


def test_each_value_is_frozen_and_shares_what_did_not_change():
    copy = lone_copy(URL, HB)
    told(copy, BEGUN, snapshot(1, kept={"deep": [1]}, t=1))
    before = copy.data
    (applied,) = without_steps(told(copy, change(2)))
    assert copy.data["kept"] is before["kept"]
    assert copy.port.changes[-1] == change(2)[1]
    for write in (lambda: before.update(t=9), lambda: applied[2]["kept"]["deep"].append(2)):
        with pytest.raises(TypeError):
            write()


def test_an_element_is_added_once_however_often_it_is_said():
    """SYN-15, I-D12."""
    copy = lone_copy(URL, HB)
    added = ("change", Change(2, "all", ["x"], "array", "add"))
    told(copy, BEGUN, snapshot(1, all=[]), added, added)
    told(copy, snapshot(2, all=["x"]), added)
    assert copy.data == {"all": ["x"]}


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
