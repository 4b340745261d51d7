"""Each static check finds what it looks for, and nothing in the declared machines."""

import attrs
import pytest

from fsm.machine_list import MACHINES
from fsm.static_check import (
    Finding,
    Rule,
    TakenStep,
    can_end,
    check,
    check_fired,
    check_taken,
    check_unknown,
    dotted_name,
    shortest_paths,
)
from fsm.table import Deadline, Transition, unless, when
from tests.support.trace import tables
from tests.support.trace.tables import DOOR, Door, Key, Push, door

SHUT_WITH_KEY = Transition(Door.OPEN, Push.SHUT, Door.SHUT, "plan", guard=when(Key.KEY))
SHUT_WITHOUT = Transition(Door.OPEN, Push.SHUT, Door.SHUT, "plan", guard=unless(Key.KEY))
LOCKED = door(
    conditions=Key, rows=(*tables.ROWS[:1], SHUT_WITH_KEY, SHUT_WITHOUT, *tables.ROWS[2:])
)

SEEDED = {
    "unreachable": (
        {"rows": (tables.BUILD, tables.SHUT, tables.OPEN), "may_end": frozenset({Door.SHUT})},
        Finding("door", Rule.UNREACHABLE, "gone", "no path leads to it"),
    ),
    "dead-end": (
        {"may_end": frozenset({Door.SHUT})},
        Finding(
            "door", Rule.DEAD_END, "gone", "it may not end and no path leads to a state that may"
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
        Finding("door", Rule.NO_CITATION, "gone build", "the row does not say what has happened"),
    ),
    "unused-trigger": (
        {"rows": (tables.BUILD, tables.SHUT, tables.TEAR_DOWN)},
        Finding("door", Rule.UNUSED_TRIGGER, "open", "no row has it"),
    ),
    "incomplete-guard-of-two-conditions": (
        {
            "conditions": Key,
            "rows": (
                tables.BUILD,
                attrs.evolve(tables.SHUT, guard=when(Key.KEY).but_not(Key.WEDGE)),
                attrs.evolve(tables.SHUT, guard=unless(Key.KEY)),
                *tables.ROWS[2:],
            ),
        },
        Finding("door", Rule.INCOMPLETE_GUARD, "open shut", "no row for the case key and wedge"),
    ),
    "incomplete-guard": (
        {"conditions": Key, "rows": (tables.BUILD, SHUT_WITH_KEY, tables.OPEN, tables.TEAR_DOWN)},
        Finding("door", Rule.INCOMPLETE_GUARD, "open shut", "no row for the case not key"),
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


def test_a_circle_without_exit_is_a_dead_end():
    table = door(rows=(tables.BUILD, tables.SHUT, tables.OPEN))

    dead = [finding.subject for finding in check(table) if finding.rule is Rule.DEAD_END]
    assert dead == ["open", "shut"]


def test_the_shortest_path_is_found():
    paths = shortest_paths(DOOR)

    assert paths[None] == ()
    assert [row.trigger for row in paths[Door.GONE]] == [Push.BUILD, Push.SHUT, Push.TEAR_DOWN]


def test_states_with_an_exit_are_found_backwards():
    assert can_end(DOOR) == frozenset(Door)


def test_guards_that_cover_every_case_are_complete():
    assert check(LOCKED) == []


def test_one_word_on_two_edges_is_clear_where_guards_distinguish_them():
    slammed = [
        attrs.evolve(SHUT_WITH_KEY, label="slam"),
        attrs.evolve(SHUT_WITHOUT, label="slam", target=Door.GONE),
    ]
    rows = (tables.BUILD, *slammed, *tables.ROWS[2:])

    assert check(door(conditions=Key, rows=rows)) == []


def test_triggers_in_the_sources_count_as_fired_and_are_reported():
    everything = {dotted_name(one) for one in (*Push, *Key)}

    assert check_fired(LOCKED, everything) == []
    assert check_fired(LOCKED, everything - {dotted_name(Push.SHUT), dotted_name(Key.KEY)}) == [
        Finding("door", Rule.NEVER_FIRED, "shut", "no core fires it"),
        Finding("door", Rule.NEVER_REPORTED, "key", "no core reports it"),
    ]


def taken(*paths, given=()):
    """Steps of the door, each written `old cause new`."""
    for path in paths:
        yield TakenStep("door", *path.split(), frozenset(given))


BUILT_AND_GONE = [*taken("[*] build open", "shut open open", "shut tear-down gone")]


def test_rows_that_were_all_taken_are_content():
    assert check_taken(DOOR, [*BUILT_AND_GONE, *taken("open shut shut")]) == []


def test_a_row_that_no_step_followed_is_found():
    assert check_taken(DOOR, BUILT_AND_GONE) == [
        Finding("door", Rule.NEVER_TAKEN, "open shut", "no test ever took it")
    ]


def test_of_guarded_rows_each_must_have_been_taken():
    steps = [*BUILT_AND_GONE, *taken("open shut shut", given=["key"])]

    assert [finding.subject for finding in check_taken(LOCKED, steps)] == ["open shut [not key]"]


def test_a_step_that_follows_no_row_is_found():
    steps = [*BUILT_AND_GONE, *taken("open shut shut", "open shut gone")]

    assert check_taken(DOOR, steps) == [
        Finding("door", Rule.NOT_DECLARED, "open shut gone", "taken, and no row allows it")
    ]


def test_steps_of_an_unknown_machine_are_found_once():
    assert check_unknown({"window"}, BUILT_AND_GONE) == [
        Finding(
            "door",
            Rule.NOT_DECLARED,
            "machine",
            "steps of it were taken, and no machine has that name",
        )
    ]
