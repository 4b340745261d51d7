"""What the registry core is told and what it tells; and a record as it is kept."""

import math
from typing import Final, TypeAlias, final

import attrs

from fsm.engine import Step
from fsm.machines.registration import REGISTRATION, State
from fsm.registry.record_index import Search
from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code

__all__ = [
    "KEPT",
    "Answered",
    "Create",
    "Effect",
    "Find",
    "Forget",
    "Input",
    "Keep",
    "Leave",
    "Read",
    "Row",
    "StatusChanged",
    "Tick",
    "Touch",
    "shown",
]

KEPT: Final = "kept from before the node started"
"""Why a record is told of anew that another process has made."""


def shown(status: State) -> State:
    """Return a status as others see it: what a record outlives is its registry's affair."""
    return State.LIVE if status is State.LASTING else status


@final
@attrs.frozen(slots=True)
class Row:
    """A record as it is kept.

    Attributes:
        url: What is registered.
        runtime: Whose it is.
        status: State of the record.
        touched: When its runtime last showed that it lives, or when it left.
        value: The record as the runtime wrote it; unknown keys included.
    """

    url: str
    runtime: str
    status: State
    touched: float
    value: JsonObject

    @property
    def is_live(self) -> bool:
        """Whether what it names can be reached, whatever the record outlives."""
        return shown(self.status) is State.LIVE

    @property
    def due(self) -> float:
        """When the record's status changes by itself."""
        patience = REGISTRATION.patience(self.status)
        if self.is_live:
            patience = min(patience, _wish(self.value))
        return self.touched + patience


@final
@attrs.frozen(slots=True)
class Create:
    """A runtime registers a record (M-21).

    Attributes:
        by: The runtime whose session asks.
        owner: The runtime the address belongs to, as the node knows it.
        is_moved: Whether that runtime has it from another, whose the record may still be.
        is_lasting: Whether the record outlives the session: the runtime speaks upstream's form.
    """

    url: str
    by: str
    owner: str | None
    value: JsonObject
    is_moved: bool = False
    is_lasting: bool = False


@final
@attrs.frozen(slots=True)
class Touch:
    """A runtime changes a record, unregisters it or keeps it alive (M-22..M-24).

    Attributes:
        fields: What to set; nothing: only a sign of life.
        is_lasting: As of `Create`.
    """

    url: str
    by: str
    fields: JsonObject
    is_lasting: bool = False


@final
@attrs.frozen(slots=True)
class Read:
    """Somebody asks for one record (M-25)."""

    url: str


@final
@attrs.frozen(slots=True)
class Find:
    """Somebody searches (M-26..M-28)."""

    search: Search


@final
@attrs.frozen(slots=True)
class Leave:
    """The session of a runtime is over: nothing of it can be reached; what lasts is kept."""

    runtime: str
    why: str


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline has passed."""


Input: TypeAlias = Create | Touch | Read | Find | Leave | Tick


@final
@attrs.frozen(slots=True)
class Keep:
    """Make this row durable."""

    row: Row


@final
@attrs.frozen(slots=True)
class Forget:
    """Remove the row of this address."""

    url: str


@final
@attrs.frozen(slots=True)
class StatusChanged:
    """Tell those who subscribed (M-30)."""

    url: str
    status: State


@final
@attrs.frozen(slots=True)
class Answered:
    """What whoever asked gets."""

    code: Code
    why: str = ""
    value: Json = None


Effect: TypeAlias = Step | Keep | Forget | StatusChanged | Answered


def _wish(value: JsonObject) -> float:
    """Return how many seconds of silence the record itself wants to be borne."""
    expires = value.get("expires")
    return float(expires) if isinstance(expires, int | float) and expires > 0 else math.inf
