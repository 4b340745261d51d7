"""Shares of peers in what a hyperty works on at a time, and of senders in what is asked of it.

A peer begins work while it has less than what is free: alone it gets half, and the next one half
of the rest. What it asks beyond that waits, and delays nobody else. The senders of one process
have so many requests open at a receiver as this takes of a process; they take turns beyond.
"""

from collections import Counter, deque
from typing import Final, Generic, TypeVar, final

from specs.message import Message

__all__ = ["OpenShares", "WorkShares", "peer_of"]

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
class OpenShares:
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
        self._waiting: Final[dict[str, int]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no request is open, and none waits."""
        return not self._total and not self._waiting

    def enter(self, sender: str) -> bool:
        """Open a request if there is room for one of the sender, or let it wait; return which.

        Args:
            sender: Address of the sender.
        """
        if sender not in self._waiting and self._may_open(sender):
            self._begin(sender)
            return True
        self._waiting[sender] = self._waiting.get(sender, 0) + 1
        return False

    def give_up(self, sender: str) -> None:
        """Note that a request that waits will not be sent.

        Args:
            sender: Address of the sender.
        """
        self._waiting[sender] -= 1
        if not self._waiting[sender]:
            del self._waiting[sender]

    def leave(self, sender: str) -> str | None:
        """End an open request; return the sender that has its place now, in its turn.

        Args:
            sender: Address of the sender.
        """
        self._total -= 1
        self._open[sender] -= 1
        if not self._open[sender]:
            del self._open[sender]
        following = next(filter(self._may_open, self._waiting), None)
        if following is not None:
            count = self._waiting.pop(following) - 1
            if count:  # the next time it is the turn of others
                self._waiting[following] = count
            self._begin(following)
        return following

    def _begin(self, sender: str) -> None:
        self._total += 1
        self._open[sender] = self._open.get(sender, 0) + 1

    def _may_open(self, sender: str) -> bool:
        return self._total < self._most and self._open.get(sender, 0) < self._each
