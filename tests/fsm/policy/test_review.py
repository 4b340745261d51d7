"""What a check of policies finds odd: rules that never decide anything, and the like."""

import pytest

from fsm.policy.explain import review
from fsm.policy.reading import read_set

ALL = {}
CREATE = {"actionType": {"equals": "create"}}
SOME = {"actionType": {"in": ["create", "update"]}}
OURS = {**CREATE, "srcSPDomain": {"equals": "a.ex"}}
P, D = "permit", "deny"


def remarks(rules: list[dict], **policy: object) -> list[str]:
    named = [{"id": f"r{n}", **one} for n, one in enumerate(rules)]
    document = {"id": "s", "policies": [{"id": "p", "rules": named, **policy}]}
    return [f"{one.path} {one.what}" for one in review(read_set(document, ""))]


def rules_of(pairs) -> list[dict]:
    return [{"effect": effect, "condition": condition} for effect, condition in pairs]


# fmt: off
COVERED = [
    ("firstApplicable", [(P, ALL), (D, CREATE)],     ["r1"]),
    ("firstApplicable", [(D, CREATE), (P, ALL)],     []),
    ("firstApplicable", [(P, SOME), (D, CREATE)],    ["r1"]),
    ("firstApplicable", [(P, CREATE), (D, SOME)],    []),
    ("firstApplicable", [(P, CREATE), (D, OURS)],    ["r1"]),
    ("firstApplicable", [(P, OURS), (D, CREATE)],    []),
    ("firstApplicable", [(P, {"srcIDP": {"like": "a*"}}), (D, {"srcIDP": {"equals": "ab"}})], ["r1"]),
    ("firstApplicable", [(P, {"srcIDP": {"like": "b*"}}), (D, {"srcIDP": {"equals": "ab"}})], []),
    ("firstApplicable", [(P, {"not": CREATE}), (D, {"not": CREATE, **OURS})], ["r1"]),
    ("denyOverrides",   [(P, ALL), (D, CREATE)],     []),
    ("denyOverrides",   [(P, CREATE), (D, ALL)],     ["r0"]),
    ("denyOverrides",   [(D, ALL), (D, CREATE)],     ["r1"]),
    ("denyOverrides",   [(D, CREATE), (D, ALL)],     []),
    ("denyOverrides",   [(P, ALL), (P, CREATE)],     []),
    ("permitOverrides", [(D, CREATE), (P, ALL)],     ["r0"]),
    ("permitOverrides", [(P, CREATE), (D, ALL)],     []),
]
# fmt: on
# ruff: noqa: E501 - a row of the table is one line


@pytest.mark.parametrize(("algorithm", "rules", "never"), COVERED)
def test_a_rule_that_another_forestalls_is_reported(algorithm, rules, never):
    found = remarks(rules_of(rules), ruleCombiningAlgorithm=algorithm)
    assert [one.split()[0] for one in found] == [f"s/p/{name}" for name in never]
    assert all("never decides" in one for one in found)


def test_the_order_is_that_of_the_priorities():
    rules = rules_of([(D, CREATE), (P, ALL)])
    rules[1]["priority"] = -1
    found = remarks(rules, ruleCombiningAlgorithm="firstApplicable")
    assert found == ["s/p/r0 never decides: r1 applies to all of it and prevails"]


def test_a_rule_for_one_direction_covers_no_other():
    rules = rules_of([(P, ALL), (D, ALL)])
    rules[0]["direction"] = "out"
    assert remarks(rules, ruleCombiningAlgorithm="firstApplicable") == []


@pytest.mark.parametrize(
    ("rule", "policy", "why"),
    [
        ({"direction": "in"}, {"direction": "out"}, "no message is incoming and outgoing"),
        ({"condition": CREATE}, {"target": {"actionType": {"equals": "read"}}}, "actionType"),
        ({"target": {"srcScheme": {"equals": "comm"}},
          "condition": {"srcScheme": {"in": ["hyperty", "ctxt"]}}}, {}, "srcScheme"),
    ],
)  # fmt: skip
def test_a_rule_that_no_message_can_meet_is_reported(rule, policy, why):
    (found,) = remarks([{"effect": "deny", **rule}], **policy)
    assert found.startswith("s/p/r0 never applies")
    assert why in found


def test_two_spellings_of_one_address_are_no_contradiction():
    rule = {"effect": "deny", "target": {"msgTo": {"equals": "runtime://a.ex/r"}},
            "condition": {"msgTo": {"equals": "hyperty-runtime://A.ex/r/"}}}  # fmt: skip
    assert remarks([rule]) == []


def test_a_policy_without_rules_is_reported():
    assert [one.what for one in review(read_set({"id": "s"}, ""))] == [
        "has no policies, so nothing of it ever applies"
    ]
    assert remarks([]) == ["s/p has no rules, so nothing of it ever applies"]


def test_tasks_without_an_implementation_are_reported():
    log, odd = [{"do": "log"}], [{"do": "dance"}]
    found = remarks([{"effect": "deny", "obligations": {"permit": log}, "advice": {"deny": odd}}])
    assert len(found) == 2
    assert "has tasks for permit, which it never says" in found[0]
    assert "'dance' is none of log, count, stamp, durable: the node leaves it out" in found[1]
    (found,) = remarks([{"effect": "permit", "obligations": {"allow": odd}}])
    assert "permissions become denials" in found
