"""The registry's entries for links: what each goes through (REG-04, I-P6, I-P7, I-P20)."""

import attrs
import pytest

from fsm.machines.p2p_entry import P2P_ENTRY
from fsm.p2p.link_end import Role
from specs.bodies.registry import Record
from specs.limits.protocol import P2P_ENTRY_TIMEOUT, RETRY_COOL_DOWN, SESSION_IDLE
from tests.support.runtime.registry_core import (
    CRQ,
    HB,
    PC,
    PH,
    PQ,
    RA,
    RB,
    RC,
    RECORD,
    S1,
    Registry,
    call,
    handling,
    linked,
    requesting,
    with_node,
)
from tests.support.trace.table_edges import declared, edges, states

PC2 = f"{PH}/conn/2"
HIS, HIS_PC = f"{RC}/p2phandler/1", f"{RC}/p2phandler/1/conn/1"
"""Of a runtime whose address is greater than that of the one it links to."""


def live():
    return linked()


def failed():
    registry = requesting()
    registry.status(PQ, "failed")
    return registry


def path_refused():
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD), call.path_set(PQ, "403"))
    return registry


def requester_crashed():
    registry = linked()
    registry.feed(call.stub_gone(PQ))
    return registry


def lost_and_back():
    registry = linked()
    for value in ("disconnected", "live", "disconnected", "live"):
        registry.status(PQ, value)
    return registry


def lost_and_given_up():
    registry = linked()
    registry.status(PQ, "disconnected")
    while registry.core.links():
        registry.wait()
    return registry


def negotiated_anew():
    registry = linked()
    for value in ("disconnected", "in-progress", "live"):
        registry.status(PQ, value)
    return registry


def negotiated_in_vain():
    registry = linked()
    for value in ("disconnected", "in-progress", "failed"):
        registry.status(PQ, value)
    return registry


def negotiated_anew_while_it_is_registered():
    registry = handling()
    for value in ("live", "disconnected", "in-progress"):
        registry.status(PH, value, PC)
    registry.feed(call.link_registered(PC))
    return registry


def invited():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.feed(call.link_registered(PC))
    return registry


def refused_by_its_handler():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.feed(call.link_registered(PC, "404"))
    return registry


def own_request_wins():
    registry = requesting()
    registry.status(PH, "created", PC)
    registry.status(PH, "failed", PC)
    registry.status(PQ, "in-progress")
    registry.status(PQ, "live")
    return registry


def own_request_loses():
    registry = Registry(runtime=RC)
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    registry.status(HIS, "created", HIS_PC)
    registry.status(f"{RC}/p2prequester/1", "failed")
    registry.status(HIS, "live", HIS_PC)
    registry.feed(call.link_registered(HIS_PC))
    return registry


def own_request_yields(*values):
    registry, mine = yielding_registry(), f"{RC}/p2prequester/1"
    for value in values:
        registry.status(mine, value)
    registry.status(HIS, "failed", HIS_PC)
    return registry


def yielding_registry():
    mine = f"{RC}/p2prequester/1"
    registry = Registry(runtime=RC)
    registry.ask()
    registry.feed(call.record_read(HB, RECORD), call.path_set(mine))
    for value in ("created", "in-progress"):
        registry.status(mine, value)
    registry.status(HIS, "created", HIS_PC)
    return registry


def own_request_goes_on():
    return own_request_yields("yielding")


def both_requests_fail():
    return own_request_yields("yielding", "failed")


def taken_over():
    registry = invited_while_an_own_link_is_live()
    registry.status(PH, "live", PC)
    registry.feed(call.link_registered(PC))
    return registry


def invitation_first_then_own_request():
    """Simultaneous open in the other order: who is invited plans nothing (I-P7)."""
    registry = handling()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    registry.status(PH, "live", PC)
    registry.feed(call.link_registered(PC))
    return registry


def invited_again_while_set_up():
    registry = handling()
    registry.status(PH, "created", PC2)
    return registry


def invited_again_while_live():
    registry = invited()
    registry.status(PH, "created", PC2)
    registry.status(PH, "disconnected", PC)
    return registry


def invited_while_an_own_link_is_live():
    registry = linked()
    registry.status(PH, "created", PC)
    return registry


def invited_in_vain_while_an_own_link_is_live():
    registry = invited_while_an_own_link_is_live()
    registry.status(PH, "failed", PC)
    return registry


def lost_while_another_link_is_invited():
    registry = invited_while_an_own_link_is_live()
    registry.status(PQ, "disconnected")
    return registry


def invited_while_an_own_link_is_lost():
    registry = linked()
    registry.status(PQ, "disconnected")
    registry.status(PH, "created", PC)
    return registry


def over():
    registry = invited()
    registry.status(PH, "disconnected", PC)
    registry.feed(call.link_over(PH, PC))
    return registry


def lost_while_it_is_registered():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.status(PH, "disconnected", PC)
    registry.feed(call.link_registered(PC))
    registry.status(PH, "live", PC)
    return registry


def lost_and_back_while_it_is_registered():
    registry = handling()
    for value in ("live", "disconnected", "live"):
        registry.status(PH, value, PC)
    registry.feed(call.link_registered(PC), call.link_registered(PC))
    return registry


def closed():
    registry = linked()
    registry.feed(call.close_links())
    registry.status(PQ, "disconnected")
    return registry


def closed_while_set_up():
    registry = requesting()
    registry.feed(call.close_links())
    registry.status(PQ, "failed")
    registry.feed(call.stop())
    return registry


# fmt: off
HISTORIES = [
    (live,                                 "placeholder bound"),
    (failed,                               "placeholder removed"),
    (path_refused,                         "placeholder removed"),
    (requester_crashed,                    "placeholder bound removed"),
    (lost_and_back,                        "placeholder bound bound bound bound bound"),
    (lost_and_given_up,                    "placeholder bound bound removed"),
    (negotiated_anew,                      "placeholder bound bound bound"),
    (negotiated_in_vain,                   "placeholder bound bound removed"),
    (negotiated_anew_while_it_is_registered, "placeholder"),
    (invited,                              "placeholder bound"),
    (refused_by_its_handler,               "placeholder removed"),
    (own_request_wins,                     "placeholder placeholder bound"),
    (own_request_loses,                    "placeholder yielding bound"),
    (own_request_goes_on,                  "placeholder yielding placeholder"),
    (both_requests_fail,                   "placeholder yielding removed"),
    (invitation_first_then_own_request,       "placeholder bound"),
    (invited_again_while_set_up,           "placeholder removed | placeholder"),
    (invited_again_while_live,             "placeholder bound bound bound removed | placeholder"),
    (invited_while_an_own_link_is_live,    "placeholder bound bound"),
    (invited_in_vain_while_an_own_link_is_live, "placeholder bound bound"),
    (lost_while_another_link_is_invited,   "placeholder bound bound bound removed | placeholder"),
    (taken_over,                           "placeholder bound bound bound"),
    (invited_while_an_own_link_is_lost,    "placeholder bound bound removed | placeholder"),
    (over,                                 "placeholder bound bound removed"),
    (lost_while_it_is_registered,          "placeholder bound"),
    (lost_and_back_while_it_is_registered, "placeholder bound"),
    (closed,                               "placeholder bound removed"),
    (closed_while_set_up,                  "placeholder removed"),
]
# fmt: on
IDS = [history.__name__ for history, _ in HISTORIES]


@pytest.mark.parametrize(("history", "expected"), HISTORIES, ids=IDS)
def test_an_entry_goes_so(history, expected):
    (reported_of,) = states(P2P_ENTRY, history().steps).values()
    assert reported_of == expected


def test_these_are_all_paths_of_an_entry():
    taken = [edges(P2P_ENTRY, history().steps) for history, _ in HISTORIES]
    assert set.union(*taken) == declared(P2P_ENTRY)


def test_an_entry_is_named_by_both_runtimes():
    assert list(states(P2P_ENTRY, linked().steps)) == [f"{RA}|{RB}"]


# ---- a link that never comes


@pytest.mark.parametrize("begun", [requesting, handling])
def test_an_entry_whose_stub_never_reports_more_ends_and_the_next_attempt_is_allowed(begun):
    """C-16: as of a stub that is no P2P stub, by whatever record."""
    registry = begun()
    assert registry.core.deadline() == P2P_ENTRY_TIMEOUT
    ended = registry.wait()
    assert any(effect.name == "disconnect" for effect in ended)
    assert registry.core.links() == ()
    assert registry.route() == S1
    registry.now += RETRY_COOL_DOWN
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    assert [entry.role for entry in registry.core.links()] == [Role.REQUESTER]


def test_both_requests_of_an_entry_that_comes_to_nothing_end():
    registry = yielding_registry()
    ended = registry.wait()
    assert call.undeploy(f"{RC}/p2prequester/1") in ended
    assert call.disconnect(HIS, RB, HIS_PC) in ended
    assert registry.core.links() == ()


@pytest.mark.parametrize("name", ["protocolstub/default", "protostub/P2PHandler", "hyperty/Chat"])
def test_a_record_that_names_no_requester_stub_leads_to_no_link(name):
    registry = with_node()
    registry.ask()
    requester = f"hyperty-catalogue://catalogue.b.ex/.well-known/{name}"
    effects = registry.feed(call.record_read(HB, attrs.evolve(RECORD, p2p_requester=requester)))
    (refused,) = [effect for effect in effects if effect.name == "refuse_stub"]
    assert refused.address == requester
    assert registry.core.links() == ()
    assert registry.route() == S1


# ---- who gives way


def contested(role, *, own_is_smaller):
    """An entry that is being set up, and another invitation of the same runtime."""
    own, remote = (RA, RB) if own_is_smaller else (RC, RB)
    registry = Registry(runtime=own)
    record = Record(HB, RB, p2p_handler=f"{RB}/p2phandler/1", p2p_requester=CRQ)
    if role is Role.REQUESTER:
        registry.feed(call.record_read(HB, record))
    else:
        registry.status(f"{own}/p2phandler/1", "created", f"{own}/p2phandler/1/conn/1", remote)
    link = f"{own}/p2phandler/1/conn/2"
    registry.status(f"{own}/p2phandler/1", "created", link, remote)
    (entry,) = registry.core.links()
    return entry.link == link


@pytest.mark.parametrize(
    ("role", "own_is_smaller", "gives_way"),
    [
        (Role.REQUESTER, True, False),
        (Role.REQUESTER, False, True),
        (Role.HANDLER, True, True),
        (Role.HANDLER, False, True),
    ],
)
def test_only_an_own_request_of_the_smaller_runtime_does_not_yield(role, own_is_smaller, gives_way):
    """P2P-27, I-P20: every case of the guards."""
    assert contested(role, own_is_smaller=own_is_smaller) is gives_way


def test_a_new_request_of_a_peer_whose_link_seems_live_gets_a_new_link():
    registry = invited_again_while_live()
    (entry,) = registry.core.links()
    assert (entry.link, entry.is_live) == (PC2, False)
    registry.status(PH, "live", PC2)
    registry.feed(call.link_registered(PC2))
    assert registry.route(f"{RB}/registry") == PC2


# ---- what a link that comes and goes leaves behind


def test_a_link_that_is_back_before_it_was_registered_is_not_given_up():
    registry = lost_and_back_while_it_is_registered()
    assert registry.core.links()[0].is_live
    registry.now += SESSION_IDLE
    assert registry.feed(call.time_over()) == []
    assert registry.core.links()[0].is_live


def test_a_link_is_no_route_while_it_is_negotiated_anew():
    """RES-11: the node carries everything meanwhile, and the link again when it is back."""
    registry = linked()
    assert registry.route() == PQ
    for value, route in (("disconnected", S1), ("in-progress", S1), ("live", PQ)):
        registry.status(PQ, value)
        assert registry.route() == route


@pytest.mark.parametrize(("start", "stub", "link"), [(linked, PQ, PQ), (invited, PH, PC)])
def test_a_registry_waits_for_its_stub_while_a_link_is_negotiated_anew(start, stub, link):
    """The stub has a deadline for it; no order to connect disturbs it meanwhile."""
    registry = start()
    registry.status(stub, "disconnected", link)
    registry.status(stub, "in-progress", link)
    registry.now += SESSION_IDLE
    assert registry.feed(call.time_over()) == []
    assert [entry.link for entry in registry.core.links()] == [link]
    registry.status(stub, "live", link)
    assert registry.route(f"{RB}/registry") == link


def test_a_link_negotiated_anew_while_it_was_registered_is_no_route_before_it_is_live():
    registry = negotiated_anew_while_it_is_registered()
    assert not registry.core.links()[0].is_live
    registry.status(PH, "live", PC)
    assert registry.core.links()[0].is_live


def test_a_link_that_is_reported_live_twice_moves_its_entry_once():
    registry = linked()
    before = len(registry.steps)
    registry.status(PQ, "live")
    registry.status(PQ, "disconnected")
    registry.status(PQ, "disconnected")
    assert [step.cause for step in registry.steps[before:]] == ["lost"]


def test_a_stub_that_says_lost_before_live_moves_nothing():
    registry = requesting()
    before = len(registry.steps)
    registry.status(PQ, "disconnected")
    assert registry.steps[before:] == []


def test_after_an_entry_is_removed_the_next_one_has_its_own_history():
    registry = failed()
    registry.now += RETRY_COOL_DOWN
    registry.feed(call.record_read(HB, RECORD))
    assert states(P2P_ENTRY, registry.steps)[f"{RA}|{RB}"] == "placeholder removed | placeholder"
