"""Inputs and effects of the session core of a node.

In whose form a peer of a message node speaks (DESIGN section 8).
"""

from enum import Enum, unique
from typing import TypeAlias, final

import attrs

from fsm.engine import Step
from specs.dialects.dialect import Dialect
from specs.message import Message
from specs.reply_code import Code


@final
@unique
class PeerForm(Enum):
    """The form of the peer behind a session.

    Upstream's peers use addresses that were not allocated, and know no consent of owners.
    """

    OWN = "protofly.v1"
    UPSTREAM = "upstream"


@final
@unique
class Liveness(Enum):
    """The sign that the peer of a link is alive."""

    PINGED = "pinged by messages"
    BY_LINK = "left to the link"


@final
@attrs.define(slots=True)
class OutboundMessage:
    """A message to runtimes, and its encoding.

    Attributes:
        line: The message as one line of the wire, in normal form.
        spelt: What was made of it for peers that spell otherwise, for others that spell
            alike; None: it is for one peer only.
        holders: In how many queues it waits; of the budget that counts it.
        weight: Bytes of memory that the budget counts for it while it waits; likewise.
    """

    message: Message
    line: bytes
    spelt: dict[Dialect, bytes] | None = attrs.field(default=None, eq=False, repr=False)
    holders: int = attrs.field(default=0, init=False, eq=False, repr=False)
    weight: int = attrs.field(default=0, init=False, eq=False, repr=False)


@final
@attrs.frozen(slots=True)
class Credentials:
    """The result of a login.

    Attributes:
        user: The user who logged in.
        issuer: Its issuer: only both together identify a user.
        until: From when on the session has no valid credentials, by the core's clock.
    """

    user: str
    issuer: str
    until: float


@final
@attrs.frozen(slots=True)
class KeptSession:
    """What of a session outlives its node: no token, only hashes.

    Attributes:
        digest: SHA-256 of the token.
        previous: SHA-256 of the token before it, whose holder may not know the newer one yet;
            empty: it does.
        is_taken_up: Whether its runtime has shown that it knows of it.
        credentials: What a login has shown; None: nobody logged in.
        key: Thumbprint of the key that the runtime has proven; None: it showed none.
        displaced: SHA-256 of tokens of runtimes that another login has taken the session from.
    """

    runtime: str
    digest: bytes
    previous: bytes = b""
    is_taken_up: bool = True
    credentials: Credentials | None = None
    key: str | None = None
    displaced: tuple[bytes, ...] = ()

    def has_displaced(self, other: "KeptSession | None") -> bool:
        """Return whether another login has taken the session over since an earlier form of it."""
        return other is not None and other.digest in self.displaced


@final
@attrs.frozen(slots=True)
class OpenAsked:
    """A link asks for the session (M-14).

    Attributes:
        link: Number of the link; never used twice in a node.
        token: What the link offers to prove that the session is its own.
        fresh: The token to be given if the session is new, or taken over by a login;
            random, made by the host.
        credentials: What a login has shown; None: no login.
        is_unproved: Whether it comes as upstream's stubs do, which prove nothing, to a node
            without logins: while detached, a session that was opened so is given to
            the next peer that opens so.
        is_shared: Whether it is given so, too, while another link has it.
        is_fixed: Whether the token stays the same, and the session ends with the node: upstream's
            stubs expect that.
        key: Thumbprint of the key that the link has proven; None: none.
    """

    link: int
    token: str | None = attrs.field(repr=False)
    fresh: str
    liveness: Liveness = Liveness.PINGED
    credentials: Credentials | None = None
    is_unproved: bool = False
    is_shared: bool = False
    is_fixed: bool = False
    key: str | None = None


@final
@attrs.frozen(slots=True)
class ReopenAsked:
    """A link asks for the session it knows the token of (M-15).

    Attributes:
        fresh: The token that replaces it; None: it stays, as upstream's stubs expect.
        key: Thumbprint of the key that the link has proven; None: none.
    """

    link: int
    token: str | None = attrs.field(repr=False)
    liveness: Liveness = Liveness.PINGED
    fresh: str | None = None
    key: str | None = None


@final
@attrs.frozen(slots=True)
class ClaimAsked:
    """A link of a kind that knows no tokens asks for the session.

    It gets a session that never had a token, from whichever link has it.
    """

    link: int
    liveness: Liveness = Liveness.BY_LINK


@final
@attrs.frozen(slots=True)
class Resumed:
    """The node knows of a session of its earlier process, or of another node of the domain.

    Attributes:
        is_of_other: Whether another node had it.
        is_followed: Whether what waits for the runtime there is handed over.
    """

    kept: KeptSession
    is_of_other: bool = False
    is_followed: bool = False


@final
@attrs.frozen(slots=True)
class MovedAway:
    """Another node of the domain has the session now, or may have it."""

    why: str


@final
@attrs.frozen(slots=True)
class CloseAsked:
    """The link says goodbye (M-16)."""

    link: int


@final
@attrs.frozen(slots=True)
class LinkLost:
    """A link is gone; feed what was not written to it as `Wait`, in order."""

    link: int
    why: str


@final
@attrs.frozen(slots=True)
class Wait:
    """Keep a message until the runtime is back; only while detached."""

    entry: OutboundMessage


@final
@attrs.frozen(slots=True)
class Shed:
    """Give up what waits for the runtime: the node holds too much."""


@final
@attrs.frozen(slots=True)
class NodeLeaves:
    """The node is going down: no session can be come back to."""


@final
@attrs.frozen(slots=True)
class Tick:
    """The deadline has passed."""


Input: TypeAlias = (
    OpenAsked
    | ReopenAsked
    | ClaimAsked
    | Resumed
    | MovedAway
    | CloseAsked
    | LinkLost
    | Wait
    | Shed
    | NodeLeaves
    | Tick
)


@final
@attrs.frozen(slots=True)
class Granted:
    """The link has the session now; what waited goes out first, in order.

    Attributes:
        token: What resumes the session; empty if a claim does.
        waiting: Messages for the runtime that came while it was away.
        is_lasting: Whether the session outlives the node: it is stored before the link is
            answered.
        is_emptied: Whether the node has started again meanwhile: the session owns and
            subscribes to nothing.
        is_recovered: Whether all that waited for the session comes, as far as this node knows;
            None: it is a new one.
        missing: How many messages were given up, as far as this node knows.
    """

    link: int
    token: str = attrs.field(repr=False)
    waiting: tuple[OutboundMessage, ...]
    is_lasting: bool = False
    is_emptied: bool = False
    is_recovered: bool | None = None
    missing: int = 0


@final
@attrs.frozen(slots=True)
class Refused:
    """The link does not get the session, because of this."""

    link: int
    code: Code
    why: str


@final
@attrs.frozen(slots=True)
class LinkCut:
    """A link has to go at once; what it still sends is not listened to.

    Feed what was not written to it as `Wait`, unless the session is granted anew in
    the same breath: then it goes out first.
    """

    link: int
    why: str


@final
@attrs.frozen(slots=True)
class LinkDone:
    """A link is no longer needed: write what is left, then say goodbye."""

    link: int


@final
@attrs.frozen(slots=True)
class Queued:
    """A message waits for the runtime."""

    message: Message


@final
@attrs.frozen(slots=True)
class Overflowed:
    """The queue is full: refuse the message.

    Attributes:
        why: What is full.
    """

    message: Message
    why: str


@final
@attrs.frozen(slots=True)
class PingDue:
    """The runtime was silent for long: ask whether it is there."""

    link: int


@final
@attrs.frozen(slots=True)
class Ended:
    """The session is over: release all it owned (I-A7).

    Attributes:
        why: Half a sentence, for the traces of what is released.
        undelivered: Messages that will not reach the runtime.
        is_resumable: Whether a later process of the node may resume it.
    """

    why: str
    undelivered: tuple[Message, ...]
    is_resumable: bool = False


@final
@attrs.frozen(slots=True)
class Moved:
    """The session is over here; what the runtime owns stays its own.

    Attributes:
        waiting: Messages for the runtime, in order; before them comes what a link that was cut has
            not written.
    """

    waiting: tuple[OutboundMessage, ...]


Leaving: TypeAlias = NodeLeaves | MovedAway
"""The session ends here, and may go on elsewhere."""

Outcome: TypeAlias = Step | LinkDone | Queued | Overflowed | PingDue | Ended | Moved
"""The effects that are no answer to the link that asks, and cut none."""

Effect: TypeAlias = Granted | Refused | LinkCut | Outcome
