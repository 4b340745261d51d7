"""Each static check finds what it looks for, and nothing in the declared machines."""

import pytest

from fsm.catalogue import MACHINES
from fsm.check import Finding, Rule, check
from fsm.explore import can_end, shortest_ways
from fsm.table import Deadline, Transition
from tests.support import tables
from tests.support.tables import DOOR, Door, Push, door

SEEDED = {
    "unreachable": (
        {"rows": (tables.BUILD, tables.SHUT, tables.OPEN), "may_end": frozenset({Door.SHUT})},
        Finding("door", Rule.UNREACHABLE, "gone", "no way leads to it"),
    ),
    "dead-end": (
        {"may_end": frozenset({Door.SHUT})},
        Finding(
            "door", Rule.DEAD_END, "gone", "it may not end and no way leads to a state that may"
        ),
    ),
    "nondeterminism": (
        {"rows": (*tables.ROWS, Transition(Door.OPEN, Push.TEAR_DOWN, Door.GONE, "x", "slam"))},
        Finding("door", Rule.NONDETERMINISM, "open", "'slam' leads to gone and to shut"),
    ),
    "no-deadline": (
        {"deadlines": (tables.OPEN_WAITS,)},
        Finding(
            "door",
            Rule.NO_DEADLINE,
            "shut",
            "neither a deadline nor a reason to wait without end",
        ),
    ),
    "no-deadline-for-no-reason": (
        {"deadlines": (tables.OPEN_WAITS, Deadline(Door.SHUT, None, None, ""))},
        Finding(
            "door",
            Rule.NO_DEADLINE,
            "shut",
            "neither a deadline nor a reason to wait without end",
        ),
    ),
    "no-citation": (
        {"rows": (*tables.ROWS, Transition(Door.GONE, Push.BUILD, Door.OPEN, " "))},
        Finding("door", Rule.NO_CITATION, "gone build", "the row does not say where it comes from"),
    ),
    "unused-trigger": (
        {"rows": (tables.BUILD, tables.SHUT, tables.TEAR_DOWN)},
        Finding("door", Rule.UNUSED_TRIGGER, "open", "no row has it"),
    ),
}


@pytest.mark.parametrize("machine", list(MACHINES))
def test_the_declared_machines_are_clean(machine):
    assert check(MACHINES[machine]) == []


def test_the_machine_that_the_seeds_vary_is_clean():
    assert check(DOOR) == []


@pytest.mark.parametrize("seed", list(SEEDED))
def test_a_seeded_flaw_is_found(seed):
    changes, finding = SEEDED[seed]

    assert finding in check(door(**changes))


def test_a_circle_without_a_way_out_is_a_dead_end():
    table = door(rows=(tables.BUILD, tables.SHUT, tables.OPEN))

    dead = [finding.subject for finding in check(table) if finding.rule is Rule.DEAD_END]
    assert dead == ["open", "shut"]


def test_the_shortest_way_is_found():
    paths = shortest_ways(DOOR)

    assert paths[None] == ()
    assert [row.trigger for row in paths[Door.GONE]] == [Push.BUILD, Push.SHUT, Push.TEAR_DOWN]


def test_states_with_a_way_out_are_found_backwards():
    assert can_end(DOOR) == frozenset(Door)
