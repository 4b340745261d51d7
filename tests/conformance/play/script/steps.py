"""A scenario, read: its setting, its steps, and the actions before each of them."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, NewType, TypeAlias, TypeVar, final

import attrs

from fsm.machine_list import MACHINES
from fsm.registry.resolve.link_entry import Topology
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.schema.field import wire
from specs.trace import Op
from tests.conformance.play.script.hop import Hop, Place
from tests.conformance.play.script.vocabulary import (
    Action,
    DataObject,
    Denial,
    Deploy,
    Fault,
    Given,
    Hyperty,
    HypertyUrl,
    KeptAddress,
    Node,
    NodeUrl,
    ObjectUrl,
    ProcessUrl,
    Runtime,
    RuntimeUrl,
)

G = TypeVar("G", bound=Given)


@final
@attrs.frozen
class Setting:
    """The participants of a scenario, and their states.

    Attributes:
        given: In the order of their lines.
        deployed: Hyperties that are deployed in the scenario.
    """

    given: tuple[Given, ...]
    deployed: tuple[Deploy, ...]

    def all(self, kind: type[G]) -> tuple[G, ...]:
        """Return what is given of a kind."""
        return tuple(one for one in self.given if isinstance(one, kind))

    @property
    def hyperties(self) -> tuple[Hyperty | KeptAddress | Deploy, ...]:
        """All hyperties that have a runtime at any time."""
        return (*self.all(Hyperty), *self.all(KeptAddress), *self.deployed)

    def home(self, hyperty: str | None) -> str | None:
        """Return the runtime of a hyperty."""
        return next((one.in_ for one in self.hyperties if one.is_ == hyperty), None)

    @property
    def named(self) -> tuple[str, ...]:
        """The addresses whose last parts name places."""
        named = (*self.all(Runtime), *self.hyperties, *self.all(DataObject))
        return tuple(one.is_ for one in named)

    def topology(self, runtime: Runtime) -> Topology:
        """Return how a runtime reaches other domains."""
        stubs = [one.stubs for one in self.all(Node) if one.domain == runtime.domain]
        return Topology.TRAPEZOID if any(stubs) else Topology.TRIANGLE

    def denials(self, place: str) -> tuple[Denial, ...]:
        """Return what the bus of a runtime or node forbids."""
        return tuple(one for one in self.all(Denial) if one.at == place)

    def known(self, kind: object) -> Iterator[str]:
        """Yield the addresses that a field of a type may name."""
        if kind in {RuntimeUrl, ProcessUrl}:
            yield from (one.is_ for one in self.all(Runtime))
        if kind in {NodeUrl, ProcessUrl}:
            yield from (one.address for one in self.all(Node))
        if kind is HypertyUrl:
            yield from (one.is_ for one in self.hyperties)
        if kind is ObjectUrl:
            yield from (one.is_ for one in self.all(DataObject))


LOST: Final = "lost"
"""In place of the reason of a drop (ours): no component dropped it, the network lost it."""

Drop = NewType("Drop", str)
"""A member of `DropReason`, or `LOST`."""


@final
@attrs.frozen(kw_only=True)
class MessageStep:
    """A message that passes some hops.

    Attributes:
        number: Of the step, within the scenario.
        message: In normal form; `via`, where it stands, is in the body.
        drop: Why a component drops it here, or that the network loses it on the last hop.
        delayed: Seconds by which the network delays it, beyond what all messages take (ours).
        doubled: Whether the network delivers it twice (ours).
        link: The P2P link that carries it, as the scenario calls it.
        deliver_to: Its only receiver; None: not specified.
        event: Whether no answer is expected.
        dup: Whether it is the same message instance, seen at a later hop.
        synthetic: Whether a router made it.
        queued: Whether it waits there; so says `buffered`.
        control: Whether it is private to a link.
    """

    number: int = attrs.field(metadata=wire("n"))
    hop: Hop
    message: Message = attrs.field(metadata=wire("msg"))
    drop: Drop | None = None
    delayed: float = 0.0
    doubled: bool = False
    link: str | None = attrs.field(default=None, metadata=wire("p2p"))
    deliver_to: tuple[str, ...] | None = None
    event: bool = False
    dup: bool = False
    synthetic: bool = False
    queued: bool = False
    buffered: bool = False
    control: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether the network loses it."""
        return self.drop == LOST

    @property
    def is_disturbed(self) -> bool:
        """Whether the network loses, doubles or delays it."""
        return self.is_lost or self.doubled or self.delayed > 0

    @property
    def marks(self) -> list[str]:
        """The marks that it has, in words."""
        return [one.name for one in attrs.fields(type(self)) if getattr(self, one.name) is True]


LINK: Final = "link"
"""The name of a P2P link itself, which no table describes."""

Machine = NewType("Machine", str)
"""A table, or `LINK`."""

Key = NewType("Key", tuple[str, ...])
"""The parts of an entity's name."""

MACHINE_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: name for name in (*MACHINES, LINK)},
        "alloc": "address",
        "deploy": "stub_deployment",
        "p2p": "p2p_connection",
        "stub": "stub_connection",
        "subscription": "object_subscription",
    }
)
"""Tables by the names that scenarios use."""


@final
@attrs.frozen(kw_only=True)
class StateStep:
    """An entity of a machine moves.

    Attributes:
        old: State left; None: it was not there.
        cause: For people.
    """

    number: int = attrs.field(metadata=wire("n"))
    machine: Machine
    key: Key
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

    number: int = attrs.field(metadata=wire("n"))
    table: str
    op: Literal[Op.ADD, Op.DEL, Op.UPD]
    at: Place
    key: str
    val: Json = None


@final
@attrs.frozen(kw_only=True)
class ResolveStep:
    """A registry resolves an address; `result` None: no route is known yet."""

    number: int = attrs.field(metadata=wire("n"))
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
    """

    number: int = attrs.field(metadata=wire("n"))
    at: Place
    ref: int
    decision: Literal["permit", "deny"]
    why: str = ""


@final
@attrs.frozen(kw_only=True)
class TimeStep:
    """So many seconds pass."""

    number: int = attrs.field(metadata=wire("n"))
    seconds: float = attrs.field(metadata=wire("dt"))
    why: str = ""


@final
@attrs.frozen(kw_only=True)
class FaultStep:
    """Something breaks; the words are for people, a fault line before the step says what."""

    number: int = attrs.field(metadata=wire("n"))
    what: str


@final
@attrs.frozen(kw_only=True)
class CallStep:
    """A function is called, or a rule is recalled; the words are for people."""

    number: int = attrs.field(metadata=wire("n"))
    what: str


@final
@attrs.frozen(kw_only=True)
class IngestStep:
    """A message as a peer wrote it, and the normal form it must become."""

    number: int = attrs.field(metadata=wire("n"))
    raw: JsonObject
    normal: Message = attrs.field(metadata=wire("norm"))


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

STEP_WORDS: Final[Mapping[str, type[Step]]] = MappingProxyType(
    {
        "msg": MessageStep,
        "state": StateStep,
        "table": TableStep,
        "resolve": ResolveStep,
        "authz": AuthzStep,
        "time": TimeStep,
        "fault": FaultStep,
        "call": CallStep,
        "ingest": IngestStep,
    }
)
"""The kinds of steps."""


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
        """Return whether the player does something at a step."""
        return isinstance(step, TimeStep) or step.number in self.actions

    def breaks(self, step: Step) -> bool:
        """Return whether a fault happens right before a step: it is seen only behind it."""
        return any(isinstance(one, Fault) for one in self.actions.get(step.number, ()))

    def step(self, number: int) -> Step | None:
        """Find a step."""
        return next((one for one in self.steps if one.number == number), None)

    def denied_at(self, number: int) -> Place | None:
        """Return where the message of a step is denied; None: nowhere."""
        rulings = (one for one in self.steps if isinstance(one, AuthzStep) and one.ref == number)
        return next((one.at for one in rulings if one.decision == "deny"), None)
