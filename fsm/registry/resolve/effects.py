"""The effects of the registry's route search (RES-01..15)."""

from typing import TypeAlias, final

import attrs

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.intent import Intent
from fsm.p2p.negotiation import FIRST
from specs.reply_code import Code

__all__ = [
    "Connect",
    "Deploy",
    "Disconnect",
    "Effect",
    "LinkDown",
    "LinkEvents",
    "LinkGone",
    "LinkUp",
    "NoRoute",
    "NodePlan",
    "OwnerDoubted",
    "OwnerKnown",
    "PathsLost",
    "PeerGone",
    "PeerKnown",
    "ReadOwner",
    "ReadRecord",
    "RegisterLink",
    "RemovePath",
    "RequesterPlan",
    "Resume",
    "Route",
    "RoutesChanged",
    "SenderEvents",
    "SetPath",
    "Undeploy",
    "UnregisterLink",
    "Yield",
]


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


@final
@attrs.frozen(slots=True)
class RoutesChanged:
    """Forget every route that was answered."""


@final
@attrs.frozen(slots=True)
class NodePlan:
    """The domain that a node stub is deployed for."""

    domain: str


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
    """The node of a domain has a new session of ours: set all paths there again."""

    domain: str


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
    | RowChanged
    | LinkEvents
    | SenderEvents
)
