"""The children of one object in one place: SYN-24, I-D10, M-48..M-50."""

import pytest

from fsm.sync.children import ChildOp, ChildSet, children_in
from specs.child import child_name
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
