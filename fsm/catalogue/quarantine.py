"""Which nodes of other domains have said too much that they had no right to (S14)."""

from typing import final

from specs.limits.protocol import PEER_OFFENCES, QUARANTINE

__all__ = ["QuarantineCore"]


@final
class QuarantineCore:
    """Counts the offences of each node, and says who is kept out.

    Offences are counted for as long as a quarantine lasts, from the first: a message that
    crossed the end of what allowed it, now and then, makes no offender. Memory: one entry
    per node that ever offended and was not forgiven.
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
