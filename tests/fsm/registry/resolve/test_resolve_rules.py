"""What the registry answers is what the decision table of `specs.routing` says (BUS-06)."""

import pytest

from fsm.registry.resolve import resolve_io as rs
from specs.routing import RULES, Aside, Route, Target
from tests.support.runtime.registry_core import HB, PQ, RA, RECORD, S1, Registry, linked, requesting
from tests.support.runtime.registry_core import with_node as knowing_nobody


def link_lost():
    registry = linked()
    registry.lost = registry.status(PQ, "disconnected")
    return registry


def no_stub():
    registry = Registry()
    registry.ask()
    registry.feed(rs.DeployFailed(S1, "it cannot be had"))
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
    return registry, [*effects, *registry.feed(rs.RecordRead(HB, record))]


def test_all_that_is_not_found_at_the_bus_itself_is_tried_here():
    found_at_the_bus = {Target.ANSWER_AWAITED, Target.LISTENER}
    assert set(SITUATIONS) == set(Target) - found_at_the_bus


@pytest.mark.parametrize("rule", RESOLVED, ids=[rule.target for rule in RESOLVED])
def test_a_message_goes_where_its_rule_says(rule):
    _, effects = asked(rule.target)
    (way,) = [each for each in effects if isinstance(each, rs.Route | rs.NoRoute)]
    assert kind(way) is rule.route
    assert getattr(way, "code", None) == rule.refusal


def kind(way):
    if isinstance(way, rs.NoRoute):
        return Route.NOWHERE
    return Route.P2P_STUB if "/p2p" in way.url else Route.NODE_STUB


@pytest.mark.parametrize("rule", RESOLVED, ids=[rule.target for rule in RESOLVED])
def test_parallel_searches_follow_their_rule(rule):
    """A lost link is called back when it is lost, not by who asks (RES-12)."""
    registry, effects = asked(rule.target)
    begun = [*getattr(registry, "lost", []), *effects]
    found = {type(each) for each in begun} & {rs.SetPath, rs.Connect}
    wanted = {Aside.SET_UP_LINK: {rs.SetPath}, Aside.RECONNECT: {rs.Connect}}
    assert found == wanted.get(rule.aside, set())
