"""One runtime's session at a message node, the node's side (MN-04..MN-08, I-M1..I-M4).

The session belongs to a runtime, not to a connection. It outlives its link: while detached it keeps
the messages to the runtime, in order and within bounds, and a link with the token gets all of them.
A newer link with the token takes over at once; frames of the older link are recognised by its
number and ignored.

Only a hash of the token is kept. Each re-open replaces the token. The older token is accepted until
the first sign of life by the link that got the newer one, as that answer may have been lost,
however often; after that, or after a re-open by the newer token, it is void. A re-open by the older
token voids the newer one, which its runtime never got. A void token is refused but does not end the
session, or anyone with an old token could end it. A session that was opened in upstream's forms
keeps its token.

A session outlives its node, if the host stores it: `kept` is the stored form, and `restore` brings
the session back, detached, without addresses and subscriptions. Its runtime learns that when it
re-opens the session.

If a runtime has proven a key when it opened the session, the session belongs to that key: its token
opens nothing without a proof of the key. Only a new login of its user gives it to another key.

A session that was claimed has no token, and goes to the next claim. A session that was opened as
upstream's stubs do, without a login, keeps its token: its runtime, which forgets it, gets the
session again when it opens while the session is detached (C-84). While detached, these two go to
either of upstream's forms: in both, the name is the only proof. A session with a token of its own
cannot be claimed.

A session with a login belongs to the user: the same user of the same issuer gets it by a new login,
with a new token (C-84). The runtime that had it before has lost it for good: its token is refused
with another reason than an unknown one. When the credentials expire the link is cut, and the token
opens nothing before a new login (MN-05).

A runtime that loses its link cannot say at `R/status` that it is gone (REG-12): its node does,
once, unless it had said so itself before it left. A runtime that never published its status is
nobody's business.

A runtime that loses its link cannot publish at `R/status` that it is gone (REG-12): its node does,
once, unless the runtime had published so itself before. The node publishes nothing about a runtime
that never published its status.

A node that was killed has lost the sessions, addresses and records that it has not stored. It
recognises that it was restarted when a runtime names a session that it does not have. Missing
entries may then return in a moment, so it answers 503, not 404.
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
"""Number of tokens remembered of runtimes that lost the session to another login (ours)."""

_OVER: Final = "the credentials of the session are over; log in again"
_NEWER: Final = "a newer link of the runtime took over"
_GOING_DOWN: Final = "the node is going down"
_FULL: Final = "too many messages wait for the runtime"
_BOUND: Final = "the session belongs to the key of its runtime, which was not proven"


def waiting_shares(user_of: Callable[[str], str] = own_user) -> UserShares:
    """Return the shares of users, named by `user_of`, in the queues of detached sessions."""
    each, together = Share(USER_WAITING, USER_WAITING_BYTES), Share(MAX_ID, MAX_ID)
    kind = "messages that wait for its runtimes"
    return UserShares(kind, each, together, user_of, Code.UNAVAILABLE)


class NodeSessionCore:
    """The session of one runtime; waiting messages count in a budget, if one is given.

    Attributes:
        key: Thumbprint of the key that the runtime has proven; None: none.
        link: Number of the link that has the session; None: it is detached.
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
        """Return whether a token is the session's, or the one before it while that is valid."""
        digest = _digest(token)
        is_newest = hmac.compare_digest(digest, self._digest)
        return hmac.compare_digest(digest, self._previous) or is_newest

    @property
    def kept(self) -> KeptSession | None:
        """The form in which the session is stored; None: it ends with the node."""
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
        """Return the credentials of the login if the answer to it may be lost, or None.

        No sign of life shows that the runtime has got the answer, so the same login may come again.

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
        """Note that the link that has the session showed a sign of life.

        Returns:
            Whether `kept` has changed by that.
        """
        self._alive(now)
        if self._is_taken_up and not self._previous:
            return False
        self._is_taken_up = True
        self._is_emptied = self._is_lost = False
        self._missing -= self._reported  # further messages were given up since
        self._reported = 0
        self._previous = b""
        return not self._is_fixed

    def miss(self, count: int = 1) -> None:
        """Note that messages for the runtime were given up; the runtime learns that later."""
        self._missing += count

    def _alive(self, now: float) -> None:
        self._since = now
        self._pinged = False

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        if self._entity.state is not State.OPEN:
            return self._since + self._entity.patience
        expiry = math.inf if self._credentials is None else self._credentials.until
        if self._liveness is not Liveness.PINGED:
            return expiry
        pause = PING_PERIOD + (self._entity.patience if self._pinged else 0.0)
        return min(expiry, self._since + pause)

    # ---- requests of links

    def open(self, request: SessionRequest, now: float) -> None:
        """Give the session to a link (M-14), or refuse it."""
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
        """Give the session to a link that knows its token (M-15), or refuse it."""
        self._take_over(request, Code.UNAUTHENTICATED, now)

    def claim(self, link: int, liveness: Liveness, now: float) -> None:
        """Give the session to a link of a kind without tokens.

        The link gets a session that never had a token, whichever link has it.
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
        """Continue a session of the node's earlier process, or of another node of the domain.

        Args:
            kept: The stored form.
            now: Seconds on the host's clock.
            is_of_other: Whether another node had it.
            is_followed: Whether the messages that wait there are handed over.
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
        """Detach the session from a link that is gone; messages it did not write wait again."""
        if link == self.link:
            self.link = None
            self._since = now
            self._step(Trigger.LINK_LOST, why)

    def close(self, link: int) -> None:
        """End the session, since its link said goodbye (M-16)."""
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
        """Take the last step, since the node has crashed and can do nothing else."""
        if self._entity.state is not None:
            self._take_out()
            self.link = None
            self._step(Trigger.CLOSE, _GOING_DOWN)

    def time_over(self, now: float) -> None:
        """Ping a silent runtime, or end what has expired; do nothing before the deadline."""
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
        """Keep a message until the runtime is back; called only while detached."""
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
        """Give up the messages that wait for the runtime, since the node holds too many bytes."""
        given_up = self._take_out()
        self.miss(len(given_up))
        for entry in given_up:
            self._port.overflow(entry.message, _FULL)

    def _take_out(self) -> tuple[OutboundMessage, ...]:
        """Take out the waiting messages."""
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
            self._port.refuse(refusal, "the session of this runtime has another token")
        elif self.key is not None and request.key != self.key:
            self._port.refuse(Code.UNAUTHENTICATED, _BOUND)
        elif self.is_over(now):
            self._port.refuse(Code.UNAUTHENTICATED, _OVER)
        else:
            self._is_taken_up = True
            if not (self._is_fixed or is_fixed) and request.fresh is not None:
                # With the older token: its holder never got the newer one.
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
        """Return whether no runtime can resume the session: its runtime never learnt the token.

        The answer was lost, or its link, before any sign of life showed that it came. So the
        session owns nothing either.
        """
        is_known = self._is_taken_up or self._credentials is not None or not self._digest
        return self.link is None and not is_known

    def _renew(self, request: SessionRequest, now: float, why: str = _NEWER) -> None:
        """Give the session to the peer that opens it again; the old token is void."""
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
        """Return whether the node itself checks too late; then the peer gets some more time.

        The answer of the peer may not be read yet.
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
    """The action towards a peer."""

    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


class Heartbeat:
    """The state of one peer, which is checked when its deadline has passed."""

    __slots__ = ("_pinged_at",)

    def __init__(self) -> None:
        self._pinged_at: float | None = None

    def deadline(self, heard_at: float) -> float:
        """Return the time of the next check; `heard_at` is the time of its last sign of life."""
        if self._pinged_at is None or heard_at >= self._pinged_at:
            return heard_at + PING_PERIOD
        return self._pinged_at + PONG_TIMEOUT

    def look(self, heard_at: float, now: float) -> Beat:
        """Decide whether to ping the peer or to give it up.

        Args:
            heard_at: Time of the last frame of the peer.
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
"""The status that the node publishes for a runtime that is gone."""


class LiveStatuses:
    """Runtimes with a session at the node whose last published status is live."""

    __slots__ = ("_live",)

    def __init__(self) -> None:
        self._live: set[str] = set()

    def __len__(self) -> int:
        return len(self._live)

    def take_status(self, message: Message, by: str) -> None:
        """Take a message of a runtime, and note the runtime's status if the message is one.

        Args:
            message: An admitted message.
            by: Runtime of the session that brought it.
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
        """Note that a runtime has lost its link or its session.

        Returns:
            Whether those who follow its status have to be notified.
        """
        if runtime not in self._live:
            return False
        self._live.remove(runtime)
        return True


# ---- the first seconds after a start, while runtimes of the earlier process return


RESTARTED: Final = "the node has been started again, and a runtime may be on its way back"


class ReturnTime:
    """Decides whether runtimes that a node does not know may still return.

    Args:
        now: Time at which the node has started, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._until = now + RETURN_TIME
        self._was_restarted = False

    def miss(self) -> None:
        """Note that a session of an earlier process was requested, or is not attached yet."""
        self._was_restarted = True

    def is_on(self, now: float) -> bool:
        """Return whether runtimes may still return."""
        return self._was_restarted and now < self._until
