"""Data types and host interface of a runtime's session at a node, and its proof of key possession.

A runtime proves that it holds its key when it opens or re-opens a session (M-14, M-15, RFC 7800).
The node answers a request that names a key with a challenge; the runtime repeats the request, and
signs the challenge, the domain, its own name, and the token that it presents. So an intercepted
signature is useless on another link, later, for another runtime, at another domain or for another
token. Each link has at most one challenge, which is valid until it is used or the link ends.
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
    """The wire format of a session's peer: that of Protofly or of the original implementation.

    Peers of the original implementation use addresses that were not allocated, and do not ask the
    owners of objects for consent.
    """

    OWN = "protofly.v1"
    UPSTREAM = "upstream"


class Liveness(Enum):
    """The way in which a node detects whether the peer of a link is alive."""

    PINGED = "pinged by messages"
    BY_LINK = "left to the link"


@attrs.define(slots=True)
class OutboundMessage:
    """A message that a node sends to one or more runtimes, with its encoded text.

    Attributes:
        message: The message.
        line: The message as one line of wire text, in the current wire format.
        spelt: The lines in other dialects, shared by peers of the same dialect; None: the message
            is for a single peer.
        holders: Number of queues that contain the message; set by `OutboxBudget`.
        weight: Number of bytes of memory that `OutboxBudget` counts for the waiting message.
    """

    message: Message
    line: bytes
    spelt: dict[Dialect, bytes] | None = attrs.field(default=None, eq=False, repr=False)
    holders: int = attrs.field(default=0, init=False, eq=False, repr=False)
    weight: int = attrs.field(default=0, init=False, eq=False, repr=False)


@final
@attrs.frozen(slots=True)
class Credentials:
    """The result of a login: the user of a session, and when the login expires.

    Attributes:
        user: The user who logged in.
        issuer: The issuer of the login token: only both together identify a user.
        until: Time at which the login expires, by the core's clock.
    """

    user: str
    issuer: str
    until: float


@final
@attrs.frozen(slots=True)
class KeptSession:
    """The stored data of a session that survives a restart of the node: hashes, but no token.

    Attributes:
        runtime: Address of the runtime.
        digest: SHA-256 of the token.
        previous: SHA-256 of the former token, if the runtime may not have got the newer token yet;
            otherwise empty.
        is_taken_up: Whether the runtime has sent anything since the session was given to it.
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
        """Return whether another login took over the session after an earlier state was stored."""
        return other is not None and other.digest in self.displaced


@attrs.frozen(slots=True)
class SessionRequest:
    """A request to open or re-open a session over a link (M-14, M-15).

    Attributes:
        link: Number of the link; never used twice in a node.
        token: The token by which the peer proves its right to the session.
        fresh: Random token, made by the host, to be issued if the session is new, taken over by a
            login, or opened again. None: the token stays, as original stubs expect.
        liveness: The way in which the node detects that the peer is alive.
        credentials: The result of the login; None: no login.
        is_unproved: Whether an original stub, which proves nothing, opens at a node without logins.
            Without a link, such a session is given to the next peer that opens in this way.
        is_shared: Whether such a session is given away even while another link has it.
        is_fixed: Whether the token stays the same, and the session ends with the node, as original
            stubs expect.
        key: Thumbprint of the key that the peer has proven; None: none.
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
    """The decision to give the session to a link; waiting messages are sent first, in order.

    Attributes:
        link: Number of the link.
        token: The token that resumes the session; empty: the session needs no token.
        waiting: Messages that came for the runtime while it had no link.
        is_lasting: Whether the session outlives the node, so that it must be stored before the
            link is answered.
        is_emptied: Whether the node was restarted meanwhile, so that the session owns no addresses
            and has no subscriptions.
        is_recovered: Whether no waiting message was lost, as far as this node knows; None: the
            session is new.
        missing: Number of lost messages to the runtime, as far as this node knows.
    """

    link: int
    token: str = attrs.field(repr=False)
    waiting: tuple[OutboundMessage, ...]
    is_lasting: bool = False
    is_emptied: bool = False
    is_recovered: bool | None = None
    missing: int = 0


class SessionPort(Protocol):
    """Calls of `NodeSessionCore` to its host, the node; none of them calls the session."""

    def step(self, step: Step) -> None:
        """Trace a state machine transition."""

    def grant(self, granted: Granted) -> None:
        """Answer the requesting link that it has got the session, and send waiting messages."""

    def refuse(self, code: Code, why: str) -> None:
        """Answer the requesting link that the session is refused."""

    def cut(self, link: int, why: str, end: LinkEnd) -> None:
        """Close a link at once, and ignore further data from it.

        Messages that were not sent over the link go back to the session (`wait`), unless the
        session is granted to another link in the same call: that link then sends them first.
        """

    def finish(self, link: int) -> None:
        """Send the remaining messages over a link that is no longer needed, then close the link."""

    def queued(self, message: Message) -> None:
        """Trace that a message waits until the runtime has a link again."""

    def overflow(self, message: Message, why: str) -> None:
        """Refuse a message because a queue is full; `why` states the limit."""

    def ping(self) -> None:
        """Send a ping to a runtime that was silent for long."""

    def end(self, why: str, undelivered: tuple[Message, ...], *, is_resumable: bool) -> None:
        """Release everything that the session owned (I-A7).

        Args:
            why: The reason in traces, as half a sentence.
            undelivered: Messages that will not reach the runtime.
            is_resumable: Whether a later process of the node may resume the session.
        """

    def move(self, waiting: tuple[OutboundMessage, ...]) -> None:
        """Hand the waiting messages over to the node that has the session now.

        Args:
            waiting: The messages in order; messages that a cut link has not sent precede them.
        """


# ---- proof of the key of a runtime


def signed_parts(domain: str, runtime: str, challenge: str, token: str | None) -> tuple[str, ...]:
    """Return the texts that a runtime signs to prove possession of its key.

    Args:
        domain: Domain of the node.
        runtime: Address of the runtime.
        challenge: The challenge of the node.
        token: The token that is presented; None: none.
    """
    digest = "" if token is None else hashlib.sha256(token.encode()).hexdigest()
    return domain, runtime, challenge, digest
