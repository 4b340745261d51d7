"""The words of scenario files beside their steps: what is given, what is done, what breaks.

Each word is a class; its fields are the fields of the line. A field whose name is a
Python keyword has an underscore behind it here. `docs/scenarios.md` lists all of it.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias, final

import attrs

from fsm.machine_list import MACHINES
from specs.addresses.address import host_of, last_segment, message_node
from specs.jsonvalue import JsonObject

__all__ = [
    "DO_WORDS",
    "FAULT_WORDS",
    "GIVEN_WORDS",
    "LINK",
    "Action",
    "AddressAllocated",
    "Alias",
    "Allocate",
    "Answer",
    "Ask",
    "Beginning",
    "Change",
    "ClockJump",
    "Control",
    "DataObject",
    "Denial",
    "Deploy",
    "Fault",
    "FieldKind",
    "Forge",
    "Given",
    "Hyperty",
    "KeptAddress",
    "LinkCut",
    "LogIn",
    "Node",
    "Observe",
    "Order",
    "P2PLink",
    "PeerSilent",
    "PeerVanishes",
    "Publish",
    "Reuse",
    "Runtime",
    "RuntimeShutdown",
    "Send",
    "Session",
    "Watch",
    "field_name",
    "machine_name",
    "machine_words",
    "nearest",
]

LINK: Final = "link"
"""The name of a P2P link itself, which no table describes."""

_MACHINE_WORDS: Final = {
    "alloc": "address",
    "deploy": "stub_deployment",
    "p2p": "p2p_connection",
    "stub": "stub_connection",
    "subscription": "object_subscription",
}
"""Tables by the short names that scenarios use."""


def machine_name(word: str) -> str | None:
    """Return the name of the table that a scenario's word means; None if there is none."""
    name = _MACHINE_WORDS.get(word, word)
    return name if name == LINK or name in MACHINES else None


def machine_words() -> list[str]:
    """Return every word that means a machine."""
    return sorted({*MACHINES, *_MACHINE_WORDS, LINK})


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word is nearest to an unknown one, as the end of a sentence.

    Args:
        word: The unknown word.
        known: Known words of the vocabulary.
    """
    words = sorted(map(str, known))
    alike = get_close_matches(word, words, n=1, cutoff=0.0)
    if not alike:
        return "there is none"
    return f"the nearest known is {alike[0]!r}"


class FieldKind(Enum):
    """The content of a field; the last kinds name something that the scenario must give."""

    TEXT = auto()
    TEXTS = auto()
    MARK = auto()
    WHOLE = auto()
    SECONDS = auto()
    DATA = auto()
    RECORDS = auto()
    ADDRESS = auto()
    RUNTIME = auto()
    NODE = auto()
    PROCESS = auto()
    PROCESSES = auto()
    HYPERTY = auto()
    HYPERTIES = auto()
    OBJECT = auto()


def _as(kind: FieldKind, *choice: str) -> Mapping[str, object]:
    return MappingProxyType({"kind": kind, "choice": choice})


_TEXT: Final = _as(FieldKind.TEXT)
_TEXTS: Final = _as(FieldKind.TEXTS)
_MARK: Final = _as(FieldKind.MARK)
_DATA: Final = _as(FieldKind.DATA)
_ADDRESS: Final = _as(FieldKind.ADDRESS)
_RUNTIME: Final = _as(FieldKind.RUNTIME)
_HYPERTY: Final = _as(FieldKind.HYPERTY)
_HYPERTIES: Final = _as(FieldKind.HYPERTIES)
_OBJECT: Final = _as(FieldKind.OBJECT)


def field_name(attribute: "attrs.Attribute[object]") -> str:
    """Return what a field is called in a file."""
    return attribute.name.rstrip("_")


# ---- given


@final
@attrs.frozen(kw_only=True)
class Node:
    """The message node of a domain, with the domain's services.

    Attributes:
        stubs: Other domains that the node reaches by stubs of its own; its runtimes
            then send all their messages for other domains to it.
        records: What the global registry behind it holds, by GUID.
        relays: What the quality broker behind it grants, in this order.
        people: Addresses of the users that its identity provider knows, by assertion.
    """

    domain: str = attrs.field(metadata=_TEXT)
    stubs: tuple[str, ...] = attrs.field(default=(), metadata=_TEXTS)
    records: JsonObject | None = attrs.field(default=None, metadata=_DATA)
    relays: tuple[JsonObject, ...] | None = attrs.field(
        default=None, metadata=_as(FieldKind.RECORDS)
    )
    people: JsonObject | None = attrs.field(default=None, metadata=_DATA)

    @property
    def address(self) -> str:
        """Its address."""
        return message_node(self.domain)


@final
@attrs.frozen(kw_only=True)
class Runtime:
    """A runtime of the domain in its address, booted.

    Attributes:
        p2p: Whether it sets P2P links up and takes them.
        user: Whose hyperties are deployed in it.
    """

    is_: str = attrs.field(metadata=_ADDRESS)
    p2p: bool = attrs.field(default=False, metadata=_MARK)
    user: str | None = attrs.field(default=None, metadata=_TEXT)

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
class Hyperty:
    """A hyperty, deployed and registered.

    Attributes:
        answers: Whether it answers every request with 200 at once.
        resources: What it is registered with; likewise `data_schemes`.
        status: What its record says before the scenario begins.
    """

    is_: str = attrs.field(metadata=_ADDRESS)
    in_: str = attrs.field(metadata=_RUNTIME)
    answers: bool = attrs.field(default=False, metadata=_MARK)
    resources: tuple[str, ...] = attrs.field(default=(), metadata=_TEXTS)
    data_schemes: tuple[str, ...] = attrs.field(default=(), metadata=_TEXTS)
    status: str = attrs.field(default="live", metadata=_as(FieldKind.TEXT, "live", "disconnected"))


@final
@attrs.frozen(kw_only=True)
class KeptAddress:
    """An address that a hyperty had which runs no longer; its runtime keeps it."""

    is_: str = attrs.field(metadata=_ADDRESS)
    in_: str = attrs.field(metadata=_RUNTIME)
    descriptor: str = attrs.field(metadata=_TEXT)


@final
@attrs.frozen(kw_only=True)
class DataObject:
    """A data object.

    Attributes:
        by: Its reporter; none: a peer that no runtime of the scenario holds.
        allowed: Hyperties that are accepted as observers without a question.
        observers: Hyperties that observe it.
    """

    is_: str = attrs.field(metadata=_ADDRESS)
    schema: str = attrs.field(metadata=_TEXT)
    by: str | None = attrs.field(default=None, metadata=_HYPERTY)
    version: int = attrs.field(default=1, metadata=_as(FieldKind.WHOLE))
    data: JsonObject | None = attrs.field(default=None, metadata=_DATA)
    allowed: tuple[str, ...] = attrs.field(default=(), metadata=_HYPERTIES)
    observers: tuple[str, ...] = attrs.field(default=(), metadata=_HYPERTIES)


@final
@attrs.frozen(kw_only=True)
class P2PLink:
    """A P2P link that one runtime requested of another.

    Attributes:
        state: `live`; `connecting`: it is requested as the scenario begins; `broken`: it
            was live and breaks as the scenario begins.
        asking: Hyperties of the first runtime that each ask all of `asked`.
    """

    from_: str = attrs.field(metadata=_RUNTIME)
    to: str = attrs.field(metadata=_RUNTIME)
    state: str = attrs.field(metadata=_as(FieldKind.TEXT, "live", "connecting", "broken"))
    asking: tuple[str, ...] = attrs.field(metadata=_HYPERTIES)
    asked: tuple[str, ...] = attrs.field(metadata=_HYPERTIES)

    @property
    def pair(self) -> tuple[str, str]:
        """Both runtimes; the one that requests it first."""
        return self.from_, self.to


@final
@attrs.frozen(kw_only=True)
class Session:
    """A session of a runtime at a node.

    Attributes:
        state: `detached`: its link breaks as the scenario begins.
    """

    of: str = attrs.field(metadata=_RUNTIME)
    at: str = attrs.field(metadata=_as(FieldKind.NODE))
    state: str = attrs.field(default="open", metadata=_as(FieldKind.TEXT, "open", "detached"))


@final
@attrs.frozen(kw_only=True)
class AddressAllocated:
    """An address, neither a hyperty's nor a data object's, allocated for a runtime."""

    is_: str = attrs.field(metadata=_ADDRESS)
    of: str = attrs.field(metadata=_RUNTIME)


@final
@attrs.frozen(kw_only=True)
class Denial:
    """A prohibition by the policy of a bus.

    Attributes:
        at: The runtime or node whose bus it is.
        why: The reason that the sender gets.
    """

    at: str = attrs.field(metadata=_as(FieldKind.PROCESS))
    type: str = attrs.field(metadata=_TEXT)
    from_: str = attrs.field(metadata=_TEXT)
    to: str = attrs.field(metadata=_TEXT)
    why: str = attrs.field(metadata=_TEXT)


@final
@attrs.frozen(kw_only=True)
class Alias:
    """A short name for an address, for the places of hops."""

    is_: str = attrs.field(metadata=_TEXT)
    for_: str = attrs.field(metadata=_ADDRESS)


@final
@attrs.frozen(kw_only=True)
class Beginning:
    """The begin of the scenario's records, if it precedes the end of the set-up.

    Attributes:
        before: `boot`: from the start of all processes; `observers`: before the observers
            of data objects subscribe.
    """

    before: str = attrs.field(metadata=_as(FieldKind.TEXT, "boot", "observers"))


Given: TypeAlias = (
    Node
    | Runtime
    | Hyperty
    | KeptAddress
    | DataObject
    | P2PLink
    | Session
    | AddressAllocated
    | Denial
    | Alias
    | Beginning
)

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
class Send:
    """A hyperty sends the message of the step."""

    by: str = attrs.field(metadata=_HYPERTY)


@final
@attrs.frozen(kw_only=True)
class Answer:
    """A hyperty answers, with the message of the step, the oldest open request of its receiver."""

    by: str = attrs.field(metadata=_HYPERTY)


@final
@attrs.frozen(kw_only=True)
class Change:
    """A reporter changes its data object as the message of the step says."""

    by: str = attrs.field(metadata=_HYPERTY)


@final
@attrs.frozen(kw_only=True)
class Publish:
    """The peer that reports a data object sends the message of the step."""

    object: str = attrs.field(metadata=_OBJECT)


@final
@attrs.frozen(kw_only=True)
class Order:
    """A part of a runtime is ordered to send the request of the step.

    Attributes:
        by: Address of the part.
    """

    by: str = attrs.field(metadata=_ADDRESS)


@final
@attrs.frozen(kw_only=True)
class Ask:
    """A hyperty asks another, whose runtime its own is to set a P2P link up to."""

    by: str = attrs.field(metadata=_HYPERTY)
    of: str = attrs.field(metadata=_HYPERTY)


@final
@attrs.frozen(kw_only=True)
class Observe:
    """A hyperty asks its sync manager to observe a data object."""

    by: str = attrs.field(metadata=_HYPERTY)
    object: str = attrs.field(metadata=_OBJECT)


@final
@attrs.frozen(kw_only=True)
class Watch:
    """The registry of a runtime is asked to follow the status of a hyperty."""

    in_: str = attrs.field(metadata=_RUNTIME)
    hyperty: str = attrs.field(metadata=_HYPERTY)


@final
@attrs.frozen(kw_only=True)
class Deploy:
    """A hyperty is deployed and registered."""

    is_: str = attrs.field(metadata=_ADDRESS)
    in_: str = attrs.field(metadata=_RUNTIME)
    name: str | None = attrs.field(default=None, metadata=_TEXT)
    descriptor: str | None = attrs.field(default=None, metadata=_TEXT)
    resources: tuple[str, ...] = attrs.field(default=(), metadata=_TEXTS)
    data_schemes: tuple[str, ...] = attrs.field(default=(), metadata=_TEXTS)


@final
@attrs.frozen(kw_only=True)
class Allocate:
    """The address allocation of a runtime gets new addresses from its node."""

    in_: str = attrs.field(metadata=_RUNTIME)
    scheme: str = attrs.field(metadata=_TEXT)
    number: int = attrs.field(default=1, metadata=_as(FieldKind.WHOLE))


@final
@attrs.frozen(kw_only=True)
class Reuse:
    """A runtime is asked for a kept address of a hyperty.

    Attributes:
        descriptor: Whose address; `address`: exactly which.
        result: What must come of it: the address, `new`, or `not found`.
    """

    in_: str = attrs.field(metadata=_RUNTIME)
    result: str = attrs.field(metadata=_TEXT)
    descriptor: str | None = attrs.field(default=None, metadata=_TEXT)
    address: str | None = attrs.field(default=None, metadata=_TEXT)


@final
@attrs.frozen(kw_only=True)
class LogIn:
    """An outsider opens a session at the node of the step with an assertion."""

    assertion: str = attrs.field(metadata=_TEXT)


@final
@attrs.frozen(kw_only=True)
class Control:
    """A bare stub connects to the node and sends the session control of the step."""


@final
@attrs.frozen(kw_only=True)
class Forge:
    """The message of the step is written on the link of a runtime as if the node had."""

    from_: str = attrs.field(metadata=_as(FieldKind.NODE))
    to: str = attrs.field(metadata=_RUNTIME)


# ---- faults


@final
@attrs.frozen(kw_only=True)
class LinkCut:
    """The link between two processes breaks: a session's link, or a P2P link."""

    between: tuple[str, ...] = attrs.field(metadata=_as(FieldKind.PROCESSES))


@final
@attrs.frozen(kw_only=True)
class PeerVanishes:
    """A runtime leaves the network and says nothing."""

    of: str = attrs.field(metadata=_RUNTIME)


@final
@attrs.frozen(kw_only=True)
class PeerSilent:
    """Nothing passes any more between two processes; their links stay."""

    between: tuple[str, ...] = attrs.field(metadata=_as(FieldKind.PROCESSES))


@final
@attrs.frozen(kw_only=True)
class RuntimeShutdown:
    """A runtime ends in good order."""

    of: str = attrs.field(metadata=_RUNTIME)


@final
@attrs.frozen(kw_only=True)
class ClockJump:
    """The clock goes on by seconds at once; nothing that is due in between happens in time."""

    seconds: float = attrs.field(metadata=_as(FieldKind.SECONDS))


Fault: TypeAlias = LinkCut | PeerVanishes | PeerSilent | RuntimeShutdown | ClockJump
Action: TypeAlias = (
    Send
    | Answer
    | Change
    | Publish
    | Order
    | Ask
    | Observe
    | Watch
    | Deploy
    | Allocate
    | Reuse
    | LogIn
    | Control
    | Forge
    | Fault
)
"""Acts of the player before it looks for a step."""

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
