"""Forward rules and aliases: which copies there are, and which rules there cannot be.

BUS-08, BUS-10.
"""

import pytest

from fsm.bus.listeners import ForwardRefusedError, ForwardRule, ForwardRules
from specs.limits.bus import FORWARD_RULES
from specs.message import Message, MessageType

A, B, C, D = (f"hyperty://a.ex/{name}" for name in "abcd")


def rules_of(*pairs, aliases=()):
    rules = ForwardRules()
    for pair in pairs:
        rules.add(ForwardRule.of(*pair), "ua")
    for pair in aliases:
        rules.add(ForwardRule.of(*pair, is_alias=True), "ua")
    return rules


def message(to, via=()):
    return Message(1, MessageType.CREATE, "hyperty://b.ex/x", to, {"via": [*via]} if via else {})


def copied(rules, to, via=()):
    return [copy.to for copy in rules.copies(message(to, via))]


CIRCLES = [
    ([(A, A)], []),
    ([(A, B), (B, A)], []),
    ([(A, B), (B, C), (C, A)], []),
    ([(A, B)], [(A, B)]),
    ([(A, B), (B, C)], [(C, A)]),
    ([], [(A, B), (B, C), (C, A)]),
    ([(A, A)], [(A, A)]),
]


@pytest.mark.parametrize(("pairs", "aliases"), CIRCLES)
def test_a_rule_that_closes_a_loop_is_refused(pairs, aliases):
    with pytest.raises(ForwardRefusedError, match="loop"):
        rules_of(*pairs, aliases=aliases)


def test_a_rule_ends_with_its_last_owner():
    rules, rule = rules_of((A, B), (A, B)), ForwardRule.of(A, B)
    assert rules.remove(rule, "ua") == []
    assert copied(rules, A) == [B]
    assert [row.op.value for row in rules.remove(rule, "ua")] == ["del"]
    assert copied(rules, A) == []
    assert rules.remove(rule, "ua") == []


def test_the_number_of_rules_is_limited():
    rules = rules_of(*((A, f"hyperty://a.ex/{n}") for n in range(FORWARD_RULES)))
    with pytest.raises(ForwardRefusedError, match="end one first"):
        rules.add(ForwardRule.of(A, B), "ua")
    rules.add(ForwardRule.of(A, "hyperty://a.ex/0"), "ua")
