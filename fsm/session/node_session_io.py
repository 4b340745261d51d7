"""What a session at a node is made of: values that its core, its host and its store share.

In whose form a peer of a message node speaks (DESIGN section 8).

A runtime proves that it holds its key when it opens or re-opens a session (M-14, M-15, RFC 7800). A
node answers a request that shows a key by a challenge; the runtime asks again, and signs the
challenge, the domain, its own name, and the token that it shows. So a signature that was heard
elsewhere proves nothing: not on another link, not later, not for another runtime, at another
domain or for another token. One challenge of each link is kept, until it is used or the link
is gone.
"""

import hashlib
from enum import Enum
from typing import Protocol, final

import attrs

from fsm.engine import Step
from specs.dialects.dialect import Dialect
from specs.message import Message
from specs.reply_code import Code, LinkEnd


class PeerForm(Enum):
    """The form of the peer behind a session.

    Upstream's peers use addresses that were not allocated, and know no consent of owners.
    """

    OWN = "protofly.v1"
    UPSTREAM = "upstream"


class Liveness(Enum):
    """The sign that the peer of a link is alive."""

    PINGED = "pinged by messages"
    BY_LINK = "left to the link"


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


@attrs.frozen(slots=True)
class SessionRequest:
    """A link asks for the session (M-14, M-15).

    Attributes:
        link: Number of the link; never used twice in a node.
        token: What the link offers to prove that the session is its own.
        fresh: The token to be given if the session is new, taken over by a login, or opened
            again; random, made by the host. None: the token stays, as upstream's stubs expect.
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
    fresh: str | None
    liveness: Liveness = Liveness.PINGED
    credentials: Credentials | None = None
    is_unproved: bool = False
    is_shared: bool = False
    is_fixed: bool = False
    key: str | None = None


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


class SessionPort(Protocol):
    """What the session of a runtime asks of its host; no method calls the session."""

    def step(self, step: Step) -> None:
        """Trace a step."""

    def grant(self, granted: Granted) -> None:
        """Give the session to the link that asks for it."""

    def refuse(self, code: Code, why: str) -> None:
        """Refuse the session to the link that asks for it."""

    def cut(self, link: int, why: str, end: LinkEnd) -> None:
        """Leave a link at once; what it still sends does not count.

        What was not written to it waits again (`wait`), unless the session is granted in
        the same call: then it goes out first.
        """

    def finish(self, link: int) -> None:
        """Write what is left to a link that is not needed any more, then say goodbye."""

    def queued(self, message: Message) -> None:
        """Trace that a message waits for the runtime."""

    def overflow(self, message: Message, why: str) -> None:
        """Refuse a message that there is no room for; `why`: what is full."""

    def ping(self) -> None:
        """Ask a runtime that was silent for long whether it is alive."""

    def end(self, why: str, undelivered: tuple[Message, ...], *, is_resumable: bool) -> None:
        """Release all that the session owned (I-A7).

        Args:
            why: Half a sentence, for the traces of what is released.
            undelivered: Messages that will not reach the runtime.
            is_resumable: Whether a later process of the node may resume it.
        """

    def move(self, waiting: tuple[OutboundMessage, ...]) -> None:
        """Send what waits after the session, which another node has; it keeps what it owns.

        Args:
            waiting: Messages in order; before them comes what a link that was cut has not
                written.
        """


# ---- proof of the key of a runtime


def signed_parts(domain: str, runtime: str, challenge: str, token: str | None) -> tuple[str, ...]:
    """Return the texts that a runtime signs; the purpose is the method of session control.

    Args:
        domain: Domain of the node.
        runtime: Address of the runtime.
        challenge: The challenge of the node.
        token: The token that is shown beside; None: there is none.
    """
    digest = "" if token is None else hashlib.sha256(token.encode()).hexdigest()
    return domain, runtime, challenge, digest
