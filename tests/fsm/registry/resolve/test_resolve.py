"""How the registry finds ways by nodes (RES-01..15, I-R1..I-R10)."""

from fsm.p2p.link_policy import P2pUse
from fsm.registry.resolve.searches import NodePlan
from fsm.registry.resolve.topology import Topology
from specs.limits.protocol import RETRY_COOL_DOWN
from tests.support.runtime.registry_core import (
    HB,
    KNOWN,
    REACH,
    S1,
    S2,
    Registry,
    call,
    status_seen,
    with_node,
)

# ---- node stubs


def test_the_first_message_to_a_domain_deploys_its_stub_and_all_share_it():
    """STB-11, RES-13."""
    registry = Registry(wanted=P2pUse.NEVER)
    assert registry.ask() == [call.deploy(S1, NodePlan("b.ex"))]
    assert registry.ask("domain://registry.b.ex") == []
    routes = registry.feed(call.stub_deployed(S1))
    assert [(r.to, r.url) for r in routes] == [(HB, S1), ("domain://registry.b.ex", S1)]


def test_in_a_trapezoid_everything_goes_by_the_own_node():
    """RES-15."""
    registry = Registry(P2pUse.NEVER, Topology.TRAPEZOID)
    assert registry.ask() == [call.deploy(S1, NodePlan("a.ex"))]


def test_global_addresses_go_by_the_own_node():
    """RES-17."""
    assert Registry().ask("global://registry") == [call.deploy(S1, NodePlan("a.ex"))]


def test_a_stub_that_could_not_connect_is_removed():
    registry = with_node()
    effects = registry.feed(status_seen(S1, "failed", why="the node said no"))
    assert effects == [call.forget_routes(), call.undeploy(S1)]
    refused, *_ = registry.ask()
    assert refused.name == "no_route"
    assert "the node said no" in refused.why


def test_a_new_session_of_the_same_stub_means_that_paths_are_lost():
    registry = with_node()
    live = "live", None
    assert registry.feed(status_seen(S1, *live, f"{S1}/session/1")) == []
    assert registry.feed(status_seen(S1, *live, f"{S1}/session/1")) == []
    assert registry.feed(status_seen(S1, *live, f"{S1}/session/2")) == [
        call.renew_paths("b.ex", f"{S1}/session/2")
    ]


# ---- what a message may have done for it


def test_a_failed_deployment_refuses_each_waiting_sender_once_then_cools_down():
    """RES-14."""
    registry = Registry(wanted=P2pUse.NEVER)
    registry.ask()
    registry.ask(HB, KNOWN)
    refused = registry.feed(call.stub_failed(S1, "no descriptor"))[1:]
    assert [(r.intent, r.code) for r in refused] == [(REACH, 503), (KNOWN, 503)]
    assert registry.ask()[0].name == "no_route"
    registry.now = RETRY_COOL_DOWN
    assert registry.ask() == [call.deploy(S2, NodePlan("b.ex"))]
