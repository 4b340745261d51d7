"""The reporter's end of a data object (SYN-04..SYN-22, I-D1, I-D2, I-D6..I-D9)."""

import math

import attrs
import pytest

from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION
from fsm.sync.value.value import apply_change
from specs.bodies.object import Change, ChangeObject, DataObject
from specs.limits.protocol import LEASE, REPLY_TIMEOUT
from specs.limits.sync import MAX_REPEATED_ASKS
from specs.reply_code import Code
from specs.trace import Op
from tests.support.lone_report import lone_report, said, told

HA, HB, SM = "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty-runtime://b.ex/rb/sm"
RB, RC = "hyperty-runtime://b.ex/rb", "hyperty-runtime://c.ex/rc"
RA, URL = "hyperty-runtime://a.ex/ra", "comm://a.ex/o1"


def reporter(**data):
    return lone_report(DataObject(HA, RA, data, URL))


def set_to(attribute, value=None, **more):
    return ChangeObject(URL, attribute, value, **more)


def moves(effects):
    """The steps among effects: from, by what, to."""
    return [(each.old, each.cause, each.new) for each in effects if isinstance(each, Step)]


def write(core, change):
    ((name, published),) = told(core, ("change", HA, change))
    assert (name, core.port.versions[-1]) == ("publish", published.version)
    return published


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
            set_to("list", ["z"], attribute_type="array", operation="remove"),
            {"t": 0, "list": ["x"], "deep": {"a": 1}},
        ),
        (
            set_to("t", ["x"], attribute_type="array", operation="remove"),
            {"t": 0, "list": ["x"], "deep": {"a": 1}},
        ),
        (Change(2), {"t": 0, "list": ["x"], "deep": {"a": 1}}),
    ],
)
def test_a_change_does_what_it_says_and_leaves_the_old_value_alone(change, after):
    """MSG-12, SYN-14, SYN-15, C-35: a path that is not there is removed by doing nothing."""
    before = {"t": 0, "list": ["x"], "deep": {"a": 1}}
    assert apply_change(before, change) == after
    assert before == {"t": 0, "list": ["x"], "deep": {"a": 1}}


def test_versions_rise_by_one():
    core = reporter(t=0)
    assert [write(core, set_to("t", number)).version for number in (1, 2, 3)] == [2, 3, 4]
    assert core.snapshot.version == 4
    assert core.snapshot.data == {"t": 3}


def test_only_the_reporter_writes():
    (refused,) = told(reporter(), ("change", HB, set_to("t", 1)))
    assert refused == Refused(Code.FORBIDDEN, "only the reporter may")


# --- observers --------------------------------------------------------------------------

ASKED = ("subscribe", HB, SM)
LEFT = ("unsubscribe", HB, SM)
HISTORIES = {
    "invited, then leaves": (("authorise", HB), ASKED, LEFT),
    "accepted, then the object goes": (
        ASKED,
        ("accept", HB, 1),
        ("delete", HA),
        ("notified",),
    ),
    "refused": (ASKED, ("refuse", HB, "no", 1)),
    "leaves before the decision": (ASKED, LEFT),
    "the object goes before the decision": (ASKED, ("delete", HA)),
    "renews, and then does not": (
        ("authorise", HB),
        ("subscribe", HB, SM, LEASE),
        ("subscribe", HB, SM, LEASE, 1),
        ("wait", LEASE),
    ),
}


def test_the_histories_of_a_subscription_take_every_row_of_its_table_and_no_other():
    taken = {move for history in HISTORIES.values() for move in moves(told(reporter(), *history))}
    assert taken == {(row.source, row.trigger, row.target) for row in OBJECT_SUBSCRIPTION.rows}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=list(HISTORIES))
def test_each_history_of_a_subscription_ends_at_rest_and_another_may_begin(history):
    core = reporter()
    *_, (_, _, last) = moves(told(core, *history))
    assert last in OBJECT_SUBSCRIPTION.may_end
    again = moves(told(core, ASKED))
    assert bool(again) is not core.is_deleted
    assert all(old is None for old, _, _ in again[:1])


def test_a_subscription_is_known_by_object_and_observer():
    (step, _) = told(reporter(), ASKED)
    assert step == Step("object_subscription", f"{URL}|{HB}", None, "requested", "request")


def test_an_invited_observer_subscribes_without_a_decision_and_gets_the_newest_object():
    core = reporter(t=0)
    told(core, ("authorise", HB))
    write(core, set_to("t", 9))
    assert said(told(core, ASKED)) == [("grant", HB, core.snapshot, {})]
    assert core.observers == (HB,)


def test_an_observer_is_added_before_it_gets_the_object():
    """I-D6, SC-30."""
    core = reporter()
    told(core, ASKED)
    effects = told(core, ("accept", HB, 1))
    row = RowChanged(Op.ADD, "observers", URL, HB, "sm")
    assert [effects[0], type(effects[1]), effects[2][0]] == [row, Step, "grant"]


def test_the_reporter_decides_about_others_in_the_time_of_the_table():
    core = reporter()
    assert said(told(core, ASKED)) == [("ask", HB, 1)]
    assert told(core, ASKED) == []
    assert said(told(core, ("accept", HB, 1))) == [("grant", HB, core.snapshot, {})]


def test_a_reporter_that_does_not_decide_refuses():
    core = reporter()
    told(core, ASKED)
    assert told(core, ("wait", REPLY_TIMEOUT - 0.1)) == []
    denied = told(core, ("wait", 0.1))
    assert said(denied) == [("deny", HB, Code.FORBIDDEN, "the reporter did not answer")]
    assert told(core, ("accept", HB, 1), ("wait", LEASE)) == []


def test_an_accepted_observer_is_not_refused_for_the_silence_that_might_have_been():
    core = reporter()
    told(core, ("subscribe", HB, SM, LEASE), ("accept", HB, 1))
    assert core.deadline() == LEASE
    assert told(core, ("wait", REPLY_TIMEOUT)) == []


@pytest.mark.parametrize(
    ("decision", "name"), [(("accept", HB, 1), "grant"), (("refuse", HB, "no", 1), "deny")]
)
def test_all_requests_that_wait_for_a_decision_get_it_and_no_more_wait_than_a_few(decision, name):
    core = reporter()
    denied = told(core, *[ASKED] * (MAX_REPEATED_ASKS + 1))
    assert said(denied)[1:] == [
        ("deny", HB, Code.TOO_LARGE, "its requests wait for the reporter already")
    ]
    core.do(*decision)
    last, requests, *_ = core.port.done[-1]
    assert (last, len(requests), core.deadline()) == (name, MAX_REPEATED_ASKS, math.inf)


def test_an_invitation_is_a_decision():
    core = reporter()
    told(core, ASKED)
    assert said(told(core, ("authorise", HB))) == [("grant", HB, core.snapshot, {})]
    assert told(core, ("refuse", HB, "too late", 1)) == []


def test_a_refused_observer_is_notified_and_not_added():
    core = reporter()
    told(core, ASKED)
    refused = told(core, ("refuse", HB, "no", 1))
    assert said(refused) == [("deny", HB, Code.FORBIDDEN, "no")]
    assert core.observers == ()


def test_a_repeated_request_of_an_observer_returns_the_object_without_a_step():
    core = reporter(t=0)
    told(core, ("authorise", HB), ASKED)
    write(core, set_to("t", 1))
    assert told(core, ASKED) == [("grant", HB, core.snapshot, {})]


def test_an_unrequested_decision_changes_nothing():
    assert told(reporter(), ("accept", HB, 1)) == []
    assert told(reporter(), ("refuse", HB, "no", 1)) == []


def test_an_observer_leaves_once_and_only_by_the_manager_that_brought_it():
    """SC-32."""
    core = reporter()
    told(core, ("authorise", HB), ASKED)
    assert told(core, ("unsubscribe", HB, f"{SM}/other")) == []
    step, row = told(core, LEFT)
    assert (step.new, row) == ("removed", RowChanged(Op.DEL, "observers", URL, HB, "sm"))
    assert told(core, LEFT) == []
    assert not core.observers


def test_an_observer_that_leaves_before_the_decision_is_answered_and_never_admitted():
    core = reporter()
    told(core, ASKED)
    (denied,) = said(told(core, LEFT))
    assert denied[2] is Code.GONE
    assert told(core, ("accept", HB, 1)) == []


def test_observers_and_the_reporter_may_read():
    core = reporter()
    told(core, ("authorise", HB), ASKED)
    assert [core.may_read(who) for who in (HA, HB, SM)] == [True, True, False]


def test_deleting_reports_each_runtime_once_and_then_nothing_happens_any_more():
    core = reporter()
    for observer in (HB, "hyperty://b.ex/other"):
        told(core, ("authorise", observer), ("subscribe", observer, SM))
    assert told(core, ("delete", HB)) == [Refused(Code.FORBIDDEN, "only the reporter may")]
    assert told(core, ("delete", HA)) == [("end", (RB,))]
    (denied,) = told(core, ("subscribe", "hyperty://b.ex/third", SM))
    assert denied[2] is Code.NOT_FOUND
    (refused,) = told(core, ("change", HA, set_to("t", 1)))
    assert refused.code is Code.NOT_FOUND
    (again,) = told(core, ("delete", HA))
    assert again.code is Code.NOT_FOUND


def test_a_subscription_of_a_deleted_object_ends_when_its_observer_was_reported():
    """SC-34."""
    core = reporter()
    told(core, ("authorise", HB), ASKED)
    assert told(core, ("notified",)) == []
    assert moves(told(core, ("delete", HA))) == []
    assert moves(told(core, ("notified",))) == [("active", "object-deleted", "removed")]


def observed_from(*runtimes):
    core = reporter()
    for number, runtime in enumerate(runtimes):
        observer = f"hyperty://b.ex/{number}"
        told(core, ("authorise", observer), ("subscribe", observer, f"{runtime}/sm"))
    return core


def test_each_runtime_answers_a_deletion_for_its_own_observers():
    """C-81."""
    core = observed_from(RB, RC, RB)
    assert told(core, ("delete", HA)) == [("end", (RB, RC))]
    assert said(told(core, ("notified", {RB}))) == []
    assert core.observers == ("hyperty://b.ex/1",)
    assert told(core, ("notified", {RB})) == []
    assert said(told(core, ("notified", {RC}))) == [("vacate",)]


def test_observers_that_do_not_answer_a_deletion_end_all_the_same():
    """SYN-22."""
    core = observed_from(RB, RC)
    told(core, ("delete", HA), ("notified", {RC}))
    effects = told(core, ("notified",))
    assert moves(effects) == [("active", "object-deleted", "removed")]
    assert said(effects) == [("vacate",)]
    assert told(core, ("notified",)) == []


def test_the_last_observer_that_leaves_a_deleted_object_ends_the_wait():
    core = observed_from(RB)
    told(core, ("delete", HA))
    left = told(core, ("unsubscribe", "hyperty://b.ex/0", f"{RB}/sm"))
    assert said(left) == [("vacate",)]


def test_a_runtime_reports_nothing_of_an_object_that_is_there():
    core = observed_from(RB)
    assert told(core, ("notified", {RB})) == []
    assert core.observers


def test_a_deletion_while_the_reporter_is_asked_refuses_the_observer_at_once():
    core = reporter()
    told(core, ASKED)
    assert said(told(core, ("delete", HA))) == [
        ("deny", HB, Code.NOT_FOUND, "the object is deleted"),
        ("end", ()),
        ("vacate",),
    ]
    assert told(core, ("accept", HB, 1)) == []


def test_objects_are_never_changed_in_place():
    first = DataObject(HA, RA, {"t": 0}, URL)
    core = lone_report(first)
    write(core, set_to("t", 1))
    assert first == attrs.evolve(first, data={"t": 0})


@pytest.mark.parametrize(
    ("path", "left"),
    [("a", {"b": [1, 2]}), ("b.0", {"a": None, "b": [2]})],
    ids=["null", "element"],
)
def test_one_attribute_is_deleted_by_a_change_of_its_own(path, left):
    """MSG-13, M-46: observers see it as the next version."""
    core = reporter(a=None, b=[1, 2])
    element = Change(2, "b", 1, "array", "remove", source=HA, index=0)
    change = element if path == "b.0" else Change(2, path, source=HA)
    assert said(told(core, ("remove", HA, path))) == [("publish", change)]
    assert (core.snapshot.version, core.snapshot.data) == (2, left)
    assert apply_change({"a": None, "b": [1, 2]}, Change(2, path)) == left


def test_a_deletion_of_an_absent_attribute_is_no_change():
    """MSG-13: idempotent."""
    core = reporter(a=1)
    assert told(core, ("remove", HA, "b.c")) == []
    assert core.snapshot.version == 1


@pytest.mark.parametrize("path", ["a", "absent"])
def test_only_the_reporter_deletes_an_attribute(path):
    """I-D1."""
    core = reporter(a=1)
    assert told(core, ("remove", HB, path)) == [Refused(Code.FORBIDDEN, "only the reporter may")]
    assert core.snapshot.data == {"a": 1}
