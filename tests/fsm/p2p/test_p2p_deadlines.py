"""How long a search, an end of a link or a controller may wait is said in its table."""

import math

import attrs
import pytest

from fsm.machine_list import MACHINES
from fsm.machines import handler_controller
from fsm.machines.handler_controller import State as Handling
from fsm.machines.p2p_connection import State
from fsm.p2p import link_end as p2p_side
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkTerms, Role
from fsm.p2p.transfer import P2PTransferCore
from specs.bodies.object import ConnectionData
from specs.limits import protocol as limits
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
# fmt: on
IDS = [f"{machine} {state} {number}" for number, (machine, state, _) in enumerate(WAITS)]


@pytest.mark.parametrize(("machine", "state", "waits"), WAITS, ids=IDS)
def test_a_core_waits_as_long_as_its_table_says(machine, state, waits):
    assert waits() == MACHINES[machine].deadline(state).seconds


@pytest.mark.parametrize(("machine", "state", "waits"), WAITS, ids=IDS)
def test_another_number_in_the_table_is_another_wait(machine, state, waits, monkeypatch):
    monkeypatch.setattr(limits, MACHINES[machine].deadline(state).limit, 0.75)
    assert waits() == 0.75


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


@pytest.fixture
def quick_progress(monkeypatch):
    table = timed(MACHINES["p2p_connection"], State.IN_PROGRESS, "DIAL_TIMEOUT")
    monkeypatch.setattr(p2p_side, "P2P_CONNECTION", table)


@pytest.fixture
def quick_answer(monkeypatch):
    table = timed(MACHINES["handler_controller"], Handling.ANSWERING, "DIAL_TIMEOUT")
    monkeypatch.setattr(handler_controller, "HANDLER_CONTROLLER", table)


@pytest.fixture
def quick_look(monkeypatch):
    table = timed(MACHINES["handler_controller"], Handling.OBSERVING, "DIAL_TIMEOUT")
    monkeypatch.setattr(handler_controller, "HANDLER_CONTROLLER", table)


@pytest.mark.usefixtures("quick_progress")
def test_a_state_that_may_last_less_ends_sooner():
    assert requester() == limits.P2P_TIMEOUT
    assert requester(OWN) == limits.DIAL_TIMEOUT


@pytest.mark.usefixtures("quick_answer")
def test_a_controller_that_has_less_time_than_its_link_gives_up_sooner():
    assert controller(ROW) == limits.P2P_TIMEOUT
    assert controller(ROW, OFFER) == limits.DIAL_TIMEOUT


@pytest.mark.parametrize("begun", [requester, controller])
def test_an_end_that_is_done_waits_for_nothing(begun):
    assert begun(tell.disconnect("done")) == math.inf


@pytest.mark.usefixtures("quick_look")
def test_later_steps_prolong_no_deadline():
    assert controller(ROW, OFFER) == limits.DIAL_TIMEOUT


def test_an_object_that_comes_late_prolongs_nothing():
    core = told_end(LinkTerms(RA, RB, PQ, PH), Role.REQUESTER, POLICY)
    core.tell(tell.start(), START)
    core.tell(OWN, START + 1.0)
    assert core.deadline() == START + limits.P2P_TIMEOUT
