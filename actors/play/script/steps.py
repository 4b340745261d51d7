"""A scenario, read: its setting, its steps, and the actions before each of them."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias, final

import attrs

from actors.play.script.hop import Hop, Place
from actors.play.script.vocabulary import (
    Action,
    AddressAllocated,
    Alias,
    DataObject,
    Denial,
    Fault,
    FieldKind,
    Hyperty,
    KeptAddress,
    Node,
    P2PLink,
    Runtime,
    Session,
)
from fsm.registry.resolve.resolve_io import Topology
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
    "Setting",
    "StateStep",
    "Step",
    "TableStep",
    "TimeStep",
]


@final
@attrs.frozen(kw_only=True)
class Setting:
    """The participants of a scenario, and their states.

    Attributes:
        deployed: Hyperties that are deployed in the scenario, and their runtimes.
    """

    nodes: tuple[Node, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    hyperties: tuple[Hyperty, ...] = ()
    kept: tuple[KeptAddress, ...] = ()
    objects: tuple[DataObject, ...] = ()
    links: tuple[P2PLink, ...] = ()
    sessions: tuple[Session, ...] = ()
    addresses: tuple[AddressAllocated, ...] = ()
    denials: tuple[Denial, ...] = ()
    aliases: tuple[Alias, ...] = ()
    beginning: str = ""
    deployed: Mapping[str, str] = attrs.field(factory=dict)

    def home(self, hyperty: str | None) -> str | None:
        """Return the runtime of a hyperty."""
        homes = {one.is_: one.in_ for one in self.hyperties} | {**self.deployed}
        homes |= {one.is_: one.in_ for one in self.kept}
        return None if hyperty is None else homes.get(hyperty)

    @property
    def named(self) -> tuple[str, ...]:
        """The addresses whose last parts name places."""
        return (
            *(one.is_ for one in self.runtimes),
            *(one.is_ for one in self.hyperties),
            *(one.is_ for one in self.kept),
            *(one.is_ for one in self.objects),
            *self.deployed,
        )

    def topology(self, runtime: Runtime) -> Topology:
        """Return how a runtime reaches other domains."""
        node = next((one for one in self.nodes if one.domain == runtime.domain), None)
        return Topology.TRIANGLE if node is None or not node.stubs else Topology.TRAPEZOID

    def known(self, kind: FieldKind) -> Iterator[str]:
        """Yield the addresses that a field of a kind may name."""
        if kind in {FieldKind.RUNTIME, FieldKind.PROCESS, FieldKind.PROCESSES}:
            yield from (one.is_ for one in self.runtimes)
        if kind in {FieldKind.NODE, FieldKind.PROCESS, FieldKind.PROCESSES}:
            yield from (one.address for one in self.nodes)
        if kind in {FieldKind.HYPERTY, FieldKind.HYPERTIES}:
            yield from (one.is_ for one in self.hyperties)
            yield from (one.is_ for one in self.kept)
            yield from self.deployed
        if kind is FieldKind.OBJECT:
            yield from (one.is_ for one in self.objects)


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
        drop: Why a component drops it here; None: it is not dropped.
        is_lost: Whether the network loses it, on the last hop; written
            `"drop": "lost"` (ours).
        delay: Seconds by which the network delays it, beyond what all messages take;
            written `"delayed": 5` (ours).
        link: The P2P link that carries it, as the scenario calls it.
        deliver_to: Its only receiver; None: not specified.
    """

    number: int
    hop: Hop
    message: Message
    flags: frozenset[Flag] = frozenset()
    drop: DropReason | None = None
    is_lost: bool = False
    delay: float = 0.0
    link: str | None = None
    deliver_to: tuple[str, ...] | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether the network loses, doubles or delays it."""
        return self.is_lost or Flag.DOUBLED in self.flags or self.delay > 0


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
    """A registry resolves an address; `result` None: no route is known yet."""

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
    """Something breaks; the words are for people, a fault line before the step says what."""

    number: int
    what: str


@final
@attrs.frozen(kw_only=True)
class CallStep:
    """A function is called, or a rule is recalled; the words are for people."""

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
    """A scenario.

    Attributes:
        steps: In the order of their numbers.
        setting: Participants before the first step, with their states.
        actions: What the player does before it looks for a step, by the step's number.
    """

    name: str
    steps: tuple[Step, ...]
    setting: Setting
    actions: Mapping[int, tuple[Action, ...]]

    def is_acted(self, step: Step) -> bool:
        """Say whether the player does something at a step."""
        return isinstance(step, TimeStep) or step.number in self.actions

    def breaks(self, step: Step) -> bool:
        """Say whether a fault happens right before a step: it is seen only behind it."""
        return any(isinstance(one, Fault) for one in self.actions.get(step.number, ()))

    def step(self, number: int) -> Step | None:
        """Find a step."""
        return next((one for one in self.steps if one.number == number), None)

    def denied_at(self, number: int) -> Place | None:
        """Return where the message of a step is denied; None: nowhere."""
        rulings = (one for one in self.steps if isinstance(one, AuthzStep))
        return next((one.at for one in rulings if one.ref == number and one.is_denial), None)
