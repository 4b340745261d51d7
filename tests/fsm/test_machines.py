"""Every machine does exactly what its table says, and the table what the protocol says."""

import csv
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages

import pytest

from fsm import machines
from fsm.machine_list import MACHINES
from fsm.table import Table
from specs.bodies.word import LinkValue, RecordStatus, StatusValue

FIXTURES = Path(__file__).parents[1] / "fixtures"


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
    "transaction": {("pending", "given-up"), ("given-up", "[*]")},
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


def drawn(machine):
    with (FIXTURES / "machine-edges.csv").open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [row for row in rows if row["machine"] == machine]


@pytest.mark.parametrize("machine", ["p2p_connection", "stub_deployment", "stub_connection"])
def test_edges_are_the_drawings_plus_the_declared_extensions(machine):
    """STB-07, I-P1, I-S1: no more, no less."""
    table = MACHINES[machine]
    seen = {(row["source"], row["target"]) for row in drawn(machine)}

    assert set(table.drawn_edges()) == seen
    assert set(table.extension_edges()) == EXTENSIONS[machine]
    assert sorted(table.edges()) == sorted(seen | EXTENSIONS[machine])


@pytest.mark.parametrize("machine", list(SECTION_3_3))
def test_edges_are_those_of_the_protocol_page(machine):
    """I-A1, I-G1, I-M12."""
    page = {edge for chain in SECTION_3_3[machine] for edge in pairwise(chain.split())}
    table = MACHINES[machine]

    assert set(table.drawn_edges()) == page
    assert set(table.extension_edges()) == EXTENSIONS.get(machine, set())


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


# fmt: on


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
