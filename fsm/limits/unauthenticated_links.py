"""Limits of a node on links without a session, and on links per host (RELIABILITY L5, L6).

Hosts that open connections and never log in must not keep others out. So no link is refused
because too many are open. Instead the oldest link without a session is closed: the oldest
of the same host if that host has too many, else the oldest of all, once it has had some time. An
honest client has a session after milliseconds, and its link no longer counts.
"""

from collections import Counter, OrderedDict
from ipaddress import IPv6Address, ip_address
from itertools import islice
from typing import Final

import attrs

from fsm.limits.rates import Rate, TokenBuckets
from specs.limits.protocol import ACCEPT_BATCH, ACCEPT_GRACE

_IPV6_SITE_BITS: Final = 64
"""Bits of an IPv6 address that name its network; a host chooses the rest (RFC 4291)."""


def host_key(host: str) -> str:
    """Return the key under which the connections of one host count; of IPv6 its /64 network."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> (128 - _IPV6_SITE_BITS):x}/{_IPV6_SITE_BITS}"


@attrs.frozen
class Knock:
    """A link that is accepted.

    Attributes:
        number: The number of the link here.
        makes_room: The number of the link to close for it; None: no link is closed.
    """

    number: int
    makes_room: int | None


class UnauthenticatedLinks:
    """The links that have no session yet.

    Args:
        rate: How often one host may connect.
        most: How many such links there may be.
        most_per_host: How many such links of one host there may be.
    """

    __slots__ = ("_buckets", "_by_host", "_everybody", "_most", "_most_per_host", "_next")

    def __init__(self, rate: Rate, most: float, most_per_host: float) -> None:
        self._buckets: Final = TokenBuckets[str](rate)
        self._most: Final = most
        self._most_per_host: Final = most_per_host
        self._everybody: Final[OrderedDict[int, tuple[str, float]]] = OrderedDict()
        self._by_host: Final[dict[str, OrderedDict[int, None]]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._everybody)

    def knock(self, host: str, now: float) -> Knock | None:
        """Accept a link; None: its host connects too often.

        Args:
            host: IP address of the other end.
            now: Seconds on the host's clock.
        """
        key = host_key(host)
        if not self._buckets.try_spend(key, now):
            return None
        makes_room = self._oldest(key)
        if makes_room is not None:
            self.forget(makes_room)
        self._next += 1
        self._everybody[self._next] = key, now
        self._by_host.setdefault(key, OrderedDict())[self._next] = None
        return Knock(self._next, makes_room)

    def forget(self, number: int) -> None:
        """Count a link no longer: it has a session now, or is closed."""
        known = self._everybody.pop(number, None)
        if known is None:
            return
        key, _ = known
        neighbours = self._by_host[key]
        del neighbours[number]
        if not neighbours:
            del self._by_host[key]

    def room(self, now: float) -> int:
        """Return how many links may come at once, without closing one that is too young for it.

        Args:
            now: Seconds on the host's clock.
        """
        left = min(ACCEPT_BATCH, self._most - len(self._everybody))
        if left > 0:
            return int(left)
        oldest = islice(self._everybody.values(), ACCEPT_BATCH)
        return sum(since + ACCEPT_GRACE <= now for _, since in oldest)

    def _oldest(self, key: str) -> int | None:
        """Return the link to close for one more of a host; None: there is no need."""
        neighbours = self._by_host.get(key)
        if neighbours and len(neighbours) >= self._most_per_host:
            return next(iter(neighbours))
        if self._everybody and len(self._everybody) >= self._most:
            return next(iter(self._everybody))
        return None


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
        """Count one more connection of a host if the limits allow it; return whether they do."""
        key = host_key(host)
        if len(self) >= self._most or self._by_host[key] >= self._most_per_host:
            return False
        self._by_host[key] += 1
        return True

    def leave(self, host: str) -> None:
        """Count one connection less of a host, which was counted by `enter`."""
        key = host_key(host)
        self._by_host[key] -= 1
        if not self._by_host[key]:
            del self._by_host[key]
