"""A small machine to vary: a door."""

from enum import StrEnum

import attrs

from fsm.table import Deadline, Table, Transition


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"
    GONE = "gone"


class Push(StrEnum):
    BUILD = "build"
    SHUT = "shut"
    OPEN = "open"
    TEAR_DOWN = "tear-down"


BUILD = Transition(None, Push.BUILD, Door.OPEN, "plan, page 1")
SHUT = Transition(Door.OPEN, Push.SHUT, Door.SHUT, "plan, page 2", "slam")
OPEN = Transition(Door.SHUT, Push.OPEN, Door.OPEN, "plan, page 2")
TEAR_DOWN = Transition(Door.SHUT, Push.TEAR_DOWN, Door.GONE, "plan, page 3")
ROWS = (BUILD, SHUT, OPEN, TEAR_DOWN)

OPEN_WAITS = Deadline(Door.OPEN, "REPLY_TIMEOUT", Push.SHUT, "the wind comes")
SHUT_WAITS = Deadline(Door.SHUT, None, None, "nobody may ever come")

DOOR = Table(
    name="door",
    owner="house",
    key="<house>",
    states=Door,
    triggers=Push,
    rows=ROWS,
    may_end=frozenset({Door.GONE}),
    deadlines=(OPEN_WAITS, SHUT_WAITS),
    drawn_in="plan",
)


def door(**changes: object) -> Table:
    """The door, with changes."""
    return attrs.evolve(DOOR, **changes)
