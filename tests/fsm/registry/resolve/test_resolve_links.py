"""How the registry finds ways by links (RES-02..12, I-P6..I-P8, I-P17)."""

from fsm.effects import Intent
from fsm.registry.resolve.searches import RequesterPlan
from specs.bodies.registry import Record
from specs.limits.protocol import NEGATIVE_CACHE, RETRY_COOL_DOWN
from specs.reply_code import Code
from tests.support.runtime.registry_core import (
    CRQ,
    HB,
    KNOWN,
    NODE,
    PHB,
    PQ,
    RA,
    RB,
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


def test_a_negative_answer_is_remembered_for_a_moment():
    """RES-03."""
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, None))
    assert len(registry.ask()) == 1
    registry.now = NEGATIVE_CACHE
    assert registry.ask()[1:] == [call.read_record(HB)]


# ---- a link's life


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


def test_a_refused_path_ends_the_set_up_and_cools_down():
    """P2P-05."""
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    assert call.undeploy(PQ) in registry.feed(call.path_set(PQ, "403"))
    assert registry.core.links() == ()
    assert [e.name for e in registry.ask()] == ["route"]


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


def test_a_crashed_requester_is_removed():
    """P2P-06."""
    registry = linked()
    assert call.remove_path(PQ) in registry.feed(call.stub_gone(PQ))
    assert registry.route() == S1
