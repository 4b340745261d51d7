"""The inputs and effects of the table of foreign domains of a node (MN-19)."""

from typing import TypeAlias, final

import attrs

from fsm.effects import Dropped
from fsm.engine import Step
from fsm.machines.stub_connection import State
from fsm.session.node_session_io import OutboundMessage
from specs.message import Message
from specs.reply_code import Code

__all__ = [
    "Answer",
    "Banish",
    "Deliver",
    "Effect",
    "End",
    "Input",
    "Leave",
    "Open",
    "Pass",
    "Refuse",
    "Renew",
    "SandboxFull",
    "SandboxGone",
    "SandboxInput",
    "SandboxPosted",
    "SandboxReady",
    "SandboxSession",
    "SandboxStatus",
    "SandboxUnreachable",
    "Send",
    "Tick",
]


# ---- inputs


@final
@attrs.frozen(slots=True)
class Send:
    """A message is for a foreign domain."""

    domain: str
    entry: OutboundMessage


@final
@attrs.frozen(slots=True)
class SandboxReady:
    """The sandbox of this stub runs, with the stub in it."""

    stub: str


@final
@attrs.frozen(slots=True)
class SandboxStatus:
    """The stub's connection is in another state now."""

    stub: str
    state: State
    why: str


@final
@attrs.frozen(slots=True)
class SandboxPosted:
    """The stub posted a message."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class SandboxUnreachable:
    """A message cannot be delivered: the sandbox is starting or ending."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class SandboxFull:
    """The sandbox, or its pipe, has no space for a message."""

    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class SandboxSession:
    """The stub has a session that its successor may come back to.

    Attributes:
        is_anew: Whether it is another than before, or has lost what it subscribed to.
    """

    stub: str
    token: str = attrs.field(repr=False)
    is_anew: bool


@final
@attrs.frozen(slots=True)
class SandboxGone:
    """The sandbox has ended, or did not start."""

    stub: str
    why: str


@final
@attrs.frozen(slots=True)
class Banish:
    """A domain has used too many addresses without a right to them: do not dial it (S14)."""

    domain: str


@final
@attrs.frozen(slots=True)
class Leave:
    """The node is going down."""


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline may have passed."""


SandboxInput: TypeAlias = (
    SandboxReady
    | SandboxStatus
    | SandboxPosted
    | SandboxUnreachable
    | SandboxFull
    | SandboxSession
    | SandboxGone
)
"""The inputs about one sandbox."""

Input: TypeAlias = SandboxInput | Send | Banish | Leave | Tick


# ---- effects


@final
@attrs.frozen(slots=True)
class Open:
    """Start a sandbox for a stub; answer `SandboxReady` or `SandboxGone`.

    Attributes:
        token: Of a session that an earlier stub of the domain had; None: there is none.
    """

    stub: str
    domain: str
    token: str | None = attrs.field(repr=False)


@final
@attrs.frozen(slots=True)
class Deliver:
    """Deliver a message to a stub; answer `SandboxFull` or `SandboxUnreachable` on failure."""

    stub: str
    entry: OutboundMessage


@final
@attrs.frozen(slots=True)
class Pass:
    """A stub has forwarded a message: check it as if it came over the network."""

    domain: str
    stub: str
    message: Message


@final
@attrs.frozen(slots=True)
class Refuse:
    """Answer a request that does not reach the domain.

    Attributes:
        retry_after: Seconds until another attempt may succeed; None: not known, or never.
    """

    message: Message
    code: Code
    why: str
    retry_after: float | None = None


@final
@attrs.frozen(slots=True)
class Answer:
    """Answer, into the sandbox, a request that a stub had no right to post."""

    stub: str
    message: Message
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class End:
    """End a sandbox, in any state; answer `SandboxGone`."""

    stub: str
    why: str


@final
@attrs.frozen(slots=True)
class Renew:
    """Renew the subscriptions at the domain's node: it may have forgotten them."""

    domain: str


Effect: TypeAlias = Step | Open | Deliver | Pass | Refuse | Answer | End | Renew | Dropped
