"""How the registry finds ways by links that others asked for (RES-02..12, I-P6..I-P8, I-P17)."""

import pytest

from fsm.p2p.link_end import Role
from specs.bodies.registry import Record
from tests.support.runtime.registry_core import (
    CRQ,
    HB,
    PC,
    PH,
    PQ,
    RB,
    RECORD,
    S1,
    Registry,
    call,
    handling,
    linked,
)

# ---- the handler side


def test_the_entry_is_live_only_after_both_listeners_are_there():
    """P2P-17, I-P17."""
    registry = handling()
    registry.feed(call.owner_read(HB, RECORD))
    assert registry.status(PH, "live", PC) == [call.register_link(PC, PH)]
    assert registry.route() == S1
    assert registry.feed(call.link_registered(PC)) == [call.forget_routes()]
    assert registry.route() == PC


def test_refused_listeners_end_the_link():
    """P2P-17."""
    registry = handling()
    registry.status(PH, "live", PC)
    effects = registry.feed(call.link_registered(PC, "404"))
    assert effects[0] == call.disconnect(PH, RB, PC)
    assert call.unregister_link(PC) in effects


def test_the_same_requester_again_replaces_its_old_link():
    registry = handling()
    assert call.unregister_link(PC) in registry.status(PH, "created", f"{PH}/conn/2")
    (entry,) = registry.core.links()
    assert entry.link == f"{PH}/conn/2"
    assert registry.status(PH, "failed", PC) == [call.unregister_link(PC)]


def test_an_unknown_link_of_a_handler_is_unregistered():
    assert Registry().feed(call.link_registered(PC)) == [call.unregister_link(PC)]


# ---- simultaneous open and the end


SMALL = "hyperty-runtime://a.ex/a"
"""A runtime whose address is smaller than that of the registry's own."""


def requesting_of_smaller(*more):
    registry = Registry()
    record = Record(HB, SMALL, p2p_handler=f"{SMALL}/p2phandler/1", p2p_requester=CRQ)
    registry.feed(call.record_read(HB, record), *more)
    return registry


def yielding():
    """Our own request has lost a simultaneous open, and has said that it yields."""
    registry = requesting_of_smaller(call.path_set(PQ), call.stub_deployed(PQ))
    registry.status(PQ, "created", remote=SMALL)
    registry.status(PQ, "in-progress", remote=SMALL)
    assert registry.status(PH, "created", PC, SMALL) == [call.suspend(PQ, SMALL)]
    return registry


def row_of(registry):
    row = registry.core.row(SMALL, PH)
    return None if row.is_held(PH) else (row.role, row.link)


def test_the_larger_runtimes_own_request_yields_and_goes_when_the_winner_is_live():
    """P2P-27, I-P20: make before break."""
    registry = yielding()
    (entry,) = registry.core.links()
    assert (entry.role, set(entry.entities)) == (Role.HANDLER, {HB})
    assert row_of(registry) is None
    registry.status(PQ, "yielding", remote=SMALL)
    assert row_of(registry) == (Role.HANDLER, PC)
    registry.status(PH, "in-progress", PC, SMALL)
    registry.status(PH, "live", PC, SMALL)
    effects = registry.feed(call.link_registered(PC))
    assert effects == [call.forget_routes(), call.disconnect(PQ, SMALL, PQ)]
    assert registry.status(PQ, "failed", remote=SMALL) == [call.undeploy(PQ), call.remove_path(PQ)]


def test_a_request_that_goes_on_before_it_said_that_it_yields_stays_the_entry():
    registry = yielding()
    registry.status(PH, "failed", PC, SMALL)
    assert registry.status(PQ, "yielding", remote=SMALL) == []
    assert [entry.link for entry in registry.core.links()] == [PQ]


def test_a_request_that_was_live_before_it_heard_that_it_yields_is_the_route_again():
    registry = yielding()
    registry.status(PQ, "live", remote=SMALL)
    assert registry.route() == PQ
    assert row_of(registry) == (Role.HANDLER, PC)
    registry.status(PH, "live", PC, SMALL)
    assert call.disconnect(PQ, SMALL, PQ) in registry.feed(call.link_registered(PC))
    assert registry.route() == PC


def test_a_requester_that_is_being_deployed_yields_as_soon_as_it_is_there():
    """Else its `created` would be taken for an invitation, and push the link out that has won."""
    registry = requesting_of_smaller(call.path_set(PQ))
    assert registry.status(PH, "created", PC, SMALL) == []
    assert row_of(registry) is None
    assert registry.status(PQ, "created", remote=SMALL) == [call.suspend(PQ, SMALL)]
    assert row_of(registry) is None
    registry.status(PQ, "failed", remote=SMALL)
    assert row_of(registry) == (Role.HANDLER, PC)


def test_a_requester_that_was_not_ordered_to_yield_yet_goes_on_without_a_word():
    registry = requesting_of_smaller(call.path_set(PQ))
    registry.status(PH, "created", PC, SMALL)
    assert registry.status(PH, "failed", PC, SMALL) == [call.unregister_link(PC)]
    assert registry.status(PQ, "created", remote=SMALL) == []
    assert [entry.link for entry in registry.core.links()] == [PQ]


# ---- an invitation while our link is live


def invited_beside():
    registry = linked()
    assert registry.status(PH, "created", PC) == []
    return registry


def fails(registry):
    return registry.status(PH, "failed", PC)


def is_lost(registry):
    return registry.status(PH, "disconnected", PC)


def is_over(registry):
    return registry.feed(call.link_over(PH, PC))


def is_refused(registry):
    registry.status(PH, "live", PC)
    return registry.feed(call.link_registered(PC, "404"))


@pytest.mark.parametrize("end", [fails, is_lost, is_over, is_refused])
def test_if_the_new_link_comes_to_nothing_the_live_one_stays(end):
    registry = invited_beside()
    assert call.unregister_link(PC) in end(registry)
    assert registry.route() == PQ
    assert [entry.ends for entry in registry.core.links()] == [registry.core.links()]


@pytest.mark.parametrize("ended", ["disconnected", "gone"])
def test_if_the_live_link_goes_first_the_invited_one_has_the_entry(ended):
    registry = invited_beside()
    if ended == "gone":
        registry.feed(call.stub_gone(PQ))
    else:
        assert call.disconnect(PQ, RB, PQ) in registry.status(PQ, "disconnected")
    assert [entry.link for entry in registry.core.links()] == [PC]


@pytest.mark.parametrize("by", [PQ, PC])
def test_both_links_of_a_peer_that_forges_senders_end(by):
    """S1: by whichever of them its messages came; what it sends after that is nobody's."""
    registry = invited_beside()
    effects = registry.feed(call.link_forged(by))
    for stub, link in ((PQ, PQ), (PH, PC)):
        assert effects.count(call.disconnect(stub, RB, link)) == 1
        assert registry.peers.count(call.remove_peer(link)) == 1
    assert registry.core.links() == ()
    assert registry.route() == S1


def test_an_invitation_newer_than_the_one_that_waits_takes_its_place():
    registry = invited_beside()
    newer = f"{PH}/conn/2"
    registry.status(PH, "created", newer)
    assert registry.core.row(RB, PH).link == newer
    assert registry.route() == PQ
