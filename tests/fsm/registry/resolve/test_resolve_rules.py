"""What the registry answers is what the decision table of `specs.routing` says (BUS-06)."""

import pytest

from specs.routing import RULES, Aside, Route, Target
from tests.support.runtime.registry_core import (
    HB,
    PQ,
    RA,
    RECORD,
    S1,
    Registry,
    call,
    linked,
    requesting,
)
from tests.support.runtime.registry_core import with_node as knowing_nobody


def link_lost():
    registry = linked()
    registry.lost = registry.status(PQ, "disconnected")
    return registry


def no_stub():
    registry = Registry()
    registry.ask()
    registry.feed(call.stub_failed(S1, "it cannot be had"))
    return registry


SITUATIONS = {
    Target.OWN_RUNTIME: (knowing_nobody, f"{RA}/nobody"),
    Target.BACKEND: (linked, "domain://registry.b.ex"),
    Target.LINK_LIVE: (linked, HB),
    Target.LINK_SETTING_UP: (requesting, HB),
    Target.LINK_LOST: (link_lost, HB),
    Target.LINK_POSSIBLE: (knowing_nobody, HB),
    Target.UNKNOWN: (knowing_nobody, HB),
    Target.NO_STUB: (no_stub, HB),
}
"""How each kind of target comes about, and an address that is one."""

RESOLVED = [rule for rule in RULES if rule.target in SITUATIONS]


def asked(target):
    make, address = SITUATIONS[target]
    registry = make()
    effects = registry.ask(address)
    record = RECORD if target is Target.LINK_POSSIBLE else None
    return registry, [*effects, *registry.feed(call.record_read(HB, record))]


def test_all_that_is_not_found_at_the_bus_itself_is_tried_here():
    found_at_the_bus = {Target.ANSWER_AWAITED, Target.LISTENER}
    assert set(SITUATIONS) == set(Target) - found_at_the_bus


@pytest.mark.parametrize("rule", RESOLVED, ids=[rule.target for rule in RESOLVED])
def test_a_message_goes_where_its_rule_says(rule):
    _, effects = asked(rule.target)
    (way,) = [each for each in effects if each.name in {"route", "no_route"}]
    assert kind(way) is rule.route
    assert getattr(way, "code", None) == rule.refusal


def kind(way):
    if way.name == "no_route":
        return Route.NOWHERE
    return Route.P2P_STUB if "/p2p" in way.url else Route.NODE_STUB


@pytest.mark.parametrize("rule", RESOLVED, ids=[rule.target for rule in RESOLVED])
def test_parallel_searches_follow_their_rule(rule):
    """A lost link is called back when it is lost, not by who asks (RES-12)."""
    registry, effects = asked(rule.target)
    begun = [*getattr(registry, "lost", []), *effects]
    found = {each.name for each in begun} & {"set_path", "connect"}
    wanted = {Aside.SET_UP_LINK: {"set_path"}, Aside.RECONNECT: {"connect"}}
    assert found == wanted.get(rule.aside, set())
