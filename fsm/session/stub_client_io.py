"""Inputs and effects of a node stub (`fsm.session.stub_client`).

The state of a node stub's link (`fsm.session.stub_client`).
"""

from typing import TypeAlias, final

import attrs

from fsm.effects import Dropped
from fsm.engine import Step
from fsm.limits.rates import Rate
from specs.bodies.word import SessionMethod
from specs.identity import SenderIdentity
from specs.message import Message
from specs.reply_code import Code

# ---- inputs


@final
@attrs.frozen(slots=True)
class SendAsked:
    """A message is to go to the node."""

    message: Message


@final
@attrs.frozen(slots=True)
class ConnectAsked:
    """Connect without waiting for a first message (C-66)."""


@final
@attrs.frozen(slots=True)
class DisconnectAsked:
    """Close the session, for good (STB-04)."""


@final
@attrs.frozen(slots=True)
class Dialled:
    """The link asked for by `Dial` is open."""


@final
@attrs.frozen(slots=True)
class DialFailed:
    """The link asked for by `Dial` could not be opened."""

    why: str


@final
@attrs.frozen(slots=True)
class LinkLost:
    """The link is gone."""

    why: str


@final
@attrs.frozen(slots=True)
class SessionAnswered:
    """The node answered a session control.

    Attributes:
        token: The session's token, if the answer brought one.
        is_emptied: Whether the node has forgotten what the session owned and subscribed to.
        is_recovered: Whether all that waited for the session comes; None: the node did not say.
        missing: How many messages for it the node knows to be given up.
        is_lasting: Whether another attempt does not help, for any code.
        is_passing: Whether the node has said when another attempt may help.
        login: Hash of the login token that was shown; empty: none was.
        challenge: The text that the runtime's key has to sign, if the answer brought one.
        sender: Runtime and user, as the node tells the receivers of its messages.
        pace: What the node accepts from the session; None: it did not say.
    """

    method: SessionMethod
    code: int
    token: str | None = attrs.field(default=None, repr=False)
    why: str = ""
    is_emptied: bool = False
    is_recovered: bool | None = None
    missing: int = 0
    is_lasting: bool = False
    is_passing: bool = False
    login: str = ""
    challenge: str | None = None
    sender: SenderIdentity | None = None
    pace: Rate | None = None

    @property
    def is_anew(self) -> bool:
        """True if what the session is to own and subscribe to must be set anew."""
        return self.method is SessionMethod.OPEN or self.is_emptied

    @property
    def reason(self) -> str:
        """Half a sentence about a refusal."""
        return self.why or f"the node answered {self.code}"


@final
@attrs.frozen(slots=True)
class StatementGiven:
    """The node has stated which key is the runtime's; comes before `SessionAnswered`.

    Attributes:
        life: Seconds until the statement is over.
    """

    life: float


@final
@attrs.frozen(slots=True)
class Renewed:
    """The runtime has at a session again all that the node had forgotten.

    Attributes:
        session: Number of the session, as `StubClientCore.sessions` counts.
    """

    session: int


@final
@attrs.frozen(slots=True)
class Heard:
    """Something came over the link: the node is alive."""


@final
@attrs.frozen(slots=True)
class Written:
    """The oldest `count` messages of `Write` are with the link."""

    count: int


@final
@attrs.frozen(slots=True)
class Unwritable:
    """The message of a `Write` cannot go over any link; the host reports it to the sender."""

    message: Message


@final
@attrs.frozen(slots=True)
class TimePassed:
    """The deadline may have passed."""


LinkInput: TypeAlias = (
    ConnectAsked | Dialled | DialFailed | LinkLost | SessionAnswered | StatementGiven | TimePassed
)
"""Inputs that move link and session."""

Input: TypeAlias = LinkInput | SendAsked | DisconnectAsked | Renewed | Heard | Written | Unwritable


# ---- effects


@final
@attrs.frozen(slots=True)
class Dial:
    """Open a link to the node; answer `Dialled` or `DialFailed`."""


@final
@attrs.frozen(slots=True)
class HangUp:
    """Stop dialling, or close the link; no answer is expected."""


@final
@attrs.frozen(slots=True)
class Ask:
    """Send a session control over the link; answer `SessionAnswered`.

    Attributes:
        token: Token of the session; None: none is shown, or that of a login.
        challenge: The text to sign, for a request that is made again; the tokens are the same.
    """

    method: SessionMethod
    token: str | None = attrs.field(default=None, repr=False)
    challenge: str | None = None


@final
@attrs.frozen(slots=True)
class Write:
    """Send a message over the link; answer `Written`."""

    message: Message


@final
@attrs.frozen(slots=True)
class Queued:
    """The message waits for the session."""

    message: Message


@final
@attrs.frozen(slots=True)
class Released:
    """The message waits no longer; what becomes of it follows."""

    message: Message


@final
@attrs.frozen(slots=True)
class Refuse:
    """Answer a request instead of sending it.

    Attributes:
        retry_after: Seconds until another attempt may succeed; None: not known, or never.
    """

    message: Message
    code: Code
    why: str
    retry_after: float | None = None


@final
@attrs.frozen(slots=True)
class Ended:
    """The disconnect is done: the stub may be undeployed."""


Effect: TypeAlias = (
    Step | Dial | HangUp | Ask | Write | Queued | Released | Refuse | Dropped | Ended
)
