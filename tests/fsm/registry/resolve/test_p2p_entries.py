"""The registry's entries for links: what each goes through (REG-04, I-P6, I-P7, I-P20)."""

import pytest

from fsm.machines.p2p_entry import P2P_ENTRY
from fsm.p2p.link_end import Role
from specs.bodies.registry import Record
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
    Registry,
    call,
    handling,
    linked,
    requesting,
    with_node,
)
from tests.support.trace.table_edges import declared, edges

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




def test_these_are_all_paths_of_an_entry():
    taken = [edges(P2P_ENTRY, history().steps) for history, _ in HISTORIES]
    assert set.union(*taken) == declared(P2P_ENTRY)




# ---- a link that never comes








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




# ---- what a link that comes and goes leaves behind
