"""What is to be done at one end of a P2P link; both ends give the same effects."""

from typing import TypeAlias, final

import attrs

from fsm.engine import Step
from fsm.machines.p2p_connection import State
from specs.bodies.sync import Candidate
from specs.reply_code import Code

__all__ = [
    "Announce",
    "AnswerInvitation",
    "Answered",
    "AskRow",
    "CloseLink",
    "CreateObject",
    "Dial",
    "Ended",
    "Invite",
    "Listen",
    "Observe",
    "Offer",
    "Plead",
    "ReleaseLink",
    "Renew",
    "SideEffect",
    "UseLink",
    "Withdraw",
]


@final
@attrs.frozen(slots=True)
class Announce:
    """Publish a status event (M-06, M-07)."""

    state: State
    why: str = ""


@final
@attrs.frozen(slots=True)
class AskRow:
    """Ask the registry for its row of the remote runtime; answer with `RowTold`."""


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
class Listen:
    """Open own listeners; answer with `CandidatesReady`."""


@final
@attrs.frozen(slots=True)
class Offer:
    """Add candidates to the own object (M-40)."""

    candidates: tuple[Candidate, ...]


@final
@attrs.frozen(slots=True)
class Renew:
    """Begin a new negotiation: nothing of the one before is of use any more.

    Close the own listeners, give up dials, forget all secrets; take the candidates out of
    the own object, and write into it that they are void (M-40).

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

    candidate: Candidate
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
    """Say goodbye on the link, close it, hand back what it did not deliver."""

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
    | Listen
    | Offer
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
