"""The tables of routing: BUS-06, RES-01..15, MN-03."""

import pytest

from specs.routing import (
    NODE_CHECKS,
    NODE_RULES,
    RULES,
    RUNTIME_CHECKS,
    Aside,
    Check,
    Route,
    Target,
)


def test_every_target_has_one_row_in_the_order_they_are_tried():
    assert [rule.target for rule in RULES] == list(Target)


@pytest.mark.parametrize("rule", [*RULES, *NODE_RULES], ids=lambda r: r.target)
def test_a_message_goes_somewhere_or_is_refused(rule):
    """I-B12."""
    assert (rule.route is Route.NOWHERE) is (rule.refusal is not None)
    assert rule.cite


def test_p2p_carries_only_what_is_bound_to_a_live_link():
    """I-R2, I-R4."""
    assert [r.target for r in RULES if r.route is Route.P2P_STUB] == [Target.LINK_LIVE]


def test_a_lost_link_is_reconnected_beside_the_message():
    """RES-12."""
    (rule,) = (rule for rule in RULES if rule.target is Target.LINK_LOST)
    assert (rule.route, rule.aside) == (Route.NODE_STUB, Aside.RECONNECT)


@pytest.mark.parametrize("checks", [RUNTIME_CHECKS, NODE_CHECKS], ids=["runtime", "node"])
def test_senders_are_checked_before_policy_and_only_deduplication_comes_after(checks):
    """C-22, BUS-12, MN-03."""
    order = [row.check for row in checks]
    assert order.index(Check.SOURCE) < order.index(Check.POLICY)
    assert order[order.index(Check.POLICY) + 1 :] in ([], [Check.AFTER_POLICY, Check.DUPLICATE])
    assert len(order) == len(set(order))


def test_a_node_refuses_in_the_order_and_with_the_codes_of_the_protocol():
    """MN-03: 400, 401, 401, drop, 403."""
    assert [row.refusal for row in NODE_CHECKS] == [400, 401, 401, None, 403]
