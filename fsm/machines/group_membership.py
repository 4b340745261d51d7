"""State machine of a node's membership in the group of nodes that serve one domain.

Each node has one entity: key is its id. The node is a member as long as its row exists in the
shared engine. This row is its lease: the node renews it, and decides by its own clock when the
lease may be over. Then, or when the engine reports that the row is gone or belongs to another
process, the node is `fenced`: it writes nothing, has no links, and joins again with another boot
epoch. A node that leaves renews its lease until all its runtimes have been told.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition


class State(StrEnum):
    """State of a node's membership."""

    JOINING = "joining"
    MEMBER = "member"
    FENCED = "fenced"
    LEAVING = "leaving"
    LEFT = "left"


class Trigger(StrEnum):
    """Event that changes the state of a membership."""

    JOIN = "join"
    ADMIT = "admit"
    FENCE = "fence"
    LEAVE = "leave"
    GO = "go"


_JOIN: Final = "the node writes its row, with a new boot epoch"
_ADMIT: Final = "the engine has the row, the group has room for it, and its lease runs"
_FENCE: Final = "the lease may be over, or the row is another process's"
_LEAVE: Final = "the node is going down, and tells its runtimes"
_GO: Final = "the node serves no runtime any more"
_OURS: Final = Origin.EXTENSION

# fmt: off
_ROWS: Final = (
    Transition(None,          Trigger.JOIN,  State.JOINING, _JOIN,  origin=_OURS),
    Transition(State.JOINING, Trigger.ADMIT, State.MEMBER,  _ADMIT, origin=_OURS),
    Transition(State.JOINING, Trigger.GO,    State.LEFT,    _GO,    origin=_OURS),
    Transition(State.MEMBER,  Trigger.FENCE, State.FENCED,  _FENCE, origin=_OURS),
    Transition(State.MEMBER,  Trigger.LEAVE, State.LEAVING, _LEAVE, origin=_OURS),
    Transition(State.MEMBER,  Trigger.GO,    State.LEFT,    _GO,    origin=_OURS),
    Transition(State.FENCED,  Trigger.JOIN,  State.JOINING, _JOIN,  origin=_OURS),
    Transition(State.FENCED,  Trigger.GO,    State.LEFT,    _GO,    origin=_OURS),
    Transition(State.LEAVING, Trigger.FENCE, State.LEFT,    _FENCE, origin=_OURS),
    Transition(State.LEAVING, Trigger.GO,    State.LEFT,    _GO,    origin=_OURS),
)
# fmt: on

GROUP_MEMBERSHIP: Final = Table(
    name="group_membership",
    owner="message node of a group",
    key="<node id>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.LEFT}),
    extension_ends=frozenset({State.LEFT}),
    deadlines=(
        Deadline(
            State.JOINING, None, None, "the engine is away, its id is taken, or the group is full"
        ),
        Deadline(
            State.MEMBER, "GROUP_TERM", Trigger.FENCE, "counted from the last renewal that was made"
        ),
        Deadline(State.FENCED, None, None, "the engine must be reachable"),
        Deadline(State.LEAVING, "GROUP_TERM", Trigger.FENCE, "counted as for a member"),
    ),
    meanings={
        State.JOINING: "The node writes its row, and looks for room in the group.",
        State.MEMBER: "Its lease runs: it serves runtimes, and writes rows.",
        State.FENCED: "Its lease may be over: it has no links and writes nothing.",
        State.LEAVING: "It is going down; its runtimes go to other nodes.",
        State.LEFT: "The node is no longer in the group.",
    },
    drawn_in="ours, for a domain of several nodes",
    claims=("I-M15",),
)
"""State machine of a node's membership in the group of its domain."""
