"""A policy document is read as a whole or refused with file, way and what to do: POL-03, T7."""

import jsonschema
import pytest

from fsm.policy.page import BadPolicyError
from fsm.policy.reading import read_set
from fsm.policy.schema import policy_schema

VALIDATOR = jsonschema.Draft202012Validator(policy_schema())


def rule(**more: object) -> dict:
    return {"id": "s", "policies": [{"id": "p", "rules": [{"id": "r", "effect": "deny", **more}]}]}


def nested(depth: int) -> dict:
    inner: dict = {"msgId": {"equals": 1}}
    for _ in range(depth):
        inner = {"not": inner}
    return inner


# Way, what is complained of, the document, and whether the schema sees it too.
# fmt: off
WRONG = [
    ("", "must be a table", [], True),
    ("", "'polices' is no key here; write policies", {"id": 1, "polices": []}, True),
    ("id", "1 to 64 letters", {}, True),
    ("id", "1 to 64 letters", {"id": ""}, True),
    ("id", "1 to 64 letters", {"id": "a/b"}, True),
    ("id", "1 to 64 letters", {"id": "a\n"}, True),
    ("id", "must be text", {"id": 1.5}, True),
    ("id", "must be text", {"id": True}, True),
    ("policies", "must be a list", {"id": 1, "policies": {}}, True),
    ("policies[0]", "must be a table", {"id": 1, "policies": [1]}, True),
    ("policies", "two are called 'p'", {"id": 1, "policies": [{"id": "p"}, {"id": "p"}]}, False),
    ("policies", "two are called '1'", {"id": 1, "policies": [{"id": 1}, {"id": "1"}]}, False),
    ("policyCombiningAlgorithm", "must be one of", {"id": 1, "policyCombiningAlgorithm": "x"}, True),
    ("policies[0].rules[0]", "no effect", {"id": 1, "policies": [{"id": 1, "rules": [{"id": 1}]}]}, True),
    ("policies[0]", "write rules", {"id": 1, "policies": [{"id": 1, "rulez": []}]}, True),
    ("policies[0].rules[0]", "write condition", rule(conditon={"msgId": {"equals": 1}}), True),
    ("policies[0].rules[0].effect", "not 'maybe'", rule(effect="maybe"), True),
    ("policies[0].rules[0].effect", "not 1", rule(effect=1), True),
    ("policies[0].rules[0].direction", "in, out, both", rule(direction="up"), True),
    ("policies[0].rules[0].priority", "must be a number", rule(priority="first"), True),
    ("policies[0].rules[0].priority", "must be a number", rule(priority=True), True),
    ("policies[0].rules[0].priority", "must be a number", rule(priority=float("nan")), False),
    ("policies[0].rules[0].priority", "must be a number", rule(priority=10**400), False),
    ("policies[0].rules[0].reason", "in quotes", rule(reason=7), True),
    ("policies[0].rules[0].reason", "at most 2048", rule(reason="x" * 2049), True),
    ("policies[0].rules[0].target", "must be a table", rule(target="always"), True),
    ("policies[0].rules[0].target", "write msgFrom", rule(target={"msgForm": {"like": "x"}}), True),
    ("policies[0].rules[0].target.msgFrom", "such as { equals", rule(target={"msgFrom": "x"}), True),
    ("policies[0].rules[0].target.msgFrom", "says nothing", rule(target={"msgFrom": {}}), True),
    ("policies[0].rules[0].target.msgFrom", "empty list", rule(target={"msgFrom": []}), True),
    ("policies[0].rules[0].target.msgFrom.in", "must be a list", rule(target={"msgFrom": {"in": "x"}}), True),
    ("policies[0].rules[0].target.msgFrom.in", "empty list", rule(target={"msgFrom": {"in": []}}), True),
    ("policies[0].rules[0].target.msgFrom", "known are equals", rule(target={"msgFrom": {"regex": "x"}}), True),
    ("policies[0].rules[0].target.anyOf", "empty list", rule(target={"anyOf": []}), True),
    ("policies[0].rules[0].target.anyOf", "must be a list", rule(target={"anyOf": {}}), True),
    ("policies[0].rules[0].target[1]", "says nothing", rule(target=[{"msgId": {"equals": 1}}, {}]), True),
    ("policies[0].rules[0].condition.msgId.equals", "no number", rule(condition={"msgId": {"equals": "1"}}), True),
    ("policies[0].rules[0].condition.msgId.between", "ends before", rule(condition={"msgId": {"between": "2 1"}}), False),
    ("policies[0].rules[0].condition.time.equals", "time of the day", rule(condition={"time": {"equals": "8:00"}}), True),
    ("policies[0].rules[0].condition.srcIDP.moreThan", "has no moreThan", rule(condition={"srcIDP": {"moreThan": "x"}}), True),
    ("policies[0].rules[0].condition" + ".not" * 8, "8 deep", rule(condition=nested(8)), False),
    ("policies[0].rules[0].obligations", "'never' is no key", rule(obligations={"never": []}), True),
    ("policies[0].rules[0].obligations.deny[0]", "do = ", rule(obligations={"deny": [{}]}), True),
    ("policies[0].rules[0].obligations.deny[0]", "no key here", rule(obligations={"deny": [{"do": "log", "what": 1}]}), True),
    ("policies[0].rules[0].obligations.deny[0].when", "before, after", rule(obligations={"deny": [{"do": "log", "when": "soon"}]}), True),
    ("policies[0].rules[0].obligations.deny[0]", "cannot be kept", rule(obligations={"deny": [{"do": "durable"}]}), False),
    ("policies[0].rules[0].obligations.permit[0].when", "kept any more", rule(obligations={"permit": [{"do": "durable", "when": "after"}]}), False),
    ("policies[0].rules[0].obligations.deny[0]", "cannot be stamped", rule(obligations={"deny": [{"do": "stamp"}]}), False),
    ("policies[0].rules[0].obligations.permit[0].when", "any more", rule(obligations={"permit": [{"do": "stamp", "when": "after"}]}), False),
    ("policies[0].rules[0].obligations.deny[0]", "a name", rule(obligations={"deny": [{"do": "count"}]}), False),
    ("policies[0].rules[0].advice.deny", "more than 16", rule(advice={"deny": [{"do": "log"}] * 17}), True),
]
# fmt: on
# ruff: noqa: E501 - a row of the table is one line


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{one[0]}-{one[1]}" for one in WRONG])
def test_an_error_is_reported_with_its_place_and_remedy(wrong):
    way, reason, document, is_seen_by_schema = wrong
    with pytest.raises(BadPolicyError) as caught:
        read_set(document, "f.toml")
    assert (caught.value.source, caught.value.path) == ("f.toml", way)
    assert reason in caught.value.reason
    assert str(caught.value).startswith("f.toml: ")
    assert VALIDATOR.is_valid(document) is not is_seen_by_schema
