"""How the registry finds ways by links that others asked for (RES-02..12, I-P6..I-P8, I-P17)."""

import math

from fsm.cores import resolve_effects as do
from fsm.cores import resolve_inputs as told
from fsm.cores.link_entry import Role
from specs.body import Record
from specs.limits import (
    SESSION_IDLE,
)
from tests.support.registry_core import (
    CRQ,
    HB,
    KNOWN,
    PC,
    PH,
    PQ,
    RB,
    RECORD,
    S1,
    Registry,
    handling,
    linked,
    requesting,
)

# ---- the handler side


def test_the_entry_is_live_only_after_both_listeners_are_there():
    """P2P-17, I-P17."""
    registry = handling()
    registry.feed(told.OwnerRead(HB, RECORD))
    assert registry.status(PH, "live", PC) == [do.RegisterLink(PC, PH)]
    assert registry.route() == S1
    assert registry.feed(told.LinkRegistered(PC)) == [do.RoutesChanged()]
    assert registry.route() == PC


def test_who_is_proven_to_send_over_a_link_lives_behind_it():
    registry, other = handling(), "hyperty://b.ex/other"
    registry.status(PH, "live", PC)
    registry.feed(told.LinkRegistered(PC))
    assert registry.route(other, KNOWN) == S1
    asked, read = told.OwnerAsked(other, RB), told.OwnerRead(other, Record(other, RB))
    assert registry.feed(asked) == [do.ReadOwner(other)]
    assert registry.feed(read) == [do.RoutesChanged(), do.OwnerKnown(other, RB)]
    assert registry.route(other, KNOWN) == PC
    assert registry.feed(asked) == [do.OwnerKnown(other, RB)]


def test_refused_listeners_end_the_link():
    """P2P-17."""
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
    assert (entry.role, set(entry.entities)) == (Role.HANDLER, {HB})
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
