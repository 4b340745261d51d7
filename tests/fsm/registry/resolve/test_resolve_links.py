"""How the registry finds ways by links (RES-02..12, I-P6..I-P8, I-P17)."""

import math

import pytest

from fsm.effects import Intent
from fsm.p2p.dialling import P2pUse
from fsm.registry.resolve.searches import RequesterPlan
from specs.bodies.registry import Record
from specs.limits.protocol import DIAL_TIMEOUT, NEGATIVE_CACHE, RECONNECT_TRIES, RETRY_COOL_DOWN
from specs.reply_code import Code
from tests.support.runtime.registry_core import (
    CRQ,
    HB,
    KNOWN,
    NODE,
    PC,
    PH,
    PHB,
    PQ,
    RA,
    RB,
    RC,
    RECORD,
    S1,
    call,
    linked,
    requesting,
    with_node,
)

# ---- setting up a link


def test_a_request_goes_by_the_node_at_once_and_the_record_is_read_beside():
    """RES-04."""
    registry = with_node()
    route, read = registry.ask()
    assert (route.url, read) == (S1, call.read_record(HB))
    assert registry.ask()[1:] == []


@pytest.mark.parametrize("intent", [KNOWN, NODE])
def test_answers_and_signalling_set_nothing_up(intent):
    assert [e.name for e in with_node().ask(HB, intent)] == ["route"]


def test_a_runtime_without_p2p_reads_no_records():
    assert [e.name for e in with_node(wanted=P2pUse.NEVER).ask()] == ["route"]


def test_backend_services_are_reached_by_nodes_only():
    """RES-01, I-R1: no record is read for a link to them, whoever asks."""
    registry = with_node()
    for address in ("domain://idm.b.ex", "domain-idp://b.ex"):
        assert [e.name for e in registry.ask(address)] == ["route"]


def test_the_path_is_set_before_the_requester_is_deployed():
    """RES-08, P2P-05, I-P10."""
    registry = with_node()
    registry.ask()
    assert registry.feed(call.record_read(HB, RECORD)) == [call.set_path(PQ)]
    plan = RequesterPlan(RB, PHB, RECORD.p2p_requester)
    assert registry.feed(call.path_set(PQ)) == [call.deploy(PQ, plan)]


def test_one_set_up_runs_per_runtime():
    """STB-11, P2P-04, I-P7."""
    registry = requesting()
    other = Record("hyperty://b.ex/hb2", RB, p2p_handler=PHB, p2p_requester=CRQ)
    assert registry.feed(call.record_read(other.url, other)) == []
    (entry,) = registry.core.links()
    assert set(entry.entities) == {HB, other.url}


def test_an_entry_is_there_before_anything_is_awaited_and_leads_nowhere():
    """RES-07, I-P7: whoever asks next finds it, and goes by the node."""
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    (entry,) = registry.core.links()
    assert (entry.remote, entry.status.value, entry.is_live) == (RB, "created", False)
    assert [effect.name for effect in registry.ask()] == ["route"]
    assert registry.route() == S1


def test_a_refused_path_ends_the_set_up_and_cools_down():
    """P2P-05."""
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    assert call.undeploy(PQ) in registry.feed(call.path_set(PQ, "403"))
    assert registry.core.links() == ()
    assert [e.name for e in registry.ask()] == ["route"]


@pytest.mark.parametrize(
    "record",
    [
        None,
        Record(HB, RB),
        Record(HB, RB, p2p_handler=PHB),
        Record(HB, RB, p2p_handler=f"{RC}/p2phandler/1", p2p_requester=CRQ),
        Record(HB, RA, p2p_handler=PH, p2p_requester=CRQ),
    ],
    ids=["none", "no p2p", "no requester", "foreign handler", "own runtime"],
)
def test_a_record_that_offers_no_link_sets_none_up(record):
    """RES-04, RES-08."""
    registry = with_node()
    registry.ask()
    assert registry.feed(call.record_read(HB, record)) == []
    assert registry.route() == S1


def test_a_negative_answer_is_remembered_for_a_moment():
    """RES-03."""
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, None))
    assert len(registry.ask()) == 1
    registry.now = NEGATIVE_CACHE
    assert registry.ask()[1:] == [call.read_record(HB)]


# ---- a link's life


def test_until_live_the_node_carries_everything():
    registry = requesting()
    assert registry.route() == S1
    registry.status(PQ, "in-progress")
    assert registry.route() == S1


def test_a_live_link_is_preferred_for_entities_and_runtime_parts_alike():
    """RES-02, I-R3."""
    registry = linked()
    assert registry.route() == registry.route(HB, KNOWN) == PQ
    assert registry.route(f"{RB}/registry") == PQ
    assert registry.route(HB, NODE) == S1


def test_an_address_found_behind_a_live_link_is_reached_by_it():
    """RES-05: the record says so; no other link is set up."""
    registry = linked()
    other = Record("hyperty://b.ex/hb2", RB, p2p_handler=PHB, p2p_requester=CRQ)
    assert registry.route(other.url) == S1
    assert registry.feed(call.record_read(other.url, other)) == [call.forget_routes()]
    assert registry.route(other.url) == PQ
    assert len(registry.core.links()) == 1


def test_becoming_live_changes_routes():
    registry = requesting()
    registry.status(PQ, "in-progress")
    assert registry.status(PQ, "live") == [call.forget_routes()]


def test_a_lost_link_falls_back_and_is_reconnected_beside():
    registry = linked()
    assert registry.status(PQ, "disconnected") == [call.forget_routes(), call.connect(PQ, PHB)]
    assert registry.route() == S1
    registry.status(PQ, "live")
    assert registry.route() == PQ
    assert registry.core.deadline() == math.inf


def test_followers_of_links_are_notified_of_each_begin_and_end():
    """P2P-23, P2P-26: registries tell each other what changes while a link is live."""
    registry = linked()
    registry.status(PQ, "live")
    registry.status(PQ, "disconnected")
    registry.status(PQ, "live")
    registry.feed(call.stub_gone(PQ))
    up = call.link_up(RB, PQ)
    assert registry.news == [up, call.link_down(RB), up, call.link_gone(RB)]


def test_a_link_that_was_never_live_is_only_reported_to_be_gone():
    registry = requesting()
    registry.status(PQ, "failed")
    assert registry.news == [call.link_gone(RB)]


def test_a_link_only_message_never_goes_by_the_node():
    """P2P-30: nor is a link set up for it."""
    registry = with_node()
    [none] = registry.ask(HB, Intent.DIRECT)
    assert none == call.no_route(HB, Intent.DIRECT, Code.UNAVAILABLE, "no live link leads there")

    registry = linked()
    assert registry.route(HB, Intent.DIRECT) == PQ
    registry.status(PQ, "disconnected")
    assert registry.route(HB) == S1
    assert registry.ask(HB, Intent.DIRECT) == [none]


def test_after_the_last_try_everything_of_the_link_goes():
    registry = linked()
    registry.status(PQ, "disconnected")
    connects = [registry.wait() for _ in range(RECONNECT_TRIES - 1)]
    assert all(effects == [call.connect(PQ, PHB)] for effects in connects)
    assert registry.now >= DIAL_TIMEOUT * (RECONNECT_TRIES - 1)
    ended = registry.wait()
    assert ended[0] == call.disconnect(PQ, RB, PQ)
    assert {call.undeploy(PQ), call.remove_path(PQ)} <= set(ended)
    assert registry.core.links() == ()


def test_a_failed_link_is_removed_with_its_records_and_cools_down():
    """P2P-04, P2P-06."""
    registry = requesting()
    ended = registry.status(PQ, "failed")
    assert {call.undeploy(PQ), call.remove_path(PQ), call.forget_routes()} == set(ended)
    route, read = registry.ask()
    assert (route.url, read) == (S1, call.read_record(HB))
    assert registry.feed(call.record_read(HB, RECORD)) == []
    registry.now = RETRY_COOL_DOWN
    assert call.set_path(f"{RA}/p2prequester/2") in registry.ask()


def test_a_link_that_was_live_is_not_paused_for_the_failures_before_it():
    registry = requesting()
    registry.status(PQ, "failed")
    registry.now, again = RETRY_COOL_DOWN, f"{RA}/p2prequester/2"
    registry.ask()
    registry.feed(call.record_read(HB, RECORD), call.path_set(again), call.stub_deployed(again))
    for status in ("created", "in-progress", "live", "failed"):
        registry.status(again, status)
    registry.now += RETRY_COOL_DOWN
    registry.ask()
    third = call.set_path(f"{RA}/p2prequester/3")
    assert third in registry.feed(call.record_read(HB, RECORD))


def test_a_path_that_is_set_for_a_link_that_is_gone_is_removed():
    """P2P-06."""
    registry = with_node()
    assert call.read_record(HB) in registry.ask()
    assert call.set_path(PQ) in registry.feed(call.record_read(HB, RECORD))
    registry.feed(call.close_links())
    assert registry.feed(call.path_set(PQ)) == [call.remove_path(PQ)]


def test_a_crashed_requester_is_removed():
    """P2P-06."""
    registry = linked()
    assert call.remove_path(PQ) in registry.feed(call.stub_gone(PQ))
    assert registry.route() == S1


def test_events_of_a_stub_that_is_gone_only_end_it():
    registry = requesting()
    registry.status(PQ, "failed")
    assert registry.status(PQ, "failed") == [call.undeploy(PQ), call.remove_path(PQ)]
    assert registry.status(PQ, "in-progress") == []


def test_a_link_is_bound_to_so_many_entities_and_the_node_carries_the_rest():
    registry = linked()
    for number in range(5000):
        url = f"hyperty://b.ex/{number}"
        registry.feed(call.owner_read(url, Record(url, RB)))
    assert len(registry.core.links()[0].entities) == 4096
    assert registry.route("hyperty://b.ex/1") == PQ
    assert registry.route("hyperty://b.ex/4999") == S1


def test_a_peer_cannot_take_over_an_address_known_elsewhere():
    registry = linked()
    registry.status(PH, "created", PC, remote=RC)
    registry.status(PH, "live", PC, remote=RC)
    registry.feed(call.link_registered(PC))
    registry.feed(call.ask_owner(HB, RC), call.owner_read(HB, RECORD))
    assert registry.route(HB) == PQ
