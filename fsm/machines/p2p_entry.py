"""State machine of a runtime's table entry for its link to another runtime (page 03, section 3.3).

Each remote runtime has one entity (REG-04, P2P-17, P2P-25, P2P-27, P2P-28, RES-07, I-P7,
I-P17..I-P20). The entry is written, without an address, before the runtime waits for anything, so
that no second set-up begins; it gets the link's address when the link is live and its listeners are
registered. A lost link keeps its entry. An invitation of the same runtime to a new link replaces
the entry, with these exceptions, by which no link is abandoned for a link that may fail:

* Our own request is open and wins the tie-break: the invitation is refused.
* Our own request is open and loses the tie-break: it yields, and ends when the other
  link is live. If that link fails first, our own request continues.
* The link is live: it stays the route until the new link is live, or if that link fails.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Origin, Table, Transition, unless, when


class State(StrEnum):
    """State of the entry for a link."""

    PLACEHOLDER = "placeholder"
    YIELDING = "yielding"
    BOUND = "bound"
    REMOVED = "removed"


class Trigger(StrEnum):
    """Event that changes the state of the entry for a link."""

    PLANNED = "planned"
    INVITED = "invited"
    LIVE = "live"
    LOST = "lost"
    RESTORED = "restored"
    RESUMED = "resumed"
    REPLACED = "replaced"
    ENDED = "ended"


class Condition(StrEnum):
    """Condition on the two runtimes' attempts to set up a link."""

    OWN_REQUEST = "own request"
    """Our requester is setting up its first link."""
    OWN_SMALLER = "own runtime smaller"
    """Our runtime's address is the smaller one, in byte order."""
    LINK_LIVE = "link live"
    """Messages are sent over the entry's link."""


_PLANNED: Final = "the registry makes a placeholder before it deploys the requester"
_INVITED: Final = "the handler reports that it was created"
_BOUND: Final = "the link is live, and its listeners are registered"
_KEPT: Final = "a lost link keeps its entry"
_REMOVED: Final = "the link failed or is over"
_WAITS: Final = "the stub must report the state of the link; stubs of other kinds never do"
_WINS: Final = "the request of the smaller runtime wins, and the invitation fails"
_LOSES: Final = "the other's request wins; the own one waits, and goes on if that link fails"
_RIVAL: Final = "a peer that requests a link again has lost the one that is here"
_BESIDE: Final = "a new request may mean a lost link; it ends when the new one is live"
_OURS_WINS: Final = when(Condition.OWN_REQUEST, Condition.OWN_SMALLER)
_OURS_LOSES: Final = when(Condition.OWN_REQUEST).but_not(Condition.OWN_SMALLER)
_NOT_OURS: Final = unless(Condition.OWN_REQUEST)

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,              Trigger.PLANNED,  State.PLACEHOLDER, _PLANNED),
    Transition(None,              Trigger.INVITED,  State.PLACEHOLDER, _INVITED),
    Transition(State.PLACEHOLDER, Trigger.LIVE,     State.BOUND,       _BOUND),
    Transition(State.PLACEHOLDER, Trigger.INVITED,  State.PLACEHOLDER, _WINS,  origin=Origin.EXTENSION, guard=_OURS_WINS),
    Transition(State.PLACEHOLDER, Trigger.INVITED,  State.YIELDING,    _LOSES, origin=Origin.EXTENSION, guard=_OURS_LOSES),
    Transition(State.PLACEHOLDER, Trigger.INVITED,  State.REMOVED,     _RIVAL, guard=_NOT_OURS),
    Transition(State.PLACEHOLDER, Trigger.ENDED,    State.REMOVED,     _REMOVED),
    Transition(State.YIELDING,    Trigger.LIVE,     State.BOUND,       _BOUND, origin=Origin.EXTENSION),
    Transition(State.YIELDING,    Trigger.RESUMED,  State.PLACEHOLDER, _LOSES, origin=Origin.EXTENSION),
    Transition(State.YIELDING,    Trigger.ENDED,    State.REMOVED,     _REMOVED, origin=Origin.EXTENSION),
    Transition(State.BOUND,       Trigger.LOST,     State.BOUND,       _KEPT,  origin=Origin.EXTENSION),
    Transition(State.BOUND,       Trigger.RESTORED, State.BOUND,       _KEPT,  origin=Origin.EXTENSION),
    Transition(State.BOUND,       Trigger.INVITED,  State.REMOVED,     _RIVAL,  guard=unless(Condition.LINK_LIVE)),
    Transition(State.BOUND,       Trigger.INVITED,  State.BOUND,       _BESIDE, origin=Origin.EXTENSION, guard=when(Condition.LINK_LIVE)),
    Transition(State.BOUND,       Trigger.REPLACED, State.BOUND,       _BESIDE, origin=Origin.EXTENSION),
    Transition(State.BOUND,       Trigger.ENDED,    State.REMOVED,     _REMOVED),
)
# fmt: on

P2P_ENTRY: Final = Table(
    name="p2p_entry",
    owner="registry of the runtime",
    key="<own R>|<remote R>",
    states=State,
    triggers=Trigger,
    conditions=Condition,
    rows=_ROWS,
    may_end=frozenset({State.REMOVED}),
    deadlines=(
        Deadline(State.PLACEHOLDER, "P2P_ENTRY_TIMEOUT", Trigger.ENDED, _WAITS),
        Deadline(State.YIELDING, "P2P_ENTRY_TIMEOUT", Trigger.ENDED, _WAITS),
        Deadline(State.BOUND, None, None, "`p2p_connection` has the deadlines"),
    ),
    meanings={
        State.PLACEHOLDER: "A link to that runtime is being set up; messages go by the node.",
        State.YIELDING: "The own request waits until the link of the other's request is live or fails.",
        State.BOUND: "The link has an address; while it is live, messages go by it.",
        State.REMOVED: "The entry is gone; the next link has a new one.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-P6", "I-P7", "I-P17", "I-P18", "I-P19", "I-P20", "I-R2", "I-R4", "I-R8"),
)
"""State machine of a runtime's table entry for its link to another runtime."""
