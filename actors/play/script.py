"""A scenario file, read: its steps as frozen objects (the form of the golden scenarios)."""

from enum import StrEnum
from typing import TypeAlias, final

import attrs

from actors.play.hop import Hop, Place
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Op

__all__ = [
    "AuthzStep",
    "CallStep",
    "FaultStep",
    "Flag",
    "IngestStep",
    "MessageStep",
    "ResolveStep",
    "Scenario",
    "StateStep",
    "Step",
    "TableStep",
    "TimeStep",
]


class Flag(StrEnum):
    """Marks of a message step that say yes or nothing; the words of the form.

    `event`: no answer is expected. `dup`: the same message instance, seen at a later
    hop. `synthetic`: a router made it. `queued`, `buffered`: it waits there. `control`:
    private to a link. `doubled` (ours): the network delivers it twice.
    """

    EVENT = "event"
    DUP = "dup"
    SYNTHETIC = "synthetic"
    QUEUED = "queued"
    BUFFERED = "buffered"
    CONTROL = "control"
    DOUBLED = "doubled"


@final
@attrs.frozen(kw_only=True)
class MessageStep:
    """A message that passes some hops.

    Attributes:
        number: Of the step, within the scenario.
        message: In normal form; `via`, where it stands, is in the body.
        drop: Why somebody ends it here; None: nobody does.
        is_lost: Whether the network loses it, on the last part of its way; written
            `"drop": "lost"` (ours).
        link: The P2P link that carries it, as the scenario calls it.
        deliver_to: Who gets it, and nobody else; None: not said.
    """

    number: int
    hop: Hop
    message: Message
    flags: frozenset[Flag] = frozenset()
    drop: DropReason | None = None
    is_lost: bool = False
    link: str | None = None
    deliver_to: tuple[str, ...] | None = None


@final
@attrs.frozen(kw_only=True)
class StateStep:
    """An entity of a machine moves.

    Attributes:
        machine: As the scenario calls it.
        key: Parts of the entity's name.
        old: State left; None: it was not there.
        cause: For people.
    """

    number: int
    machine: str
    key: tuple[str, ...]
    old: str | None
    new: str
    cause: str = ""


@final
@attrs.frozen(kw_only=True)
class TableStep:
    """A row of a table comes, changes or goes.

    Attributes:
        at: Whose table.
        val: What the row says; None: not said.
    """

    number: int
    table: str
    op: Op
    at: Place
    key: str
    val: Json = None


@final
@attrs.frozen(kw_only=True)
class ResolveStep:
    """A registry finds where messages for an address go; `result` None: no way known yet."""

    number: int
    at: Place
    to: str
    result: str | None
    why: str = ""


@final
@attrs.frozen(kw_only=True)
class AuthzStep:
    """A policy engine rules on the message of another step.

    Attributes:
        ref: Number of that step.
        decision: `permit` or `deny`.
    """

    number: int
    at: Place
    ref: int
    decision: str
    why: str = ""

    @property
    def is_denial(self) -> bool:
        """Whether the message must not go on."""
        return self.decision == "deny"


@final
@attrs.frozen(kw_only=True)
class TimeStep:
    """So many seconds pass."""

    number: int
    seconds: float
    why: str = ""


@final
@attrs.frozen(kw_only=True)
class FaultStep:
    """Something breaks; in words."""

    number: int
    what: str


@final
@attrs.frozen(kw_only=True)
class CallStep:
    """Somebody calls a function of a component, or a rule is recalled; in words."""

    number: int
    what: str


@final
@attrs.frozen(kw_only=True)
class IngestStep:
    """A message as a peer wrote it, and the normal form it must become."""

    number: int
    raw: JsonObject
    normal: Message


Step: TypeAlias = (
    MessageStep
    | StateStep
    | TableStep
    | ResolveStep
    | AuthzStep
    | TimeStep
    | FaultStep
    | CallStep
    | IngestStep
)
"""One line of a scenario."""


@final
@attrs.frozen
class Scenario:
    """A scenario: its name and its steps in the order of their numbers."""

    name: str
    steps: tuple[Step, ...]

    def step(self, number: int) -> Step | None:
        """Find a step."""
        return next((one for one in self.steps if one.number == number), None)

    def denied_at(self, number: int) -> Place | None:
        """Return where the message of a step is denied; None: nowhere."""
        rulings = (one for one in self.steps if isinstance(one, AuthzStep))
        return next((one.at for one in rulings if one.ref == number and one.is_denial), None)
