"""Error windows: malformed messages, crashes and offences that are borne in a period.

Malformed messages count per link (RELIABILITY L4), crashes per sandbox (R11), offences per
node of another domain (S14).
"""

import math
from collections import deque
from typing import Final, final

from specs.limits.protocol import (
    ERROR_WINDOW,
    PEER_OFFENCES,
    QUARANTINE,
    SANDBOX_RESTARTS,
    SANDBOX_SECONDS,
)


@final
class CrashCount:
    """The crashes of one sandbox within `SANDBOX_SECONDS`; `SANDBOX_RESTARTS` are borne."""

    def __init__(self) -> None:
        self._crashes: deque[float] = deque()

    def crashed(self, now: float) -> bool:
        """Count a crash; return whether there are too many now. The count then begins anew."""
        while self._crashes and self._crashes[0] <= now - SANDBOX_SECONDS:
            self._crashes.popleft()
        self._crashes.append(now)
        if len(self._crashes) <= SANDBOX_RESTARTS:
            return False
        self._crashes.clear()
        return True

    def is_calm(self, now: float) -> bool:
        """Return whether all counted crashes are older than the window."""
        return not self._crashes or self._crashes[-1] <= now - SANDBOX_SECONDS


@final
class ErrorWindow:
    """The error window of one link: its latest malformed messages.

    Args:
        borne: How many there may be within `ERROR_WINDOW`; infinity: no limit.
    """

    __slots__ = ("_borne", "_times")

    def __init__(self, borne: float) -> None:
        self._borne: Final = borne
        self._times: Final[deque[float]] = deque()

    def add(self, count: int, now: float) -> bool:
        """Count malformed messages; return whether the link may stay open.

        Args:
            count: How many messages are added.
            now: Seconds on the host's clock.
        """
        if self._borne == math.inf:
            return True
        times = self._times
        while times and times[0] <= now - ERROR_WINDOW:
            times.popleft()
        times.extend([now] * count)
        while len(times) > self._borne + 1:
            times.popleft()
        return len(times) <= self._borne


@final
class QuarantineCore:
    """The quarantine of nodes that used addresses without a right to them too often.

    Offences are counted for as long as a quarantine lasts, from the first: a message that
    crossed the end of what allowed it, now and then, causes none. Memory: one entry per node
    that ever offended and was not forgiven.
    """

    def __init__(self) -> None:
        self._offences: dict[str, tuple[int, float]] = {}
        self._until: dict[str, float] = {}

    def offended(self, node: str, now: float) -> bool:
        """Count an offence; return whether the node is to be disconnected now.

        Args:
            node: Address of the node.
            now: Seconds on the host's clock.
        """
        count, since = self._offences.get(node, (0, now))
        if since + QUARANTINE <= now:
            count, since = 0, now
        if count + 1 < PEER_OFFENCES:
            self._offences[node] = count + 1, since
            return False
        self._offences.pop(node, None)
        self._until[node] = now + QUARANTINE
        return True

    def holds(self, node: str, now: float) -> bool:
        """Return whether a node is refused; after its time it is not.

        Args:
            node: Address of the node.
            now: Seconds on the host's clock.
        """
        until = self._until.get(node)
        if until is not None and until <= now:
            del self._until[node]
            return False
        return until is not None
