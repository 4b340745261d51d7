"""A runtime's session at a message node, on the side of the node (MN-04..MN-08, I-M1..I-M4).

A session belongs to a runtime and survives the loss of its network connection (link). Without a
link (detached), it queues the messages to the runtime, in order and within limits. A new link that
presents the session's token gets them all. A newer link with the token takes over at once; data of
the older link is recognised by the link's number and ignored.

Only hashes of tokens are stored. Each re-open issues a new token. The former token stays valid
until the new link has sent something, since the answer with the new token may have been lost; it
also becomes invalid if the new token is used. If the former token is used, the newer token becomes
invalid. An invalid token is refused, but does not end the session. A session that was opened in the
format of the original implementation keeps its token.

If the host stores a session, it survives a restart of the node: `kept` is the stored form, and
`restore` creates the session from it, detached, without addresses and subscriptions. The runtime is
told so when it re-opens the session.

If the runtime has proven a key when it opened the session, the token is accepted only with a proof
of that key. Only a new login of the same user gives the session to another key.

Peers of the original implementation use two other formats. A session that was claimed has no token,
and is given to the next claim. A session that an original stub opened without a login keeps its
token; the stub forgets the token, so while detached, the session is given to the next stub that
opens it (C-84). While detached, both kinds of sessions are given to peers of either format, for
which the name is the only proof. Other sessions with a token cannot be claimed.

A session with a login belongs to the user: a new login of the same user and issuer gets the session
with a new token (C-84). The former runtime has then lost the session; its token is refused with a
special reason. When the login expires, the link is cut, and a new login is needed (MN-05).

A runtime that loses its link cannot publish at `R/status` that it is gone (REG-12): its node does,
once, unless the runtime had published so itself before. The node publishes nothing about a runtime
that never published its status.

A node that crashed has lost the sessions, addresses and records that it had not stored. It learns
that it was restarted when a runtime presents a session that it does not know. For a while it then
answers 503, not 404, for unknown addresses, since their runtimes may soon be back (`ReturnTime`).
"""

import hashlib
import hmac
import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

from fsm.engine import Entity
from fsm.limits.shares import Share, UserShares, own_user
from fsm.machines.session import SESSION, State, Trigger
from fsm.session.node_session_io import (
    Credentials,
    Granted,
    KeptSession,
    Liveness,
    OutboundMessage,
    SessionPort,
    SessionRequest,
)
from fsm.session.outbox_budget import OutboxBudget, weight
from specs.addresses.address import status_of
from specs.bodies.session import Status
from specs.bodies.word import StatusValue
from specs.limits.node import RETURN_TIME, USER_WAITING, USER_WAITING_BYTES
from specs.limits.protocol import (
    LATE,
    MAX_ID,
    OUTBOX_BYTES,
    PING_PERIOD,
    PONG_TIMEOUT,
    SESSION_QUEUE,
)
from specs.message import Message, MessageType
from specs.reply_code import TAKEN_OVER, Code, LinkEnd

_DISPLACED: Final = 8
"""Number of remembered tokens of runtimes that lost the session to another login."""

_HAS_OWNER: Final = (
    "the session of this runtime is open for another process; end it, or choose another name"
)
_OVER: Final = "the credentials of the session are over; log in again"
_NEWER: Final = "a newer link of the runtime took over"
_GOING_DOWN: Final = "the node is going down"
_FULL: Final = "too many messages wait for the runtime"
_BOUND: Final = "the session belongs to the key of its runtime, which was not proven"


def waiting_shares(user_of: Callable[[str], str] = own_user) -> UserShares:
    """Return the limits, for each user, of messages that wait in detached sessions.

    `user_of` returns the user of a runtime.
    """
    each, together = Share(USER_WAITING, USER_WAITING_BYTES), Share(MAX_ID, MAX_ID)
    kind = "messages that wait for its runtimes"
    return UserShares(kind, each, together, user_of, Code.UNAVAILABLE)


class NodeSessionCore:
    """The session of one runtime at a node: ownership, link, waiting messages.

    Attributes:
        key: Thumbprint of the key that the runtime has proven; None: none.
        link: Number of the link that has the session; None: the session is detached.
        runtime: Address of the runtime.
    """

    __slots__ = (
        "_budget",
        "_bytes",
        "_credentials",
        "_digest",
        "_displaced",
        "_entity",
        "_is_emptied",
        "_is_fixed",
        "_is_lost",
        "_is_taken_up",
        "_liveness",
        "_missing",
        "_pinged",
        "_port",
        "_previous",
        "_queue",
        "_reopened_token",
        "_reported",
        "_shares",
        "_since",
        "key",
        "link",
        "runtime",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        runtime: str,
        port: SessionPort,
        budget: OutboxBudget | None = None,
        shares: UserShares | None = None,
    ) -> None:
        self.runtime = runtime
        self._port = port
        self.key: str | None = None
        self.link: int | None = None
        self._entity = Entity(SESSION, key)
        self._digest = b""
        self._previous = b""
        self._displaced: tuple[bytes, ...] = ()
        self._is_fixed = True
        self._is_emptied = False
        self._is_lost = False
        self._missing = self._reported = 0
        self._reopened_token = ""
        self._credentials: Credentials | None = None
        self._budget = budget or OutboxBudget(math.inf)
        self._shares = waiting_shares() if shares is None else shares
        self._queue: list[OutboundMessage] = []
        self._bytes = 0
        self._since = 0.0
        self._pinged = False
        self._is_taken_up = False
        self._liveness = Liveness.PINGED

    @property
    def state(self) -> State | None:
        """The state of the session; None before it was opened."""
        state = self._entity.state
        return None if state is None else State(state)

    def knows(self, token: str) -> bool:
        """Return whether a token is valid for this session."""
        digest = _digest(token)
        is_newest = hmac.compare_digest(digest, self._digest)
        return hmac.compare_digest(digest, self._previous) or is_newest

    @property
    def kept(self) -> KeptSession | None:
        """The data to store so that the session survives a restart; None: it ends with the node."""
        if self._is_fixed or not self._digest:
            return None
        return KeptSession(
            self.runtime,
            self._digest,
            self._previous,
            self._is_taken_up,
            self._credentials,
            self.key,
            self._displaced,
        )

    def lost_login(self, key: str | None, now: float) -> Credentials | None:
        """Return the credentials of the login if the runtime may not have got the answer, or None.

        In that case the runtime may repeat the login with the same login token.

        Args:
            key: Thumbprint of the key that was proven; None: none.
            now: Seconds on the host's clock.
        """
        is_lost = not self._is_taken_up and key == self.key and not self.is_over(now)
        return self._credentials if is_lost else None

    def is_over(self, now: float) -> bool:
        """Return whether the credentials of the session have expired."""
        return self._credentials is not None and now >= self._credentials.until

    @property
    def waiting(self) -> Sequence[OutboundMessage]:
        """The messages that wait for the runtime's return, in order."""
        return self._queue

    def note_life(self, now: float) -> bool:
        """Note that the runtime has sent something over the link that has the session.

        Returns:
            Whether `kept` has changed, so that the session must be stored again.
        """
        self._alive(now)
        if self._is_taken_up and not self._previous:
            return False
        self._is_taken_up = True
        self._is_emptied = self._is_lost = False
        self._missing -= self._reported  # later losses are not reported yet
        self._reported = 0
        self._previous = b""
        return not self._is_fixed

    def miss(self, count: int = 1) -> None:
        """Count messages to the runtime that were lost; the next answer to a re-open tells it."""
        self._missing += count

    def _alive(self, now: float) -> None:
        self._since = now
        self._pinged = False

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called next."""
        if self._entity.state is not State.OPEN:
            return self._since + self._entity.patience
        expiry = math.inf if self._credentials is None else self._credentials.until
        if self._liveness is not Liveness.PINGED:
            return expiry
        pause = PING_PERIOD + (self._entity.patience if self._pinged else 0.0)
        return min(expiry, self._since + pause)

    # ---- requests of links

    def open(self, request: SessionRequest, now: float) -> None:
        """Give the session to a link that opens a session of this runtime (M-14), or refuse it."""
        if self._entity.state is None:
            self._own(request)
            self._step(Trigger.OPENED, f"open runtimeURL={self.runtime}")
            self._attach(request.link, request.liveness, request.fresh or "", now)
        elif self._is_owner(request.credentials):
            lost = [digest for digest in (self._digest, self._previous) if digest]
            self._displaced = (*self._displaced, *lost)[-_DISPLACED:]
            self._renew(request, now, TAKEN_OVER)
        elif self._is_free_to(request) and self._reopened_token:
            self._resume(request.link, request.liveness, self._reopened_token, now)
        elif self._is_free_to(request) and not self._digest:
            self._renew(request, now)
        elif self._is_nobodys():
            self.shed()
            self._renew(request, now)
        else:
            self._take_over(request, Code.CONFLICT, now, is_fixed=request.is_fixed)

    def reopen(self, request: SessionRequest, now: float) -> None:
        """Give the session to a link that presents a valid token (M-15), or refuse it."""
        self._take_over(request, Code.UNAUTHENTICATED, now)

    def claim(self, link: int, liveness: Liveness, now: float) -> None:
        """Give the session to a link of the format that has no tokens, or refuse it.

        A session that never had a token is taken away from any other link.
        """
        if self._digest and not (self._reopened_token and self.link is None):
            self._port.refuse(Code.CONFLICT, "the session of this runtime has a token")
            return
        self._digest, self._previous, self._reopened_token = b"", b"", ""
        if self._entity.state is not None:
            self._resume(link, liveness, "", now)
            return
        self._step(Trigger.OPENED, f"claim runtimeURL={self.runtime}")
        self._attach(link, liveness, "", now)

    def restore(
        self, kept: KeptSession, now: float, *, is_of_other: bool = False, is_followed: bool = False
    ) -> None:
        """Continue a stored session of the node's earlier process, or of another node.

        Args:
            kept: The stored data.
            now: Seconds on the host's clock.
            is_of_other: Whether another node of the domain had the session.
            is_followed: Whether the other node hands over the waiting messages.
        """
        self._digest, self._previous = kept.digest, kept.previous
        self._credentials = kept.credentials
        self._displaced = kept.displaced
        self.key = kept.key
        self._is_fixed, self._is_emptied = False, True
        self._is_lost = not is_followed
        self._is_taken_up = kept.is_taken_up
        self._since = now
        origin = "another node" if is_of_other else "the node's earlier process"
        self._step(Trigger.OPENED, f"it is of {origin}")
        self._step(Trigger.LINK_LOST, "its runtime has not come back yet")

    # ---- the end of a link, and of the session

    def lose_link(self, link: int, why: str, now: float) -> None:
        """Detach the session from a lost link; the host queues the unsent messages again."""
        if link == self.link:
            self.link = None
            self._since = now
            self._step(Trigger.LINK_LOST, why)

    def close(self, link: int) -> None:
        """End the session at the request of its runtime (M-16)."""
        if link == self.link:
            self._close("disconnect()", is_resumable=False)

    def leave(self) -> None:
        """End the session, since the node shuts down."""
        self._close(_GOING_DOWN, is_resumable=not self._is_fixed)

    def move_away(self, why: str, now: float) -> None:
        """End the session here, since another node of the domain has or may have it."""
        self._cut(why, LinkEnd.TAKEN_OVER, now)
        self._step(Trigger.MOVE, why)
        self._port.move(self._take_out())

    def rest(self) -> None:
        """Close the state machine of the session, since the node has crashed."""
        if self._entity.state is not None:
            self._take_out()
            self.link = None
            self._step(Trigger.CLOSE, _GOING_DOWN)

    def time_over(self, now: float) -> None:
        """Handle the deadline: ping a silent runtime, cut its link, or end an expired session."""
        if now < self.deadline():
            return
        if self.link is None:
            self._end(Trigger.EXPIRE, "session expired")
        elif self.is_over(now):
            self._cut(_OVER, LinkEnd.SILENT, now)
        elif not self._pinged:
            self._pinged = True
            self._port.ping()
        elif not self._was_late(now):
            self._cut("silent, and a ping was not answered", LinkEnd.SILENT, now)

    # ---- messages

    def wait(self, entry: OutboundMessage) -> None:
        """Queue a message until the runtime is back, or refuse it; only for a detached session."""
        size = len(entry.line)
        is_full = len(self._queue) >= SESSION_QUEUE or self._bytes + size > OUTBOX_BYTES
        refusal = self._shares.refusal(self.runtime, 1, weight(1, size))
        if is_full or refusal is not None:
            self.miss()
            why = _FULL if is_full or refusal is None else refusal.why
            self._port.overflow(entry.message, why)
            return
        self._queue.append(entry)
        self._bytes += size
        self._shares.take(self.runtime, 1, weight(1, size))
        self._budget.hold(entry)
        self._port.queued(entry.message)

    def shed(self) -> None:
        """Discard the messages that wait for the runtime, since the node's memory is full."""
        given_up = self._take_out()
        self.miss(len(given_up))
        for entry in given_up:
            self._port.overflow(entry.message, _FULL)

    def _take_out(self) -> tuple[OutboundMessage, ...]:
        """Remove and return the waiting messages."""
        waiting = tuple(self._queue)
        self._queue.clear()
        self._bytes = 0
        for entry in waiting:
            self._budget.release(entry)
            self._shares.take(self.runtime, -1, -weight(1, len(entry.line)))
        return waiting

    # ---- ownership

    def _take_over(
        self, request: SessionRequest, refusal: Code, now: float, *, is_fixed: bool = False
    ) -> None:
        token = request.token
        if token is not None and _digest(token) in self._displaced:
            self._port.refuse(Code.CONFLICT, TAKEN_OVER)
        elif token is None or not self.knows(token):
            self._port.refuse(refusal, _HAS_OWNER)
        elif self.key is not None and request.key != self.key:
            self._port.refuse(Code.UNAUTHENTICATED, _BOUND)
        elif self.is_over(now):
            self._port.refuse(Code.UNAUTHENTICATED, _OVER)
        else:
            self._is_taken_up = True
            if not (self._is_fixed or is_fixed) and request.fresh is not None:
                # The presented token stays valid; if it is the former one, the newer is void.
                self._previous, self._digest = _digest(token), _digest(request.fresh)
                token = request.fresh
            self._resume(request.link, request.liveness, token, now)

    def _is_owner(self, credentials: Credentials | None) -> bool:
        own = self._credentials
        return (
            own is not None
            and credentials is not None
            and (credentials.user, credentials.issuer) == (own.user, own.issuer)
        )

    def _is_free_to(self, request: SessionRequest) -> bool:
        return request.is_unproved and (request.is_shared or self.link is None)

    def _is_nobodys(self) -> bool:
        """Return whether the session is abandoned: its runtime never got the token.

        The answer with the token was lost, and the runtime has sent nothing since. So the session
        owns no addresses either, and may be given to another peer.
        """
        is_known = self._is_taken_up or self._credentials is not None or not self._digest
        return self.link is None and not is_known

    def _renew(self, request: SessionRequest, now: float, why: str = _NEWER) -> None:
        """Give the session to the peer that opens it again; the old token becomes invalid."""
        self._own(request)
        self._resume(request.link, request.liveness, request.fresh or "", now, why)

    def _own(self, request: SessionRequest) -> None:
        token = request.fresh or ""
        self._digest, self._previous = _digest(token), b""
        self._is_fixed = request.is_fixed
        self._reopened_token = token if request.is_unproved else ""
        self._credentials = request.credentials
        self.key = request.key
        self._is_taken_up = False
        self._missing = self._reported = 0

    # ---- the link

    def _resume(
        self, link: int, liveness: Liveness, token: str, now: float, why: str = _NEWER
    ) -> None:
        if link == self.link:
            self._grant(link, token, (), is_resumed=True)
            return
        self._cut(why, LinkEnd.TAKEN_OVER, now)
        self._step(Trigger.REOPENED, f"re-open runtimeURL={self.runtime}")
        self._attach(link, liveness, token, now, is_resumed=True)

    def _attach(
        self, link: int, liveness: Liveness, token: str, now: float, *, is_resumed: bool = False
    ) -> None:
        self.link = link
        self._liveness = liveness
        self._alive(now)
        self._grant(link, token, self._take_out(), is_resumed=is_resumed)

    def _grant(
        self, link: int, token: str, waiting: tuple[OutboundMessage, ...], *, is_resumed: bool
    ) -> None:
        self._reported = self._missing
        granted = Granted(
            link,
            token,
            waiting,
            bool(token) and not self._is_fixed,
            self._is_emptied,
            not self._is_lost and not self._missing if is_resumed else None,
            self._missing,
        )
        self._port.grant(granted)

    def _cut(self, why: str, end: LinkEnd, now: float) -> None:
        link = self.link
        if link is not None:
            self._port.cut(link, why, end)
            self.lose_link(link, why, now)

    def _was_late(self, now: float) -> bool:
        """Return whether the node itself has checked too late; if so, extend the deadline.

        The answer of the peer may have arrived without having been read yet.
        """
        late = now - self.deadline()
        if late > LATE:
            self._since += late + min(late, PONG_TIMEOUT)
        return late > LATE

    def _close(self, why: str, *, is_resumable: bool) -> None:
        link = self.link
        self._end(Trigger.CLOSE, why, is_resumable=is_resumable)
        if link is not None:
            self._port.finish(link)

    def _end(self, trigger: Trigger, why: str, *, is_resumable: bool = False) -> None:
        undelivered = tuple(entry.message for entry in self._take_out())
        self.link = None
        self._step(trigger, why)
        self._port.end(why, undelivered, is_resumable=is_resumable)

    def _step(self, trigger: Trigger, why: str) -> None:
        self._port.step(self._entity.step(trigger, why))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


# ---- the heartbeat of a link


class Beat(Enum):
    """The action that `Heartbeat` demands for a peer."""

    WAIT = auto()
    """Do nothing yet."""

    PING = auto()
    """Send a ping."""

    GIVE_UP = auto()
    """Close the link, since the peer has not answered the ping."""


class Heartbeat:
    """Detects a silent peer of a link: when to ping the peer, and when to close the link."""

    __slots__ = ("_pinged_at",)

    def __init__(self) -> None:
        self._pinged_at: float | None = None

    def deadline(self, heard_at: float) -> float:
        """Return the time of the next check; `heard_at` is the time of the peer's last frame."""
        if self._pinged_at is None or heard_at >= self._pinged_at:
            return heard_at + PING_PERIOD
        return self._pinged_at + PONG_TIMEOUT

    def look(self, heard_at: float, now: float) -> Beat:
        """Decide whether to wait, to ping the peer, or to close the link.

        Args:
            heard_at: Time of the peer's last frame.
            now: Seconds on the host's clock.
        """
        if now < self.deadline(heard_at):
            return Beat.WAIT
        if self._pinged_at is None or heard_at >= self._pinged_at:
            self._pinged_at = now
            return Beat.PING
        return Beat.GIVE_UP


# ---- runtimes whose last status is live


LOST: Final = Status(StatusValue.DISCONNECTED.value, description="the node lost the runtime")
"""The status that the node publishes for a runtime that has lost its link or session."""


class LiveStatuses:
    """Knows the runtimes with a session at the node whose last published status is live."""

    __slots__ = ("_live",)

    def __init__(self) -> None:
        self._live: set[str] = set()

    def __len__(self) -> int:
        return len(self._live)

    def take_status(self, message: Message, by: str) -> None:
        """Update the status of a runtime if a message publishes its status.

        Args:
            message: An admitted message.
            by: The runtime whose session sent the message.
        """
        if message.type is not MessageType.UPDATE or message.from_ != by:
            return
        if message.to != status_of(by):
            return
        if message.body.get("value") == StatusValue.LIVE:
            self._live.add(by)
        else:
            self._live.discard(by)

    def lose_runtime(self, runtime: str) -> bool:
        """Remove a runtime that has lost its link or its session.

        Returns:
            Whether the subscribers of its status must be notified, since they know it as live.
        """
        if runtime not in self._live:
            return False
        self._live.remove(runtime)
        return True


# ---- first seconds after the start of a node, while runtimes of the earlier process reconnect


RESTARTED: Final = "the node has been started again, and a runtime may be on its way back"


class ReturnTime:
    """Decides whether, after a restart, runtimes that the node does not know may still reconnect.

    Args:
        now: Time at which the node has started, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._until = now + RETURN_TIME
        self._was_restarted = False

    def miss(self) -> None:
        """Note evidence of a restart: a session of an earlier process that has no link yet."""
        self._was_restarted = True

    def is_on(self, now: float) -> bool:
        """Return whether runtimes may still reconnect after a restart."""
        return self._was_restarted and now < self._until
