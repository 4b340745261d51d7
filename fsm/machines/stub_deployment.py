"""State machine of the deployment of a protostub (protocol page 03, section 3.2).

Each deployment has one entity: key is the stub's URL, which is never used again (STB-15), so a
retry after a failure is a new entity (STB-14). The loader of the runtime owns it (STB-10); the
connection of the stub is another machine, `stub_connection`. The two overlap in time: the stub is
constructed while its deployment still runs (C-41). Only this order is required: `deploying` before
`created`, and `deployed` before the first message is sent (I-S7).
"""

from enum import StrEnum
from typing import Final

from fsm.table import Deadline, Table, Transition


class State(StrEnum):
    """State of the deployment of a protostub."""

    DEPLOYING = "deploying"
    DEPLOYED = "deployed"
    DEPLOYMENT_FAILED = "deployment-failed"


class Trigger(StrEnum):
    """Event that changes the state of a deployment."""

    LOAD = "load"
    LOADED = "loaded"
    LOAD_FAILED = "load-failed"


_LOAD: Final = "the loader begins to load the stub"
_LOADED: Final = "the stub is loaded"
_FAILED: Final = "an error, or the deployment took too long"

# ruff: noqa: E501 - a row of the table is one line
# fmt: off
_ROWS: Final = (
    Transition(None,            Trigger.LOAD,        State.DEPLOYING,         _LOAD,   "loader.loadStub() is invoked"),
    Transition(State.DEPLOYING, Trigger.LOADED,      State.DEPLOYED,          _LOADED, "loader.loadStub() is resolved"),
    Transition(State.DEPLOYING, Trigger.LOAD_FAILED, State.DEPLOYMENT_FAILED, _FAILED, "loader.loadStub() is rejected e.g. timeout"),
)
# fmt: on

STUB_DEPLOYMENT: Final = Table(
    name="stub_deployment",
    owner="stub loader of the runtime",
    key="<stub>",
    states=State,
    triggers=Trigger,
    rows=_ROWS,
    may_end=frozenset({State.DEPLOYED, State.DEPLOYMENT_FAILED}),
    # The drawing leads from `deployed` into the Connection region instead.
    extension_ends=frozenset({State.DEPLOYED}),
    deadlines=(
        Deadline(State.DEPLOYING, "DEPLOY_TIMEOUT", Trigger.LOAD_FAILED, "the stub must be up"),
    ),
    meanings={
        State.DEPLOYING: "Descriptor and code are fetched, a sandbox is found, the stub is built.",
        State.DEPLOYED: "The stub runs; its history goes on in stub_connection.",
        State.DEPLOYMENT_FAILED: "There is no stub; the requesters that waited for it are answered.",
    },
    drawn_in="protostub state machine (Deployment region)",
    claims=("I-S6", "I-S7", "I-R6", "I-P7", "I-P9"),
)
"""State machine of the deployment of a protostub."""
