"""A table that contradicts itself cannot be built."""

import attrs
import pytest

from fsm.machines.address import State as Foreign
from fsm.machines.address import Trigger as ForeignTrigger
from fsm.table import Deadline, Origin, Transition, when
from specs.errors import SpecError
from tests.support.trace import tables
from tests.support.trace.tables import DOOR, Door, Key, Push, door

CONTRADICTIONS = {
    "two rows for one state and trigger": (
        {"rows": (*tables.ROWS, Transition(Door.OPEN, Push.SHUT, Door.GONE, "x"))},
        "2 rows for 'shut' in state 'open'",
    ),
    "no initial row": ({"rows": (tables.SHUT,)}, "no initial row"),
    "a target of another machine": (
        {"rows": (*tables.ROWS, Transition(Door.GONE, Push.OPEN, Foreign.RELEASED, "x"))},
        "none of its states",
    ),
    "a source of another machine": (
        {"rows": (*tables.ROWS, Transition(Foreign.RELEASED, Push.OPEN, Door.OPEN, "x"))},
        "none of its states",
    ),
    "a trigger of another machine": (
        {"rows": (*tables.ROWS, Transition(Door.GONE, ForeignTrigger.RELEASE, Door.OPEN, "x"))},
        "none of its triggers",
    ),
    "a deadline of another machine": (
        {"deadlines": (Deadline(Foreign.ALLOCATED, None, None, "x"),)},
        "none of its states",
    ),
    "a deadline by another machine": (
        {"deadlines": (Deadline(Door.OPEN, "REPLY_TIMEOUT", ForeignTrigger.RELEASE, "x"),)},
        "none of its triggers",
    ),
    "a meaning of another machine": ({"meanings": {Foreign.RELEASED: "x"}}, "none of its states"),
    "a condition nobody declared": (
        {"rows": (tables.BUILD, attrs.evolve(tables.SHUT, guard=when(Key.KEY)))},
        "none of its conditions",
    ),
    "two guards that may hold at once": (
        {
            "conditions": Key,
            "rows": (
                *tables.ROWS,
                attrs.evolve(tables.SHUT, target=Door.GONE, guard=when(Key.KEY)),
            ),
        },
        "2 rows for 'shut' in state 'open'",
    ),
    "an end of another machine": ({"may_end": frozenset({Foreign.RELEASED})}, "its states"),
    "an extension that is no end": (
        {"extension_ends": frozenset({Door.OPEN})},
        "missing in may_end",
    ),
    "two deadlines for a state": (
        {"deadlines": (tables.SHUT_WAITS, tables.SHUT_WAITS)},
        "2 deadlines for state 'shut'",
    ),
    "a limit nobody declared": (
        {"deadlines": (Deadline(Door.OPEN, "SOON", Push.SHUT, "x"),)},
        "no limit is named 'SOON'",
    ),
    "a limit without a trigger": (
        {"deadlines": (Deadline(Door.OPEN, "REPLY_TIMEOUT", None, "x"),)},
        "go together",
    ),
    "a deadline that no row follows": (
        {"deadlines": (Deadline(Door.OPEN, "REPLY_TIMEOUT", Push.OPEN, "x"),)},
        "no row for its trigger 'open'",
    ),
}


@pytest.mark.parametrize("name", list(CONTRADICTIONS))
def test_a_contradiction_is_refused(name):
    changes, sentence = CONTRADICTIONS[name]

    with pytest.raises(SpecError, match=sentence):
        door(**changes)


def test_a_target_is_found_from_absent_by_either_name():
    assert DOOR.targets(None, "build") == (Door.OPEN,)
    assert DOOR.targets("[*]", "build") == (Door.OPEN,)


def test_an_undeclared_pair_and_an_unknown_state_have_no_target():
    assert DOOR.targets("open", "tear-down") == ()
    assert DOOR.targets("", "build") == ()
    assert DOOR.targets("ajar", "shut") == ()


def test_extensions_stand_apart_from_the_drawing():
    extension = Transition(Door.GONE, Push.BUILD, Door.OPEN, "x", origin=Origin.EXTENSION)
    table = door(rows=(*tables.ROWS, extension))

    assert table.extension_edges() == [("gone", "open")]
    assert table.drawn_edges() == DOOR.drawn_edges()


def test_two_tables_are_never_equal():
    assert door() != door()
