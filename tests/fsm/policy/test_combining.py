"""The three combining algorithms over all combinations of results: POL-12, C-61, I-K2."""

from itertools import product

import pytest

from fsm.policy.attributes import Place, Request
from fsm.policy.model import Book
from fsm.policy.pdp import Pdp
from fsm.policy.reading import read_set
from fsm.policy.terms import Result
from specs.message import Message, MessageType
from tests.support.cases import for_each

P, D, N, I = "permit", "deny", "notApplicable", "indeterminate"  # noqa: E741 - as in the table

RULES = {
    P: {"effect": "permit"},
    D: {"effect": "deny"},
    N: {"effect": "deny", "target": {"msgId": {"equals": 2}}},
    # Nobody vouches for the sender, so this cannot be known.
    I: {"effect": "permit", "condition": {"srcIDP": {"equals": "x"}}},
}

REQUEST = Request(
    Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://a.ex/2"), None, None, 0.0,
    Place("a.ex"),
)  # fmt: skip


def expected(algorithm: str, results: tuple[str, ...]) -> str:
    """The words: over applicable results only; nothing applicable is not applicable."""
    applicable = [one for one in results if one != N]
    if not applicable:
        return N
    if algorithm == "firstApplicable":
        return applicable[0]
    # Any denial denies; if all permit, it is permitted.
    if algorithm == "denyOverrides":
        if D in applicable:
            return D
        return P if set(applicable) == {P} else I
    # Any permission permits; otherwise it is denied.
    if P in applicable:
        return P
    return D if D in applicable else I


def verdict(policy: dict) -> Result:
    document = {"id": "s", "policies": [{"id": "p", **policy}]}
    return Pdp(Book(sets=(read_set(document, "test"),))).decide(REQUEST).result


ALGORITHMS = ("denyOverrides", "permitOverrides", "firstApplicable")
RESULTS = [some for length in range(4) for some in product((P, D, N, I), repeat=length)]


def named(case: tuple[str, tuple[str, ...]]) -> str:
    algorithm, results = case
    return f"{algorithm} {'-'.join(one[0] for one in results) or 'none'}"


@for_each(product(ALGORITHMS, RESULTS), named)
def test_results_combine_as_the_words_say(algorithm, results):
    """POL-07."""
    rules = [{"id": n, **RULES[one]} for n, one in enumerate(results)]
    assert verdict({"rules": rules, "ruleCombiningAlgorithm": algorithm}) == expected(
        algorithm, results
    )


@for_each(product(ALGORITHMS, RESULTS[::3]), named)
def test_policies_and_sets_combine_as_rules_do(algorithm, results):
    """POL-08."""
    policies = [{"id": n, "rules": [{"id": 1, **RULES[one]}]} for n, one in enumerate(results)]
    one = read_set({"id": "s", "policies": policies, "policyCombiningAlgorithm": algorithm}, "")
    many = tuple(read_set({"id": f"s{n}", "policies": [one]}, "") for n, one in enumerate(policies))
    for book in (Book(sets=(one,)), Book(sets=many, combining=algorithm)):
        assert Pdp(book).decide(REQUEST).result == expected(algorithm, results)


@pytest.mark.parametrize(
    ("priorities", "first"),
    [
        ((0, 0), "deny"),
        ((1, 0), "permit"),
        ((0, 1), "deny"),
        ((0, -1), "permit"),
        ((2, 1.5), "permit"),
    ],
)
def test_the_smallest_priority_comes_first_and_ties_stay_in_order(priorities, first):
    """POL-06, POL-12; upstream takes the last that applies (U-35)."""
    rules = [
        {"id": 1, "effect": "deny", "priority": priorities[0]},
        {"id": 2, "effect": "permit", "priority": priorities[1]},
    ]
    assert verdict({"rules": rules, "ruleCombiningAlgorithm": "firstApplicable"}) == first
