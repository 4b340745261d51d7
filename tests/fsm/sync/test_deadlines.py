"""How long a state is borne is said in its table and nowhere else: the cores ask the table."""

import pytest

from fsm.bus.transactions import TransactionsCore
from fsm.machine_list import MACHINES
from fsm.registry.records import Create
from specs.bodies.object import Change, DataObject
from specs.bodies.word import SessionMethod
from tests.fsm.session.test_node_session import asked, lone_session
from tests.fsm.session.test_stub_client import Stub, answered, tell
from tests.support.lone_copy import lone_copy
from tests.support.lone_registry import LoneRegistry, leave
from tests.support.lone_report import lone_report, told
from tests.support.wire.wire import answer, ask

R, HB, HC = "hyperty-runtime://a.ex/ra", "hyperty://a.ex/hb", "hyperty://c.ex/hc"
URL = "comm://a.ex/o1"


def session():
    core = lone_session()
    core.open(asked(1, None, "token"), 0.0)
    return core


def pinged_session():
    core = session()
    now = core.deadline()
    core.time_over(now)
    return core.deadline() - now


def detached_session():
    core = session()
    core.lose_link(1, "lost", 5.0)
    return core.deadline() - 5.0


def stub(*calls, **more):
    stub = Stub(**more)
    stub.feed(tell.connect(), *calls)
    return stub


def open_stub(*calls, **more):
    opened = answered(SessionMethod.OPEN, 200, "token")
    return stub(tell.dialled(), opened, *calls, **more)


def deadline(stub):
    return stub.core.deadline()


def proving_stub():
    challenged = answered(SessionMethod.OPEN, 401, challenge="c")
    return stub(tell.dialled(), challenged).core.deadline()


def pinged_stub():
    stub = open_stub()
    stub.wait()
    return stub.core.deadline() - stub.now


def reopening_stub():
    return open_stub(tell.lose_link("cut"), tell.time_over(), tell.dialled()).core.deadline()


def renewing_stub():
    emptied = answered(SessionMethod.REOPEN, 200, "token", is_emptied=True)
    calls = tell.lose_link("cut"), tell.time_over(), tell.dialled(), emptied
    return open_stub(*calls, owner="hyperty-runtime://a.ex/ra").core.deadline()


def record(status="live"):
    core = LoneRegistry()
    core.feed(Create(HB, R, R, {"url": HB, "runtime": R, "status": status}), 2.0)
    return core


def lasting_record():
    core = LoneRegistry()
    core.feed(Create(HB, R, R, {"url": HB, "runtime": R}, is_lasting=True), 2.0)
    return core.deadline() - 2.0


def left_record():
    core = record()
    core.feed(leave(R, "left"), 3.0)
    return core.row(HB).due - 3.0


def request():
    core = TransactionsCore()
    core.open(ask(1), None, 1.0)
    return core


def tried_request():
    core = request()
    core.answered(answer(ask(1), 183), 4.0)
    return core.deadline() - 4.0


def subscription():
    return reported(("wait", 1.0), ("subscribe", HC, f"{R}/sm")).deadline() - 1.0


def invitation():
    return reported(("wait", 1.0), ("invite", HC)).deadline() - 1.0


def tried_invitation():
    calls = ("wait", 1.0), ("invite", HC), ("wait", 0.5), ("take_answer", HC, 183, "")
    return reported(*calls).deadline() - 1.5


def reported(*calls):
    core = lone_report(DataObject(HB, R, {}, URL))
    told(core, *calls)
    return core


def copy():
    core = lone_copy(URL, HC)
    core.begin(1.0)
    return core


def stale_copy():
    core = copy()
    core.become(DataObject(HB, R, {}, URL, 1), 2.0)
    core.change(Change(3, "t", 3), 3.0)
    return core.deadline() - 3.0


# fmt: off
WAITS = [
    ("transaction",     "pending",      lambda: request().deadline() - 1.0),
    ("transaction",     "pending",      tried_request),
    ("session",         "open",         pinged_session),
    ("session",         "detached",     detached_session),
    ("stub_connection", "in-progress",  lambda: deadline(stub())),
    ("stub_connection", "in-progress",  lambda: deadline(stub(tell.dialled()))),
    ("stub_connection", "live",         pinged_stub),
    ("node_link",       "opening",      lambda: deadline(stub(tell.dialled()))),
    ("node_link",       "opening",      reopening_stub),
    ("node_link",       "proving",      proving_stub),
    ("node_link",       "renewing",     renewing_stub),
    ("node_link",       "open",         lambda: deadline(open_stub())),
    ("node_link",       "pinging",      pinged_stub),
    ("node_link",       "closing",      lambda: deadline(open_stub(tell.disconnect()))),
    ("registration",    "created",      lambda: record("created").deadline() - 2.0),
    ("registration",    "live",         lambda: record().row(HB).due - 2.0),
    ("registration",    "live",         lambda: record().deadline() - 2.0),
    ("registration",    "lasting",      lasting_record),
    ("registration",    "disconnected", left_record),
    ("object_subscription", "requested", subscription),
    ("invitation",      "sent",         invitation),
    ("invitation",      "sent",         tried_invitation),
    ("observer_copy",   "syncing",      lambda: copy().deadline() - 1.0),
    ("observer_copy",   "stale",        stale_copy),
]
ELSEWHERE = {
    "stub_deployment",  # timed by an actor: see the tests of the loader
    "p2p_connection", "p2p_entry", "handler_controller", "resolve_job",  # in test_p2p_deadlines.py
    "group_membership",  # in tests/fsm/group/test_membership.py
}
CONFIGURED = {
    ("object_subscription", "active"),  # `RuntimeConfig.lease`: see the tests of leases
}
# fmt: on
IDS = [f"{machine} {state} {number}" for number, (machine, state, _) in enumerate(WAITS)]


@pytest.mark.parametrize(("machine", "state", "waits"), WAITS, ids=IDS)
def test_a_core_waits_as_long_as_its_table_says(machine, state, waits):
    assert waits() == MACHINES[machine].deadline(state).seconds


def test_every_deadline_has_its_case():
    declared = {
        (name, deadline.state)
        for name in set(MACHINES) - ELSEWHERE
        for deadline in MACHINES[name].deadlines
        if deadline.limit is not None
    }
    assert declared - CONFIGURED == {(machine, state) for machine, state, _ in WAITS}
