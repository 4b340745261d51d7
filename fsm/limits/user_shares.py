"""What each user holds of one kind, counted and in bytes of memory, over all sessions of the user.

A runtime without a known user counts as a user of its own. Whose a runtime is stays as it was
when the runtime took something first, until it holds nothing any more.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar, final

import attrs

from fsm.effects import Refused
from specs.addresses.address import domain_of
from specs.message import Message
from specs.reply_code import Code

T = TypeVar("T")


def own_user(runtime: str) -> str:
    """Return the user of a runtime where no user is known: itself."""
    return runtime


def user_of(message: Message, domain: str) -> str:
    """Return the user that a message counts for: that of its login, else its runtime or sender.

    Another domain is one user: who its users are, and how many, it says itself.

    Args:
        message: The message.
        domain: Domain of the node.
    """
    origin, sender = domain_of(message.from_), message.identity
    if origin != domain:
        return origin
    return message.from_ if sender is None else sender.user or sender.runtime


@final
@attrs.define(slots=True)
class Share:
    """A number of things, and their bytes of memory."""

    count: int = 0
    size: int = 0

    def add(self, count: int, size: int) -> None:
        """Add to it; a negative count and size take away."""
        self.count += count
        self.size += size


@final
class UserShares:
    """The shares of the users of one node.

    Args:
        kind: What is counted, in the plural, such as `records`.
        each: The limits of one user.
        together: The limits of all users.
        user_of: Returns the user of a runtime that holds nothing yet.
        code: What a user is refused with that has its share; 503 where things only wait.
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
        """Return why a runtime gets no more; None: it may have it.

        Args:
            runtime: Address of the runtime.
            count: How many.
            size: Their bytes of memory.
        """
        kind = self._kind
        mine = self._users.get(self.user(runtime)) or Share()
        each, limit, total = self._each, self._limit, self._all
        if count > 0 and mine.count + count > each.count:
            return Refused(self._code, f"a user has at most {each.count} {kind}")
        if size > 0 and mine.size + size > each.size:
            return Refused(self._code, f"a user has at most {each.size} bytes of {kind}")
        if count > 0 and total.count + count > limit.count:
            return Refused(Code.UNAVAILABLE, f"the node has room for {limit.count} {kind}")
        if size > 0 and total.size + size > limit.size:
            return Refused(Code.UNAVAILABLE, f"the node has room for {limit.size} bytes of {kind}")
        return None

    def take(self, runtime: str, count: int, size: int) -> None:
        """Count what a runtime takes, whether it may have it or not; negative: it gives back.

        Args:
            runtime: Address of the runtime.
            count: How many.
            size: Their bytes of memory.
        """
        held = self._runtimes.get(runtime)
        if held is None:
            held = self._runtimes[runtime] = self._user_of(runtime), Share()
        user, mine = held
        theirs = self._users.setdefault(user, Share())
        for share in (mine, theirs, self._all):
            share.add(count, size)
        if not mine.count:
            del self._runtimes[runtime]
        if not theirs.count:
            del self._users[user]

    def give_back(self, runtime: str) -> None:
        """Count nothing of a runtime any more."""
        if runtime in self._runtimes:
            _, mine = self._runtimes[runtime]
            self.take(runtime, -mine.count, -mine.size)


_HALF: Final = 2


@final
class UserQueue(Generic[T]):
    """What waits in one place, in order; the messages of one user have half of it at most.

    Args:
        kind: What waits, in the plural.
        most: Its limits; of all users together.
    """

    def __init__(self, kind: str, most: Share) -> None:
        each = Share(most.count // _HALF, most.size // _HALF)
        self._shares: Final = UserShares(kind, each, most, code=Code.UNAVAILABLE)
        self._items: Final = deque[tuple[T, str, int]]()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> tuple[T, ...]:
        """What waits, in order."""
        return tuple(item for item, _, _ in self._items)

    def put(self, item: T, user: str, size: int) -> Refused | None:
        """Have an item wait; return why it cannot, None if it does.

        Args:
            item: The item.
            user: The user that it counts for.
            size: Its bytes.
        """
        refusal = self._shares.refusal(user, 1, size)
        if refusal is None:
            self._shares.take(user, 1, size)
            self._items.append((item, user, size))
        return refusal

    def take(self, most: int | None = None) -> list[T]:
        """Take out the first items, `most` of them at most."""
        taken: list[T] = []
        while self._items and len(taken) != most:
            item, user, size = self._items.popleft()
            self._shares.take(user, -1, -size)
            taken.append(item)
        return taken


@final
class UserTurns(Generic[T]):
    """What waits in one place, in order for each user; the users take turns.

    Args:
        most: How much waits at most, of all users together.
    """

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._items: Final[dict[Hashable, deque[T]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, item: T, user: Hashable) -> T | None:
        """Have an item of a user wait.

        Returns:
            What waits no more, as there is no room: the newest of the user of whom most waits.
        """
        self._items.setdefault(user, deque()).append(item)
        if self._count < self._most:
            self._count += 1
            return None
        longest = max(self._items, key=lambda one: (len(self._items[one]), one == user))
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
