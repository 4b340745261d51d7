"""Reporter and observer of a data object (SYN-04..SYN-22, I-D1..I-D9)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.cores.data_object import (
    Authorised,
    ChangeAsked,
    DeleteAsked,
    Deleted,
    Denied,
    Granted,
    Left,
    Published,
    Refused,
    ReporterAccepted,
    ReporterAsked,
    ReporterCore,
    ReporterRefused,
    SubscribeAsked,
    UnsubscribeAsked,
)
from fsm.cores.object_copy import (
    Applied,
    Changed,
    ObserverCore,
    ObserverGone,
    ReadNeeded,
    SnapshotRead,
    WithdrawnByReporter,
)
from fsm.cores.object_value import changed
from specs.body_sync import Change, DataObject
from specs.reply_code import Code

HA, HB, SM = "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty-runtime://b.ex/rb/sm"
RA, URL = "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"


def reporter(**data):
    return ReporterCore(DataObject(HA, RA, data, URL))


def set_to(attribute, value=None, **more):
    return Change(attribute=attribute, value=value, **more)


def write(core, change):
    (published,) = core.feed(ChangeAsked(HA, change))
    assert isinstance(published, Published)
    return published.change


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (set_to("t", 4), {"t": 4, "list": ["x"], "deep": {"a": 1}}),
        (set_to("t"), {"list": ["x"], "deep": {"a": 1}}),
        (set_to("gone"), {"t": 0, "list": ["x"], "deep": {"a": 1}}),
        (set_to("deep.a", 2), {"t": 0, "list": ["x"], "deep": {"a": 2}}),
        (set_to("deep.a"), {"t": 0, "list": ["x"], "deep": {}}),
        (set_to("new.way", 1), {"t": 0, "list": ["x"], "deep": {"a": 1}, "new": {"way": 1}}),
        (set_to("no.way"), {"t": 0, "list": ["x"], "deep": {"a": 1}}),
        (
            set_to("list", ["y"], attribute_type="array", operation="add"),
            {"t": 0, "list": ["x", "y"], "deep": {"a": 1}},
        ),
        (
            set_to("list", ["x"], attribute_type="array", operation="remove"),
            {"t": 0, "list": [], "deep": {"a": 1}},
        ),
        (
            set_to("t", ["x"], attribute_type="array", operation="remove"),
            {"t": 0, "list": ["x"], "deep": {"a": 1}},
        ),
        (Change(), {"t": 0, "list": ["x"], "deep": {"a": 1}}),
    ],
)
def test_a_change_does_what_it_says_and_leaves_the_old_value_alone(change, after):
    before = {"t": 0, "list": ["x"], "deep": {"a": 1}}
    assert changed(before, change) == after
    assert before == {"t": 0, "list": ["x"], "deep": {"a": 1}}


def test_versions_rise_by_one():
    core = reporter(t=0)
    assert [write(core, set_to("t", number)).version for number in (1, 2, 3)] == [2, 3, 4]
    assert core.snapshot.version == 4
    assert core.snapshot.data == {"t": 3}


def test_only_the_reporter_writes():
    (refused,) = reporter().feed(ChangeAsked(HB, set_to("t", 1)))
    assert refused == Refused(Code.FORBIDDEN, "only the reporter may")


def test_who_was_invited_subscribes_unasked_and_gets_the_newest_object():
    core = reporter(t=0)
    core.feed(Authorised(HB))
    write(core, set_to("t", 9))
    (granted,) = core.feed(SubscribeAsked(HB, SM))
    assert granted == Granted(HB, SM, core.snapshot)
    assert core.observers == (HB,)


def test_the_reporter_decides_about_others():
    core = reporter()
    assert core.feed(SubscribeAsked(HB, SM)) == [ReporterAsked(HB)]
    assert core.feed(SubscribeAsked(HB, SM)) == []
    assert core.feed(ReporterAccepted(HB)) == [Granted(HB, SM, core.snapshot)]


def test_a_refused_observer_is_told_and_not_added():
    core = reporter()
    core.feed(SubscribeAsked(HB, SM))
    refused = core.feed(ReporterRefused(HB, "no"))
    assert refused == [Denied(HB, SM, Code.FORBIDDEN, "no")]
    assert core.observers == ()


def test_a_decision_nobody_asked_for_changes_nothing():
    assert reporter().feed(ReporterAccepted(HB)) == []


def test_an_observer_leaves_once():
    core = reporter()
    core.feed(Authorised(HB))
    core.feed(SubscribeAsked(HB, SM))
    assert core.feed(UnsubscribeAsked(HB, f"{SM}/other")) == []
    assert core.feed(UnsubscribeAsked(HB, SM)) == [Left(HB)]
    assert core.feed(UnsubscribeAsked(HB, SM)) == []


def test_deleting_tells_each_sync_manager_once_and_then_nothing_happens_any_more():
    core = reporter()
    for observer in (HB, "hyperty://b.ex/other"):
        core.feed(Authorised(observer))
        core.feed(SubscribeAsked(observer, SM))
    assert core.feed(DeleteAsked(HB)) == [Refused(Code.FORBIDDEN, "only the reporter may")]
    assert core.feed(DeleteAsked(HA)) == [Deleted((SM,))]
    (denied,) = core.feed(SubscribeAsked(HB, SM))
    assert denied.code is Code.NOT_FOUND
    (refused,) = core.feed(ChangeAsked(HA, set_to("t", 1)))
    assert refused.code is Code.NOT_FOUND


def test_a_deletion_while_the_reporter_is_asked_refuses_the_observer():
    core = reporter()
    core.feed(SubscribeAsked(HB, SM))
    core.feed(DeleteAsked(HA))
    (denied,) = core.feed(ReporterAccepted(HB))
    assert denied.code is Code.NOT_FOUND


# --- the copy ---------------------------------------------------------------------------


def snapshot(version, **data):
    return SnapshotRead(DataObject(HA, RA, data, URL, version))


def test_nothing_is_applied_before_the_snapshot():
    copy = ObserverCore()
    assert copy.feed(Changed(set_to("t", 2, version=2))) == []
    applied = copy.feed(snapshot(1, t=1))
    assert [effect.data for effect in applied] == [{"t": 1}, {"t": 2}]


def test_old_changes_are_ignored():
    copy = ObserverCore()
    copy.feed(snapshot(3, t=3))
    assert copy.feed(Changed(set_to("t", 2, version=2))) == []
    assert copy.feed(Changed(set_to("t", 3, version=3))) == []


def test_a_gap_is_read_over_and_what_came_meanwhile_is_applied():
    copy = ObserverCore()
    copy.feed(snapshot(1, t=1))
    assert copy.feed(Changed(set_to("t", 3, version=3))) == [ReadNeeded()]
    assert copy.feed(Changed(set_to("t", 4, version=4))) == []
    assert copy.feed(snapshot(3, t=3)) == [Applied(3, {"t": 3}), Applied(4, {"t": 4})]
    assert copy.data == {"t": 4}


def test_a_deleted_object_changes_no_more():
    copy = ObserverCore()
    copy.feed(snapshot(1, t=1))
    assert copy.feed(WithdrawnByReporter()) == [ObserverGone()]
    assert copy.feed(Changed(set_to("t", 2, version=2))) == []


@given(
    writes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=30),
    fate=st.data(),
)
def test_whatever_is_lost_or_doubled_the_copy_converges_once_read(writes, fate):
    source, copy = reporter(), ObserverCore()
    copy.feed(SnapshotRead(source.snapshot))
    for attribute, value in writes:
        published = write(source, set_to(attribute, value))
        for _ in range(fate.draw(st.sampled_from([0, 1, 1, 2]))):
            for effect in copy.feed(Changed(published)):
                if isinstance(effect, ReadNeeded):
                    copy.feed(SnapshotRead(source.snapshot))
    copy.feed(Changed(write(source, set_to("last", 1))))
    copy.feed(SnapshotRead(source.snapshot))
    assert copy.data == source.snapshot.data


def test_objects_are_never_changed_in_place():
    first = DataObject(HA, RA, {"t": 0}, URL)
    core = ReporterCore(first)
    write(core, set_to("t", 1))
    assert first == attrs.evolve(first, data={"t": 0})
