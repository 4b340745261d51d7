"""The children of one object in one place: SYN-24, I-D10, M-48..M-50."""

import json
import math

import pytest

from fsm.sync.child_history import ChildHistory
from fsm.sync.children import ChildOp, ChildSet, children_in
from fsm.sync.value.json import json_size
from specs.bodies.object import ChildWindow
from specs.child import RESOURCES, child_name
from specs.limits import sync as limits
from specs.limits.protocol import MAX_JSON_KEYS
from specs.message import MessageType as Act
from specs.reply_code import Code

HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"


def op(act, number, version, value="v", creator=HB):
    return ChildOp(act, child_name(creator, number), creator, number, version, value)


def create(number, version=None, value="v", creator=HB):
    return op(Act.CREATE, number, version or number, value, creator)


def filled(*ops):
    children = ChildSet()
    for one in ops:
        assert children.take(one) is True
    return children


@pytest.mark.parametrize("act", [Act.UPDATE, Act.DELETE])
def test_a_late_or_repeated_child_changes_nothing(act):
    children = filled(create(1, 5), op(Act.UPDATE, 1, 9, "new"))
    before = children.shown()
    assert children.take(op(act, 1, 9, "again")) is False
    assert children.take(op(act, 1, 7, "late")) is False
    assert children.shown() == before


def test_a_creator_that_does_not_know_the_outcome_creates_the_same_child_again():
    """The message is another, the child is not: there is one of it, also if both arrive."""
    children = filled(create(4), create(4, 9))
    assert children.shown() == {f"{HB}#4": {"value": "v", "version": 9}}
    assert children.take(create(4)).code == Code.CONFLICT
    assert children.shown() == filled(create(4, 9)).shown()


# --- bounds ---------------------------------------------------------------------------------


def test_one_child_is_bounded_in_size_and_depth():
    deep = "v"
    for _ in range(limits.CHILD_DEPTH):
        deep = [deep]
    assert ChildSet().take(create(1, value=deep)) is True
    assert ChildSet().take(create(1, value=[deep])).code == Code.TOO_LARGE
    text = "x" * (limits.CHILD_BYTES - 2)
    assert ChildSet().take(create(1, value=text)) is True
    assert ChildSet().take(create(1, value=text + "x")).code == Code.TOO_LARGE
    many = {str(number): 1 for number in range(MAX_JSON_KEYS)}
    assert ChildSet().take(create(1, value=[many])) is True
    refused = ChildSet().take(create(1, value=[{**many, "x": 1}]))
    assert (refused.code, str(MAX_JSON_KEYS) in refused.why) == (Code.TOO_LARGE, True)


def test_creators_without_children_are_forgotten_at_last():
    children = ChildSet()
    for number in range(limits.CREATORS_KEPT + 50):
        who = f"hyperty://b.ex/h{number}"
        children.take(create(1, creator=who))
        children.take(op(Act.DELETE, 1, 2, creator=who))
    assert len(children._creators) == limits.CREATORS_KEPT


# --- the whole object -----------------------------------------------------------------------


def test_more_than_an_object_has_is_not_taken_over():
    many = {f"{HB}#{k}": {"value": k, "version": k} for k in range(1, 300)}
    assert len(children_in(many)) == limits.CHILDREN_OF_OBJECT
    large = {f"{HB}#{k}": {"value": "x" * 9000, "version": k} for k in range(1, 30)}
    assert len(children_in(large)) == 3


# --- names ----------------------------------------------------------------------------------


def removal(version, base, path="a", number=1):
    return ChildOp(Act.UPDATE, child_name(HB, number), HB, number, version, removes=path, base=base)


def test_a_deletion_of_an_attribute_of_an_absent_child_changes_nothing():
    children = filled(create(1, 5), op(Act.DELETE, 1, 6))
    assert children.take(removal(7, 5)) is False
    assert len(children) == 0


# --- what the reporter's end removes ----------------------------------------------------------


def history(children=0, **window):
    """Children of one creator, which have come at one a second."""
    kept = ChildHistory(ChildWindow(**window))
    for number in range(1, children + 1):
        assert kept.take(create(number), float(number)) is True
        kept.trim(float(number))
    return kept


def numbers(names):
    return [int(name.rpartition("#")[2]) for name in names]


def test_removed_children_are_reported_together_and_a_hundred_at_a_time():
    kept = history(250, last=20)
    assert kept.deadline() == 21.0 + limits.WINDOW_PAUSE
    ended = []
    while kept.is_report_due(300.0):
        report = kept.report()
        assert len(report.ended) <= limits.ENDED_AT_ONCE
        assert (report.created, report.gone, report.count) == (250, 230, 20)
        ended += report.ended
    assert numbers(ended) == [*range(1, 231)]
    assert kept.deadline() == math.inf
    assert kept.report().ended == ()


def test_children_that_are_too_old_leave_at_their_time():
    kept = history(5, seconds=10)
    assert kept.deadline() == 11.0
    assert numbers(kept.trim(13.5)) == [1, 2, 3]
    assert kept.deadline() == 14.0
    assert kept.take(op(Act.UPDATE, 2, 90), 14.0).code == Code.GONE
    assert kept.take(create(2, 91), 14.0).code == Code.CONFLICT


def test_children_keep_their_order_numbers_and_ages_in_the_store():
    kept = history(5, last=3, seconds=10)
    again = ChildHistory(ChildWindow(last=3, seconds=10))
    again.restore(json.loads(json.dumps(kept.snapshot())), 6.0)
    assert again.snapshot() == kept.snapshot()
    assert again.take(create(9), 7.0) is True
    assert numbers(again.trim(13.5)) == [3]
    assert again.report().gone == 3
    assert numbers(again.trim(20.0)) == [4, 5, 9]


def test_pages_have_each_child_once():
    kept = history(900)
    seen, after = [], 0
    while after is not None:
        page = kept.page(after)
        seen += numbers(page[RESOURCES])
        assert json_size(page) <= limits.VALUE_BYTES
        after = page["window"].get("next")
    assert seen == [*range(1, 901)]
    large = ChildHistory(ChildWindow())
    for number in range(1, 31):
        large.take(create(number, value="x" * (limits.CHILD_BYTES - 2)), 0.0)
    page = large.page(0)
    assert 0 < len(page[RESOURCES]) < 30
    assert json_size(page) <= limits.VALUE_BYTES


def test_the_largest_window_has_few_pages():
    """The longest names, and values that leave most of a page unused."""
    creator = "hyperty://a.ex/" + "h" * 60
    for number_of, size in ((1000, 120), (30, limits.CHILD_BYTES - 2), (60, 4200)):
        kept = ChildHistory(ChildWindow())
        for number in range(1, number_of + 1):
            kept.take(create(number, value="x" * size, creator=creator), 0.0)
            kept.trim(0.0)
        after, pages = 0, 0
        while after is not None:
            after, pages = kept.page(after)["window"].get("next"), pages + 1
        assert pages <= 10 < limits.WINDOW_PAGES


def test_a_window_has_no_other_limit_than_its_own():
    kept = history(3 * limits.CHILDREN_OF_OBJECT, last=500)
    assert len(kept.children) == 500
    assert kept.take(create(999, value="x" * limits.CHILD_BYTES), 0.0).code == Code.TOO_LARGE
    small = ChildHistory(ChildWindow(bytes=limits.WINDOW_LEAST_BYTES))
    for number in range(1, 100):
        assert small.take(create(number, value="x" * 1000), 0.0) is True
        small.trim(0.0)
    assert limits.WINDOW_LEAST_BYTES - 1100 < small.children.size <= limits.WINDOW_LEAST_BYTES


def test_what_was_removed_stays_removed_in_the_store():
    for kept in (ChildHistory(), history(5, last=3)):
        kept.take(create(7), 7.0)
        kept.end(f"{HB}#7", 8.0)
        again = ChildHistory(kept.children.window)
        again.restore(json.loads(json.dumps(kept.for_store())), 9.0)
        for late in (op(Act.UPDATE, 7, 90), create(7, 91), op(Act.UPDATE, 1, 92)):
            assert again.take(late, 10.0).code in {Code.GONE, Code.CONFLICT}
        assert again.take(create(95), 10.0) is True
    assert "ended" not in history(3, last=3).for_store()


def test_only_so_many_silent_creators_are_remembered_and_never_the_present_one_forgotten():
    kept = ChildSet(ChildWindow())
    for number in range(1, 3 * limits.CREATORS_KEPT):
        kept.end(child_name(f"hyperty://a.ex/h{number}", 1))
    assert len(kept.last_ended()) <= limits.CREATORS_KEPT
    full = ChildSet(ChildWindow())
    for number in range(limits.CREATORS_KEPT):
        assert full.take(create(1, 1, creator=f"hyperty://a.ex/h{number}")) is True
    assert full.take(create(10, 10)) is True
    assert full.take(op(Act.UPDATE, 10, 9, "older")) is False


def test_a_deleted_child_does_not_come_back():
    kept = filled(create(1), create(2))
    assert kept.end(f"{HB}#1")
    assert not kept.end(f"{HB}#1")
    for late in (op(Act.UPDATE, 1, 9), create(1, 10)):
        assert kept.take(late).code in {Code.GONE, Code.CONFLICT}
    assert kept.take(create(11)) is True
