"""Token buckets: limits of rates for one sender, for each of many, and for competing senders.

One number for each key is enough to limit a rate (RELIABILITY L5). A sender that floods a router is
delayed first, then given up (R11, S17).

In the fair queue (R11) a submitter that is alone is never delayed. While another submitter has
submitted within `CONTENTION`, each has a share of the router's time: a burst, and then a rate. Time
in which the router itself was delayed is not added to the shares. Otherwise all delayed submitters
would come at once, just when the others have waited, too.
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
    """A token bucket of `burst` tokens, refilled by `rate` tokens a second.

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
        """Spend one token; return the seconds to pause before the next step, 0.0 for none."""
        self._refill(now)
        self._left -= 1
        return 0.0 if self._left >= 0 else -self._left / self._rate

    def try_spend(self, now: float) -> bool:
        """Spend one token if there is one; return whether there was."""
        self._refill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def pause(self, now: float) -> float:
        """Return the seconds until there is a token, 0.0 if there is one."""
        self._refill(now)
        return max(0.0, (1 - self._left) / self._rate)

    def _refill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now


K = TypeVar("K", bound=Hashable)

_SMALL: Final = 64
"""Number of keys that are kept without a check whether they are still needed."""


@final
@attrs.frozen
class Rate:
    """A rate and a burst.

    Attributes:
        per_second: Events a second in the long run; infinity: no limit.
        burst: Events at once, after a rest.
    """

    per_second: float
    burst: int


class TokenBuckets(Generic[K]):
    """A token bucket for each key.

    The state of a bucket is the time at which it is full again. A full bucket is forgotten, so
    memory is needed only for keys that were used recently.
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
        """Take tokens even if there are too few; return the seconds until none is owed.

        Args:
            key: The key of the bucket.
            count: Tokens to take.
            now: Seconds on the host's clock.
        """
        full_at = max(self._full_at.get(key, now), now) + count * self._token
        self._note(key, full_at, now)
        return max(0.0, full_at - now - self._patience)

    def try_spend(self, key: K, now: float) -> bool:
        """Take one token if there is one; return whether there was.

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
        """Forget full buckets; the next sweep comes when the number of the others has doubled."""
        for key in [each for each, full_at in self._full_at.items() if full_at <= now]:
            del self._full_at[key]
        self._sweep_at = max(_SMALL, 2 * len(self._full_at))


class FloodCore:
    """A token bucket for one sender, and the time for which it delayed the sender.

    A sender that floods always has more to send when a pause is over; for a sender that keeps to
    the rate, the reader must wait. So the measure is the time of the pauses, minus the time in
    which the reader waited for the sender. Neither a pause that took too long nor an empty bucket
    counts against the sender.

    Args:
        rate: Tokens a second.
        burst: Tokens that may be spent at once after a rest.
        patience: Seconds of delay, minus those waited for the sender, from which on it is a flood.
            The count begins again when the bucket is full.
    """

    def __init__(self, rate: float, burst: int, patience: float) -> None:
        self._pace = TokenBucket(rate, burst)
        self._patience = patience
        self._pause = 0.0
        self._spent_at = 0.0
        self._waited = 0.0
        self._held = 0.0

    def spend(self, now: float, waited: float) -> float:
        """Spend one token; return the seconds to pause first: 0.0 for none, infinity for a flood.

        Args:
            now: Seconds on the host's clock; the pause returned before is over.
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
"""Seconds between two turns of a submitter that uses its whole share."""


T = TypeVar("T")


class FairQueue(Generic[T]):
    """The fair queue of one router: the items that submitters get back, each in its turn.

    Attributes:
        held: The items that are returned later, by submitter.
    """

    def __init__(self) -> None:
        self._buckets: TokenBuckets[str] = TokenBuckets(Rate(SUBMIT_RATE, SUBMIT_BURST))
        self._last = ""
        self._last_at = -math.inf
        self._other_at = -math.inf
        self.held: dict[str, deque[T]] = {}
        self._due: list[tuple[float, str]] = []

    def may_continue(self, by: str, item: T, now: float) -> bool:
        """Count a message of a submitter; return whether its next message may come at once.

        If not, `due` returns the item at its turn.

        Args:
            by: Name of the submitter.
            item: What the submitter waits for.
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
        """Return the time of the next call of `due`; infinity: no submitter is delayed."""
        return self._due[0][0] if self._due else math.inf

    def due(self, now: float) -> list[T]:
        """Return the items that are due: one for each submitter, however late."""
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


# Error windows: malformed messages, crashes and offences that are tolerated in a period.


class CrashCount:
    """The crashes of one sandbox within `SANDBOX_SECONDS`; `SANDBOX_RESTARTS` are tolerated."""

    def __init__(self) -> None:
        self._crashes: deque[float] = deque()

    def count_crash(self, now: float) -> bool:
        """Count a crash; return whether there are too many now, and then begin to count again."""
        while self._crashes and self._crashes[0] <= now - protocol.SANDBOX_SECONDS:
            self._crashes.popleft()
        self._crashes.append(now)
        if len(self._crashes) <= protocol.SANDBOX_RESTARTS:
            return False
        self._crashes.clear()
        return True

    def is_calm(self, now: float) -> bool:
        """Return whether all counted crashes are older than the window."""
        return not self._crashes or self._crashes[-1] <= now - protocol.SANDBOX_SECONDS


class ErrorWindow:
    """The error window of one link: its recent malformed messages.

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
    """The quarantine of nodes that too often used addresses without a right to them.

    Offences are counted for the duration of a quarantine, from the first one: an occasional message
    that crosses the end of its permission causes no quarantine. Memory: one entry for each node
    with an offence that was not forgiven.
    """

    def __init__(self) -> None:
        self._offences: dict[str, tuple[int, float]] = {}
        self._until: dict[str, float] = {}

    def offended(self, node: str, now: float) -> bool:
        """Count an offence; return whether the node must be disconnected now.

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
        """Return whether a node is refused until the end of its quarantine.

        Args:
            node: Address of the node.
            now: Seconds on the host's clock.
        """
        until = self._until.get(node)
        if until is not None and until <= now:
            del self._until[node]
            return False
        return until is not None
