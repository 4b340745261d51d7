"""Forward rules and aliases: which copies there are, and which rules there cannot be.

BUS-08, BUS-10.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.bus.listeners import ForwardRefusedError, ForwardRule, ForwardRules
from specs.limits.bus import FORWARD_RULES
from specs.message import Message, MessageType
from tests.support.chance import examples

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


def spread(rules, to):
    """Every address that gets a copy, and a copy of a copy, and so on."""
    ahead, got = [message(to)], []
    while ahead:
        copies = list(rules.copies(ahead.pop()))
        got += [copy.to for copy in copies]
        ahead += copies
    return sorted(got)


def test_a_rule_copies_in_one_direction_and_keeps_all_but_the_receiver():
    rules = rules_of((A, B))
    (copy,) = rules.copies(message(A, via=["stub"]))
    assert (copy.id, copy.from_, copy.to) == (1, "hyperty://b.ex/x", B)
    assert copy.via == (A, "stub")
    assert copied(rules, B) == copied(rules, C) == []


def test_an_alias_copies_in_both_directions_and_never_back():
    rules = rules_of(aliases=[(A, B)])
    assert (copied(rules, A), copied(rules, B)) == ([B], [A])
    assert (spread(rules, A), spread(rules, B)) == ([B], [A])


def test_the_ends_of_an_alias_have_no_order():
    assert ForwardRule.of(A, B, is_alias=True) == ForwardRule.of(B, A, is_alias=True)
    assert ForwardRule.of(A, B) != ForwardRule.of(B, A)


def test_the_end_of_an_alias_removes_both_directions():
    rules = rules_of(aliases=[(A, B)])
    rows = rules.remove(ForwardRule.of(B, A, is_alias=True), "ua")
    assert {(row.op.value, row.key, row.val) for row in rows} == {("del", A, B), ("del", B, A)}
    assert copied(rules, A) == copied(rules, B) == []


def test_rules_make_chains_and_branches():
    rules = rules_of((A, B), (B, C), (A, D))
    assert spread(rules, A) == [B, C, D]
    assert spread(rules, B) == [C]


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


def test_a_refused_rule_changes_nothing():
    rules = rules_of((A, B))
    with pytest.raises(ForwardRefusedError):
        rules.add(ForwardRule.of(B, A), "ua")
    assert copied(rules, B) == []
    assert rules.remove(ForwardRule.of(B, A), "ua") == []


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


EDGES = st.lists(st.tuples(st.sampled_from([A, B, C, D]), st.sampled_from([A, B, C, D]), st.booleans()))  # fmt: skip # noqa: E501


@settings(max_examples=examples(200))
@given(EDGES)
def test_no_copy_ever_comes_back(edges):
    rules = ForwardRules()
    for source, target, is_alias in edges:
        try:
            rules.add(ForwardRule.of(source, target, is_alias=is_alias), "ua")
        except ForwardRefusedError:
            continue
    for start in (A, B, C, D):
        assert start not in spread(rules, start)
