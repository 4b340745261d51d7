"""One runtime's session at a message node, the node's side (MN-04..MN-08, I-M1..I-M4).

The session belongs to a runtime, not to a socket. It outlives its link: while detached it
keeps the messages to the runtime, in order and within bounds, and a link with the token
gets all of them. A newer link with the token takes over at once; frames of the older one are
distinguished by the number of the link and no longer count.
Only a hash of the token is kept. Each re-open replaces the token. The older one is accepted as
long as nothing was heard by the link that was given the newer one, as that answer may have been
lost, however often; with the first sign of life, or with a re-open by the newer token, it is
void. A re-open by the older token voids the newer one, which its runtime never got. A token that
is void is refused; the session is not ended for it, or anybody with an old token could do that.
A session that was opened in upstream's forms keeps its token.

A session outlives its node, if the host stores it: `kept` is what is stored, and `Resumed` brings
it back, detached, without addresses and subscriptions. Its runtime is told so when it re-opens it.

A session whose runtime has proven a key at its open belongs to that key: its token without
a proof of the key opens nothing. Only a new login of its user gives it to another key.

A session that was claimed has no token, and goes to the next claim. A session that was opened as
upstream's stubs do, without a login, keeps its token: its runtime, which forgets it, gets it again
when it opens anew while the session is detached (C-84). While detached, these two go to either
of upstream's forms: in both the name is the only proof. One that has a token otherwise is never
claimed away.

A session with a login belongs to the user: the same user of the same issuer gets it by a new
login, and with it a new token (C-84). The runtime that had it before has lost it for good: its
token is refused in other words than one that is unknown. When the credentials are over the link is
cut, and the token opens nothing before a new login (MN-05).

`Heartbeat` decides when a silent peer is pinged, and when it is given up (RELIABILITY R8).
"""

import hashlib
import hmac
import math
from collections.abc import Callable, Sequence
from enum import Enum, auto, unique
from typing import Final, assert_never, final

from fsm.engine import Entity
from fsm.limits.shares import Share, UserShares, own_user
from fsm.machines.session import SESSION, State, Trigger
from fsm.session.node_session_io import (
    ClaimAsked,
    CloseAsked,
    Credentials,
    Effect,
    Ended,
    Granted,
    Input,
    KeptSession,
    LinkCut,
    LinkDone,
    LinkLost,
    Liveness,
    Moved,
    MovedAway,
    NodeLeaves,
    OpenAsked,
    OutboundMessage,
    Overflowed,
    PingDue,
    Queued,
    Refused,
    ReopenAsked,
    Resumed,
    Shed,
    Tick,
    Wait,
)
from fsm.session.outbox_budget import OutboxBudget, weight
from specs.limits.node import USER_WAITING, USER_WAITING_BYTES
from specs.limits.protocol import (
    LATE,
    MAX_ID,
    OUTBOX_BYTES,
    PING_PERIOD,
    PONG_TIMEOUT,
    SESSION_QUEUE,
)
from specs.reply_code import TAKEN_OVER, Code

_DISPLACED: Final = 8
"""Tokens of runtimes that lost the session to another login that are known at once (ours)."""

_OVER: Final = "the credentials of the session are over; log in again"
_NEWER: Final = "a newer link of the runtime took over"
_FULL: Final = "too many messages wait for the runtime"
_BOUND: Final = "the session belongs to the key of its runtime, which was not proven"


def waiting_shares(user_of: Callable[[str], str] = own_user) -> UserShares:
    """Return what waits for the detached sessions of each user, which `user_of` names."""
    each, together = Share(USER_WAITING, USER_WAITING_BYTES), Share(MAX_ID, MAX_ID)
    kind = "messages that wait for its runtimes"
    return UserShares(kind, each, together, user_of, Code.UNAVAILABLE)


@final
class NodeSessionCore:
    """The session of one runtime; what waits for it counts in a budget, if one is given.

    Attributes:
        key: Thumbprint of the key that the runtime has proven; None: it showed none.
        link: Number of the link that has the session; None while detached.
        runtime: Whose session it is.
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
        budget: OutboxBudget | None = None,
        shares: UserShares | None = None,
    ) -> None:
        self.runtime = runtime
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
        """Return whether a token is the session's, or the one before it while that counts."""
        shown = _digest(token)
        is_newest = hmac.compare_digest(shown, self._digest)
        return hmac.compare_digest(shown, self._previous) or is_newest

    @property
    def kept(self) -> KeptSession | None:
        """The stored form of the session; None: it ends with the node."""
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
        """Return the credentials of its login if the answer to it may be lost; None: it is not.

        Nothing was heard that shows that the runtime has got it: the same login may come again.

        Args:
            key: Thumbprint of the key that was proven; None: none.
            now: Seconds on the host's clock.
        """
        is_lost = not self._is_taken_up and key == self.key and not self.is_over(now)
        return self._credentials if is_lost else None

    def is_over(self, now: float) -> bool:
        """Return whether the credentials that the session was opened with are over."""
        return self._credentials is not None and now >= self._credentials.until

    @property
    def waiting(self) -> Sequence[OutboundMessage]:
        """The messages that wait for the runtime to come back, in order."""
        return self._queue

    def heard(self, now: float) -> bool:
        """Note that the link that has the session showed a sign of life.

        Returns:
            Whether `kept` has changed by that.
        """
        self._alive(now)
        if self._is_taken_up and not self._previous:
            return False
        self._is_taken_up = True
        self._is_emptied = self._is_lost = False
        self._missing -= self._reported  # others were given up since
        self._reported = 0
        self._previous = b""
        return not self._is_fixed

    def miss(self, count: int = 1) -> None:
        """Note that messages for the runtime were given up; it is told when it re-opens."""
        self._missing += count

    def _alive(self, now: float) -> None:
        self._since = now
        self._pinged = False

    def deadline(self) -> float:
        """Return when a `Tick` is due."""
        if self._entity.state is not State.OPEN:
            return self._since + self._entity.patience
        over = math.inf if self._credentials is None else self._credentials.until
        if self._liveness is not Liveness.PINGED:
            return over
        pause = PING_PERIOD + (self._entity.patience if self._pinged else 0.0)
        return min(over, self._since + pause)

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case OpenAsked() | ReopenAsked() | ClaimAsked() | Resumed():
                return self._grant(happened, now)
            case LinkLost(link, why):
                return self._lose(link, why, now)
            case Wait() | Shed():
                return self._queued(happened)
            case CloseAsked() | NodeLeaves():
                return self._left(happened)
            case MovedAway(why):
                return self._move(why, now)
            case Tick():
                return self._tick(now)
            case _:
                assert_never(happened)

    def _grant(
        self, asked: OpenAsked | ReopenAsked | ClaimAsked | Resumed, now: float
    ) -> list[Effect]:
        if isinstance(asked, Resumed):
            return self._restore(asked, now)
        if isinstance(asked, ClaimAsked):
            return self._claim(asked, now)
        if isinstance(asked, ReopenAsked):
            return self._take_over(asked, Code.UNAUTHENTICATED, now)
        if self._entity.state is not None:
            return self._open_again(asked, now)
        self._own(asked)
        step = self._entity.step(Trigger.OPENED, f"open runtimeURL={self.runtime}")
        return [step, self._attach(asked, asked.fresh, now)]

    def _open_again(self, asked: OpenAsked, now: float) -> list[Effect]:
        if self._is_owner(asked.credentials):
            lost = [digest for digest in (self._digest, self._previous) if digest]
            self._displaced = (*self._displaced, *lost)[-_DISPLACED:]
            return self._renew(asked, now, TAKEN_OVER)
        if asked.is_unproved and (asked.is_shared or self.link is None):
            if self._reopened_token:
                return self._resume(asked, self._reopened_token, now)
            if not self._digest:
                return self._renew(asked, now)
        if self._is_nobodys():
            return [*self._queued(Shed()), *self._renew(asked, now)]
        return self._take_over(asked, Code.CONFLICT, now)

    def _take_over(self, asked: OpenAsked | ReopenAsked, refusal: Code, now: float) -> list[Effect]:
        token = asked.token
        if token is not None and _digest(token) in self._displaced:
            return [Refused(asked.link, Code.CONFLICT, TAKEN_OVER)]
        if token is None or not self.knows(token):
            why = "the session of this runtime has another token"
            return [Refused(asked.link, refusal, why)]
        if self.key is not None and asked.key != self.key:
            return [Refused(asked.link, Code.UNAUTHENTICATED, _BOUND)]
        if self.is_over(now):
            return [Refused(asked.link, Code.UNAUTHENTICATED, _OVER)]
        self._is_taken_up = True
        return self._resume(asked, self._replaced(asked, token), now)

    def _replaced(self, asked: OpenAsked | ReopenAsked, token: str) -> str:
        """Replace a token that was shown; return the one that counts from now on."""
        is_fixed = self._is_fixed or (isinstance(asked, OpenAsked) and asked.is_fixed)
        if is_fixed or asked.fresh is None:
            return token
        shown = _digest(token)
        # Of an older one, the holder has never got the newer one.
        self._previous, self._digest = shown, _digest(asked.fresh)
        return asked.fresh

    def _restore(self, resumed: Resumed, now: float) -> list[Effect]:
        kept = resumed.kept
        self._digest, self._previous = kept.digest, kept.previous
        self._credentials = kept.credentials
        self._displaced = kept.displaced
        self.key = kept.key
        self._is_fixed, self._is_emptied = False, True
        self._is_lost = not resumed.is_followed
        self._is_taken_up = kept.is_taken_up
        self._since = now
        whose = "another node" if resumed.is_of_other else "the node's earlier process"
        return [
            self._entity.step(Trigger.OPENED, f"it is of {whose}"),
            self._entity.step(Trigger.LINK_LOST, "its runtime has not come back yet"),
        ]

    def _is_owner(self, shown: Credentials | None) -> bool:
        mine = self._credentials
        return (
            mine is not None
            and shown is not None
            and (shown.user, shown.issuer) == (mine.user, mine.issuer)
        )

    def _is_nobodys(self) -> bool:
        """Return whether no runtime can resume it: its runtime left before it knew the token.

        The answer was lost, or its link, before anything was heard that shows it came. So
        nothing belongs to the session either.
        """
        is_known = self._is_taken_up or self._credentials is not None or not self._digest
        return self.link is None and not is_known

    def _renew(self, asked: OpenAsked, now: float, why: str = _NEWER) -> list[Effect]:
        """Give the session to the peer that opens it anew; the old token is void."""
        self._own(asked)
        return self._resume(asked, asked.fresh, now, why)

    def _own(self, asked: OpenAsked) -> None:
        self._digest, self._previous = _digest(asked.fresh), b""
        self._is_fixed = asked.is_fixed
        self._reopened_token = asked.fresh if asked.is_unproved else ""
        self._credentials = asked.credentials
        self.key = asked.key
        self._is_taken_up = False
        self._missing = self._reported = 0

    def _claim(self, asked: ClaimAsked, now: float) -> list[Effect]:
        if self._digest and not (self._reopened_token and self.link is None):
            return [Refused(asked.link, Code.CONFLICT, "the session of this runtime has a token")]
        self._digest, self._previous, self._reopened_token = b"", b"", ""
        if self._entity.state is not None:
            return self._resume(asked, "", now)
        step = self._entity.step(Trigger.OPENED, f"claim runtimeURL={self.runtime}")
        return [step, self._attach(asked, "", now)]

    def _resume(
        self,
        asked: OpenAsked | ReopenAsked | ClaimAsked,
        token: str,
        now: float,
        why: str = _NEWER,
    ) -> list[Effect]:
        if asked.link == self.link:
            return [self._granted(asked.link, token, (), is_resumed=True)]
        fenced = self._cut(why, now)
        step = self._entity.step(Trigger.REOPENED, f"re-open runtimeURL={self.runtime}")
        return [*fenced, step, self._attach(asked, token, now, is_resumed=True)]

    def _attach(
        self,
        asked: OpenAsked | ReopenAsked | ClaimAsked,
        token: str,
        now: float,
        *,
        is_resumed: bool = False,
    ) -> Granted:
        self.link = asked.link
        self._liveness = asked.liveness
        self._alive(now)
        return self._granted(asked.link, token, self._emptied(), is_resumed=is_resumed)

    def _granted(
        self, link: int, token: str, waiting: tuple[OutboundMessage, ...], *, is_resumed: bool
    ) -> Granted:
        is_whole = not self._is_lost and not self._missing
        self._reported = self._missing
        return Granted(
            link,
            token,
            waiting,
            self._is_lasting(token),
            self._is_emptied,
            is_whole if is_resumed else None,
            self._missing,
        )

    def _is_lasting(self, token: str) -> bool:
        return bool(token) and not self._is_fixed

    def _lose(self, link: int, why: str, now: float) -> list[Effect]:
        if link != self.link:
            return []
        self.link = None
        self._since = now
        return [self._entity.step(Trigger.LINK_LOST, why)]

    def _cut(self, why: str, now: float) -> list[Effect]:
        return (
            [] if self.link is None else [LinkCut(self.link, why), *self._lose(self.link, why, now)]
        )

    def _keep(self, entry: OutboundMessage) -> Queued | Overflowed:
        size = len(entry.line)
        is_full = len(self._queue) >= SESSION_QUEUE or self._bytes + size > OUTBOX_BYTES
        refused = self._shares.refusal(self.runtime, 1, weight(1, size))
        if is_full or refused is not None:
            self.miss()
            return Overflowed(entry.message, _FULL if is_full or refused is None else refused.why)
        self._queue.append(entry)
        self._bytes += size
        self._shares.take(self.runtime, 1, weight(1, size))
        self._budget.hold(entry)
        return Queued(entry.message)

    def _emptied(self) -> tuple[OutboundMessage, ...]:
        """Let go of what waits, and return it."""
        waiting = tuple(self._queue)
        self._queue.clear()
        self._bytes = 0
        for entry in waiting:
            self._budget.release(entry)
            self._shares.take(self.runtime, -1, -weight(1, len(entry.line)))
        return waiting

    def _queued(self, happened: Wait | Shed) -> list[Effect]:
        if isinstance(happened, Wait):
            return [self._keep(happened.entry)]
        shed = self._emptied()
        self.miss(len(shed))
        return [Overflowed(entry.message, _FULL) for entry in shed]

    def _tick(self, now: float) -> list[Effect]:
        if now < self.deadline():
            return []
        if self.link is None:
            return self._end(Trigger.EXPIRE, "session expired")
        if self.is_over(now):
            return self._cut(_OVER, now)
        if self._pinged:
            if self._was_late(now):
                return []
            return self._cut("silent, and a ping was not answered", now)
        self._pinged = True
        return [PingDue(self.link)]

    def _was_late(self, now: float) -> bool:
        """Return whether the node looks too late itself; then the peer has some more time.

        What it has answered may not be read yet.
        """
        late = now - self.deadline()
        if late > LATE:
            self._since += late + min(late, PONG_TIMEOUT)
        return late > LATE

    def _left(self, happened: CloseAsked | NodeLeaves) -> list[Effect]:
        if isinstance(happened, NodeLeaves):
            why, is_resumable = "the node is going down", not self._is_fixed
        elif happened.link == self.link:
            why, is_resumable = "disconnect()", False
        else:
            return []
        done: list[Effect] = [] if self.link is None else [LinkDone(self.link)]
        return [*self._end(Trigger.CLOSE, why, is_resumable=is_resumable), *done]

    def _move(self, why: str, now: float) -> list[Effect]:
        cut = self._cut(why, now)
        return [*cut, self._entity.step(Trigger.MOVE, why), Moved(self._emptied())]

    def _end(self, trigger: Trigger, why: str, *, is_resumable: bool = False) -> list[Effect]:
        step = self._entity.step(trigger, why)
        undelivered = tuple(entry.message for entry in self._emptied())
        self.link = None
        return [step, Ended(why, undelivered, is_resumable)]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


# ---- the heartbeat of a link


@final
@unique
class Beat(Enum):
    """The action for a peer."""

    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


@final
class Heartbeat:
    """One peer, looked at when its deadline has passed."""

    __slots__ = ("_pinged_at",)

    def __init__(self) -> None:
        self._pinged_at: float | None = None

    def deadline(self, heard_at: float) -> float:
        """Return when to look at the peer; `heard_at`: when it last gave a sign of life."""
        if self._pinged_at is None or heard_at >= self._pinged_at:
            return heard_at + PING_PERIOD
        return self._pinged_at + PONG_TIMEOUT

    def look(self, heard_at: float, now: float) -> Beat:
        """Decide whether to ping or to give up.

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
