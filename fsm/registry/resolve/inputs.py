"""The inputs of the registry's route search, and its configuration (RES-01..15)."""

from enum import Enum, unique
from typing import TypeAlias, final

import attrs

from fsm.intent import Intent
from fsm.p2p.link_policy import NO_LINKS, LinkPolicy
from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus

__all__ = [
    "Asked",
    "Closing",
    "DeployFailed",
    "Deployed",
    "HandlerReady",
    "Input",
    "LinkForged",
    "LinkOver",
    "LinkRegistered",
    "Listed",
    "LocalAdded",
    "LocalRemoved",
    "NotAsked",
    "OwnerAsked",
    "OwnerRead",
    "PathSet",
    "RecordRead",
    "RecordReported",
    "ResolveConfig",
    "StatusSeen",
    "Stopped",
    "StubGone",
    "TimePassed",
    "Topology",
    "WitnessCalled",
]


@unique
class Topology(Enum):
    """The node that gets messages for another domain (C-49)."""

    TRIANGLE = "triangle"
    """That domain's."""

    TRAPEZOID = "trapezoid"
    """The own domain's, which sends it on."""


@final
@attrs.frozen(slots=True)
class ResolveConfig:
    """The configuration of the registry's own runtime.

    Attributes:
        runtime: Its address.
        domain: Its own domain.
        link_policy: Whether it wants P2P links, and to which peers.
        topology: The node that gets messages for another domain.
    """

    runtime: str
    domain: str
    link_policy: LinkPolicy = NO_LINKS
    topology: Topology = Topology.TRIANGLE


@final
@attrs.frozen(slots=True)
class Asked:
    """A bus has no listener for `to`."""

    to: str
    intent: Intent


@final
@attrs.frozen(slots=True)
class Deployed:
    """The stub asked for by `Deploy` runs."""

    url: str


@final
@attrs.frozen(slots=True)
class DeployFailed:
    """The stub asked for by `Deploy` does not run, and never will."""

    url: str
    why: str


@final
@attrs.frozen(slots=True)
class StubGone:
    """A stub that ran crashed, and its sandbox is gone."""

    url: str


@final
@attrs.frozen(slots=True)
class StatusSeen:
    """A stub's status event (M-06, M-07, M-13).

    Attributes:
        stub: The stub it comes from.
        value: State entered, in the machine's words.
        resource: Remote runtime; None for a node stub.
        link: The P2P link it is about; of a node stub, its session.
        why: Half a sentence for people.
    """

    stub: str
    value: str
    resource: str | None = None
    link: str | None = None
    why: str = ""


@final
@attrs.frozen(slots=True)
class RecordRead:
    """The answer to `ReadRecord`; None: there is no such record, or no registry answered."""

    entity: str
    record: Record | None


@final
@attrs.frozen(slots=True)
class RecordReported:
    """A registry reports the new status of a record (M-30, REG-13).

    Attributes:
        status: None: it may have changed while no report could come.
    """

    entity: str
    status: RecordStatus | None


@final
@attrs.frozen(slots=True)
class PathSet:
    """The answer to `SetPath`: None, or why the node refused it."""

    url: str
    refusal: str | None = None


@final
@attrs.frozen(slots=True)
class LinkRegistered:
    """The answer to `RegisterLink`: None, or why the handler refused it."""

    link: str
    refusal: str | None = None


@final
@attrs.frozen(slots=True)
class LinkOver:
    """A handler reports that one of its links has ended for good and will not come back."""

    stub: str
    link: str


@final
@attrs.frozen(slots=True)
class OwnerAsked:
    """A peer at `remote` sends from an entity: which runtime owns the entity (I-B10)?"""

    entity: str
    remote: str


@final
@attrs.frozen(slots=True)
class OwnerRead:
    """The answer to `ReadOwner`.

    Attributes:
        record: Live or away; None: there is none, or no registry answered.
        is_answered: Whether a registry has answered.
    """

    entity: str
    record: Record | None
    is_answered: bool = True


@final
@attrs.frozen(slots=True)
class LinkForged:
    """A peer sends too many messages from addresses that are not its own (S1)."""

    link: str


@final
@attrs.frozen(slots=True)
class Listed:
    """The registry of a remote runtime reports its entities (M-08, M-09, I-R8).

    Attributes:
        there: Entities that live there.
        gone: Entities that no longer do.
    """

    remote: str
    there: tuple[str, ...]
    gone: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class WitnessCalled:
    """A component at a link's other end speaks for an entity: does it live there (P2P-30)?"""

    link: str
    entity: str


@final
@attrs.frozen(slots=True)
class HandlerReady:
    """The own handler stub is deployed and its path set (P2P-01, P2P-02)."""

    url: str


@final
@attrs.frozen(slots=True)
class LocalAdded:
    """A hyperty or object of this runtime has this address."""

    address: str


@final
@attrs.frozen(slots=True)
class LocalRemoved:
    """The hyperty or object is gone; messages to it are answered 404."""

    address: str


@final
@attrs.frozen(slots=True)
class Closing:
    """The runtime shuts down: the host ends the links; the registry sets up no more."""


@final
@attrs.frozen(slots=True)
class Stopped:
    """The registry itself stops: its open searches end without a result."""


@final
@attrs.frozen(slots=True)
class TimePassed:
    """The deadline may have passed."""


NotAsked: TypeAlias = (
    Deployed
    | DeployFailed
    | StubGone
    | StatusSeen
    | RecordRead
    | RecordReported
    | PathSet
    | LinkRegistered
    | LinkOver
    | LinkForged
    | OwnerAsked
    | OwnerRead
    | Listed
    | HandlerReady
    | LocalAdded
    | LocalRemoved
    | Closing
    | Stopped
    | TimePassed
    | WitnessCalled
)
"""Inputs that nothing waits for."""

Input: TypeAlias = Asked | NotAsked
