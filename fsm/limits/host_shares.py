"""How many connections there may be at once, and how many of them one host may have (L6)."""

from collections import Counter
from typing import Final, final

from fsm.limits.unauthenticated_links import host_key

__all__ = ["HostShares"]


@final
class HostShares:
    """Connections that are open, by host: no host can have them all.

    Memory: one number for each host that has a connection.

    Args:
        most: How many there may be.
        most_per_host: How many of one host.
    """

    __slots__ = ("_by_host", "_most", "_most_per_host")

    def __init__(self, most: int, most_per_host: int) -> None:
        self._most: Final = most
        self._most_per_host: Final = most_per_host
        self._by_host: Final = Counter[str]()

    def __len__(self) -> int:
        return self._by_host.total()

    def enter(self, host: str) -> bool:
        """Count one more of a host, if there is room for it; say whether there was."""
        key = host_key(host)
        if len(self) >= self._most or self._by_host[key] >= self._most_per_host:
            return False
        self._by_host[key] += 1
        return True

    def leave(self, host: str) -> None:
        """Count one less of a host, which has entered."""
        key = host_key(host)
        self._by_host[key] -= 1
        if not self._by_host[key]:
            del self._by_host[key]
