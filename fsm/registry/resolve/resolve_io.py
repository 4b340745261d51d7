"""The inputs and effects of the registry's route search (RES-01..15)."""

from typing import TypeAlias, final

import attrs

from fsm.effects import HintRefused, OwnNode, RowChanged, StubRefused
from fsm.engine import Step
from fsm.intent import Intent, LinkHint
from fsm.p2p.negotiation import FIRST
from specs.bodies.registry import Record
from specs.bodies.word import RecordStatus
from specs.reply_code import Code

__all__ = [
    "Asked",
    "Closing",
    "Connect",
    "Deploy",
    "DeployFailed",
    "Deployed",
    "Disconnect",
    "Effect",
    "HandlerReady",
    "Input",
    "LinkDown",
    "LinkEvents",
    "LinkForged",
    "LinkGone",
    "LinkOver",
    "LinkRegistered",
    "LinkUp",
    "Listed",
    "LocalAdded",
    "LocalRemoved",
    "NoRoute",
    "NodePlan",
    "NotAsked",
    "OwnerAsked",
    "OwnerDoubted",
    "OwnerKnown",
    "OwnerRead",
    "PathSet",
    "PathsLost",
    "PeerGone",
    "PeerKnown",
    "ReadOwner",
    "ReadRecord",
    "RecordRead",
    "RecordReported",
    "RegisterLink",
    "Release",
    "Released",
    "RemovePath",
    "RequesterPlan",
    "Resume",
    "Route",
    "RoutesChanged",
    "SenderEvents",
    "SetPath",
    "StatusSeen",
    "Stopped",
    "StubGone",
    "TimePassed",
    "Undeploy",
    "UnregisterLink",
    "WitnessCalled",
    "Yield",
]


@final
@attrs.frozen(slots=True)
class Asked:
    """A bus has no listener for `to`.

    Attributes:
        hint: How a link to it is set up, as the sender says; not verified (RES-16).
    """

    to: str
    intent: Intent
    hint: LinkHint | None = None


@final
@attrs.frozen(slots=True)
class Deployed:
    """The stub asked for by `Deploy` runs."""

    url: str


@final
@attrs.frozen(slots=True)
class DeployFailed:
    """The stub asked for by `Deploy` never runs; or there is none (`is_absent`)."""

    url: str
    why: str
    is_absent: bool = False


@final
@attrs.frozen(slots=True)
class StubGone:
    """A stub that ran crashed, and its sandbox is gone."""

    url: str


@final
@attrs.frozen(slots=True)
class Released:
    """The answer to a `Release`: whether nothing depends on the stub, so it has no routes now."""

    url: str
    number: int
    is_free: bool


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
    | Released
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


# --- effects ----------------------------------------------------------------------------


@final
@attrs.frozen(slots=True)
class Route:
    """The answer to `Asked`.

    Attributes:
        url: Address of the stub or link that leads there.
        until: How long this may be remembered if `RoutesChanged` does not come.
        why: Half a sentence for people.
    """

    to: str
    intent: Intent
    url: str
    until: float
    why: str


@final
@attrs.frozen(slots=True)
class NoRoute:
    """The other answer to `Asked`: requests are refused with this, once each (RES-14)."""

    to: str
    intent: Intent
    code: Code
    why: str
    retry_after: float | None = None


@final
@attrs.frozen(slots=True)
class RoutesChanged:
    """Forget every route that was answered."""


@final
@attrs.frozen(slots=True)
class NodePlan:
    """The domain that a stub is deployed for: to its node, or its identity provider (PFY-12).

    Attributes:
        is_again: Whether an earlier stub to the node had a session and has failed.
    """

    domain: str
    is_idp: bool = False
    is_again: bool = False


@final
@attrs.frozen(slots=True)
class RequesterPlan:
    """The purpose of a P2P requester (RES-08).

    Attributes:
        descriptor: Catalogue address of the stub, from the record's `p2pRequester`.
    """

    remote: str
    handler: str
    descriptor: str


@final
@attrs.frozen(slots=True)
class Deploy:
    """Deploy a stub; the host answers `Deployed` or `DeployFailed`."""

    url: str
    plan: NodePlan | RequesterPlan


@final
@attrs.frozen(slots=True)
class Undeploy:
    """Remove a stub with all its listeners (STB-16); no answer is expected."""

    url: str


@final
@attrs.frozen(slots=True)
class Release:
    """Forget the routes by an idle stub, unless something depends on it; answer `Released`.

    Open requests depend on it, and subscriptions in its domain. Numbers are not used twice.
    """

    url: str
    domain: str
    number: int


@final
@attrs.frozen(slots=True)
class ReadRecord:
    """Read a record at the registry of its domain (M-25, I-R10); answer `RecordRead`."""

    entity: str


@final
@attrs.frozen(slots=True)
class SetPath:
    """Have the own node deliver `url` here (M-03); answer `PathSet`."""

    url: str


@final
@attrs.frozen(slots=True)
class RemovePath:
    """Have the own node forget `url` (M-04); no answer is expected."""

    url: str


@final
@attrs.frozen(slots=True)
class RegisterLink:
    """Set the handler-side listeners of a link (M-05, I-P17); answer `LinkRegistered`."""

    link: str
    handler: str


@final
@attrs.frozen(slots=True)
class UnregisterLink:
    """Remove the Message BUS listener of a link (I-P19)."""

    link: str


@final
@attrs.frozen(slots=True)
class Connect:
    """Order a requester to restore its link (M-11)."""

    stub: str
    handler: str


@final
@attrs.frozen(slots=True)
class Disconnect:
    """Order a P2P stub to end one link (M-12); other links of the stub stay."""

    stub: str
    remote: str
    link: str


@final
@attrs.frozen(slots=True)
class Yield:
    """Order a requester to wait until the peer's link is live or has failed (P2P-27).

    Attributes:
        negotiation: The one that lost the tie-break.
    """

    stub: str
    remote: str
    negotiation: int = FIRST


@final
@attrs.frozen(slots=True)
class Resume:
    """Order a requester that yields to go on: the peer's link has failed (P2P-27)."""

    stub: str
    remote: str
    negotiation: int = FIRST


@final
@attrs.frozen(slots=True)
class PathsLost:
    """The node of a domain has a new session of ours: set all paths there again.

    Attributes:
        session: Name of the session.
    """

    domain: str
    session: str | None


@final
@attrs.frozen(slots=True)
class LinkUp:
    """A link is live: the registries at both ends can report their entities now (P2P-23)."""

    remote: str
    link: str


@final
@attrs.frozen(slots=True)
class LinkDown:
    """A link is no longer live; it may come back."""

    remote: str


@final
@attrs.frozen(slots=True)
class LinkGone:
    """There is no entry for this runtime any more."""

    remote: str


@final
@attrs.frozen(slots=True)
class PeerKnown:
    """A link leads to this runtime, which may send over it from now on (I-B10)."""

    link: str
    remote: str


@final
@attrs.frozen(slots=True)
class PeerGone:
    """No runtime may send over this link any more."""

    link: str


@final
@attrs.frozen(slots=True)
class ReadOwner:
    """Read the owner of an entity at the registry of its domain (M-25); answer `OwnerRead`."""

    entity: str


@final
@attrs.frozen(slots=True)
class OwnerKnown:
    """The answer to `OwnerAsked`; an owner of None: no registry names one."""

    entity: str
    owner: str | None


@final
@attrs.frozen(slots=True)
class OwnerDoubted:
    """The owner of an entity may have changed: an earlier `OwnerKnown` counts no longer."""

    entity: str


SenderEvents: TypeAlias = PeerKnown | PeerGone | OwnerKnown | OwnerDoubted
"""Effects for the Message BUS: the addresses that a link may bring messages from."""


LinkEvents: TypeAlias = LinkUp | LinkDown | LinkGone
"""Effects for followers of links."""

Effect: TypeAlias = (
    Step
    | Route
    | NoRoute
    | RoutesChanged
    | Deploy
    | Undeploy
    | Release
    | ReadRecord
    | ReadOwner
    | SetPath
    | RemovePath
    | RegisterLink
    | UnregisterLink
    | Connect
    | Disconnect
    | Yield
    | Resume
    | PathsLost
    | OwnNode
    | StubRefused
    | HintRefused
    | RowChanged
    | LinkEvents
    | SenderEvents
)
