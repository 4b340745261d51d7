"""Fair division of limited resources between peers, senders, users, sandboxes and hosts.

`WorkShares` divides the capacity of a hyperty to handle requests. A peer's request is handled at
once while the peer uses less than what is free: the first peer gets half of the capacity, the next
half of the rest. Other requests wait, and delay no other peer. `OpenShares` limits the requests of
one process that a receiver handles at once; senders whose requests wait are served in rotation. The
other classes limit items and memory of users, sandbox processes, and connections of hosts.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from ipaddress import IPv6Address, ip_address
from itertools import islice
from sys import getsizeof
from typing import Final, Generic, TypeVar, final

import attrs
from typing_extensions import override

from fsm.effects import Refused
from fsm.limits.rates import Rate, TokenBuckets
from specs.addresses.address import domain_of
from specs.jsonvalue import Json
from specs.limits import foreign_code
from specs.limits.protocol import ACCEPT_BATCH, ACCEPT_GRACE, SANDBOX_CPU, SANDBOX_MEMORY
from specs.message import Message
from specs.reply_code import Code

T = TypeVar("T")


def peer_of(message: Message) -> str:
    """Return the runtime in the sender's identity; empty: the message has no identity.

    Args:
        message: The message.
    """
    return "" if message.identity is None else message.identity.runtime


class WorkShares(Generic[T]):
    """Decides which requests to a hyperty are handled now, which wait, and which are refused.

    Args:
        most: Largest number of requests that are handled at once.
        room: Largest number of waiting requests, for all peers.
        each: Largest number of waiting requests of one peer.
    """

    def __init__(self, most: int, room: int, each: int) -> None:
        self._most: Final = most
        self._room: Final = room
        self._each: Final = each
        self._begun: Final[Counter[str]] = Counter()
        self._waiting: Final[dict[str, deque[T]]] = {}
        self._waits = 0

    def enter(self, peer: str, work: T) -> tuple[bool, T | None]:
        """Start or queue a request; return whether it starts, and a request to refuse, or None.

        If the queue is full, a request of the peer with the longest queue is refused.

        Args:
            peer: Name of the peer.
            work: The request.
        """
        if peer not in self._waiting and self._may_begin(peer):
            self._begun[peer] += 1
            return True, None
        given_up: T | None = None
        queue = self._waiting.get(peer, ())
        if len(queue) >= self._each:
            return False, work
        if self._waits >= self._room:
            largest = max(self._waiting.values(), key=len)
            if len(largest) <= len(queue) + 1:
                return False, work
            given_up = largest.pop()
            self._waits -= 1
        self._waiting.setdefault(peer, deque()).append(work)
        self._waits += 1
        return False, given_up

    def leave(self, peer: str) -> list[tuple[str, T]]:
        """Note that a request of a peer was handled; return the requests that start now.

        Args:
            peer: Name of the peer.
        """
        self._begun[peer] -= 1
        if not self._begun[peer]:
            del self._begun[peer]
        started: list[tuple[str, T]] = []
        for each in list(self._waiting):
            line = self._waiting.pop(each)
            while line and self._may_begin(each):
                started.append((each, line.popleft()))
                self._begun[each] += 1
                self._waits -= 1
            if line:
                # Moved to the end, so that other peers are served first the next time.
                self._waiting[each] = line
        return started

    def list_waiting(self) -> list[T]:
        """Return all waiting requests."""
        return [work for line in self._waiting.values() for work in line]

    def clear(self) -> list[T]:
        """Remove and return all waiting requests."""
        given_up = self.list_waiting()
        self._waiting.clear()
        self._waits = 0
        return given_up

    def _may_begin(self, peer: str) -> bool:
        return self._begun[peer] < self._most - self._begun.total()


class OpenShares(Generic[T]):
    """Limits the open requests of one process at one receiver, fairly between the senders.

    Args:
        most: Largest number of open requests, for all senders.
        each: Largest number of open requests of one sender.
    """

    __slots__ = ("_each", "_most", "_open", "_total", "_waiting")

    def __init__(self, most: int, each: int) -> None:
        self._most: Final = most
        self._each: Final = each
        self._open: Final[dict[str, int]] = {}
        self._total = 0
        self._waiting: Final[dict[str, deque[T]]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no request is open and no request waits."""
        return not self._total and not self._waiting

    def enter(self, sender: str) -> bool:
        """Count a request of a sender as open; return False if the request must wait instead."""
        count = self._open.get(sender, 0)
        if sender in self._waiting or self._total >= self._most or count >= self._each:
            return False
        self._total += 1
        self._open[sender] = count + 1
        return True

    def wait(self, sender: str, waiter: T) -> None:
        """Queue a request that `enter` has not admitted, behind others of its sender."""
        self._waiting.setdefault(sender, deque()).append(waiter)

    def give_up(self, sender: str, waiter: T) -> None:
        """Remove a waiting request that is no longer wanted."""
        self._waiting[sender].remove(waiter)
        if not self._waiting[sender]:
            del self._waiting[sender]

    def leave(self, sender: str) -> T | None:
        """Note that a request has ended; return the waiting request that is opened now, or None."""
        self._total -= 1
        self._open[sender] -= 1
        if not self._open[sender]:
            del self._open[sender]
        if not self._waiting or self._total >= self._most:
            return None
        each = self._each
        next_sender = next((item for item in self._waiting if self._open.get(item, 0) < each), None)
        if next_sender is None:
            return None
        line = self._waiting.pop(next_sender)
        waiter = line.popleft()
        if line:
            # Moved to the end, so that other senders are served first the next time.
            self._waiting[next_sender] = line
        self._total += 1
        self._open[next_sender] = self._open.get(next_sender, 0) + 1
        return waiter


# Limits for users: number and memory of items of one kind, over all sessions of a user.


def own_user(runtime: str) -> str:
    """Return the runtime itself in place of its user, for nodes that do not know users."""
    return runtime


def user_of(message: Message, domain: str) -> str:
    """Return the user to whose limits a message is charged: by login, else the runtime or sender.

    All messages of another domain are charged to that domain, which could invent users.

    Args:
        message: The message.
        domain: Domain of the node.
    """
    origin, sender = domain_of(message.from_), message.identity
    if origin != domain:
        return origin
    return message.from_ if sender is None else sender.user or sender.runtime


@attrs.define(slots=True)
class Share:
    """A number of items and their bytes of memory, in use or as a limit."""

    count: int = 0
    size: int = 0

    def add(self, count: int, size: int) -> None:
        """Add a number of items and their bytes; negative numbers remove items."""
        self.count += count
        self.size += size


class UserShares:
    """Limits number and memory of the items that users hold at a node, for each user and in all.

    Args:
        kind: The items that are counted, in the plural, such as `records`.
        each: The limits of one user.
        together: The limits of all users.
        user_of: Returns the user of a runtime that holds no items yet.
        code: Code of the refusal if a user's limit is reached: 413, or 503 for waiting items.
    """

    def __init__(
        self,
        kind: str,
        each: Share,
        together: Share,
        user_of: Callable[[str], str] = own_user,
        code: Code = Code.TOO_LARGE,
    ) -> None:
        self._kind: Final = kind
        self._each: Final = each
        self._limit: Final = together
        self._user_of: Final = user_of
        self._code: Final = code
        self._runtimes: dict[str, tuple[str, Share]] = {}
        self._users: dict[str, Share] = {}
        self._all: Final = Share()

    @property
    def size(self) -> int:
        """The bytes of memory of the items of all users."""
        return self._all.size

    def user(self, runtime: str) -> str:
        """Return the user to whom the items of a runtime are charged."""
        held = self._runtimes.get(runtime)
        return self._user_of(runtime) if held is None else held[0]

    def __len__(self) -> int:
        return len(self._runtimes)

    def __contains__(self, runtime: object) -> bool:
        """Return whether a runtime holds any items."""
        return runtime in self._runtimes

    def refusal(self, runtime: str, count: int, size: int) -> Refused | None:
        """Return the refusal if a runtime may not hold so many further items, or None.

        Args:
            runtime: Address of the runtime.
            count: Number of further items.
            size: Bytes of memory of the items.
        """
        kind = self._kind
        share = self._users.get(self.user(runtime)) or Share()
        each, limit, total = self._each, self._limit, self._all
        if count > 0 and share.count + count > each.count:
            return Refused(self._code, f"a user has at most {each.count} {kind}")
        if size > 0 and share.size + size > each.size:
            return Refused(self._code, f"a user has at most {each.size} bytes of {kind}")
        if count > 0 and total.count + count > limit.count:
            return Refused(Code.UNAVAILABLE, f"the node has room for {limit.count} {kind}")
        if size > 0 and total.size + size > limit.size:
            return Refused(Code.UNAVAILABLE, f"the node has room for {limit.size} bytes of {kind}")
        return None

    def take(self, runtime: str, count: int, size: int) -> None:
        """Add items to those that a runtime holds, without a check of the limits.

        Args:
            runtime: Address of the runtime.
            count: Number of items; negative: items are removed.
            size: Bytes of memory of the items, with the same sign.
        """
        entry = self._runtimes.get(runtime)
        if entry is None:
            entry = self._runtimes[runtime] = self._user_of(runtime), Share()
        user, own = entry
        of_user = self._users.setdefault(user, Share())
        for share in (own, of_user, self._all):
            share.add(count, size)
        if not own.count:
            del self._runtimes[runtime]
        if not of_user.count:
            del self._users[user]

    def give_back(self, runtime: str) -> None:
        """Remove all items of a runtime."""
        if runtime in self._runtimes:
            _, own = self._runtimes[runtime]
            self.take(runtime, -own.count, -own.size)


_HALF: Final = 2


class UserQueue(Generic[T]):
    """A queue in which the items of a single user can take at most half of the limits.

    Args:
        kind: Name of the items in the plural, for refusals.
        most: The limits of the queue, for all users together.
    """

    def __init__(self, kind: str, most: Share) -> None:
        each = Share(most.count // _HALF, most.size // _HALF)
        self._shares: Final = UserShares(kind, each, most, code=Code.UNAVAILABLE)
        self._items: Final = deque[tuple[T, str, int]]()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> tuple[T, ...]:
        """The waiting items, in order."""
        return tuple(item for item, _, _ in self._items)

    def put(self, item: T, user: str, size: int) -> Refused | None:
        """Add an item to the queue; return the refusal if limits are reached, or None.

        Args:
            item: The item.
            user: The user to whom the item is charged.
            size: Number of bytes of the item.
        """
        refusal = self._shares.refusal(user, 1, size)
        if refusal is None:
            self._shares.take(user, 1, size)
            self._items.append((item, user, size))
        return refusal

    def take(self, most: int | None = None) -> list[T]:
        """Remove and return the first items, at most `most` of them; None: all items."""
        items: list[T] = []
        while self._items and len(items) != most:
            item, user, size = self._items.popleft()
            self._shares.take(user, -1, -size)
            items.append(item)
        return items


class UserTurns(Generic[T]):
    """A queue that serves the users in rotation, and keeps the order of each user's items.

    Args:
        most: Largest number of waiting items, for all users together.
    """

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._items: Final[dict[Hashable, deque[T]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, item: T, user: Hashable) -> T | None:
        """Add an item of a user to the queue.

        Returns:
            The item that was removed since the queue is full, or None. It is the newest item of the
            user with the most items.
        """
        self._items.setdefault(user, deque()).append(item)
        if self._count < self._most:
            self._count += 1
            return None
        longest = max(self._items, key=lambda each: (len(self._items[each]), each == user))
        items = self._items[longest]
        over = items.pop()
        if not items:
            del self._items[longest]
        return over

    def take(self) -> T:
        """Remove and return the first item of the next user in rotation."""
        user = next(iter(self._items))
        items = self._items.pop(user)
        item = items.popleft()
        self._count -= 1
        if items:
            self._items[user] = items
        return item


# Estimates of memory in bytes, and a cache with a memory limit.

_MESSAGE: Final = 512
"""Number of bytes of a message without its addresses and its body."""


def json_bytes(value: Json) -> int:
    """Return the estimated bytes of memory of a JSON value with all values in it."""
    total, level = 0, [value]
    while level:
        part = level.pop()
        total += getsizeof(part)
        if isinstance(part, dict):
            total += sum(map(getsizeof, part))
            level.extend(part.values())
        elif isinstance(part, list):
            level.extend(part)
    return total


def message_bytes(message: Message) -> int:
    """Return the estimated bytes of memory that a message takes."""
    return _MESSAGE + len(message.from_) + len(message.to) + json_bytes(dict(message.body))


K = TypeVar("K")
V = TypeVar("V")


class Memory(OrderedDict[K, V]):
    """A cache that is as fast as a dictionary and forgets its oldest value when it is full.

    Values must be added by `keep` only.

    Args:
        entries: Maximum number of cached values.
        size: Maximum number of bytes of the texts of all keys and values.
    """

    __slots__ = ("_entries", "_left", "_size", "_sizes")

    def __init__(self, entries: int, size: int) -> None:
        super().__init__()
        self._entries: Final = entries
        self._size: Final = size
        self._left = size
        self._sizes: Final = dict[K, int]()

    def keep(self, key: K, value: V, texts: Iterable[str]) -> V:
        """Add a value to the cache and return it; too large values are returned only.

        Args:
            key: The key.
            value: The value.
            texts: The texts in the key and the value, whose memory is counted.
        """
        size = sum(map(getsizeof, texts))
        if size > self._size:
            return value
        if key in self:
            del self[key]
            self._left += self._sizes.pop(key)
        while size > self._left or len(self) >= self._entries:
            oldest, _ = self.popitem(last=False)
            self._left += self._sizes.pop(oldest)
        self._left -= size
        self._sizes[key] = size
        self[key] = value
        return value

    @override
    def clear(self) -> None:
        super().clear()
        self._sizes.clear()
        self._left = self._size


# Limits on all sandbox processes of one host together (T16).

MIB: Final = 1_048_576
"""Number of bytes of a mebibyte."""


@final
@attrs.frozen
class SandboxTotals:
    """The resources that all sandbox processes of a runtime may use together.

    Attributes:
        memory: Bytes of memory; at least those of one process, `SANDBOX_MEMORY`.
        cpu: Number of processors.

    Raises:
        TypeError: A value is no number.
        ValueError: A value is less than the limit of a single process.
    """

    memory: int = attrs.field(
        default=foreign_code.SANDBOXES_MEMORY,
        validator=[attrs.validators.instance_of(int), attrs.validators.ge(SANDBOX_MEMORY)],
    )
    cpu: float = attrs.field(
        default=foreign_code.SANDBOXES_CPU,
        validator=[
            attrs.validators.instance_of((int, float)),
            attrs.validators.ge(foreign_code.SANDBOXES_CPU_LEAST),
        ],
    )


TOTALS: Final = SandboxTotals()
"""The default limits on all sandbox processes of a runtime together."""


class SandboxAdmission:
    """Decides whether another sandbox process may be started on this host.

    Args:
        totals: The resources that all sandbox processes may use together.
        is_grouped: Whether the kernel enforces these limits for all processes together.
    """

    def __init__(self, totals: SandboxTotals, *, is_grouped: bool) -> None:
        self._totals = totals
        self._is_grouped = is_grouped
        self._running = 0

    def enter(self) -> str | None:
        """Count a new sandbox process; return None, or the reason why no process may be started."""
        refusal = self._refusal()
        if refusal is None:
            self._running += 1
        return refusal

    def leave(self) -> None:
        """Note that a sandbox process has ended."""
        self._running -= 1

    def _refusal(self) -> str | None:
        count, totals = self._running + 1, self._totals
        if count > foreign_code.SANDBOXES:
            return f"{foreign_code.SANDBOXES} sandbox processes run already"
        if self._is_grouped:
            return None
        if count * SANDBOX_MEMORY > totals.memory:
            return (
                f"all sandboxes together may use {totals.memory // MIB} MiB of memory, and "
                f"{self._running} of {SANDBOX_MEMORY // MIB} MiB each run already; "
                "raise --sandbox-memory (RuntimeConfig.sandboxes)"
            )
        if count * SANDBOX_CPU > totals.cpu * foreign_code.SANDBOXES_SPAN:
            return (
                f"all sandboxes together may use {totals.cpu:g} processors of a day, and "
                f"{self._running} of {SANDBOX_CPU} s each run already; "
                "raise --sandbox-cpu (RuntimeConfig.sandboxes)"
            )
        return None


# Limits of a node on network links without a session, and on links per host (RELIABILITY L5, L6).
#
# Hosts that open links and never log in must not exclude others. So no link is refused because too
# many are open. Instead the oldest link without a session is closed: the oldest link of the same
# host if that host has too many, otherwise the oldest of all. An honest client has a session after
# milliseconds, so that its link no longer counts.

_IPV6_SITE_BITS: Final = 64
"""Number of bits that identify the network of an IPv6 address; a host chooses the other bits."""


def host_key(host: str) -> str:
    """Return the key for counting the links of a host: its address, or its /64 network (IPv6)."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> (128 - _IPV6_SITE_BITS):x}/{_IPV6_SITE_BITS}"


class UnauthenticatedLinks:
    """Limits the links to a node that have no session yet, in all and for each host.

    Args:
        rate: Rate at which one host may open links.
        most: Largest number of links without a session.
        most_per_host: Largest number of links without a session of one host.
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

    def knock(self, host: str, now: float) -> tuple[int, int | None] | None:
        """Count a new link; return its number, and the number of the link to close for it.

        The second number is None if no link must be closed. The result is None if the host opens
        links too often, so that the new link must be refused.

        Args:
            host: IP address of the host that opened the link.
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
        return self._next, makes_room

    def forget(self, number: int) -> None:
        """Stop counting a link that has a session now or is closed."""
        known = self._everybody.pop(number, None)
        if known is None:
            return
        key, _ = known
        neighbours = self._by_host[key]
        del neighbours[number]
        if not neighbours:
            del self._by_host[key]

    def room(self, now: float) -> int:
        """Return the number of links that may be accepted now without closing very young links.

        Args:
            now: Seconds on the host's clock.
        """
        free = min(ACCEPT_BATCH, self._most - len(self._everybody))
        if free > 0:
            return int(free)
        oldest = islice(self._everybody.values(), ACCEPT_BATCH)
        return sum(since + ACCEPT_GRACE <= now for _, since in oldest)

    def _oldest(self, key: str) -> int | None:
        """Return the link to close so that a host may open another, or None if none must be."""
        neighbours = self._by_host.get(key)
        if neighbours and len(neighbours) >= self._most_per_host:
            return next(iter(neighbours))
        if self._everybody and len(self._everybody) >= self._most:
            return next(iter(self._everybody))
        return None


class HostShares:
    """Limits the open connections, in all and for each host.

    Memory: one number for each host with a connection.

    Args:
        most: Largest number of connections.
        most_per_host: Largest number of connections of one host.
    """

    __slots__ = ("_by_host", "_most", "_most_per_host")

    def __init__(self, most: int, most_per_host: int) -> None:
        self._most: Final = most
        self._most_per_host: Final = most_per_host
        self._by_host: Final = Counter[str]()

    def __len__(self) -> int:
        return self._by_host.total()

    def enter(self, host: str) -> bool:
        """Count another connection of a host if the limits permit; return whether they do."""
        key = host_key(host)
        if len(self) >= self._most or self._by_host[key] >= self._most_per_host:
            return False
        self._by_host[key] += 1
        return True

    def leave(self, host: str) -> None:
        """Stop counting a connection of a host that `enter` has counted."""
        key = host_key(host)
        self._by_host[key] -= 1
        if not self._by_host[key]:
            del self._by_host[key]
