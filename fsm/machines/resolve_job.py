"""State machine of the search for a route to an address (protocol page 03, section 3.3).

Each target has one entity, and only one search at a time (RES-01..RES-15, I-R4..I-R7): key
`node|<domain>` for the stub of a domain's node, `link|<entity>` for a direct link to the runtime of
an entity. A search ends at once if the stub or link exists already; otherwise it asks the domain
registry, has a stub deployed, or waits for the result of another search. While a direct link is
searched for, messages are sent over the node.
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Table, Transition


class State(StrEnum):
    """State of a search for a route."""

    LOOKUP = "lookup"
    QUERY = "query"
    ATTACHED = "attached"
    WAIT = "wait"
    BOUND = "bound"
    FAILED = "failed"


class Trigger(StrEnum):
    """Event that changes the state of a search for a route."""

    ASKED = "asked"
    QUERIED = "queried"
    ATTACH = "attach"
    DEPLOY = "deploy"
    FOUND = "found"
    NONE = "none"


_ASKED: Final = "a message has no listener in this runtime"
_QUERY: Final = "the domain registry is asked for the record of the target"
_ATTACH: Final = "the job waits for what another job has begun, or uses what is there"
_DEPLOY: Final = "a stub is deployed"
_BOUND: Final = "the stub or link is there"
_FAILED: Final = "there is no route"

# fmt: off
_ROWS: Final = (
    Transition(None,           Trigger.ASKED,   State.LOOKUP,   _ASKED),
    Transition(State.LOOKUP,   Trigger.QUERIED, State.QUERY,    _QUERY),
    Transition(State.LOOKUP,   Trigger.ATTACH,  State.ATTACHED, _ATTACH),
    Transition(State.LOOKUP,   Trigger.DEPLOY,  State.WAIT,     _DEPLOY),
    Transition(State.LOOKUP,   Trigger.NONE,    State.FAILED,   _FAILED),
    Transition(State.QUERY,    Trigger.ATTACH,  State.ATTACHED, _ATTACH),
    Transition(State.QUERY,    Trigger.DEPLOY,  State.WAIT,     _DEPLOY),
    Transition(State.QUERY,    Trigger.NONE,    State.FAILED,   _FAILED),
    Transition(State.ATTACHED, Trigger.FOUND,   State.BOUND,    _BOUND),
    Transition(State.ATTACHED, Trigger.NONE,    State.FAILED,   _FAILED),
    Transition(State.WAIT,     Trigger.FOUND,   State.BOUND,    _BOUND),
    Transition(State.WAIT,     Trigger.NONE,    State.FAILED,   _FAILED),
)
# fmt: on

RESOLVE_JOB: Final = Table(
    name="resolve_job",
    owner="registry of the runtime",
    key="node|<domain>, or link|<entity>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.BOUND, State.FAILED}),
    deadlines=(
        Deadline(State.LOOKUP, None, None, "left within the same step"),
        Deadline(State.QUERY, "REPLY_TIMEOUT", Trigger.NONE, "the registry must answer"),
        Deadline(State.ATTACHED, None, None, "the deployment has a deadline, and answers all jobs"),
        Deadline(State.WAIT, None, None, "the deployment or the set-up of the link has a deadline"),
    ),
    meanings={
        State.LOOKUP: "The tables of stubs, links and records are looked at.",
        State.QUERY: "The domain registry is asked where the entity lives.",
        State.ATTACHED: "The stub or link is there, or being made for another job.",
        State.WAIT: "A stub is being deployed for this job.",
        State.BOUND: "The route is known.",
        State.FAILED: "There is no route; waiting messages are refused, or go by the node.",
    },
    drawn_in="protocol page 03, section 3.3",
    claims=("I-B6", "I-B8", "I-R1", "I-R2", "I-R3", "I-R4", "I-R5", "I-R6", "I-R7", "I-R10"),
)
"""State machine of the search for a route to an address."""
