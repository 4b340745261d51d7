"""The reporter's end of a data object (SYN-04..SYN-22, I-D1, I-D2, I-D6..I-D9)."""

import pytest

from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.sync.value.value import apply_change
from specs.bodies.object import Change, ChangeObject, DataObject
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


def test_only_the_reporter_writes():
    (refused,) = told(reporter(), ("change", HB, set_to("t", 1)))
    assert refused == Refused(Code.FORBIDDEN, "only the reporter may")


# --- observers --------------------------------------------------------------------------

ASKED = ("subscribe", HB, SM)
LEFT = ("unsubscribe", HB, SM)


def test_an_observer_is_added_before_it_gets_the_object():
    """I-D6, SC-30."""
    core = reporter()
    told(core, ASKED)
    effects = told(core, ("accept", HB, 1))
    row = RowChanged(Op.ADD, "observers", URL, HB, "sm")
    assert [effects[0], type(effects[1]), effects[2][0]] == [row, Step, "grant"]


def test_an_observer_leaves_once_and_only_by_the_manager_that_brought_it():
    """SC-32."""
    core = reporter()
    told(core, ("authorise", HB), ASKED)
    assert told(core, ("unsubscribe", HB, f"{SM}/other")) == []
    step, row = told(core, LEFT)
    assert (step.new, row) == ("removed", RowChanged(Op.DEL, "observers", URL, HB, "sm"))
    assert told(core, LEFT) == []
    assert not core.observers


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


def test_observers_that_do_not_answer_a_deletion_end_all_the_same():
    """SYN-22."""
    core = observed_from(RB, RC)
    told(core, ("delete", HA), ("notified", {RC}))
    effects = told(core, ("notified",))
    assert moves(effects) == [("active", "object-deleted", "removed")]
    assert said(effects) == [("vacate",)]
    assert told(core, ("notified",)) == []
