"""Every operator on every form of attribute: POL-10, by the words of the protocol's table."""

import pytest

from fsm.policy.attributes import ATTRIBUTES, Form
from fsm.policy.operators import OPERATORS, ParameterError, make_test
from fsm.policy.terms import Operator

MANY = "a" * 2049

# fmt: off
TABLE = [
    ("srcIDP",        "equals",   ["x"],                       "x",                 True),
    ("srcIDP",        "equals",   ["x"],                       "y",                 False),
    ("srcIDP",        "equals",   ["x", "y"],                  "y",                 True),
    ("srcIDP",        "equals",   ["x"],                       "X",                 False),
    ("srcIDP",        "in",       ["x", "y"],                  "y",                 True),
    ("srcIDP",        "in",       ["x", "y"],                  "z",                 False),
    ("srcIDP",        "like",     ["a*"],                      "abc",               True),
    ("srcIDP",        "like",     ["x*", "*c"],                "abc",               True),
    ("srcIDP",        "like",     ["x*", "*d"],                "abc",               False),
    ("srcRoles",      "contains", ["admin"],                   {"admin", "x"},      True),
    ("srcRoles",      "contains", ["admin"],                   {"x"},               False),
    ("srcRoles",      "contains", ["admin", "x"],              {"x"},               True),
    ("srcRoles",      "contains", ["admin"],                   set(),               False),
    ("msgId",         "equals",   [7],                         7,                   True),
    ("msgId",         "in",       [5, 7],                      7,                   True),
    ("msgId",         "equals",   [7.0],                       7,                   True),
    ("msgId",         "moreThan", [7],                         8,                   True),
    ("msgId",         "moreThan", [7],                         7,                   False),
    ("msgId",         "moreThan", [9, 5],                      7,                   True),
    ("msgId",         "lessThan", [7],                         6,                   True),
    ("msgId",         "lessThan", [7],                         7,                   False),
    ("msgId",         "lessThan", [5, 9],                      7,                   True),
    ("msgId",         "between",  ["5 7"],                     5,                   True),
    ("msgId",         "between",  ["5 7"],                     7,                   True),
    ("msgId",         "between",  ["5 7"],                     8,                   False),
    ("msgId",         "between",  ["1 2", "5 7"],              6,                   True),
    ("msgId",         "between",  ["9 10"],                    100,                 False),
    ("msgId",         "between",  ["-1.5 1e1"],                3,                   True),
    ("auth",          "equals",   [True],                      True,                True),
    ("auth",          "equals",   [True],                      False,               False),
    ("auth",          "in",       [True, False],               False,               True),
    ("time",          "between",  ["06:00:00 12:30:00"],       "12:30:00",          True),
    ("time",          "between",  ["06:00:00 12:30:00"],       "12:30:01",          False),
    ("time",          "between",  ["22:00:00 06:00:00"],       "23:30:00",          True),
    ("time",          "between",  ["22:00:00 06:00:00"],       "05:59:59",          True),
    ("time",          "between",  ["22:00:00 06:00:00"],       "12:00:00",          False),
    ("time",          "moreThan", ["09:00:00"],                "10:00:00",          True),
    ("time",          "like",     ["12:*"],                    "12:30:01",          True),
    ("date",          "lessThan", ["2026-11-21"],              "2026-09-30",        True),
    ("date",          "between",  ["2026-01-01 2026-12-31"],   "2026-11-21",        True),
    ("date",          "equals",   ["2026-11-21"],              "2026-11-21",        True),
    ("weekday",       "in",       ["Sunday", "saturday"],      "sunday",            True),
    ("weekday",       "like",     ["S*"],                      "sunday",            True),
    ("actionType",    "equals",   ["open"],                    "open",              True),
    ("msgType",       "equals",   ["addressAllocation"],       "addressAllocation", True),
    ("srcSPDomain",   "equals",   ["A.Ex"],                    "a.ex",              True),
    ("srcSPDomain",   "like",     ["*.EX"],                    "a.ex",              True),
    ("srcScheme",     "equals",   ["runtime"],                 "hyperty-runtime",   True),
    ("srcScheme",     "like",     ["runtime"],                 "hyperty-runtime",   True),
    ("msgTo",         "equals",   ["domain://registry.A.ex/"], "domain://registry.a.ex", True),
    ("msgFrom",       "equals",   ["runtime://a.ex/r"],        "hyperty-runtime://a.ex/r", True),
    ("msgFrom",       "like",     ["runtime://A.ex/R*"],       "hyperty-runtime://a.ex/R1", True),
    ("msgFrom",       "like",     ["*/registry"],              "hyperty://a.ex/registry", True),
    ("resource",      "equals",   ["any block key"],           "any block key",     True),
]
# fmt: on


@pytest.mark.parametrize(("name", "operator", "parameters", "value", "expected"), TABLE)
def test_an_operator_says_what_the_table_says(name, operator, parameters, value, expected):
    test = make_test(ATTRIBUTES[name], Operator(operator), parameters)
    assert test(frozenset(value) if isinstance(value, set) else value) is expected


def test_the_table_has_every_operator_of_every_form():
    tried = {(ATTRIBUTES[name].form, Operator(operator)) for name, operator, *_ in TABLE}
    by_text = {Form.TEXT, Form.ADDRESS, Form.DOMAIN, Form.SCHEME, Form.WORD}
    every = {(form, one) for form, some in OPERATORS.items() for one in some}
    alike = {(form, one) for form in by_text for one in (Operator.IN, Operator.EQUALS)}
    dated = {(form, one) for form in (Form.TIME, Form.DATE) for one in Operator}
    assert every - alike - dated <= tried
    assert {one for _, one in tried} == set(Operator)


WRONG = [
    ("srcIDP", "moreThan", ["x"], "has no moreThan"),
    ("srcIDP", "between", ["a b"], "has no between"),
    ("srcIDP", "contains", ["a"], "has no contains"),
    ("srcRoles", "equals", ["admin"], "has no equals"),
    ("auth", "like", ["t*"], "has no like"),
    ("auth", "lessThan", [True], "has no lessThan"),
    ("weekday", "moreThan", ["monday"], "has no moreThan"),
    ("srcIDP", "equals", [7], "no text"),
    ("srcIDP", "equals", [MANY], "at most 2048"),
    ("srcIDP", "like", [None], "no text"),
    ("srcRoles", "contains", [["admin"]], "no text"),
    ("auth", "equals", ["true"], "neither true nor false"),
    ("auth", "equals", [1], "neither true nor false"),
    ("msgId", "equals", ["7"], "no number"),
    ("msgId", "equals", [True], "no number"),
    ("msgId", "equals", [float("nan")], "no number"),
    ("msgId", "moreThan", [float("inf")], "no number"),
    ("msgId", "moreThan", [10**400], "no number"),
    ("msgId", "between", ["1"], "no range"),
    ("msgId", "between", ["1 2 3"], "no range"),
    ("msgId", "between", [7], "no text"),
    ("msgId", "between", ["1 x"], "no number"),
    ("msgId", "between", ["1 nan"], "no number"),
    ("msgId", "between", ["9 1"], "ends before it begins"),
    ("date", "between", ["2026-12-31 2026-01-01"], "ends before it begins"),
    ("time", "equals", ["8:30"], "no time of the day"),
    ("time", "equals", ["24:00:00"], "no time of the day"),
    ("date", "equals", ["2026-02-30"], "no date"),
    ("date", "equals", ["20261121"], "no date"),
    ("weekday", "equals", ["caturday"], "none of monday"),
    ("actionType", "in", ["create", "shout"], "none of create"),
    ("msgType", "equals", ["registrations"], "none of session"),
]


@pytest.mark.parametrize(("name", "operator", "parameters", "complaint"), WRONG)
def test_an_impossible_comparison_is_refused(name, operator, parameters, complaint):
    with pytest.raises(ParameterError, match=complaint):
        make_test(ATTRIBUTES[name], Operator(operator), parameters)
