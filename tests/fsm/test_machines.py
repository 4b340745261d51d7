"""Every machine does exactly what its table says, and the table what the protocol says."""

import csv
from importlib import import_module
from itertools import combinations, pairwise
from pathlib import Path
from pkgutil import walk_packages

import pytest

from fsm import machines
from fsm.engine import Entity
from fsm.machine_list import MACHINES
from fsm.static_check import shortest_paths
from fsm.table import Table, UndeclaredTransitionError
from specs.bodies.word import LinkValue, RecordStatus, StatusValue
from specs.limits import group
from specs.limits import protocol as limits
from tests.support.cases import for_each

FIXTURES = Path(__file__).parents[1] / "fixtures"


def cases(table):
    """Every set of conditions that may be true at once."""
    conditions = list(table.conditions)
    return [set(case) for n in range(len(conditions) + 1) for case in combinations(conditions, n)]


PAIRS = [
    (table, state, trigger, true)
    for table in MACHINES.values()
    for state in (None, *table.states)
    for trigger in table.triggers
    for true in cases(table)
]
TABLES = [pytest.param(table, id=table.name) for table in MACHINES.values()]

# What the drawings do not have and the protocol pages name (C-15, C-17, SC-11). And
# two more places to rest: a deployed stub's story goes on in its other machine, and a
# record stays disconnected for as long as its runtime is away. A node that stops closes
# what is still detached. A record that never was live has nobody who may come back to it.
# The drawing of a path knows no consent of owners.
EXTENSIONS = {
    "p2p_connection": {
        ("disconnected", "in-progress"),
        ("in-progress", "yielding"),
        ("yielding", "in-progress"),
        ("yielding", "failed"),
    },
    "stub_deployment": {("deployed", "[*]")},
    "stub_connection": {("created", "failed"), ("disconnected", "failed")},
    "session": {("detached", "closed"), ("detached", "moved"), ("moved", "[*]")},
    "address": {("released", "allocated")},
    "handler_controller": {
        ("observing", "observing"),
        ("observing", "closed"),
        ("answering", "closed"),
    },
    "node_subscription": {
        ("[*]", "held"),
        ("held", "active"),
        ("active", "held"),
        ("held", "removed"),
    },
    "registration": {
        ("[*]", "live"),
        ("created", "dead"),
        ("[*]", "lasting"),
        ("created", "lasting"),
        ("live", "lasting"),
        ("lasting", "live"),
        ("lasting", "disconnected"),
        ("disconnected", "lasting"),
        ("lasting", "[*]"),
        ("disconnected", "[*]"),
    },
    "p2p_entry": {
        ("placeholder", "placeholder"),
        ("placeholder", "yielding"),
        ("yielding", "placeholder"),
        ("yielding", "bound"),
        ("yielding", "removed"),
        ("bound", "bound"),
    },
    "object_subscription": {("active", "active")},
    "observer_copy": {
        ("syncing", "syncing"),
        ("syncing", "stale"),
        ("live", "live"),
        ("stale", "stale"),
    },
}

# Protocol page 03, section 3.3, line by line.
SECTION_3_3 = {
    "session": (
        "[*] open detached open",
        "open closed",
        "detached expired",
        "closed [*]",
        "expired [*]",
    ),
    "address": ("[*] allocated released [*]",),
    "registration": ("[*] created live disconnected live", "disconnected dead [*]"),
    "transaction": ("[*] pending pending final [*]", "pending timed-out [*]"),
    "resolve_job": (
        "[*] lookup query attached bound [*]",
        "lookup attached failed [*]",
        "query wait bound",
        "lookup wait failed",
        "lookup failed",
        "query failed",
    ),
    "node_subscription": ("[*] active removed [*]",),
    "object_subscription": ("[*] requested active removed [*]", "requested refused [*]"),
    "observer_copy": (
        "[*] syncing live stale live",
        "syncing deleted [*]",
        "live deleted",
        "stale deleted",
    ),
    "p2p_entry": ("[*] placeholder bound removed [*]", "placeholder removed"),
    "handler_controller": ("[*] observing answering open closed [*]",),
    "invitation": ("[*] sent sent accepted [*]", "sent refused [*]", "sent timed-out [*]"),
}


# Ours, by hand: STB-06, STB-17, I-S8..I-S10 and M-14..M-17; P2P-12, P2P-16, P2P-27 and I-P6; the
# nodes of a group.
OURS = {
    "link_dialling": (
        "[*] ready ready dialling dialling ready pleaded dialling-late pleaded ready idle ready",
        "[*] idle",
        "[*] ended",
        "idle ended",
        "ready ended",
        "dialling idle",
        "dialling ended",
        "pleaded idle",
        "pleaded ended",
        "dialling-late idle",
        "dialling-late ended [*]",
    ),
    "node_link": (
        "[*] dialling opening open pinging open closing ended [*]",
        "dialling paused dialling ended",
        "opening paused ended",
        "opening ended",
        "opening proving open",
        "opening renewing open",
        "proving renewing paused",
        "renewing closing",
        "proving opening",
        "proving paused",
        "proving ended",
        "open paused",
        "pinging paused",
        "pinging closing",
        "[*] ended",
    ),
    "group_membership": (
        "[*] joining member fenced joining left [*]",
        "member leaving left",
        "member left",
        "fenced left",
    ),
}


def drawn(machine):
    with (FIXTURES / "machine-edges.csv").open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [row for row in rows if row["machine"] == machine]


def named(pair):
    table, state, trigger, true = pair
    return "-".join((table.name, str(state), trigger, *sorted(true)))


@for_each(PAIRS, named)
def test_a_machine_does_exactly_what_its_table_says(table, state, trigger, true):
    entity = Entity(table, "k")
    for row in shortest_paths(table)[state]:
        entity.step(row.trigger, given=row.guard.when)
    declared = [
        row
        for row in table.rows
        if (row.source, row.trigger) == (state, trigger) and row.guard.holds(true)
    ]

    if declared:
        assert entity.step(trigger, given=true).new == declared[0].target
        assert entity.state is declared[0].target
    else:
        with pytest.raises(UndeclaredTransitionError):
            entity.step(trigger, given=true)
        assert entity.state is state


@pytest.mark.parametrize("machine", ["p2p_connection", "stub_deployment", "stub_connection"])
def test_edges_are_the_drawings_plus_the_declared_extensions(machine):
    """STB-07, I-P1, I-S1: no more, no less."""
    table = MACHINES[machine]
    seen = {(row["source"], row["target"]) for row in drawn(machine)}

    assert set(table.drawn_edges()) == seen
    assert set(table.extension_edges()) == EXTENSIONS[machine]
    assert sorted(table.edges()) == sorted(seen | EXTENSIONS[machine])


@pytest.mark.parametrize("machine", ["p2p_connection", "stub_deployment", "stub_connection"])
def test_labels_are_the_drawings_words(machine):
    words = {(row["source"], row["target"]): row["label"] for row in drawn(machine)}
    rows = [row for row in MACHINES[machine].rows if not row.extension]

    assert {row.edge: row.label for row in rows} == {k: v for k, v in words.items() if v}


@pytest.mark.parametrize("machine", list(SECTION_3_3))
def test_edges_are_those_of_the_protocol_page(machine):
    """I-A1, I-G1, I-M12."""
    page = {edge for chain in SECTION_3_3[machine] for edge in pairwise(chain.split())}
    table = MACHINES[machine]

    assert set(table.drawn_edges()) == page
    assert set(table.extension_edges()) == EXTENSIONS.get(machine, set())


@pytest.mark.parametrize("machine", list(OURS))
def test_edges_that_no_drawing_has_are_those_we_have_decided_on(machine):
    wanted = {edge for chain in OURS[machine] for edge in pairwise(chain.split())}
    table = MACHINES[machine]

    assert table.drawn_edges() == []
    assert set(table.extension_edges()) == wanted


def test_every_table_that_is_declared_is_in_the_catalogue():
    modules = [
        import_module(each.name)
        for each in walk_packages(machines.__path__, f"{machines.__name__}.")
    ]
    declared = [
        one for module in modules for one in vars(module).values() if isinstance(one, Table)
    ]
    assert {table.name: table for table in declared} == MACHINES


@pytest.mark.parametrize("table", TABLES)
def test_every_state_is_reached(table):
    assert set(shortest_paths(table)) == {None, *table.states}


@pytest.mark.parametrize("table", TABLES)
def test_every_state_has_a_sentence(table):
    assert set(table.meanings) == set(table.states)


@pytest.mark.parametrize("table", TABLES)
def test_every_row_cites_the_protocol(table):
    assert all(row.cite for row in table.rows)


@pytest.mark.parametrize("table", TABLES)
def test_every_state_that_may_not_end_has_a_deadline_or_a_reason(table):
    waiting = {deadline.state for deadline in table.deadlines}

    assert set(table.states) - table.may_end <= waiting
    assert all(deadline.why for deadline in table.deadlines)


# By hand, from pages 02 to 05: T_p2p, T_deploy, T_open, T_resp, T_gc, pings, keep-alives.
# fmt: off
TIMERS = {
    ("p2p_connection",      "created"):      ("refused",          limits.P2P_TIMEOUT),
    ("p2p_connection",      "in-progress"):  ("establish-failed", limits.P2P_TIMEOUT),
    ("p2p_connection",      "yielding"):     ("establish-failed", limits.P2P_TIMEOUT),
    ("p2p_connection",      "live"):         ("closed",           limits.PONG_TIMEOUT),
    ("p2p_entry",           "placeholder"):  ("ended",            limits.P2P_ENTRY_TIMEOUT),
    ("p2p_entry",           "yielding"):     ("ended",            limits.P2P_ENTRY_TIMEOUT),
    ("handler_controller",  "observing"):    ("over",             limits.P2P_TIMEOUT),
    ("handler_controller",  "answering"):    ("over",             limits.P2P_TIMEOUT),
    ("stub_deployment",     "deploying"):    ("load-failed",      limits.DEPLOY_TIMEOUT),
    ("stub_connection",     "in-progress"):  ("establish-failed", limits.OPEN_TIMEOUT),
    ("stub_connection",     "live"):         ("closed",           limits.PONG_TIMEOUT),
    ("node_link",           "opening"):      ("lost",             limits.OPEN_TIMEOUT),
    ("node_link",           "proving"):      ("lost",             limits.OPEN_TIMEOUT),
    ("node_link",           "renewing"):     ("lost",             limits.PONG_TIMEOUT),
    ("node_link",           "open"):         ("ping",             limits.PING_PERIOD),
    ("node_link",           "pinging"):      ("lost",             limits.PONG_TIMEOUT),
    ("node_link",           "closing"):      ("end",              limits.GOODBYE_TIMEOUT),
    ("resolve_job",         "query"):        ("none",             limits.REPLY_TIMEOUT),
    ("transaction",         "pending"):      ("silence",          limits.REPLY_TIMEOUT),
    ("group_membership",    "member"):       ("fence",            group.GROUP_TERM),
    ("group_membership",    "leaving"):      ("fence",            group.GROUP_TERM),
    ("session",             "open"):         ("link-lost",        limits.PONG_TIMEOUT),
    ("session",             "detached"):     ("expire",           limits.SESSION_IDLE),
    ("registration",        "created"):      ("bury",             limits.REGISTRATION_EXPIRES),
    ("registration",        "live"):         ("disconnect",       limits.REGISTRATION_EXPIRES),
    ("registration",        "lasting"):      ("disconnect",       limits.REGISTRATION_EXPIRES),
    ("registration",        "disconnected"): ("bury",             limits.REGISTRATION_GRAVE),
    ("object_subscription", "requested"):    ("refuse",           limits.REPLY_TIMEOUT),
    ("object_subscription", "active"):       ("expire",           limits.LEASE),
    ("invitation",          "sent"):         ("silence",          limits.REPLY_TIMEOUT),
    ("observer_copy",       "syncing"):      ("given-up",         limits.REPLY_TIMEOUT),
    ("observer_copy",       "stale"):        ("read-failed",      limits.REPLY_TIMEOUT),
}
# fmt: on


@pytest.mark.parametrize("table", TABLES)
def test_the_protocols_timers_are_the_deadlines_and_no_others(table):
    timed = {
        (table.name, deadline.state): (deadline.trigger, deadline.seconds)
        for deadline in table.deadlines
        if deadline.limit is not None
    }

    assert timed == {key: timer for key, timer in TIMERS.items() if key[0] == table.name}


def test_failed_is_absorbing_and_so_is_dead():
    """I-P3, I-G1."""
    absorbing = {"p2p_connection": "failed", "stub_connection": "failed", "registration": "dead"}
    for machine, state in absorbing.items():
        assert not [row for row in MACHINES[machine].rows if row.source == state]


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("p2p_connection", LinkValue),
        ("stub_connection", StatusValue),
        ("registration", RecordStatus),
    ],
)
def test_messages_report_states_in_the_machines_words(machine, words):
    """C-57; that a record is `lasting` is its registry's affair: all others see it live."""
    states = {state.value for state in MACHINES[machine].states} - {"lasting"}
    assert {word.value for word in words} == states
