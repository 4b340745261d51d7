"""Shares of peers in what a hyperty works on at a time, and of senders in what is asked of it.

A peer begins work while it has less than what is free: alone it gets half, and the next one half
of the rest. What it asks beyond that waits, and delays nobody else. The senders of one process
have so many requests open at a receiver as this takes of a process; they take turns beyond.
"""

from collections import Counter, deque
from typing import Final, Generic, TypeVar, final

from specs.message import Message

T = TypeVar("T")


def peer_of(message: Message) -> str:
    """Return the runtime that sent a message, as its identity says; those without share one name.

    Args:
        message: The message.
    """
    return "" if message.identity is None else message.identity.runtime


@final
class WorkShares(Generic[T]):
    """The work of one hyperty, by peers.

    Args:
        most: How much is begun at a time.
        room: How much waits, of all peers.
        each: How much of one peer waits.
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
        mine = self._waiting.get(peer, ())
        if len(mine) >= self._each:
            return False, work
        if self._waits >= self._room:
            largest = max(self._waiting.values(), key=len)
            if len(largest) <= len(mine) + 1:
                return False, work
            given_up = largest.pop()
            self._waits -= 1
        self._waiting.setdefault(peer, deque()).append(work)
        self._waits += 1
        return False, given_up

    def leave(self, peer: str) -> list[tuple[str, T]]:
        """End some work of a peer; return what begins instead, with the names of its peers.

        Args:
            peer: Name of the peer.
        """
        self._begun[peer] -= 1
        if not self._begun[peer]:
            del self._begun[peer]
        begun: list[tuple[str, T]] = []
        for one in list(self._waiting):
            line = self._waiting.pop(one)
            while line and self._may_begin(one):
                begun.append((one, line.popleft()))
                self._begun[one] += 1
                self._waits -= 1
            if line:
                # The next time it is the turn of others.
                self._waiting[one] = line
        return begun

    def clear(self) -> list[T]:
        """Give up all that waits, and return it."""
        given_up = [work for line in self._waiting.values() for work in line]
        self._waiting.clear()
        self._waits = 0
        return given_up

    def _may_begin(self, peer: str) -> bool:
        return self._begun[peer] < self._most - self._begun.total()


@final
class OpenShares(Generic[T]):
    """The requests of one process that are open at one receiver, by senders.

    Args:
        most: How many may be open together.
        each: How many of one sender.
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
        """Open a request of a sender; return whether there is room, and none of its waits."""
        mine = self._open.get(sender, 0)
        if sender in self._waiting or self._total >= self._most or mine >= self._each:
            return False
        self._total += 1
        self._open[sender] = mine + 1
        return True

    def wait(self, sender: str, waiter: T) -> None:
        """Let a request that found no room wait behind those of its sender."""
        self._waiting.setdefault(sender, deque()).append(waiter)

    def give_up(self, sender: str, waiter: T) -> None:
        """Remove a request that waits."""
        self._waiting[sender].remove(waiter)
        if not self._waiting[sender]:
            del self._waiting[sender]

    def leave(self, sender: str) -> T | None:
        """End an open request; return the one that is open instead: of the next sender in turn."""
        self._total -= 1
        self._open[sender] -= 1
        if not self._open[sender]:
            del self._open[sender]
        if not self._waiting or self._total >= self._most:
            return None
        each = self._each
        following = next((one for one in self._waiting if self._open.get(one, 0) < each), None)
        if following is None:
            return None
        line = self._waiting.pop(following)
        waiter = line.popleft()
        if line:
            # The next time it is the turn of others.
            self._waiting[following] = line
        self._total += 1
        self._open[following] = self._open.get(following, 0) + 1
        return waiter
