"""What a runtime wants of direct links, and what becomes of messages meanwhile (RES-06, RES-09)."""

import pytest

from fsm.effects import Intent, intent_of
from fsm.p2p.link_policy import LinkPolicy, P2pUse, P2pWait, PeerPolicy
from specs.limits.protocol import P2P_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from tests.support.runtime.registry_core import (
    HB,
    HC,
    KNOWN,
    PQ,
    RB,
    REACH,
    RECORD,
    S1,
    S2,
    call,
    with_node,
)

LINK = Intent.LINK
ALWAYS, ASKED, NEVER = P2pUse.WHENEVER_POSSIBLE, P2pUse.WHEN_ASKED, P2pUse.NEVER
REQUIRED = P2pUse.REQUIRED
READ = call.read_record(HB)
PATIENT = LinkPolicy(ALWAYS, wait=P2pWait.AWAIT)


def routes(effects):
    return [effect for effect in effects if effect.name in {"route", "no_route"}]


# ---- whom


@pytest.mark.parametrize(
    ("peer", "address", "is_covered"),
    [
        ("b.ex", HB, True),
        ("b.ex", RB, True),
        ("b.ex", "hyperty://x.b.ex/h", False),
        ("*.b.ex", "hyperty://x.b.ex/h", True),
        ("*.b.ex", HB, False),
        (RB, RB, True),
        (RB, f"{RB}/registry", True),
        (RB, f"{RB}2", False),
        (RB, HB, False),
    ],
)
def test_a_peer_is_a_domain_what_is_below_one_or_a_runtime(peer, address, is_covered):
    assert PeerPolicy(peer, NEVER).covers(address) is is_covered


# ---- await


def awaiting(wanted=PATIENT):
    registry = with_node(wanted=wanted)
    assert registry.ask() == [READ]
    return registry


def setting_up(wanted=PATIENT):
    registry = awaiting(wanted)
    found = registry.feed(call.record_read(HB, RECORD), call.path_set(PQ), call.stub_deployed(PQ))
    assert routes(found) == []
    for status in ("created", "in-progress"):
        assert routes(registry.status(PQ, status)) == []
    return registry


def test_messages_during_the_loss_of_a_link_go_by_the_node_at_once():
    """RES-12."""
    registry = setting_up()
    registry.status(PQ, "live")
    registry.status(PQ, "disconnected")
    assert [route.url for route in routes(registry.ask())] == [S1]


def test_no_message_waits_longer_than_a_set_up_may_take():
    """RES-09: at most T_p2p, each; who comes after that does not wait at all."""
    registry = awaiting()
    registry.feed(call.record_read(HB, RECORD))
    registry.now = P2P_TIMEOUT / 2
    registry.ask(HB, LINK)
    assert registry.core.deadline() == P2P_TIMEOUT
    registry.now = P2P_TIMEOUT
    over = routes(registry.feed(call.time_over()))
    assert [(route.intent, route.url) for route in over] == [(REACH, S1), (LINK, S1)]
    assert [route.url for route in routes(registry.ask())] == [S1]


def test_after_a_failed_link_no_message_waits_before_the_next_attempt():
    """RES-10: the cool-down."""
    registry = setting_up()
    registry.status(PQ, "failed")
    registry.ask()
    assert [r.url for r in routes(registry.feed(call.record_read(HB, RECORD)))] == [S1]


# ---- required

STRICT = LinkPolicy(ALWAYS, (PeerPolicy("b.ex", REQUIRED),))


def test_a_link_only_message_is_refused_without_a_link():
    registry = setting_up(STRICT)
    (refused,) = routes(registry.status(PQ, "failed"))
    assert (refused.to, refused.code) == (HB, Code.UNAVAILABLE)
    assert [route.name for route in routes(registry.ask(HB, KNOWN))] == ["no_route"]
    registry.ask(HC)
    (by_node,) = routes(registry.feed(call.stub_deployed(S2)))
    assert (by_node.to, by_node.url) == (HC, S2)


def test_a_link_only_message_waits_for_a_lost_link():
    registry = setting_up(STRICT)
    registry.status(PQ, "live")
    assert registry.route() == PQ
    registry.status(PQ, "disconnected")
    assert routes(registry.ask()) == []
    assert [route.url for route in routes(registry.status(PQ, "live"))] == [PQ]


@pytest.mark.parametrize(
    ("from_", "to"),
    [
        ("hyperty-runtime://a.ex/ra/p2prequester/1", f"{RB}/p2phandler/1"),
        (f"{RB}/p2phandler/1/conn/1", "connection://a.ex/c1"),
        ("connection://a.ex/c1", f"{RB}/sm"),
    ],
)
def test_what_sets_a_link_up_never_takes_it(from_, to):
    """P2P-29, I-P13."""
    assert intent_of(Message(1, MessageType.READ, from_, to, {})) is Intent.NODE
