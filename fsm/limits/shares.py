"""Shares of limited resources: the work of a hyperty, by peers, and open requests, by senders.

A peer begins work while it has less than the free capacity: alone it gets half, and the next peer
half of the rest. Work beyond that waits, and delays no other peer. The senders of one process
together have as many requests open at a receiver as the receiver accepts of a process; further
senders take turns.
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
    """Return the runtime that sent a message, by its identity; without one, a common name.

    Args:
        message: The message.
    """
    return "" if message.identity is None else message.identity.runtime


class WorkShares(Generic[T]):
    """The work of one hyperty, by peers.

    Args:
        most: Largest number of items in progress.
        room: Largest number of waiting items, for all peers.
        each: Largest number of waiting items of one peer.
    """

    def __init__(self, most: int, room: int, each: int) -> None:
        self._most: Final = most
        self._room: Final = room
        self._each: Final = each
        self._begun: Final[Counter[str]] = Counter()
        self._waiting: Final[dict[str, deque[T]]] = {}
        self._waits = 0

    def enter(self, peer: str, work: T) -> tuple[bool, T | None]:
        """Take work; return whether it begins, and work that is given up for lack of room.

        Args:
            peer: Name of the peer.
            work: The work.
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
        """End some work of a peer; return the work that begins instead, with its peers.

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
                # The next time, others have their turn.
                self._waiting[each] = line
        return started

    def clear(self) -> list[T]:
        """Give up and return all waiting work."""
        given_up = [work for line in self._waiting.values() for work in line]
        self._waiting.clear()
        self._waits = 0
        return given_up

    def _may_begin(self, peer: str) -> bool:
        return self._begun[peer] < self._most - self._begun.total()


class OpenShares(Generic[T]):
    """The requests of one process that are open at one receiver, by sender.

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
        """Whether no request is open, and none waits."""
        return not self._total and not self._waiting

    def enter(self, sender: str) -> bool:
        """Open a request of a sender; return False if there is no room, or others of it wait."""
        count = self._open.get(sender, 0)
        if sender in self._waiting or self._total >= self._most or count >= self._each:
            return False
        self._total += 1
        self._open[sender] = count + 1
        return True

    def wait(self, sender: str, waiter: T) -> None:
        """Let a request that found no room wait behind those of its sender."""
        self._waiting.setdefault(sender, deque()).append(waiter)

    def give_up(self, sender: str, waiter: T) -> None:
        """Remove a waiting request."""
        self._waiting[sender].remove(waiter)
        if not self._waiting[sender]:
            del self._waiting[sender]

    def leave(self, sender: str) -> T | None:
        """End an open request; return the waiting one that is opened instead, or None."""
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
            # The next time, others have their turn.
            self._waiting[next_sender] = line
        self._total += 1
        self._open[next_sender] = self._open.get(next_sender, 0) + 1
        return waiter


# Shares of users: items of one kind, by number and memory, over all sessions of the user.


def own_user(runtime: str) -> str:
    """Return the runtime itself as its user, where users are unknown."""
    return runtime


def user_of(message: Message, domain: str) -> str:
    """Return the user that a message counts for: that of its login, else its runtime or sender.

    Another domain counts as one user, since it alone decides who its users are, and how many.

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
    """A number of items, and their bytes of memory."""

    count: int = 0
    size: int = 0

    def add(self, count: int, size: int) -> None:
        """Add items; negative values remove items."""
        self.count += count
        self.size += size


class UserShares:
    """The shares of the users of one node.

    Args:
        kind: The items that are counted, in the plural, such as `records`.
        each: The limits of one user.
        together: The limits of all users.
        user_of: Returns the user of a runtime that holds no items yet.
        code: Code of the refusal of a user whose share is used up; 503 if items only wait.
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
        """Bytes of memory of all users."""
        return self._all.size

    def user(self, runtime: str) -> str:
        """Return the user that a runtime counts for."""
        held = self._runtimes.get(runtime)
        return self._user_of(runtime) if held is None else held[0]

    def __len__(self) -> int:
        return len(self._runtimes)

    def __contains__(self, runtime: object) -> bool:
        """Return whether a runtime holds anything."""
        return runtime in self._runtimes

    def refusal(self, runtime: str, count: int, size: int) -> Refused | None:
        """Return why a runtime gets no further items, or None.

        Args:
            runtime: Address of the runtime.
            count: Number of items.
            size: Their bytes of memory.
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
        """Count the items that a runtime takes, allowed or not; negative: it gives items back.

        Args:
            runtime: Address of the runtime.
            count: Number of items.
            size: Their bytes of memory.
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
        """Remove all items of a runtime from the counts."""
        if runtime in self._runtimes:
            _, own = self._runtimes[runtime]
            self.take(runtime, -own.count, -own.size)


_HALF: Final = 2


class UserQueue(Generic[T]):
    """A queue in which the messages of one user take at most half of the room.

    Args:
        kind: The items, in the plural.
        most: Its limits, for all users together.
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
        """Add an item; return the refusal if there is no room, or None.

        Args:
            item: The item.
            user: The user that it counts for.
            size: Number of bytes of the item.
        """
        refusal = self._shares.refusal(user, 1, size)
        if refusal is None:
            self._shares.take(user, 1, size)
            self._items.append((item, user, size))
        return refusal

    def take(self, most: int | None = None) -> list[T]:
        """Take out the first items, `most` of them at most."""
        items: list[T] = []
        while self._items and len(items) != most:
            item, user, size = self._items.popleft()
            self._shares.take(user, -1, -size)
            items.append(item)
        return items


class UserTurns(Generic[T]):
    """A queue that keeps the order of each user's items; the users take turns.

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
        """Add an item of a user.

        Returns:
            What waits no more, as there is no room: the newest of the user of whom most waits.
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
        """Take out the first item of the user whose turn it is."""
        user = next(iter(self._items))
        items = self._items.pop(user)
        item = items.popleft()
        self._count -= 1
        if items:
            self._items[user] = items
        return item


# Estimates of memory in bytes, and a cache with a limit of memory.

_MESSAGE: Final = 512
"""Number of bytes of a message without its addresses and its body."""


def json_bytes(value: Json) -> int:
    """Return the bytes of memory of JSON values; a value that is contained twice counts twice."""
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
    """Return the bytes of memory that a message takes."""
    return _MESSAGE + len(message.from_) + len(message.to) + json_bytes(dict(message.body))


K = TypeVar("K")
V = TypeVar("V")


class Memory(OrderedDict[K, V]):
    """A cache that is as fast as a dictionary and forgets the oldest entry when it is full.

    Only `keep` adds entries.

    Args:
        entries: Maximum number of entries.
        size: Maximum number of bytes of the texts of all entries.
    """

    __slots__ = ("_entries", "_left", "_size", "_sizes")

    def __init__(self, entries: int, size: int) -> None:
        super().__init__()
        self._entries: Final = entries
        self._size: Final = size
        self._left = size
        self._sizes: Final = dict[K, int]()

    def keep(self, key: K, value: V, texts: Iterable[str]) -> V:
        """Keep and return a value; one that is larger than the whole cache is only returned.

        Args:
            key: The key.
            value: The value.
            texts: The texts in the value and its key; the rest counts as small.
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


# Limits of all sandbox processes of one host together (T16).

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
        ValueError: There is less than one process may use.
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
"""The totals of a host that is not configured."""


class SandboxAdmission:
    """The sandbox processes of one host.

    Args:
        totals: The resources that they may use together.
        is_grouped: Whether the kernel limits them together.
    """

    def __init__(self, totals: SandboxTotals, *, is_grouped: bool) -> None:
        self._totals = totals
        self._is_grouped = is_grouped
        self._running = 0

    def enter(self) -> str | None:
        """Count one more process, or return the reason why none may start."""
        refusal = self._refusal()
        if refusal is None:
            self._running += 1
        return refusal

    def leave(self) -> None:
        """Note that a process has ended."""
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


# Limits of a node on links without a session, and on links per host (RELIABILITY L5, L6).
#
# Hosts that open connections and never log in must not keep others out. So no link is refused
# because too many are open. Instead the oldest link without a session is closed: the oldest of the
# same host if that host has too many, else the oldest of all, once it has had some time. An honest
# client has a session after milliseconds, and its link no longer counts.

_IPV6_SITE_BITS: Final = 64
"""Number of bits of an IPv6 address for its network; a host chooses the rest (RFC 4291)."""


def host_key(host: str) -> str:
    """Return the key by which connections of one host are counted; for IPv6 its /64 network."""
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
    """The links that have no session yet.

    Args:
        rate: Rate at which one host may connect.
        most: Largest number of such links.
        most_per_host: Largest number of such links of one host.
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
        """Count a new link, or return None if its host connects too often.

        Otherwise return its number, and the number of the link to close for it, if any.

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
        return self._next, makes_room

    def forget(self, number: int) -> None:
        """Stop counting a link, which has a session now or is closed."""
        known = self._everybody.pop(number, None)
        if known is None:
            return
        key, _ = known
        neighbours = self._by_host[key]
        del neighbours[number]
        if not neighbours:
            del self._by_host[key]

    def room(self, now: float) -> int:
        """Return how many links may come at once without closing one that is too young.

        Args:
            now: Seconds on the host's clock.
        """
        free = min(ACCEPT_BATCH, self._most - len(self._everybody))
        if free > 0:
            return int(free)
        oldest = islice(self._everybody.values(), ACCEPT_BATCH)
        return sum(since + ACCEPT_GRACE <= now for _, since in oldest)

    def _oldest(self, key: str) -> int | None:
        """Return the link to close for one more of a host, or None if there is room."""
        neighbours = self._by_host.get(key)
        if neighbours and len(neighbours) >= self._most_per_host:
            return next(iter(neighbours))
        if self._everybody and len(self._everybody) >= self._most:
            return next(iter(self._everybody))
        return None


class HostShares:
    """The number of open connections of each host, limited so that no host has all of them.

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
        """Count one more connection of a host, if the limits allow it; return whether they do."""
        key = host_key(host)
        if len(self) >= self._most or self._by_host[key] >= self._most_per_host:
            return False
        self._by_host[key] += 1
        return True

    def leave(self, host: str) -> None:
        """Remove one connection of a host, which was counted by `enter`."""
        key = host_key(host)
        self._by_host[key] -= 1
        if not self._by_host[key]:
            del self._by_host[key]
