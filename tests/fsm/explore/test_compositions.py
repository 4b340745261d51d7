"""The compositions of real cores hold as they are, and not with one row, timer or rule less.

The oracle is the protocol's: pages 03 (3.1, 3.3), 05 and 08 (I-A7, I-D1, I-D3, I-D4, I-M2, I-P3,
I-P4, I-P6, I-P20, I-S8, I-S10, I-T2).
"""

from contextlib import nullcontext

import attrs
import pytest

from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import Fault, explore
from fsm.machine_list import MACHINES
from fsm.table import ALWAYS
from tests.fsm.flawed_tables import changed, flawed, without_deadline, without_row

pytestmark = pytest.mark.timeout(240)

A_LOOK = 60_000
"""States after which a search for a seeded flaw is given up."""

A_GLANCE = 5_000
"""States among which the planted flaws of a core are."""


def test_every_composition_loses_and_doubles_a_message_by_default():
    bounds = [whole.bounds for whole in COMPOSITIONS.values()]

    assert all(one.losses >= 1 and one.duplicates >= 1 for one in bounds)


def is_found(faults, name, table=nullcontext, most=A_LOOK):
    """Whether one of these is found without duplicates: none of these flaws needs one."""
    whole = COMPOSITIONS[name]
    bounds = attrs.evolve(whole.bounds, duplicates=0)
    with table():
        found = explore(attrs.evolve(whole, bounds=bounds), most, faults)
    return any(one.fault in faults for one in found.findings)


# ---- with one timer less

TIMERS = [
    ("session", "session", "open"),
    ("session", "session", "detached"),
    ("sync", "observer_copy", "syncing"),
    ("sync", "object_subscription", "requested"),
    ("sync-leave", "object_subscription", "active"),
    ("invitation", "invitation", "sent"),
    ("p2p-reconnect", "p2p_connection", "in-progress"),
    ("p2p-reconnect", "p2p_connection", "live"),
    ("transaction", "transaction", "pending"),
    ("resolve", "stub_deployment", "deploying"),
    ("resolve", "resolve_job", "query"),
    ("registration", "registration", "live"),
]


@pytest.mark.parametrize(("name", "machine", "state"), TIMERS)
def test_a_timer_that_is_missing_is_found(name, machine, state):
    table = without_deadline(machine, state)

    assert is_found({Fault.DEADLOCK, Fault.UNSAFE}, name, lambda: flawed(machine, table))


# ---- with one row less

ROWS = [
    ("session", "session", "detached", "reopened"),
    ("session", "session", "detached", "close"),
    ("session", "stub_connection", "disconnected", "reestablished"),
    ("session", "stub_connection", "created", "connect-impossible"),
    ("session-proof", "node_link", "opening", "challenged"),
    ("session-proof", "node_link", "proving", "session-opened"),
    ("session-proof", "node_link", "proving", "asked-anew"),
    ("session-proof", "node_link", "proving", "lost"),
    ("session-tables", "node_subscription", "active", "session-over"),
    ("session-tables", "node_subscription", "active", "address-released"),
    ("session-tables", "address", "allocated", "release"),
    ("sync", "observer_copy", "syncing", "changed"),
    ("sync", "observer_copy", "live", "changed"),
    ("sync", "observer_copy", "stale", "snapshot"),
    ("sync-leave", "object_subscription", "requested", "object-deleted"),
    ("sync-leave", "object_subscription", "active", "unsubscribe"),
    ("invitation", "invitation", "sent", "provisional"),
    ("p2p-reconnect", "p2p_connection", "disconnected", "renegotiated"),
    ("transaction", "transaction", "pending", "repeated"),
    ("transaction", "transaction", "pending", "refused"),
    ("transaction", "transaction", "pending", "given-up"),
    ("resolve", "stub_deployment", "deploying", "load-failed"),
    ("resolve", "resolve_job", "wait", "none"),
    ("registration", "registration", "live", "disconnect"),
    ("registration", "registration", "disconnected", "set-live"),
]


@pytest.mark.parametrize(("name", "machine", "state", "trigger"), ROWS)
def test_a_row_that_is_missing_is_found(name, machine, state, trigger):
    table = without_row(machine, state, trigger)

    assert is_found({Fault.UNSPECIFIED}, name, lambda: flawed(machine, table))


# ---- a simultaneous open


def invited():
    return [row for row in MACHINES["p2p_entry"].rows if row.trigger == "invited"]


def without_tie_break():
    """Whoever is asked while it asks itself gives way (P2P-27 gone)."""
    table = MACHINES["p2p_entry"]
    contested = [row for row in invited() if row.old == "placeholder"]
    gives_way = attrs.evolve(contested[0], guard=ALWAYS, target=table.states("removed"))
    kept = [row for row in table.rows if row not in contested]
    return changed("p2p_entry", rows=(*kept, gives_way))


def without_observing():
    """Nobody expects to be invited while it asks itself."""
    rows = tuple(row for row in MACHINES["p2p_entry"].rows if not row.guard.when)
    return changed("p2p_entry", rows=rows)


@pytest.mark.parametrize(
    ("table", "fault"),
    [(without_tie_break, Fault.DEADLOCK), (without_observing, Fault.UNSPECIFIED)],
)
def test_a_simultaneous_open_without_its_rules_is_found(table, fault):
    assert is_found({fault}, "simultaneous-open", lambda: flawed("p2p_entry", table()), 400_000)


# ---- cores, whose flaws no table shows: they are planted


@pytest.mark.parametrize(
    ("name", "fault"),
    [("session", Fault.UNSAFE), ("sync-leave", Fault.DEADLOCK), ("sync", Fault.UNSAFE)],
)
def test_cores_as_they_are_have_no_flaw(name, fault):
    assert not is_found({fault}, name, most=A_GLANCE)
