"""Inputs and effects of one end of a P2P link; both ends have the same."""

from enum import Enum, unique
from typing import TypeAlias, final

import attrs

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from fsm.p2p.dialling import ChannelAnswer
from fsm.p2p.negotiation import FIRST
from fsm.p2p.peer_identity import UNSIGNED, Believed, Standing
from specs.bodies.sync import Candidate, ConnectionData, IceCandidate
from specs.reply_code import Code

__all__ = [
    "Announce",
    "AnswerInvitation",
    "Answered",
    "AskRow",
    "CandidatesReady",
    "CloseLink",
    "Command",
    "ConnectAsked",
    "CreateObject",
    "Dial",
    "DialFailed",
    "DisconnectAsked",
    "Ended",
    "HearIce",
    "IceFound",
    "InvitationAnswered",
    "Invite",
    "LinkInput",
    "LinkLost",
    "LinkOpened",
    "LinkTerms",
    "Listen",
    "Loss",
    "ObjectCreated",
    "ObjectRefused",
    "Observe",
    "ObserveRefused",
    "Offer",
    "Opening",
    "Order",
    "OwnObjectInput",
    "PeerInvited",
    "PeerObjectDeleted",
    "PeerObjectInput",
    "PeerObjectSeen",
    "Pin",
    "Plead",
    "ReleaseLink",
    "Renew",
    "ResumeAsked",
    "RowReported",
    "SideEffect",
    "SideInput",
    "Started",
    "TimePassed",
    "Trickle",
    "UseLink",
    "Withdraw",
    "YieldAsked",
]


@final
@attrs.frozen(slots=True)
class LinkTerms:
    """The two ends of a link, as seen from one of them.

    Attributes:
        own: This runtime.
        remote: The other runtime.
        name: Address of this end of the link: PQ or PC.
        peer: Address of the stub at the other end: PH or PQ.
    """

    own: str
    remote: str
    name: str
    peer: str


@final
@attrs.frozen(slots=True)
class Started:
    """The stub was activated, or the handler invited by `peer`."""


@final
@attrs.frozen(slots=True)
class RowReported:
    """The registry's row of the remote runtime (P2P-18).

    Attributes:
        has_own_request: An own requester is at work there, not in a final state.
    """

    has_own_request: bool


@final
@attrs.frozen(slots=True)
class ObjectCreated:
    """The own Connection object was returned (M-32 answered)."""

    url: str


@final
@attrs.frozen(slots=True)
class ObjectRefused:
    """The own Connection object was refused."""

    why: str


@final
@attrs.frozen(slots=True)
class InvitationAnswered:
    """The peer's final answer to our invitation (M-33)."""

    code: int
    why: str = ""


@final
@attrs.frozen(slots=True)
class PeerInvited:
    """The peer invites us to observe its object (M-34)."""

    url: str
    source: str


@final
@attrs.frozen(slots=True)
class PeerObjectSeen:
    """The peer's object as it is now: its snapshot, or after a change.

    Attributes:
        standing: Whether it is the peer's, as its signature was verified.
        ice: Those of its candidates of ICE that the peer has signed.
    """

    data: ConnectionData
    standing: Standing = UNSIGNED
    ice: tuple[IceCandidate, ...] = ()


@final
@attrs.frozen(slots=True)
class ObserveRefused:
    """The peer's object may not be observed, or its owner does not answer."""

    why: str


@final
@attrs.frozen(slots=True)
class PeerObjectDeleted:
    """The peer deleted its object: it gave up, or is leaving (M-47)."""


@final
@attrs.frozen(slots=True)
class CandidatesReady:
    """Own listeners are open.

    Attributes:
        negotiation: The one they were opened for.
        sdp: Session description of the data channel; None: there is none.
    """

    candidates: tuple[Candidate, ...]
    negotiation: int = FIRST
    sdp: str | None = None


@final
@attrs.frozen(slots=True)
class IceFound:
    """A candidate of ICE of this end was found; an empty one is the last.

    Attributes:
        negotiation: The one it is of.
    """

    candidate: str
    negotiation: int = FIRST


@final
@attrs.frozen(slots=True)
class DialFailed:
    """Dialling a candidate came to nothing."""

    attempt: int


@unique
class Opening(Enum):
    """The end that dialled."""

    DIALLED = "dialled"
    ACCEPTED = "accepted"


@final
@attrs.frozen(slots=True)
class LinkOpened:
    """A link is open in both directions, and both ends have proven their certificates.

    Attributes:
        negotiation: The one that its candidate is of.
    """

    link: str
    opening: Opening
    negotiation: int = FIRST


@unique
class Loss(Enum):
    """The end of a link."""

    BROKEN = "broken"
    ORDERLY = "orderly"


@final
@attrs.frozen(slots=True)
class LinkLost:
    """A link is gone; ORDERLY: the peer said goodbye and is not coming back."""

    link: str
    loss: Loss
    why: str = ""


@final
@attrs.frozen(slots=True)
class ConnectAsked:
    """The registry wants the link back (M-11)."""


@final
@attrs.frozen(slots=True)
class DisconnectAsked:
    """The registry, or the runtime's shutdown, wants the link closed for good (M-12)."""

    why: str


@final
@attrs.frozen(slots=True)
class YieldAsked:
    """The registry has lost a simultaneous open to the peer: this link waits (P2P-27).

    Attributes:
        negotiation: The one that lost; the order is stale in any other.
    """

    negotiation: int = FIRST


@final
@attrs.frozen(slots=True)
class ResumeAsked:
    """The link that the registry waited for has failed: this one goes on (P2P-27).

    Attributes:
        negotiation: The one that yielded; the order is stale in any other.
    """

    negotiation: int = FIRST


@final
@attrs.frozen(slots=True)
class TimePassed:
    """The deadline is over."""


OwnObjectInput: TypeAlias = (
    Started
    | RowReported
    | ObjectCreated
    | ObjectRefused
    | InvitationAnswered
    | CandidatesReady
    | IceFound
)
"""About the set-up's beginning and the own Connection object."""

PeerObjectInput: TypeAlias = PeerInvited | PeerObjectSeen | ObserveRefused | PeerObjectDeleted
"""About the peer's Connection object."""

LinkInput: TypeAlias = DialFailed | LinkOpened | LinkLost
"""About links."""

Order: TypeAlias = ConnectAsked | DisconnectAsked | YieldAsked | ResumeAsked
"""Orders of the registry; each is answered."""

Command: TypeAlias = Order | TimePassed
"""About what the registry, or the clock, wants."""

SideInput: TypeAlias = OwnObjectInput | PeerObjectInput | LinkInput | Command


@final
@attrs.frozen(slots=True)
class Announce:
    """Publish a status event (M-06, M-07)."""

    state: State
    why: str = ""


@final
@attrs.frozen(slots=True)
class AskRow:
    """Ask the registry for its row of the remote runtime; answer with `RowReported`."""


@final
@attrs.frozen(slots=True)
class CreateObject:
    """Create the own Connection object (M-32)."""


@final
@attrs.frozen(slots=True)
class Invite:
    """Invite the peer to observe the own object (M-33)."""


@final
@attrs.frozen(slots=True)
class AnswerInvitation:
    """Answer the peer's invitation to its object `url`."""

    url: str
    code: Code
    why: str = ""


@final
@attrs.frozen(slots=True)
class Observe:
    """Observe the peer's object (M-36)."""

    url: str


@final
@attrs.frozen(slots=True)
class Pin:
    """Accept the certificate of the peer, and no other; the peer is known from now on."""

    peer: Believed


@final
@attrs.frozen(slots=True)
class Listen:
    """Open own listeners, and a data channel; answer with `CandidatesReady`, then `IceFound`.

    Attributes:
        offer: The session description that is answered; None: there is none.
    """

    offer: str | None = None


@final
@attrs.frozen(slots=True)
class Offer:
    """Add candidates and session description to the own object, then sign it as it is (M-40)."""

    candidates: tuple[Candidate, ...]
    sdp: str | None = None


@final
@attrs.frozen(slots=True)
class Trickle:
    """Add a candidate of ICE to the own object, with its signature (M-40).

    Attributes:
        host: Proof of the machine, where it needs one.
    """

    candidate: str
    host: str | None = None


@final
@attrs.frozen(slots=True)
class HearIce:
    """Try a candidate of ICE of the peer."""

    candidate: str


@final
@attrs.frozen(slots=True)
class Renew:
    """Begin a new negotiation: nothing of the one before is of use any more.

    Close the own listeners, give up dials; take candidates and signature out of the own object,
    and write into it that they are void (M-40).

    Attributes:
        negotiation: Its number; what comes of the listeners and dials from now on has it.
        status: The object's new status.
    """

    negotiation: int
    status: str


@final
@attrs.frozen(slots=True)
class Plead:
    """Write into the own object that the peer cannot be reached: it may dial (M-40).

    Attributes:
        status: The object's new status, different each time.
    """

    status: str


@final
@attrs.frozen(slots=True)
class Dial:
    """Dial a candidate; answer with `LinkOpened` or `DialFailed`."""

    candidate: Candidate | ChannelAnswer
    attempt: int


@final
@attrs.frozen(slots=True)
class UseLink:
    """The link is ours and live: carry messages over it."""

    link: str


@final
@attrs.frozen(slots=True)
class ReleaseLink:
    """The link is lost: hand back what it did not deliver, in order."""

    link: str


@final
@attrs.frozen(slots=True)
class CloseLink:
    """Send `Bye` on the link, close it, return the messages that it did not deliver."""

    link: str


@final
@attrs.frozen(slots=True)
class Answered:
    """Answer the registry's command."""

    code: Code
    why: str = ""


@final
@attrs.frozen(slots=True)
class Withdraw:
    """Delete the own object, stop observing the peer's, stop listening and dialling."""


@final
@attrs.frozen(slots=True)
class Ended:
    """This end is done: it may be removed."""


SideEffect: TypeAlias = (
    Step
    | Announce
    | AskRow
    | CreateObject
    | Invite
    | AnswerInvitation
    | Observe
    | Pin
    | Listen
    | Offer
    | Trickle
    | HearIce
    | Plead
    | Renew
    | Dial
    | ReleaseLink
    | UseLink
    | CloseLink
    | Answered
    | Withdraw
    | Ended
)
