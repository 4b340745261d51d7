"""What a runtime wants of direct links, and what becomes of messages meanwhile (RES-06, RES-09)."""

import pytest

from fsm.effects import Intent, intent_of
from fsm.p2p.dialling import LinkPolicy, P2pUse, P2pWait, PeerPolicy
from specs.bodies.registry import Record
from specs.limits.protocol import P2P_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from tests.support.runtime.registry_core import (
    HB,
    HC,
    KNOWN,
    NODE,
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


def test_the_first_that_covers_a_peer_counts():
    options = LinkPolicy(NEVER, (PeerPolicy(RB, ALWAYS), PeerPolicy("b.ex", REQUIRED)))
    assert [options.of(RB, HB), options.of(HB), options.of(HC)] == [ALWAYS, REQUIRED, NEVER]


@pytest.mark.parametrize(
    ("options", "wants_any"),
    [
        (LinkPolicy(NEVER), False),
        (LinkPolicy(ASKED), True),
        (LinkPolicy(NEVER, (PeerPolicy("b.ex", ALWAYS),)), True),
        (LinkPolicy(NEVER, (PeerPolicy("b.ex", NEVER),)), False),
    ],
)
def test_a_runtime_without_wanted_peers_accepts_no_link(options, wants_any):
    assert options.wants_any is wants_any


@pytest.mark.parametrize(
    ("p2p", "intent"), [(True, LINK), (False, NODE), (None, REACH), ("yes", REACH)]
)
def test_a_sender_may_ask_for_a_link_or_decline_one(p2p, intent):
    """C-21: the body of a request says so."""
    body = {} if p2p is None else {"p2p": p2p}
    assert intent_of(Message(1, MessageType.READ, "hyperty://a.ex/ha", HB, body)) is intent


@pytest.mark.parametrize(
    ("wanted", "intent", "is_sought"),
    [
        (ALWAYS, REACH, True),
        (ALWAYS, LINK, True),
        (ALWAYS, KNOWN, False),
        (ASKED, REACH, False),
        (ASKED, LINK, True),
        (NEVER, LINK, False),
    ],
)
def test_a_link_is_looked_for_if_it_is_wanted(wanted, intent, is_sought):
    effects = with_node(wanted=wanted).ask(HB, intent)
    assert (READ in effects) is is_sought
    assert [route.url for route in routes(effects)] == [S1]


@pytest.mark.parametrize("peer", ["b.ex", RB])
def test_no_link_is_set_up_to_an_unwanted_peer(peer):
    registry = with_node(wanted=LinkPolicy(ALWAYS, (PeerPolicy(peer, NEVER),)))
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    assert registry.core.links() == ()
    assert registry.route() == S1


def test_a_link_is_set_up_to_a_wanted_peer():
    registry = with_node(wanted=LinkPolicy(NEVER, (PeerPolicy("b.ex", ALWAYS),)))
    registry.ask()
    assert call.set_path(PQ) in registry.feed(call.record_read(HB, RECORD))
    assert READ not in registry.ask(HC)


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


def test_a_request_waits_for_the_link_and_goes_by_it():
    registry = setting_up()
    assert [route.url for route in routes(registry.status(PQ, "live"))] == [PQ]
    assert registry.core.deadline() == float("inf")


def test_an_event_does_not_wait():
    registry = setting_up()
    assert [route.url for route in routes(registry.ask(HB, KNOWN))] == [S1]
    assert [route.url for route in routes(registry.ask(HB, NODE))] == [S1]


@pytest.mark.parametrize("status", ["failed", "disconnected"])
def test_a_waiting_message_goes_by_the_node_if_there_is_no_link(status):
    """RES-10, RES-12, I-R9: each question is answered once."""
    registry = setting_up()
    ended = registry.status(PQ, status)
    if status == "disconnected":
        assert routes(ended) == []
        ended = registry.feed(call.stub_gone(PQ))
    assert [route.url for route in routes(ended)] == [S1]
    assert routes(registry.feed(call.time_over())) == []


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


@pytest.mark.parametrize("record", [None, Record(HB, RB)], ids=["none", "no p2p"])
def test_a_message_does_not_wait_for_an_impossible_link(record):
    registry = awaiting()
    assert [route.url for route in routes(registry.feed(call.record_read(HB, record)))] == [S1]


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


def test_signalling_and_what_services_are_asked_takes_the_node_all_the_same():
    """P2P-29: else no link could be set up."""
    registry = with_node(wanted=STRICT)
    assert registry.route("domain://registry.b.ex") == S1
    assert registry.route(f"{RB}/p2phandler/1", NODE) == S1
