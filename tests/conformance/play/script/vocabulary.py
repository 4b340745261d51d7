"""The words of scenario files beside their steps: what is given, what is done, what breaks.

Each word is a class; its fields are the fields of the line, read by their types
(`tests.conformance.play.script.fields`). A field whose name is a Python keyword has an underscore
behind it here. `docs/scenarios.md` lists all of it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NewType, final

import attrs

from specs.addresses.address import host_of, last_segment, message_node
from specs.jsonvalue import JsonObject

Address = NewType("Address", str)
"""Any address."""

RuntimeUrl = NewType("RuntimeUrl", str)
"""A runtime that is given."""

NodeUrl = NewType("NodeUrl", str)
"""A node that is given."""

ProcessUrl = NewType("ProcessUrl", str)
"""A runtime or node that is given."""

HypertyUrl = NewType("HypertyUrl", str)
"""A hyperty that is given or deployed."""

ObjectUrl = NewType("ObjectUrl", str)
"""A data object that is given."""


@attrs.frozen
class Given:
    """What exists before the first step."""


@attrs.frozen
class Action:
    """An act of the player before it looks for a step."""


@attrs.frozen
class Fault(Action):
    """A fault of the surroundings."""


# ---- given


@final
@attrs.frozen(kw_only=True)
class Node(Given):
    """The message node of a domain, with the domain's services.

    Attributes:
        stubs: Other domains that the node reaches by stubs of its own; its runtimes
            then send all their messages for other domains to it.
        records: What the global registry behind it holds, by GUID.
        relays: What the quality broker behind it grants, in this order.
        people: Addresses of the users that its identity provider knows, by assertion.
    """

    domain: str
    stubs: tuple[str, ...] = ()
    records: JsonObject | None = None
    relays: tuple[JsonObject, ...] | None = None
    people: JsonObject | None = None

    @property
    def address(self) -> str:
        """Its address."""
        return message_node(self.domain)


@final
@attrs.frozen(kw_only=True)
class Runtime(Given):
    """A runtime of the domain in its address, booted.

    Attributes:
        p2p: Whether it sets P2P links up and takes them.
        user: Whose hyperties are deployed in it.
    """

    is_: Address
    p2p: bool = False
    user: str | None = None

    @property
    def domain(self) -> str:
        """Its domain."""
        return host_of(self.is_)

    @property
    def name(self) -> str:
        """Its name within the domain."""
        return last_segment(self.is_)


@final
@attrs.frozen(kw_only=True)
class Hyperty(Given):
    """A hyperty, deployed and registered.

    Attributes:
        answers: Whether it answers every request with 200 at once.
        resources: What it is registered with; likewise `data_schemes`.
        status: What its record says before the scenario begins.
    """

    is_: Address
    in_: RuntimeUrl
    answers: bool = False
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = ()
    status: Literal["live", "disconnected"] = "live"


@final
@attrs.frozen(kw_only=True)
class KeptAddress(Given):
    """An address that a hyperty had which runs no longer; its runtime keeps it."""

    is_: Address
    in_: RuntimeUrl
    descriptor: str


@final
@attrs.frozen(kw_only=True)
class DataObject(Given):
    """A data object.

    Attributes:
        by: Its reporter; none: a peer that no runtime of the scenario holds.
        allowed: Hyperties that are accepted as observers without a question.
        observers: Hyperties that observe it.
    """

    is_: Address
    schema: str
    by: HypertyUrl | None = None
    version: int = 1
    data: JsonObject | None = None
    allowed: tuple[HypertyUrl, ...] = ()
    observers: tuple[HypertyUrl, ...] = ()


@final
@attrs.frozen(kw_only=True)
class P2PLink(Given):
    """A P2P link that one runtime requested of another.

    Attributes:
        state: `live`; `connecting`: it is requested as the scenario begins; `broken`: it
            was live and breaks as the scenario begins.
        asking: Hyperties of the first runtime that each ask all of `asked`.
    """

    from_: RuntimeUrl
    to: RuntimeUrl
    state: Literal["live", "connecting", "broken"]
    asking: tuple[HypertyUrl, ...]
    asked: tuple[HypertyUrl, ...]

    @property
    def pair(self) -> tuple[str, str]:
        """Both runtimes; the one that requests it first."""
        return self.from_, self.to


@final
@attrs.frozen(kw_only=True)
class Session(Given):
    """A session of a runtime at a node.

    Attributes:
        state: `detached`: its link breaks as the scenario begins.
    """

    of: RuntimeUrl
    at: NodeUrl
    state: Literal["open", "detached"] = "open"


@final
@attrs.frozen(kw_only=True)
class AddressAllocated(Given):
    """An address, neither a hyperty's nor a data object's, allocated for a runtime."""

    is_: Address
    of: RuntimeUrl


@final
@attrs.frozen(kw_only=True)
class Denial(Given):
    """A prohibition by the policy of a bus.

    Attributes:
        at: The runtime or node whose bus it is.
        why: The reason that the sender gets.
    """

    at: ProcessUrl
    type: str
    from_: str
    to: str
    why: str


@final
@attrs.frozen(kw_only=True)
class Alias(Given):
    """A short name for an address, for the places of hops."""

    is_: str
    for_: Address


@final
@attrs.frozen(kw_only=True)
class Beginning(Given):
    """The begin of the scenario's records, if it precedes the end of the set-up.

    Attributes:
        before: `boot`: from the start of all processes; `observers`: before the observers
            of data objects subscribe.
    """

    before: Literal["boot", "observers"]


GIVEN_WORDS: Final[Mapping[str, type[Given]]] = MappingProxyType(
    {
        "node": Node,
        "runtime": Runtime,
        "hyperty": Hyperty,
        "kept address": KeptAddress,
        "object": DataObject,
        "link": P2PLink,
        "session": Session,
        "address": AddressAllocated,
        "denial": Denial,
        "name": Alias,
        "beginning": Beginning,
    }
)
"""The kinds of `given` lines."""


# ---- do


@final
@attrs.frozen(kw_only=True)
class Send(Action):
    """A hyperty sends the message of the step."""

    by: HypertyUrl


@final
@attrs.frozen(kw_only=True)
class Answer(Action):
    """A hyperty answers, with the message of the step, the oldest open request of its receiver."""

    by: HypertyUrl


@final
@attrs.frozen(kw_only=True)
class Change(Action):
    """A reporter changes its data object as the message of the step says."""

    by: HypertyUrl


@final
@attrs.frozen(kw_only=True)
class Publish(Action):
    """The peer that reports a data object sends the message of the step."""

    object: ObjectUrl


@final
@attrs.frozen(kw_only=True)
class Order(Action):
    """A part of a runtime is ordered to send the request of the step.

    Attributes:
        by: Address of the part.
    """

    by: Address


@final
@attrs.frozen(kw_only=True)
class Ask(Action):
    """A hyperty asks another, whose runtime its own is to set a P2P link up to."""

    by: HypertyUrl
    of: HypertyUrl


@final
@attrs.frozen(kw_only=True)
class Observe(Action):
    """A hyperty asks its sync manager to observe a data object."""

    by: HypertyUrl
    object: ObjectUrl


@final
@attrs.frozen(kw_only=True)
class Watch(Action):
    """The registry of a runtime is asked to follow the status of a hyperty."""

    in_: RuntimeUrl
    hyperty: HypertyUrl


@final
@attrs.frozen(kw_only=True)
class Deploy(Action):
    """A hyperty is deployed and registered."""

    is_: Address
    in_: RuntimeUrl
    name: str | None = None
    descriptor: str | None = None
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = ()


@final
@attrs.frozen(kw_only=True)
class Allocate(Action):
    """The address allocation of a runtime gets new addresses from its node."""

    in_: RuntimeUrl
    scheme: str
    number: int = 1


@final
@attrs.frozen(kw_only=True)
class Reuse(Action):
    """A runtime is asked for a kept address of a hyperty.

    Attributes:
        descriptor: Whose address; `address`: exactly which.
        result: What must come of it: the address, `new`, or `not found`.
    """

    in_: RuntimeUrl
    result: str
    descriptor: str | None = None
    address: str | None = None


@final
@attrs.frozen(kw_only=True)
class LogIn(Action):
    """An outsider opens a session at the node of the step with an assertion."""

    assertion: str


@final
@attrs.frozen(kw_only=True)
class Control(Action):
    """A bare stub connects to the node and sends the session control of the step."""


@final
@attrs.frozen(kw_only=True)
class Forge(Action):
    """The message of the step is written on the link of a runtime as if the node had."""

    from_: NodeUrl
    to: RuntimeUrl


# ---- faults


@final
@attrs.frozen(kw_only=True)
class LinkCut(Fault):
    """The link between two processes breaks: a session's link, or a P2P link."""

    between: tuple[ProcessUrl, ProcessUrl]


@final
@attrs.frozen(kw_only=True)
class PeerVanishes(Fault):
    """A runtime leaves the network and says nothing."""

    of: RuntimeUrl


@final
@attrs.frozen(kw_only=True)
class PeerSilent(Fault):
    """Nothing passes any more between two processes; their links stay."""

    between: tuple[ProcessUrl, ProcessUrl]


@final
@attrs.frozen(kw_only=True)
class RuntimeShutdown(Fault):
    """A runtime ends in good order."""

    of: RuntimeUrl


@final
@attrs.frozen(kw_only=True)
class ClockJump(Fault):
    """The clock goes on by seconds at once; nothing that is due in between happens in time."""

    seconds: float


DO_WORDS: Final[Mapping[str, type[Action]]] = MappingProxyType(
    {
        "send": Send,
        "answer": Answer,
        "change": Change,
        "publish": Publish,
        "order": Order,
        "ask": Ask,
        "observe": Observe,
        "watch": Watch,
        "deploy": Deploy,
        "allocate": Allocate,
        "reuse": Reuse,
        "log in": LogIn,
        "control": Control,
        "forge": Forge,
    }
)
"""Acts that no actor does by itself."""

FAULT_WORDS: Final[Mapping[str, type[Fault]]] = MappingProxyType(
    {
        "link cut": LinkCut,
        "peer vanishes": PeerVanishes,
        "peer silent": PeerSilent,
        "runtime shutdown": RuntimeShutdown,
        "clock jump": ClockJump,
    }
)
"""Faults; a message that is lost, doubled or delayed says so in its step."""
