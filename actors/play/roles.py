"""The parts of a scenario's cast."""

from enum import Enum, auto
from typing import TypeAlias, final

import attrs

from fsm.cores.resolve import Topology
from specs.jsonvalue import JsonObject
from specs.message import MessageType

__all__ = [
    "Denial",
    "HypertyRole",
    "LinkRole",
    "ObjectRole",
    "Pair",
    "RuntimeRole",
    "Standing",
]

Pair: TypeAlias = tuple[str, str]
"""Two runtimes: who requests the link, and who handles it."""


@final
@attrs.frozen
class RuntimeRole:
    """A runtime that real actors run.

    Attributes:
        wants_links: Whether it sets P2P links up and takes them.
        user: Whose hyperties these are.
    """

    url: str
    domain: str
    name: str
    wants_links: bool = False
    topology: Topology = Topology.TRIANGLE
    user: str | None = None


@final
@attrs.frozen
class HypertyRole:
    """A scripted hyperty.

    Attributes:
        url: Its address in the scenario; the node will give it another.
        resources: What it offers; others search by it.
        data_schemes: Schemes of the data objects it deals with; likewise.
        is_stand_in: Whether the scenario does not speak of it.
    """

    url: str
    runtime: str
    is_stand_in: bool = False
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = ()


@final
@attrs.frozen
class ObjectRole:
    """A data object that is there before the scenario begins.

    Attributes:
        reporter: The hyperty that reports it; None: a peer that real actors do not run.
        observers: Hyperties that observe it already.
        version: What it has come to.
        data: What it holds at that version.
    """

    url: str
    schema: str
    reporter: str | None
    observers: tuple[str, ...] = ()
    version: int = 1
    data: JsonObject = attrs.field(factory=dict)


@final
class Standing(Enum):
    """How far a P2P link is before the scenario begins."""

    LIVE = auto()
    UNDER_WAY = auto()
    BROKEN = auto()
    """It was live a moment ago."""


@final
@attrs.frozen
class LinkRole:
    """A P2P link that is there, or being set up, before the scenario begins."""

    pair: Pair
    standing: Standing


@final
@attrs.frozen
class Denial:
    """What the policy of a bus forbids.

    Attributes:
        at: The runtime or the node whose bus it is.
        from_: Who may not send; as the scenario calls it.
        to: What may not be sent to; likewise.
        why: What the sender is told.
    """

    at: str
    type: MessageType
    from_: str
    to: str
    why: str
