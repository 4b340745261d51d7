"""Names of children that anybody may send (SYN-24, I-D10, C-11): never an error."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.sync.children import children_in
from specs.bodies.object import CHILD
from specs.child import child_name, naming_error, split_name
from specs.message import Message, MessageType

HB = "hyperty://b.ex/hb"
TO = "comm://a.ex/o/children/resources"
TOO_LONG = f"{HB}#" + "1" * 5000
"""Python refuses to read a number of so many digits."""

DIGITS = st.integers(1, 9).map(str)
LENGTHS = st.sampled_from([1, 15, 16, 17, 4300, 4301, 60_000])
NUMBERS = st.builds(lambda digit, length: digit * length, DIGITS, LENGTHS) | st.text(max_size=20)
CREATORS = st.just(HB) | st.text(max_size=20)
NAMES = st.builds("{}#{}".format, CREATORS, NUMBERS) | st.text(max_size=40)
ANYTHING = NAMES | st.none() | st.integers() | st.lists(NAMES, max_size=2)
REPORTED = st.just({"value": 1, "version": 2}) | ANYTHING


@given(NAMES)
def test_any_text_is_a_name_or_none(name):
    found = split_name(name)
    assert found is None or child_name(*found) == name


@given(st.sampled_from(MessageType), ANYTHING)
def test_every_sent_child_is_one_of_the_senders_own_or_refused(type_, name):
    why = naming_error(Message(1, type_, HB, TO, {"resource": name}))
    assert why or split_name(name)[0] == HB


@given(st.dictionaries(NAMES, REPORTED, max_size=5))
def test_every_shown_object_is_read_as_children_or_left_out(shown):
    for name, kept in children_in(shown).items():
        assert split_name(name)[0] == kept.creator


@pytest.mark.parametrize("number", ["1" * 16, "1" * 17, "1" * 5000, "01", "0", "", "٣", "²"])
def test_the_schema_of_the_name_takes_the_same_numbers(number):
    name = f"{HB}#{number}"
    assert (split_name(name) is not None) == (re.match(CHILD.pattern, name) is not None)


def test_a_number_that_python_does_not_read_names_no_child():
    assert split_name(TOO_LONG) is None
    assert naming_error(Message(1, MessageType.CREATE, HB, TO, {"resource": TOO_LONG})) is not None
    assert children_in({TOO_LONG: {"value": 1}}) == {}
