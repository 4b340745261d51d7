"""The children of one object in one place: SYN-24, I-D10, M-48..M-50."""

import pytest

from fsm.effects import Refused
from fsm.sync.children import ChildOp, ChildSet, children_in
from specs.child import child_name, children_addresses, parent_of, split_name
from specs.limits import sync as limits
from specs.limits.protocol import MAX_JSON_KEYS
from specs.message import MessageType as Act
from specs.reply_code import Code

URL = "comm://a.ex/o"
HB, HC = "hyperty://b.ex/hb", "hyperty://c.ex/hc"
TO = f"{URL}/children/resources"


def op(act, number, version, value="v", creator=HB):
    return ChildOp(act, child_name(creator, number), creator, number, version, value)


def create(number, version=None, value="v", creator=HB):
    return op(Act.CREATE, number, version or number, value, creator)


def filled(*ops):
    children = ChildSet()
    for one in ops:
        assert children.take(one) is True
    return children


def test_a_child_is_created_changed_and_deleted_by_its_creator():
    children = filled(create(1), op(Act.UPDATE, 1, 2, "new"))
    assert children.find(f"{HB}#1").value == "new"
    assert children.take(op(Act.DELETE, 1, 3)) is True
    assert children.find(f"{HB}#1") is None
    assert len(children) == 0


@pytest.mark.parametrize("act", [Act.UPDATE, Act.DELETE])
def test_a_late_or_repeated_child_changes_nothing(act):
    children = filled(create(1, 5), op(Act.UPDATE, 1, 9, "new"))
    before = children.shown()
    assert children.take(op(act, 1, 9, "again")) is False
    assert children.take(op(act, 1, 7, "late")) is False
    assert children.shown() == before


def test_numbers_of_one_creator_only_grow_and_others_have_their_own():
    """I-D10: k strictly grows per creator."""
    children = filled(create(4), op(Act.DELETE, 4, 8))
    refused = children.take(create(4, 9))
    assert refused == Refused(Code.CONFLICT, "the numbers of children only grow")
    assert children.take(create(3, 10)).code == Code.CONFLICT
    assert children.take(create(1, creator=HC)) is True


def test_a_change_of_an_older_child_lets_no_deleted_one_come_back():
    """I-D10: a change has the number of its child, which is not the highest of the creator."""
    children = filled(create(1), create(4, 5), op(Act.DELETE, 4, 6), op(Act.UPDATE, 1, 7))
    assert children.take(create(4, 8)).code == Code.CONFLICT
    assert children.take(create(3, 9)).code == Code.CONFLICT


def test_a_creator_that_does_not_know_the_outcome_creates_the_same_child_again():
    """The message is another, the child is not: there is one of it, also if both arrive."""
    children = filled(create(4), create(4, 9))
    assert children.shown() == {f"{HB}#4": {"value": "v", "version": 9}}
    assert children.take(create(4)).code == Code.CONFLICT
    assert children.shown() == filled(create(4, 9)).shown()


def test_a_deleted_child_does_not_come_back_by_what_is_late():
    children = filled(create(1), op(Act.DELETE, 1, 3))
    assert children.take(op(Act.UPDATE, 1, 2, "late")) is False
    assert isinstance(children.take(create(1)), Refused)
    assert len(children) == 0


def test_a_change_of_what_never_came_is_all_there_is_to_know():
    """The create was lost: a change says the whole value."""
    children = filled(op(Act.UPDATE, 1, 2, "whole"))
    assert children.find(f"{HB}#1").value == "whole"


def test_the_sign_is_of_what_is_there_and_not_of_how_it_came():
    one = filled(create(1), create(1, creator=HC), create(2), op(Act.DELETE, 1, 3))
    other = filled(create(2), create(1, creator=HC))
    assert one.sign == other.sign
    assert one.sign != filled(create(2)).sign
    assert filled(create(1), op(Act.UPDATE, 1, 2)).sign != filled(create(1)).sign


def test_an_empty_set_has_the_sign_of_one_where_nothing_ever_was():
    assert filled(create(1), op(Act.DELETE, 1, 2)).sign == ChildSet().sign


def test_the_value_of_a_child_cannot_be_changed_in_place():
    """Whoever reads it gets it as it is."""
    said = filled(create(1, value={"a": [1]}))
    for kept in (said.find(f"{HB}#1"), children_in(said.shown())[f"{HB}#1"]):
        assert kept.value == {"a": [1]}
        with pytest.raises(TypeError, match="not changed in place"):
            kept.value["a"].append(2)


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


def test_one_creator_has_so_many_children_and_no_more():
    children = filled(*(create(number) for number in range(1, limits.CHILDREN_OF_CREATOR + 1)))
    assert children.take(create(limits.CHILDREN_OF_CREATOR + 1)).code == Code.TOO_LARGE
    assert children.take(create(1, creator=HC)) is True


def test_one_creator_has_so_many_bytes_and_a_deleted_child_gives_them_back():
    part = "x" * (limits.CREATOR_BYTES // 4)
    children = filled(*(create(number, value=part) for number in (1, 2, 3)))
    assert children.take(create(4, value=part)).code == Code.TOO_LARGE
    children.take(op(Act.DELETE, 1, 5))
    assert children.take(create(6, value=part)) is True


def test_an_object_has_so_many_children_and_bytes():
    half = limits.CHILDREN_OF_OBJECT // 2
    creators = [f"hyperty://b.ex/h{number}" for number in range(3)]
    many = [create(k + 1, creator=who) for who in creators[:2] for k in range(half)]
    assert filled(*many).take(create(1, creator=creators[2])).code == Code.TOO_LARGE
    part = "x" * 8000
    large = [create(k + 1, value=part, creator=who) for who in creators[:2] for k in range(2)]
    assert filled(*large).take(create(1, value=part, creator=creators[2])).code == Code.TOO_LARGE


def test_creators_without_children_are_forgotten_at_last():
    children = ChildSet()
    for number in range(limits.CREATORS_KEPT + 50):
        who = f"hyperty://b.ex/h{number}"
        children.take(create(1, creator=who))
        children.take(op(Act.DELETE, 1, 2, creator=who))
    assert len(children._creators) == limits.CREATORS_KEPT


# --- the whole object -----------------------------------------------------------------------


def test_a_set_becomes_what_the_whole_object_shows():
    theirs = filled(create(2, value="b"), create(7, creator=HC))
    mine = filled(create(1), create(2, 3, "old"))
    reported = mine.become(children_in(theirs.shown()))
    assert mine.shown() == theirs.shown()
    assert mine.sign == theirs.sign
    assert reported == [f"{HB}#1", f"{HB}#2", f"{HC}#7"]
    assert mine.become(children_in(theirs.shown())) == []


def test_after_that_only_what_is_later_counts():
    mine = ChildSet()
    mine.become(children_in(filled(create(2, 8)).shown()))
    assert mine.take(op(Act.UPDATE, 2, 7)) is False
    assert isinstance(mine.take(create(1, 9)), Refused)
    assert mine.take(create(3, 10)) is True


def test_a_whole_object_lets_no_deleted_child_come_back():
    """I-D10: what it shows of a creator may be older than what the creator has deleted."""
    mine = filled(create(2), create(5, 6), op(Act.DELETE, 5, 7))
    mine.become(children_in(filled(create(2, 8), create(3, 9)).shown()))
    assert mine.take(create(5, 10)).code == Code.CONFLICT
    assert mine.take(create(4, 11)).code == Code.CONFLICT
    assert mine.take(create(6, 12)) is True


def test_invalid_children_of_a_snapshot_are_left_out():
    """An older peer tells no versions, and more than a value; others tell anything."""
    found = children_in(
        {
            f"{HB}#1": {"value": 1, "identity": {}},
            f"{HB}#2": 7,
            "nobody": {"value": 2},
            f"{HB}#0": {"value": 3},
            f"{HC}#3": {"value": 4, "version": "5"},
        }
    )
    assert {name: (kept.value, kept.version) for name, kept in found.items()} == {
        f"{HB}#1": (1, 0),
        f"{HC}#3": (4, 0),
    }
    assert children_in(None) == {}


def test_more_than_an_object_has_is_not_taken_over():
    many = {f"{HB}#{k}": {"value": k, "version": k} for k in range(1, 300)}
    assert len(children_in(many)) == limits.CHILDREN_OF_OBJECT
    large = {f"{HB}#{k}": {"value": "x" * 9000, "version": k} for k in range(1, 30)}
    assert len(children_in(large)) == 3


def test_children_that_do_not_fit_beside_the_value_are_known_not_to():
    children = filled(create(1, value="x" * 8000))
    assert children.fits_beside({"a": 1})
    assert not children.fits_beside({"a": "x" * (limits.VALUE_BYTES - 100)})


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "#1", f"{HB}", f"{HB}#", f"{HB}#0", f"{HB}#01", f"{HB}#x"])
def test_an_invalid_name_of_a_child(name):
    assert split_name(name) is None


def test_names_and_addresses():
    assert split_name(child_name(HB, 7)) == (HB, 7)
    assert children_addresses(URL) == (TO,)
    assert children_addresses("connection://a.ex/c1") == ()
    assert parent_of(TO) == URL
    assert parent_of(f"{URL}/children/a/b") is None
    assert parent_of(URL) is None


def removal(version, base, path="a", number=1):
    return ChildOp(Act.UPDATE, child_name(HB, number), HB, number, version, removes=path, base=base)


def test_one_attribute_of_a_child_is_deleted():
    """MSG-13, M-50: the rest of the child stays, with a new version."""
    children = filled(create(1, 5, {"a": None, "b": [1]}))
    for version, path, left in ((6, "a", {"b": [1]}), (7, "b.0", {"b": []})):
        assert children.take(removal(version, version - 1, path)) is True
        assert children.shown() == {f"{HB}#1": {"value": left, "version": version}}
    assert children.size == filled(create(1, 5, {"b": []})).size


def test_a_deletion_of_an_attribute_is_applied_to_the_version_that_it_names_only():
    """Where a message was lost the child stays as it is, and the digest shows that."""
    children, complete = filled(create(1, 5, {"a": 1})), filled(create(1, 5, {"a": 1}))
    complete.take(op(Act.UPDATE, 1, 6, {"a": 1, "b": 2}))
    complete.take(removal(7, 6))
    assert children.take(removal(7, 6)) is False
    assert children.find(f"{HB}#1").value == {"a": 1}
    assert children.sign != complete.sign
    children.take(op(Act.UPDATE, 1, 8, {"b": 2}))
    complete.take(op(Act.UPDATE, 1, 8, {"b": 2}))
    assert children.sign == complete.sign


def test_a_deletion_of_an_attribute_of_an_absent_child_changes_nothing():
    children = filled(create(1, 5), op(Act.DELETE, 1, 6))
    assert children.take(removal(7, 5)) is False
    assert len(children) == 0
