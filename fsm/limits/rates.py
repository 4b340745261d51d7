"""Rate limits by token buckets, flood detection, a fair queue, and counts of errors in a period.

A token bucket for each of many keys needs a single number (RELIABILITY L5). A sender that floods a
router is delayed first, and then disconnected (R11, S17).

A component that submits messages to a router is a submitter. In the fair queue (R11) a single
submitter is never delayed. If another submitter was active within the last `CONTENTION` seconds,
each may submit a burst of messages and then a limited rate. When the router itself was delayed, the
submitters do not catch up: all would do so at once, just when the others have waited, too.
"""

import math
from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar, final

import attrs

from specs.limits import protocol
from specs.limits.bus import CONTENTION, SUBMIT_BURST, SUBMIT_RATE


class TokenBucket:
    """A rate limit: a bucket of `burst` tokens, refilled by `rate` tokens a second.

    Each event spends a token.

    Args:
        rate: Tokens a second.
        burst: Tokens that may be spent at once after a rest.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._since = 0.0

    @property
    def is_rested(self) -> bool:
        """True if the bucket is full, except for the token spent last."""
        return self._left >= self._burst - 1

    def spend(self, now: float) -> float:
        """Spend one token, even of an empty bucket; return the seconds to pause afterwards."""
        self._refill(now)
        self._left -= 1
        return 0.0 if self._left >= 0 else -self._left / self._rate

    def try_spend(self, now: float) -> bool:
        """Spend one token if the bucket is not empty; return whether a token was spent."""
        self._refill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def pause(self, now: float) -> float:
        """Return the seconds until a token is available; 0.0: a token is available now."""
        self._refill(now)
        return max(0.0, (1 - self._left) / self._rate)

    def _refill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now


K = TypeVar("K", bound=Hashable)

_SMALL: Final = 64
"""Number of buckets up to which full buckets are not searched and removed."""


@final
@attrs.frozen
class Rate:
    """A limit on the rate of events.

    Attributes:
        per_second: Events a second in the long run; infinity: no limit.
        burst: Events at once, after a rest.
    """

    per_second: float
    burst: int


class TokenBuckets(Generic[K]):
    """A token bucket for each key.

    The state of a bucket is the time at which the bucket will be full again. Full buckets are
    forgotten, so memory is needed only for keys that were used recently.
    """

    __slots__ = ("_full_at", "_patience", "_sweep_at", "_token")

    def __init__(self, rate: Rate) -> None:
        self._token: Final = 1 / rate.per_second
        self._patience: Final = rate.burst / rate.per_second
        self._full_at: Final[dict[K, float]] = {}
        self._sweep_at = _SMALL

    def __len__(self) -> int:
        return len(self._full_at)

    def spend(self, key: K, count: int, now: float) -> float:
        """Spend tokens, even more than are available; return the seconds to pause afterwards.

        Args:
            key: The key of the bucket.
            count: Number of tokens to spend.
            now: Seconds on the host's clock.
        """
        full_at = max(self._full_at.get(key, now), now) + count * self._token
        self._note(key, full_at, now)
        return max(0.0, full_at - now - self._patience)

    def try_spend(self, key: K, now: float) -> bool:
        """Spend one token if the bucket is not empty; return whether a token was spent.

        Args:
            key: The key of the bucket.
            now: Seconds on the host's clock.
        """
        full_at = max(self._full_at.get(key, now), now) + self._token
        if full_at - now > self._patience:
            return False
        self._note(key, full_at, now)
        return True

    def _note(self, key: K, full_at: float, now: float) -> None:
        if full_at <= now:
            return
        self._full_at[key] = full_at
        if len(self._full_at) >= self._sweep_at:
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Forget full buckets; do so again when the number of buckets has doubled."""
        for key in [each for each, full_at in self._full_at.items() if full_at <= now]:
            del self._full_at[key]
        self._sweep_at = max(_SMALL, 2 * len(self._full_at))


class FloodCore:
    """Rate limit of one sender that delays its messages, and detects a flood.

    When a pause ends, a sender that floods has further messages ready, while the reader must wait
    for the messages of an honest sender. So the measure is the total time of the pauses minus the
    time in which the reader waited for the sender.

    Args:
        rate: Tokens a second.
        burst: Tokens that may be spent at once after a rest.
        patience: Seconds of pauses, minus the seconds of waiting for the sender, above which the
            sender floods. The count begins again when the bucket is full.
    """

    def __init__(self, rate: float, burst: int, patience: float) -> None:
        self._pace = TokenBucket(rate, burst)
        self._patience = patience
        self._pause = 0.0
        self._spent_at = 0.0
        self._waited = 0.0
        self._held = 0.0

    def spend(self, now: float, waited: float) -> float:
        """Count a message; return the seconds to pause before the next, or infinity for a flood.

        Args:
            now: Seconds on the host's clock; the pause that was returned before has ended.
            waited: Total seconds that the reader has waited for the sender until now.
        """
        more = waited - self._waited
        if self._pause:
            self._held += now - self._spent_at - more
        self._held = max(self._held - more, 0.0)
        self._pause = self._pace.spend(now)
        if self._pace.is_rested:
            self._held = 0.0
        self._spent_at, self._waited = now, waited
        return self._pause if self._held < self._patience else math.inf


_APART: Final = 1 / SUBMIT_RATE
"""Seconds between two messages of a submitter that must keep to the limited rate."""


T = TypeVar("T")


class FairQueue(Generic[T]):
    """Delays the submitters of one router so that none of them excludes the others.

    The queue returns an item of type `T` for a delayed submitter when that may continue.

    Attributes:
        held: The items of delayed submitters, by submitter.
    """

    def __init__(self) -> None:
        self._buckets: TokenBuckets[str] = TokenBuckets(Rate(SUBMIT_RATE, SUBMIT_BURST))
        self._last = ""
        self._last_at = -math.inf
        self._other_at = -math.inf
        self.held: dict[str, deque[T]] = {}
        self._due: list[tuple[float, str]] = []

    def may_continue(self, by: str, item: T, now: float) -> bool:
        """Count a message of a submitter; return whether the submitter may continue at once.

        If not, `due` returns the item when the submitter may continue.

        Args:
            by: Name of the submitter.
            item: The object by which the caller wakes up the submitter.
            now: Seconds on the host's clock.
        """
        if by != self._last:
            self._other_at, self._last = self._last_at, by
        self._last_at = now
        if self._other_at + CONTENTION < now:
            return True
        wait = self._buckets.spend(by, 1, now)
        if by not in self.held:
            if wait <= 0:
                return True
            heappush(self._due, (now + wait, by))
        self.held.setdefault(by, deque()).append(item)
        return False

    def deadline(self) -> float:
        """Return the time at which `due` must be called next; infinity: no submitter is delayed."""
        return self._due[0][0] if self._due else math.inf

    def due(self, now: float) -> list[T]:
        """Remove and return the items of the submitters that may continue, one for each of them."""
        ready: list[str] = []
        while self._due and self._due[0][0] <= now:
            ready.append(heappop(self._due)[1])
        items = [self.held[by].popleft() for by in ready]
        for by in ready:
            if self.held[by]:
                heappush(self._due, (now + _APART, by))
            else:
                del self.held[by]
        return items


# Counts of malformed messages, crashes and offences, of which some are tolerated in a period.


class CrashCount:
    """Counts the crashes of one sandbox; `SANDBOX_RESTARTS` are tolerated in `SANDBOX_SECONDS`."""

    def __init__(self) -> None:
        self._crashes: deque[float] = deque()

    def count_crash(self, now: float) -> bool:
        """Count a crash; return whether too many have happened, which also resets the count."""
        while self._crashes and self._crashes[0] <= now - protocol.SANDBOX_SECONDS:
            self._crashes.popleft()
        self._crashes.append(now)
        if len(self._crashes) <= protocol.SANDBOX_RESTARTS:
            return False
        self._crashes.clear()
        return True

    def is_calm(self, now: float) -> bool:
        """Return whether no crash has happened within the last `SANDBOX_SECONDS`."""
        return not self._crashes or self._crashes[-1] <= now - protocol.SANDBOX_SECONDS


class ErrorWindow:
    """Counts the recent malformed messages on one link, to close the link if there are too many.

    Args:
        borne: Number of malformed messages that are tolerated within `ERROR_WINDOW`; infinity: no
            limit.
    """

    __slots__ = ("_borne", "_times")

    def __init__(self, borne: float) -> None:
        self._borne: Final = borne
        self._times: Final[deque[float]] = deque()

    def add(self, count: int, now: float) -> bool:
        """Count malformed messages; return whether the link may stay open.

        Args:
            count: Number of malformed messages to add.
            now: Seconds on the host's clock.
        """
        if self._borne == math.inf:
            return True
        times = self._times
        while times and times[0] <= now - protocol.ERROR_WINDOW:
            times.popleft()
        times.extend([now] * count)
        while len(times) > self._borne + 1:
            times.popleft()
        return len(times) <= self._borne


class QuarantineCore:
    """Refuses, for some time, the nodes that too often sent from addresses they do not own.

    Such an offence is forgotten after `QUARANTINE` seconds, so that a rare message that is sent
    just when its permission ends does no harm. Memory: one entry for each node with offences.
    """

    def __init__(self) -> None:
        self._offences: dict[str, tuple[int, float]] = {}
        self._until: dict[str, float] = {}

    def offended(self, node: str, now: float) -> bool:
        """Count an offence of a node; return whether the node must be disconnected now.

        Args:
            node: Address of the node.
            now: Seconds on the host's clock.
        """
        count, since = self._offences.get(node, (0, now))
        if since + protocol.QUARANTINE <= now:
            count, since = 0, now
        if count + 1 < protocol.PEER_OFFENCES:
            self._offences[node] = count + 1, since
            return False
        self._offences.pop(node, None)
        self._until[node] = now + protocol.QUARANTINE
        return True

    def holds(self, node: str, now: float) -> bool:
        """Return whether a node is in quarantine and must be refused.

        Args:
            node: Address of the node.
            now: Seconds on the host's clock.
        """
        until = self._until.get(node)
        if until is not None and until <= now:
            del self._until[node]
            return False
        return until is not None
