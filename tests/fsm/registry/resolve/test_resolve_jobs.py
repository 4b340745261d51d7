"""Searches for a way: what each goes through, and that each ends (RES-13, I-R6, I-R7)."""

import math

from fsm.machines.resolve_job import RESOLVE_JOB
from fsm.p2p.dialling import P2pUse
from specs.bodies.registry import Record
from specs.limits.protocol import (
    RETRY_COOL_DOWN,
)
from tests.support.runtime.registry_core import (
    CRQ,
    HB,
    KNOWN,
    PC,
    PH,
    PHB,
    PQ,
    RA,
    RB,
    RC,
    RECORD,
    S1,
    S2,
    Registry,
    call,
    handling,
    linked,
    requesting,
    status_seen,
    with_node,
)
from tests.support.trace.table_edges import declared, edges

B, LINK = "node|b.ex", f"link|{HB}"
HB2 = "hyperty://b.ex/hb2"
AT_ONCE = "lookup attached bound"
TWICE = "lookup query wait failed | lookup query failed"


def deployed():
    return with_node(), B


def deployment_failed():
    registry = Registry(P2pUse.NEVER)
    registry.ask()
    registry.feed(call.stub_failed(S1, "no descriptor"))
    return registry, B


def stub_crashed_while_deployed():
    registry = Registry(P2pUse.NEVER)
    registry.ask()
    registry.feed(call.stub_gone(S1))
    return registry, B


def could_not_connect_while_deployed():
    registry = Registry(P2pUse.NEVER)
    registry.ask()
    registry.feed(status_seen(S1, "failed", why="the node said no"))
    return registry, B


def cooling():
    registry, _ = deployment_failed()
    registry.ask()
    return registry, B


def tried_again():
    registry, _ = deployment_failed()
    registry.now = RETRY_COOL_DOWN
    registry.ask()
    registry.feed(call.stub_deployed(S2))
    return registry, B


def asked_by_many_while_deployed():
    registry = Registry(P2pUse.NEVER)
    for to in (HB, HB2, "domain://registry.b.ex"):
        registry.ask(to)
    registry.feed(call.stub_deployed(S1))
    return registry, B


def node_known():
    registry = with_node()
    registry.ask("domain://registry.b.ex")
    return registry, B


def registry_stopped_while_deployed():
    registry = Registry()
    registry.ask()
    registry.feed(call.stop())
    return registry, B


def link_set_up():
    return linked(), LINK


def set_up_failed():
    registry = requesting()
    registry.status(PQ, "failed")
    return registry, LINK


def requester_crashed():
    registry = requesting()
    registry.feed(call.stub_gone(PQ))
    return registry, LINK


def no_record():
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, None))
    return registry, LINK


def no_record_a_moment_ago():
    registry, _ = no_record()
    registry.ask()
    return registry, LINK


def record_without_p2p():
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, Record(HB, RB)))
    return registry, LINK


def is_a_local_address():
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, Record(HB, RA, p2p_handler=PH, p2p_requester=CRQ)))
    return registry, LINK


def set_up_failed_a_moment_ago():
    registry, _ = set_up_failed()
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    return registry, LINK


def record_known():
    registry, _ = set_up_failed_a_moment_ago()
    registry.now = RETRY_COOL_DOWN
    registry.ask()
    registry.status(f"{RA}/p2prequester/2", "live")
    return registry, LINK


def joins_a_set_up():
    registry = requesting()
    registry.ask(HB2)
    record = Record(HB2, RB, p2p_handler=PHB, p2p_requester=CRQ)
    registry.feed(call.record_read(HB2, record))
    registry.status(PQ, "live")
    return registry, f"link|{HB2}"


def joins_a_set_up_that_fails():
    registry = handling()
    registry.ask()
    registry.feed(call.record_read(HB, Record(HB, RB)))
    registry.status(PH, "failed", PC)
    return registry, LINK


def joins_a_link_that_is_live():
    registry = linked()
    registry.ask(HB2)
    registry.feed(call.record_read(HB2, Record(HB2, RB)))
    return registry, f"link|{HB2}"


def proven_while_the_record_is_read():
    registry = handling()
    registry.status(PH, "live", PC)
    registry.feed(call.link_registered(PC))
    registry.ask()
    registry.feed(call.ask_owner(HB, RB), call.owner_read(HB, RECORD))
    registry.ask()
    registry.feed(call.record_read(HB, None))
    return registry, LINK


def taken_over_by_an_invitation():
    """The other's request wins; its link is the one that was looked for."""
    registry = Registry(runtime=RC)
    registry.ask()
    registry.feed(call.record_read(HB, RECORD))
    handler = f"{RC}/p2phandler/1"
    link = f"{handler}/conn/1"
    registry.status(handler, "created", link)
    registry.status(handler, "live", link)
    registry.feed(call.link_registered(link))
    return registry, LINK


def link_lost_then_asked_for():
    registry = linked()
    registry.status(PQ, "disconnected")
    registry.ask()
    registry.ask(HB, KNOWN)
    registry.status(PQ, "live")
    return registry, LINK


def link_lost_then_given_up():
    registry = linked()
    registry.status(PQ, "disconnected")
    registry.ask()
    while registry.core.deadline() < math.inf:
        registry.wait()
    return registry, LINK


def by_a_live_link():
    registry = linked()
    registry.ask(HB, KNOWN)
    return registry, LINK


def the_read_is_unanswered():
    registry = with_node()
    registry.ask()
    registry.wait()
    return registry, LINK


def closed_while_the_record_is_read():
    registry = with_node()
    registry.ask()
    registry.feed(call.close_links())
    return registry, LINK


def closed_while_set_up():
    registry = requesting()
    registry.feed(call.close_links())
    return registry, LINK


def closed_while_deployed():
    """Farewells still need the node."""
    registry = Registry()
    registry.ask()
    registry.feed(call.close_links(), call.stub_deployed(S1))
    return registry, B


# fmt: off
HISTORIES = [
    (deployed,                        "lookup wait bound"),
    (deployment_failed,               "lookup wait failed"),
    (stub_crashed_while_deployed,     "lookup wait failed"),
    (could_not_connect_while_deployed, "lookup wait failed"),
    (cooling,                         "lookup wait failed | lookup failed"),
    (tried_again,                     "lookup wait failed | lookup wait bound"),
    (asked_by_many_while_deployed,    "lookup wait bound"),
    (node_known,                      f"lookup wait bound | {AT_ONCE}"),
    (registry_stopped_while_deployed, "lookup wait failed"),
    (link_set_up,                     "lookup query wait bound"),
    (set_up_failed,                   "lookup query wait failed"),
    (requester_crashed,               "lookup query wait failed"),
    (no_record,                       "lookup query failed"),
    (no_record_a_moment_ago,          "lookup query failed | lookup failed"),
    (record_without_p2p,              "lookup query failed"),
    (is_a_local_address,                      "lookup query failed"),
    (set_up_failed_a_moment_ago,      TWICE),
    (record_known,                    f"{TWICE} | lookup wait bound"),
    (joins_a_set_up,                  "lookup query attached bound"),
    (joins_a_set_up_that_fails,       "lookup query attached failed"),
    (joins_a_link_that_is_live,       "lookup query attached bound"),
    (proven_while_the_record_is_read, "lookup query attached bound"),
    (taken_over_by_an_invitation,     "lookup query wait bound"),
    (link_lost_then_asked_for,        f"lookup query wait bound | {AT_ONCE}"),
    (link_lost_then_given_up,         "lookup query wait bound | lookup attached failed"),
    (by_a_live_link,                  f"lookup query wait bound | {AT_ONCE}"),
    (the_read_is_unanswered,                  "lookup query failed"),
    (closed_while_the_record_is_read, "lookup query failed"),
    (closed_while_set_up,             "lookup query wait failed"),
    (closed_while_deployed,           "lookup wait bound"),
]




def test_these_are_all_paths_of_a_search():
    taken = [edges(RESOLVE_JOB, history()[0].steps) for history, _ in HISTORIES]
    assert set.union(*taken) == declared(RESOLVE_JOB)


# ---- one at a time, and none for ever
