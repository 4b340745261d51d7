"""How the registry finds ways by nodes (RES-01..15, I-R1..I-R10)."""

import pytest

from fsm.effects import intent_of
from fsm.p2p.dialling import P2pUse
from fsm.registry.resolve.links import Topology
from fsm.registry.resolve.searches import NodePlan
from specs.limits.protocol import (
    RETRY_COOL_DOWN,
    SANDBOX_COOL_DOWN,
    SANDBOX_RESTARTS,
    SANDBOX_SECONDS,
)
from specs.message import Message, MessageType
from specs.reply_code import Code
from tests.support.runtime.registry_core import (
    HB,
    HC,
    KNOWN,
    NODE,
    PHB,
    RA,
    RB,
    REACH,
    S1,
    S2,
    Registry,
    call,
    status_seen,
    with_node,
)
from tests.support.wire.wire import A, answer, ask, event

# ---- node stubs


def test_the_first_message_to_a_domain_deploys_its_stub_and_all_share_it():
    """STB-11, RES-13."""
    registry = Registry(wanted=P2pUse.NEVER)
    assert registry.ask() == [call.deploy(S1, NodePlan("b.ex"))]
    assert registry.ask("domain://registry.b.ex") == []
    routes = registry.feed(call.stub_deployed(S1))
    assert [(r.to, r.url) for r in routes] == [(HB, S1), ("domain://registry.b.ex", S1)]


def test_each_domain_has_its_own_stub_with_its_own_address():
    registry = with_node(wanted=P2pUse.NEVER)
    assert registry.ask(HC) == [call.deploy(S2, NodePlan("c.ex"))]


def test_in_a_trapezoid_everything_goes_by_the_own_node():
    """RES-15."""
    registry = Registry(P2pUse.NEVER, Topology.TRAPEZOID)
    assert registry.ask() == [call.deploy(S1, NodePlan("a.ex"))]


def test_global_addresses_go_by_the_own_node():
    """RES-17."""
    assert Registry().ask("global://registry") == [call.deploy(S1, NodePlan("a.ex"))]


def test_stubs_of_two_domains_that_failed_rest_side_by_side():
    """RES-14: a failure for one domain does not end the rest of another."""
    registry = Registry(wanted=P2pUse.NEVER)
    for domain in ("b.ex", "c.ex"):
        (deployed,) = registry.ask(f"hyperty://{domain}/1")
        registry.feed(call.stub_failed(deployed.url, "no descriptor"))
    for domain in ("b.ex", "c.ex"):
        assert [one.name for one in registry.ask(f"hyperty://{domain}/1")] == ["no_route"]


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


def test_a_stub_that_could_not_connect_is_removed():
    registry = with_node()
    effects = registry.feed(status_seen(S1, "failed", why="the node said no"))
    assert effects == [call.forget_routes(), call.undeploy(S1)]
    refused, *_ = registry.ask()
    assert refused.name == "no_route"
    assert "the node said no" in refused.why


def test_a_stub_that_lost_its_link_is_still_the_route():
    registry = with_node()
    registry.feed(status_seen(S1, "disconnected"))
    assert registry.route() == S1


def test_a_crashed_stub_is_replaced_by_one_with_a_new_address():
    registry = with_node()
    registry.feed(call.stub_gone(S1))
    assert call.deploy(S2, NodePlan("b.ex")) in registry.ask()


def crash_again_and_again(registry, times, every=1.0):
    """Let the stubs that follow each other crash; return what was said to who asked last."""
    for number in range(1, times + 1):
        registry.feed(call.stub_gone(f"{RA}/protostub/{number}"))
        asked = registry.ask()
        registry.now += every
        registry.feed(call.stub_deployed(f"{RA}/protostub/{number + 1}"))
    return asked


def test_a_stub_that_crashes_too_often_is_left_alone_for_a_while():
    """R11: three times within a minute are borne, the fourth is one too many."""
    registry = with_node()
    asked = crash_again_and_again(registry, SANDBOX_RESTARTS)
    assert any(one.name == "deploy" for one in asked)
    registry.feed(call.stub_gone(f"{RA}/protostub/{SANDBOX_RESTARTS + 1}"))
    refused = [one for one in registry.ask() if one.name == "no_route"]
    assert [one.code for one in refused] == [Code.UNAVAILABLE]
    assert "again and again" in refused[0].why
    registry.now += SANDBOX_COOL_DOWN
    assert any(one.name == "deploy" for one in registry.ask())


def test_a_stub_that_crashes_now_and_then_is_always_replaced():
    asked = crash_again_and_again(with_node(), 20, every=SANDBOX_SECONDS / SANDBOX_RESTARTS + 1)
    assert any(one.name == "deploy" for one in asked)


def test_a_new_session_of_the_same_stub_means_that_paths_are_lost():
    registry = with_node()
    live = "live", None
    assert registry.feed(status_seen(S1, *live, f"{S1}/session/1")) == []
    assert registry.feed(status_seen(S1, *live, f"{S1}/session/1")) == []
    assert registry.feed(status_seen(S1, *live, f"{S1}/session/2")) == [
        call.renew_paths("b.ex", f"{S1}/session/2")
    ]


def test_a_session_of_the_stub_that_replaces_a_crashed_one_means_the_same():
    registry = with_node()
    registry.feed(status_seen(S1, "live", None, f"{S1}/session/1"), call.stub_gone(S1))
    registry.now = RETRY_COOL_DOWN
    assert call.deploy(S2, NodePlan("b.ex", is_again=True)) in registry.ask()
    registry.feed(call.stub_deployed(S2))
    assert registry.feed(status_seen(S2, "live", None, f"{S2}/session/1")) == [
        call.renew_paths("b.ex", f"{S2}/session/1")
    ]


def test_a_stub_whose_requests_have_all_ended_is_removed_again():
    assert Registry().feed(call.stub_deployed(S1)) == [call.undeploy(S1)]


# ---- own addresses


def test_own_addresses_without_listener_are_not_found():
    registry = Registry()
    registry.feed(call.add_local(A))
    for to in (A, f"{A}/x", f"{RA}/nobody"):
        (refused,) = registry.ask(to)
        assert refused.code is Code.NOT_FOUND


def test_a_neighbour_with_a_longer_name_is_not_us():
    assert registry_asks_node(f"{RA}2/registry")


def registry_asks_node(to):
    return Registry().ask(to)[0].name == "deploy"


# ---- what a message may have done for it


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        (ask(1), REACH),
        (answer(ask(1)), KNOWN),
        (event(1), KNOWN),
        (ask(1, p2p=False), NODE),
        (ask(1, to=PHB), NODE),
        (ask(1, from_="connection://a.ex/c1/subscription"), NODE),
        (Message(1, MessageType.READ, A, f"{RB}/registry"), REACH),
        (Message(1, MessageType.SUBSCRIBE, A, "comm://a.ex/o1/subscription"), NODE),
        (Message(1, MessageType.UNSUBSCRIBE, A, "comm://a.ex/o1/subscription"), NODE),
        (Message(1, MessageType.READ, A, "comm://a.ex/o1"), REACH),
    ],
    ids=[
        "request",
        "answer",
        "event",
        "opt-out",
        "handler",
        "signalling",
        "registry",
        "observing",
        "leaving",
        "reading",
    ],
)
def test_intents(message, intent):
    assert intent_of(message) is intent


def rows(*heard):
    """What the table of stubs says after each."""
    registry = Registry(wanted=P2pUse.NEVER)
    registry.feed(*heard)
    return [row.val for row in registry.rows]


def test_the_row_of_a_stub_reports_of_its_deployment_until_the_stub_reports_of_itself():
    live = status_seen(S1, "live", link="session 1")
    reported_of = rows(call.ask(HB, REACH), call.stub_deployed(S1), live)
    assert reported_of == [f"{S1} deploying", f"{S1} deployed", f"{S1} live"]


def test_a_stub_may_report_its_status_before_its_deployment_is_over():
    created = status_seen(S1, "created")
    reported_of = rows(call.ask(HB, REACH), created, call.stub_deployed(S1))
    assert reported_of == [f"{S1} deploying", f"{S1} created", f"{S1} created"]


def test_the_connection_to_the_own_node_is_reported_when_it_changes():
    """REG-12: and that to the node of another domain is not."""
    registry = Registry()
    registry.ask("domain://registry.a.ex")
    registry.ask("domain://registry.b.ex")
    registry.feed(call.stub_deployed(S1), call.stub_deployed(S2))
    reported = []
    for stub in (S1, S2):
        for value in ("created", "in-progress", "live", "live", "disconnected", "live", "failed"):
            effects = registry.feed(status_seen(stub, value))
            reported += [one for one in effects if one.name == "set_own_node"]
    assert reported == [
        call.set_own_node(S1, is_live=is_live) for is_live in (True, False, True, False)
    ]


def test_a_crash_of_the_own_node_stub_ends_the_connection():
    """REG-12."""
    registry = Registry()
    registry.ask("domain://registry.a.ex")
    registry.feed(call.stub_deployed(S1), status_seen(S1, "live"))
    assert call.set_own_node(S1, is_live=False) in registry.feed(call.stub_gone(S1))
    assert registry.feed(call.stub_gone(S1)) == []
