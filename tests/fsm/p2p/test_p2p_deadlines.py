"""How long a search, an end of a link or a controller may wait is said in its table."""

import math

import attrs
import pytest

from fsm.machine_list import MACHINES
from fsm.machines.handler_controller import State as Handling
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkTerms, Role
from fsm.p2p.transfer import P2PTransferCore
from specs.bodies.object import ConnectionData
from specs.limits import protocol as limits
from tests.fsm.flawed_tables import flawed
from tests.support.link_calls import tell, told_end
from tests.support.p2p_objects import believed
from tests.support.runtime.registry_core import (
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
    requesting,
    with_node,
)

POLICY = DialPolicy(("tcp",))
START = 3.0


def end(core, *inputs):
    for happened in (tell.start(), *inputs):
        core.tell(happened, START)
    return core.deadline() - START


def requester(*inputs):
    return end(told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, POLICY), *inputs)


def controller(*inputs):
    return end(told_end(LinkTerms(RA, RB, PC, PQ), Role.HANDLER, POLICY, "offer"), *inputs)


def pinged():
    core = P2PTransferCore(START)
    now = core.deadline()
    core.time_passed(now)
    return core.deadline() - now


def record_asked_for():
    registry = with_node()
    registry.now = START
    registry.ask()
    return registry.core.deadline() - START


ROW, OFFER = tell.row_reported(has_own_request=False), believed(ConnectionData(PQ))
OWN = tell.object_created()


def planned():
    registry = requesting()
    return registry.core.deadline() - registry.now


def yielding():
    registry = Registry(runtime=RC)
    registry.feed(call.record_read(HB, RECORD))
    registry.now = START
    registry.status(f"{RC}/p2phandler/1", "created", f"{RC}/p2phandler/1/conn/1")
    return registry.core.deadline() - START


# fmt: off
WAITS = [
    ("p2p_connection",     "created",     requester),
    ("p2p_connection",     "in-progress", lambda: requester(OWN)),
    ("p2p_connection",     "yielding",    lambda: requester(OWN, tell.yield_to_peer())),
    ("p2p_connection",     "live",        pinged),
    ("handler_controller", "observing",   controller),
    ("handler_controller", "observing",   lambda: controller(ROW)),
    ("handler_controller", "answering",   lambda: controller(ROW, OFFER)),
    ("handler_controller", "answering",   lambda: controller(ROW, OFFER, OWN)),
    ("resolve_job",        "query",       record_asked_for),
    ("p2p_entry",          "placeholder", planned),
    ("p2p_entry",          "yielding",    yielding),
]






def test_every_deadline_of_these_machines_has_its_case():
    machines = {machine for machine, _, _ in WAITS}
    declared = {
        (name, deadline.state)
        for name in machines
        for deadline in MACHINES[name].deadlines
        if deadline.limit is not None
    }
    assert declared == {(machine, state) for machine, state, _ in WAITS}


# ---- the time for a set-up counts from its beginning


def timed(table, state, limit):
    """A table in which one state has another deadline."""
    deadlines = [
        attrs.evolve(one, limit=limit) if one.state == state else one for one in table.deadlines
    ]
    return attrs.evolve(table, deadlines=tuple(deadlines))


@pytest.mark.parametrize("begun", [requester, controller])
def test_an_end_that_is_done_waits_for_nothing(begun):
    assert begun(tell.disconnect("done")) == math.inf


def test_later_steps_prolong_no_deadline():
    quick = timed(MACHINES["handler_controller"], Handling.OBSERVING, "DIAL_TIMEOUT")
    with flawed("handler_controller", quick):
        assert controller(ROW, OFFER) == limits.DIAL_TIMEOUT
