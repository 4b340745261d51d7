"""Which requests are open, and which messages were here before (MSG-04..07, I-T1..I-T8).

A request is known by who asked whom with which id; only the one who was asked can
answer (I-T1). A provisional answer prolongs the wait; the first final one ends it.
All waits are equally long, so the table is ordered by when they end.

The window of instances seen lets a bus drop what two paths, or a retry, brought twice.
"""

import math
from collections import OrderedDict
from typing import Final, Generic, TypeAlias, TypeVar, final

import attrs

from specs.limits import DEDUP_SECONDS, DEDUP_WINDOW, REPLY_TIMEOUT
from specs.message import Message
from specs.reply_code import DropReason

__all__ = ["Answer", "Key", "SeenWindow", "Transaction", "TransactionsCore", "same_request"]

W = TypeVar("W")

Key: TypeAlias = tuple[str, str, int]
"""From, to and id of a request."""

_REMEMBERED: Final = 4096
"""Requests that ended without their real answer and are remembered, to name it late."""

_SENDERS: Final = 16_384
"""Senders whose instances are remembered; the one silent for longest goes first."""

_HOP_FIELDS: Final = frozenset({"via", "auth", "idToken", "accessToken"})
"""What may differ between two copies of one message (the digest leaves it out)."""


@final
@attrs.frozen(slots=True)
class Transaction(Generic[W]):
    """An open request.

    Attributes:
        request: As it was admitted.
        waiter: Who is to get the answer; the host knows what it means.
        until: When the wait ends if nothing more comes.
    """

    request: Message
    waiter: W
    until: float


@final
@attrs.frozen(slots=True)
class Answer(Generic[W]):
    """What an answer means: it belongs to a transaction, or must be dropped.

    Attributes:
        transaction: The request it answers; None: nobody waits for it.
        drop: Why it must be dropped; None: it must not.
    """

    transaction: Transaction[W] | None
    drop: DropReason | None = None


@final
class TransactionsCore(Generic[W]):
    """The open requests of one router."""

    def __init__(self) -> None:
        self._open: OrderedDict[Key, Transaction[W]] = OrderedDict()
        self._ended: OrderedDict[Key, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, request: Message, waiter: W, now: float) -> None:
        """Begin to wait for the answer to a request."""
        key = (request.from_, request.to, request.id)
        self._open[key] = Transaction(request, waiter, now + REPLY_TIMEOUT)
        self._ended.pop(key, None)

    def find(self, request: Message) -> Transaction[W] | None:
        """Return the open transaction of this request, if it is a retry of one."""
        return self._open.get((request.from_, request.to, request.id))

    def answered(self, response: Message, now: float) -> Answer[W]:
        """Take an answer: a final one ends the transaction (I-T2, I-T4, I-T5)."""
        key = (response.to, response.from_, response.id)
        transaction = self._open.get(key)
        if transaction is None:
            late = key in self._ended
            return Answer(None, DropReason.LATE_RESPONSE if late else DropReason.UNMATCHED)
        if response.is_final:
            del self._open[key]
        else:
            self._open[key] = attrs.evolve(transaction, until=now + REPLY_TIMEOUT)
            self._open.move_to_end(key)
        return Answer(transaction)

    def give_up(self, request: Message) -> Transaction[W] | None:
        """End a transaction without its real answer, which is late from now on."""
        key = (request.from_, request.to, request.id)
        transaction = self._open.pop(key, None)
        if transaction is not None:
            self._ended[key] = None
            if len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)
        return transaction

    def deadline(self) -> float:
        """Return when the next wait ends."""
        first = next(iter(self._open.values()), None)
        return math.inf if first is None else first.until

    def overdue(self, now: float) -> list[Transaction[W]]:
        """End and return every wait that is over: each gets a synthetic 408 (I-T6)."""
        over: list[Transaction[W]] = []
        for transaction in self._open.values():
            if transaction.until > now:
                break
            over.append(transaction)
        for transaction in over:
            self.give_up(transaction.request)
        return over


@final
class SeenWindow:
    """The last message instances of each sender (I-P22).

    Remembers `DEDUP_WINDOW` instances per sender, for `DEDUP_SECONDS`, of at
    most `_SENDERS` senders.
    """

    def __init__(self) -> None:
        self._senders: OrderedDict[str, OrderedDict[tuple[str, int, int], float]] = OrderedDict()

    def is_new(self, message: Message, now: float) -> bool:
        """Say whether this instance was never here, and remember it."""
        instance = (message.to, message.id, message.code if message.is_response else 0)
        window = self._senders.get(message.from_)
        if window is None:
            self._forget_silent(now)
            if len(self._senders) >= _SENDERS:
                self._senders.popitem(last=False)
            window = self._senders[message.from_] = OrderedDict()
        else:
            self._senders.move_to_end(message.from_)
        at = window.get(instance)
        if at is not None and now - at <= DEDUP_SECONDS:
            return False
        window[instance] = now
        if len(window) > DEDUP_WINDOW:
            window.popitem(last=False)
        return True

    def _forget_silent(self, now: float) -> None:
        while self._senders:
            window = next(iter(self._senders.values()))
            if now - next(reversed(window.values())) <= DEDUP_SECONDS:
                return
            self._senders.popitem(last=False)


def same_request(first: Message, second: Message) -> bool:
    """Say whether two messages with the same key are the same message (I-T8, MSG-07)."""
    return first.type is second.type and _essence(first) == _essence(second)


def _essence(message: Message) -> dict[str, object]:
    return {key: value for key, value in message.body.items() if key not in _HOP_FIELDS}
