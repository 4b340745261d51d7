"""How the registry finds ways by links (RES-02..12, I-P6..I-P8, I-P17)."""

import math

import pytest

from fsm.cores import resolve_effects as do
from fsm.cores import resolve_inputs as told
from fsm.cores.intent import P2pWish
from fsm.cores.link_entry import Role
from specs.body import Record
from specs.limits import (
    DIAL_TIMEOUT,
    NEGATIVE_CACHE,
    RECONNECT_TRIES,
    RETRY_COOL_DOWN,
    SESSION_IDLE,
)
from tests.support.registry_core import (
    CRQ,
    HB,
    HC,
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
    Registry,
    handling,
    linked,
    requesting,
    with_node,
)

# ---- setting up a link


def test_a_request_goes_by_the_node_at_once_and_the_record_is_read_beside():
    registry = with_node()
    route, read = registry.ask()
    assert (route.url, read) == (S1, do.ReadRecord(HB))
    assert registry.ask()[1:] == []


@pytest.mark.parametrize("intent", [KNOWN, NODE])
def test_answers_and_signalling_set_nothing_up(intent):
    assert [type(e) for e in with_node().ask(HB, intent)] == [do.Route]


def test_a_runtime_without_p2p_reads_no_records():
    assert [type(e) for e in with_node(wish=P2pWish.NEVER).ask()] == [do.Route]


def test_backend_services_are_reached_by_nodes_only():
    registry = with_node()
    assert [type(e) for e in registry.ask("domain://registry.b.ex")] == [do.Route]


def test_the_path_is_set_before_the_requester_is_deployed():
    registry = with_node()
    registry.ask()
    assert registry.feed(told.RecordRead(HB, RECORD)) == [do.SetPath(PQ)]
    plan = do.RequesterPlan(RB, PHB, RECORD.p2p_requester)
    assert registry.feed(told.PathSet(PQ)) == [do.Deploy(PQ, plan)]


def test_one_set_up_is_under_way_per_runtime():
    registry = requesting()
    other = Record("hyperty://b.ex/hb2", RB, p2p_handler=PHB, p2p_requester=CRQ)
    assert registry.feed(told.RecordRead(other.url, other)) == []
    (entry,) = registry.core.links()
    assert entry.entities == {HB, other.url}


def test_a_refused_path_ends_the_set_up_and_cools_down():
    registry = with_node()
    registry.ask()
    registry.feed(told.RecordRead(HB, RECORD))
    assert do.Undeploy(PQ) in registry.feed(told.PathSet(PQ, "403"))
    assert registry.core.links() == ()
    assert [type(e) for e in registry.ask()] == [do.Route]


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
    registry = with_node()
    registry.ask()
    assert registry.feed(told.RecordRead(HB, record)) == []
    assert registry.route() == S1


def test_a_negative_answer_is_remembered_for_a_moment():
    registry = with_node()
    registry.ask()
    registry.feed(told.RecordRead(HB, None))
    assert len(registry.ask()) == 1
    registry.now = NEGATIVE_CACHE
    assert registry.ask()[1:] == [do.ReadRecord(HB)]


# ---- a link's life


def test_until_live_the_node_carries_everything():
    registry = requesting()
    assert registry.route() == S1
    registry.status(PQ, "in-progress")
    assert registry.route() == S1


def test_a_live_link_is_preferred_for_entities_and_runtime_parts_alike():
    registry = linked()
    assert registry.route() == registry.route(HB, KNOWN) == PQ
    assert registry.route(f"{RB}/registry") == PQ
    assert registry.route(HB, NODE) == S1


def test_becoming_live_changes_routes():
    registry = requesting()
    registry.status(PQ, "in-progress")
    assert registry.status(PQ, "live") == [do.RoutesChanged()]


def test_a_lost_link_falls_back_and_is_reconnected_beside():
    registry = linked()
    assert registry.status(PQ, "disconnected") == [do.RoutesChanged(), do.Connect(PQ, PHB)]
    assert registry.route() == S1
    registry.status(PQ, "live")
    assert registry.route() == PQ
    assert registry.core.deadline() == math.inf


def test_after_the_last_try_everything_of_the_link_goes():
    registry = linked()
    registry.status(PQ, "disconnected")
    connects = [registry.wait() for _ in range(RECONNECT_TRIES - 1)]
    assert all(effects == [do.Connect(PQ, PHB)] for effects in connects)
    assert registry.now >= DIAL_TIMEOUT * (RECONNECT_TRIES - 1)
    ended = registry.wait()
    assert ended[0] == do.Disconnect(PQ, RB)
    assert {do.Undeploy(PQ), do.RemovePath(PQ)} <= set(ended)
    assert registry.core.links() == ()


def test_a_failed_link_is_removed_with_its_records_and_cools_down():
    registry = requesting()
    ended = registry.status(PQ, "failed")
    assert {do.Undeploy(PQ), do.RemovePath(PQ), do.RoutesChanged()} == set(ended)
    route, read = registry.ask()
    assert (route.url, read) == (S1, do.ReadRecord(HB))
    assert registry.feed(told.RecordRead(HB, RECORD)) == []
    registry.now = RETRY_COOL_DOWN
    assert do.SetPath(f"{RA}/p2prequester/2") in registry.ask()


def test_a_crashed_requester_is_removed():
    registry = linked()
    assert do.RemovePath(PQ) in registry.feed(told.StubGone(PQ))
    assert registry.route() == S1


def test_events_of_a_stub_that_is_gone_only_end_it():
    registry = requesting()
    registry.status(PQ, "failed")
    assert registry.status(PQ, "failed") == [do.Undeploy(PQ), do.RemovePath(PQ)]
    assert registry.status(PQ, "in-progress") == []


def test_a_link_is_bound_to_so_many_entities_and_the_node_carries_the_rest():
    registry = linked()
    for number in range(5000):
        registry.feed(told.HeardFrom(f"hyperty://b.ex/{number}", PQ))
    assert len(registry.core.links()[0].entities) == 4096
    assert registry.route("hyperty://b.ex/1") == PQ
    assert registry.route("hyperty://b.ex/4999") == S1


def test_a_peer_cannot_take_over_who_is_known_to_live_elsewhere():
    registry = linked()
    registry.status(PH, "created", PC, remote=RC)
    registry.status(PH, "live", PC, remote=RC)
    registry.feed(told.LinkRegistered(PC))
    registry.feed(told.HeardFrom(HB, PC))
    assert registry.route(HB) == PQ


# ---- the handler side


def test_the_entry_is_live_only_after_both_listeners_are_there():
    registry = handling()
    registry.feed(told.HeardFrom("hyperty://b.ex/hb/x", PC))
    assert registry.status(PH, "live", PC) == [do.RegisterLink(PC, PH)]
    assert registry.route() == S1
    assert registry.feed(told.LinkRegistered(PC)) == [do.RoutesChanged()]
    assert registry.route() == PC


def test_what_is_heard_over_a_link_lives_behind_it():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.feed(told.LinkRegistered(PC))
    assert registry.route(HC, KNOWN) is None
    assert registry.feed(told.HeardFrom(HC, PC)) == [do.RoutesChanged()]
    assert registry.route(HC, KNOWN) == PC
    assert registry.feed(told.HeardFrom(HC, PC)) == []


def test_refused_listeners_end_the_link():
    registry = handling()
    registry.status(PH, "live", PC)
    effects = registry.feed(told.LinkRegistered(PC, "404"))
    assert effects[0] == do.Disconnect(PH, RB)
    assert do.UnregisterLink(PC) in effects


def test_a_handler_waits_for_the_requester_to_come_back_but_not_for_ever():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.feed(told.LinkRegistered(PC))
    assert registry.status(PH, "disconnected", PC) == [do.RoutesChanged()]
    assert registry.core.deadline() == SESSION_IDLE
    registry.status(PH, "live", PC)
    assert registry.core.deadline() == math.inf
    registry.status(PH, "disconnected", PC)
    assert do.UnregisterLink(PC) in registry.wait()


def test_a_link_lost_while_it_is_registered_is_not_live():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.status(PH, "disconnected", PC)
    assert registry.feed(told.LinkRegistered(PC)) == []
    assert not registry.core.links()[0].is_live


def test_a_link_that_has_ended_for_good_is_removed_at_once():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.feed(told.LinkRegistered(PC))
    registry.status(PH, "disconnected", PC)
    assert registry.feed(told.LinkOver(f"{PH}/conn/9", PC)) == []
    assert do.UnregisterLink(PC) in registry.feed(told.LinkOver(PH, PC))
    assert registry.core.links() == ()
    assert registry.feed(told.LinkOver(PH, PC)) == []


def test_the_same_requester_again_replaces_its_old_link():
    registry = handling()
    assert do.UnregisterLink(PC) in registry.status(PH, "created", f"{PH}/conn/2")
    (entry,) = registry.core.links()
    assert entry.link == f"{PH}/conn/2"
    assert registry.status(PH, "failed", PC) == [do.UnregisterLink(PC)]


def test_a_handlers_link_that_nobody_knows_is_unregistered():
    assert Registry().feed(told.LinkRegistered(PC)) == [do.UnregisterLink(PC)]


# ---- glare and the end


def test_in_a_glare_the_smaller_runtimes_request_survives():
    """The handler refuses the other one, with the reason, when it has asked for the row."""
    registry = requesting()
    assert registry.status(PH, "created", PC) == []
    (entry,) = registry.core.links()
    assert entry.role is Role.REQUESTER


def test_a_handlers_link_that_goes_on_without_an_entry_is_ended():
    """It was accepted because the request that had won over it has failed since."""
    registry = requesting()
    registry.status(PH, "created", PC)
    registry.status(PQ, "failed")
    assert registry.status(PH, "in-progress", PC) == [do.Disconnect(PH, RB)]
    assert registry.status(PH, "failed", PC) == [do.UnregisterLink(PC)]
    assert registry.core.links() == ()


def test_in_a_glare_the_larger_runtime_gives_its_own_request_up():
    registry = Registry()
    small = "hyperty-runtime://a.ex/a"
    record = Record(HB, small, p2p_handler=f"{small}/p2phandler/1", p2p_requester=CRQ)
    registry.feed(told.RecordRead(HB, record))
    effects = registry.status(PH, "created", PC, small)
    assert do.Disconnect(PQ, small) in effects
    (entry,) = registry.core.links()
    assert (entry.role, entry.entities) == (Role.HANDLER, {HB})
    assert registry.status(PQ, "failed", remote=small) == [do.Undeploy(PQ), do.RemovePath(PQ)]


def test_a_requester_deployed_after_its_entry_went_to_another_link_is_ended_and_takes_no_entry():
    """Else its `created` would be taken for an invitation, and push the link out that has won."""
    registry = Registry()
    small = "hyperty-runtime://a.ex/a"
    record = Record(HB, small, p2p_handler=f"{small}/p2phandler/1", p2p_requester=CRQ)
    registry.feed(told.RecordRead(HB, record), told.PathSet(PQ))
    registry.status(PH, "created", PC, small)
    assert registry.status(PQ, "created", remote=small) == [do.Disconnect(PQ, small)]
    (entry,) = registry.core.links()
    assert (entry.role, entry.link) == (Role.HANDLER, PC)


def test_a_runtime_that_closes_forgets_its_links_and_takes_none():
    registry = linked()
    assert registry.feed(told.Closing()) == [do.RoutesChanged()]
    assert registry.status(PQ, "disconnected") == []
    assert registry.feed(told.RecordRead(HB, RECORD)) == []
