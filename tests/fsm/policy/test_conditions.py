"""Conditions: a table is "and", a list is "or", three truths: POL-09, I-K4."""

import pytest

from fsm.policy.attributes import Place, Request
from fsm.policy.model import check_of
from fsm.policy.page import Place as At
from fsm.policy.reading import read_condition
from specs.message import Message, MessageType

YES = {"msgId": {"equals": 1}}
NO = {"msgId": {"equals": 2}}
# Nobody vouches for the sender.
HM = {"srcIDP": {"equals": "x"}}

MESSAGE = Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/1")


def outcome(condition) -> bool | None:
    check = check_of(read_condition(At("test", "condition", condition)))
    request = Request(MESSAGE, None, None, 0.0, Place("a.ex"))
    return True if check is None else check(request)


# fmt: off
TABLE = [
    (None, True), ({}, True), ([], True),
    (YES, True), (NO, False), (HM, None),
    ({"not": YES}, False), ({"not": NO}, True), ({"not": HM}, None),
    ({"not": {"not": NO}}, False),
    ({"anyOf": [YES, NO]}, True), ({"anyOf": [NO, NO]}, False), ({"anyOf": [HM, NO]}, None),
    ({"anyOf": [HM, YES]}, True), ({"anyOf": [YES, HM]}, True),
    ({"allOf": [YES, YES]}, True), ({"allOf": [YES, NO]}, False), ({"allOf": [YES, HM]}, None),
    ({"allOf": [HM, NO]}, False), ({"allOf": [NO, HM]}, False),
    ([YES, NO], True), ([NO, NO], False), ([NO, HM], None), ([HM, YES], True),
    ({**YES, **HM}, None), ({**NO, **HM}, False), ({**YES, "not": NO}, True),
    ({**YES, "anyOf": [NO, NO]}, False), ({**YES, "allOf": [YES, {"anyOf": [NO, YES]}]}, True),
    ([{"allOf": [YES, NO]}, {"anyOf": [{"allOf": [YES, YES]}, NO]}], True),
    ({"msgId": {"moreThan": 0, "lessThan": 2}}, True),
    ({"msgId": {"moreThan": 0, "lessThan": 1}}, False),
    ({"msgId": [{"equals": 2}, {"equals": 1}]}, True),
    ({"msgId": [{"equals": 2}, {"equals": 3}]}, False),
    ({"msgId": {"equals": [2, 1]}}, True),
    ({"msgId": {"not": {"in": [1, 2]}}}, False),
    ({"msgId": {"not": {"in": [3]}, "anyOf": [{"equals": 1}, {"equals": 9}]}}, True),
    ({"msgId": {"allOf": [{"moreThan": 0}, {"moreThan": 5}]}}, False),
    ({"srcIDP": {"not": {"equals": "x"}}}, None),
    ({"srcDomain": {"equals": "a.ex"}}, True),
]
# fmt: on


@pytest.mark.parametrize(("condition", "expected"), TABLE, ids=[str(one[0]) for one in TABLE])
def test_a_condition_comes_out_as_the_table_says(condition, expected):
    assert outcome(condition) is expected
