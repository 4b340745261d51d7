"""Values that the core, the host and the store of a node's session share.

They include the form of a peer (DESIGN section 8), and the texts of a key's proof.

A runtime proves that it holds its key when it opens or re-opens a session (M-14, M-15, RFC 7800). A
node answers a request that names a key by a challenge; the runtime repeats the request, and signs
the challenge, the domain, its own name, and the token that it presents. So an intercepted signature
proves nothing: not on another link, not later, not for another runtime, at another domain or for
another token. One challenge of each link is kept, until it is used or the link is gone.
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

    Upstream's peers use addresses that were not allocated, and do not ask owners for consent.
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
        line: The message as one line of wire text, in normal form.
        spelt: Its lines in other dialects, shared by peers of the same dialect; None: it is for one
            peer only.
        holders: Number of queues that hold it; written by the budget that counts it.
        weight: Number of bytes of memory that the budget counts for it while it waits.
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
        issuer: The user's issuer: only both together identify a user.
        until: Time at which they expire, by the core's clock.
    """

    user: str
    issuer: str
    until: float


@final
@attrs.frozen(slots=True)
class KeptSession:
    """The stored form of a session, which outlives its node: hashes, but no token.

    Attributes:
        digest: SHA-256 of the token.
        previous: SHA-256 of the token before it, if its holder may not know the newer one yet; else
            empty.
        is_taken_up: Whether its runtime has shown that it knows the session.
        credentials: The result of the login; None: no login.
        key: Thumbprint of the key that the runtime has proven; None: none.
        displaced: SHA-256 of tokens of runtimes that lost the session to another login.
    """

    runtime: str
    digest: bytes
    previous: bytes = b""
    is_taken_up: bool = True
    credentials: Credentials | None = None
    key: str | None = None
    displaced: tuple[bytes, ...] = ()

    def has_displaced(self, other: "KeptSession | None") -> bool:
        """Return whether another login took over the session since an earlier stored form."""
        return other is not None and other.digest in self.displaced


@attrs.frozen(slots=True)
class SessionRequest:
    """The request of a link for the session (M-14, M-15).

    Attributes:
        link: Number of the link; never used twice in a node.
        token: The token by which the link proves its right to the session.
        fresh: The token to be issued if the session is new, taken over by a login, or opened again;
            random, made by the host. None: the token stays, as upstream's stubs expect.
        credentials: The result of the login; None: no login.
        is_unproved: Whether it is of the form of upstream's stubs, which prove nothing, at a node
            without logins: while detached, a session that was opened so is given to the next peer
            that opens so.
        is_shared: Whether that is also done while another link has the session.
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
    """The grant of the session to a link; waiting messages are sent first, in order.

    Attributes:
        token: The token that resumes the session; empty: a claim resumes it.
        waiting: Messages that came for the runtime while it was away.
        is_lasting: Whether the session outlives the node: it is stored before the link is
            answered.
        is_emptied: Whether the node was restarted meanwhile, so that the session owns no addresses
            and has no subscriptions.
        is_recovered: Whether no waiting message was lost, as far as this node knows; None: the
            session is new.
        missing: Number of messages that were given up, as far as this node knows.
    """

    link: int
    token: str = attrs.field(repr=False)
    waiting: tuple[OutboundMessage, ...]
    is_lasting: bool = False
    is_emptied: bool = False
    is_recovered: bool | None = None
    missing: int = 0


class SessionPort(Protocol):
    """The calls of a runtime's session to its host; none of them calls the session."""

    def step(self, step: Step) -> None:
        """Trace a step."""

    def grant(self, granted: Granted) -> None:
        """Give the session to the link that asks for it."""

    def refuse(self, code: Code, why: str) -> None:
        """Refuse the session to the link that asks for it."""

    def cut(self, link: int, why: str, end: LinkEnd) -> None:
        """Leave a link at once; its further frames are ignored.

        Messages that were not written to it wait again (`wait`), unless the session is granted in
        the same call: then they are sent first.
        """

    def finish(self, link: int) -> None:
        """Write the remaining messages to a link that is no longer needed, then say goodbye."""

    def queued(self, message: Message) -> None:
        """Trace that a message waits for the runtime."""

    def overflow(self, message: Message, why: str) -> None:
        """Refuse a message for lack of room; `why` says which limit is reached."""

    def ping(self) -> None:
        """Ask a runtime that was silent for long whether it is alive."""

    def end(self, why: str, undelivered: tuple[Message, ...], *, is_resumable: bool) -> None:
        """Release everything that the session owned (I-A7).

        Args:
            why: The reason in the traces of the released entries, as half a sentence.
            undelivered: Messages that will not reach the runtime.
            is_resumable: Whether a later process of the node may resume it.
        """

    def move(self, waiting: tuple[OutboundMessage, ...]) -> None:
        """Send the waiting messages to the node that now has the session, with all it owns.

        Args:
            waiting: Messages in order; the messages that a cut link has not written go before them.
        """


# ---- proof of the key of a runtime


def signed_parts(domain: str, runtime: str, challenge: str, token: str | None) -> tuple[str, ...]:
    """Return the texts that a runtime signs; the purpose is the method of session control.

    Args:
        domain: Domain of the node.
        runtime: Address of the runtime.
        challenge: The challenge of the node.
        token: The token that is presented; None: none.
    """
    digest = "" if token is None else hashlib.sha256(token.encode()).hexdigest()
    return domain, runtime, challenge, digest
