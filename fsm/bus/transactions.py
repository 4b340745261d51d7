"""Open requests: the answers they wait for, the end of the wait, and duplicates (MSG-04..07).

The key of a request is its sender, its receiver and its id; only the receiver can answer it
(I-T1..I-T8). A provisional answer extends the wait; the first final one ends it. If several
receivers are asked at once, each answers for itself and names itself (`source`), and the last of
these answers ends the wait (C-81, I-T2); an answer without a name counts for all. All waits are
equally long, so open requests are ordered by the end of their wait. Each open request is an entity
of `fsm.machines.transaction`; its steps are reported if a caller wants them.

`OutstandingCore` keeps requests whose receiver may go before it answers (MN-20, R11).
`DeduplicationWindow` finds messages that two paths, or a retry, bring twice (I-P22).
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

import attrs

from fsm.engine import Entity, Step
from fsm.machines.transaction import TRANSACTION, State, Trigger
from specs.addresses.address import RUNTIME_SCHEME, domain_of, scheme_of
from specs.limits import protocol
from specs.message import DURABLE, Message, MessageType, instance_id, request_id
from specs.reply_code import DropReason

W = TypeVar("W")


Key: TypeAlias = tuple[str, str, int]
"""Sender, receiver and id of a request."""

_REMEMBERED: Final = 4096
"""Number of ended requests remembered to recognise their real answers as late."""

_HOP_FIELDS: Final = frozenset({"via", "auth", "idToken", "accessToken", DURABLE})
"""Fields that may differ between two copies of one message; the digest excludes them."""


class Steps(Enum):
    """Reporting of the steps of entities: making a report costs more than the step.

    Attributes:
        REPORTED: Every step is reported.
        SAMPLED: The steps of sampled requests are reported (`is_sampled`).
        UNREPORTED: No step is reported.
    """

    REPORTED = "reported"
    SAMPLED = "sampled"
    UNREPORTED = "unreported"


_SAMPLE: Final = 10
_SAMPLED: Final = 7
_SAMPLED_END: Final = str(_SAMPLED)


def is_sampled(request_id: int) -> bool:
    """Return whether a request is in the tenth that a monitor judges, by its id."""
    return request_id % _SAMPLE == _SAMPLED


@attrs.define(slots=True, eq=False)
class Transaction(Generic[W]):
    """An open request.

    Attributes:
        request: The request as it was admitted.
        waiter: The pending reply that gets the answer; only the host uses it.
        until: Time at which the wait ends if no answer comes; only the core extends it.
        entity: The entity that the core steps.
        awaited: The receivers that have not answered yet, if there are several; empty: one answer
            is expected.
        repeats: How often it may still be sent again (MSG-07).
        is_repeated: Whether it was sent again, so that the outcome of the first message is unknown.
    """

    request: Message
    waiter: W
    until: float
    entity: Entity
    awaited: frozenset[str] = frozenset()
    repeats: int = 0
    is_repeated: bool = False


@attrs.define(slots=True)
class Answer(Generic[W]):
    """The meaning of an answer: it belongs to a transaction, or must be dropped.

    Attributes:
        transaction: The request that is answered; None: no request waits for it.
        drop: The reason to drop it; None: it is delivered.
        step: The step of the transaction; None: no step, or not reported.
        is_last: Whether it ended the transaction.
    """

    transaction: Transaction[W] | None
    drop: DropReason | None = None
    step: Step | None = None
    is_last: bool = False


@attrs.frozen(slots=True)
class Ended(Generic[W]):
    """A request that ended without its real answer.

    Attributes:
        request: The request as it was admitted.
        waiter: The pending reply that gets the answer.
        step: Its last step; None: not reported.
    """

    request: Message
    waiter: W
    step: Step | None


@attrs.frozen(slots=True)
class Repeated:
    """A request that is sent again: the same message, with the same id (MSG-07).

    Attributes:
        step: The step of the transaction; None: it is not reported.
    """

    request: Message
    step: Step | None


@attrs.frozen(slots=True)
class Terms:
    """The number of answers and attempts of a request.

    Attributes:
        awaited: The `source` of each answer, if several are expected.
        attempts: Maximum number of times it is sent while no answer comes (MSG-07).
        direct: Those receivers that a link reaches, so that the node need not fan out to them.
    """

    awaited: frozenset[str] = frozenset()
    attempts: int = 1
    direct: frozenset[str] = frozenset()


ASKED_ONCE: Final = Terms()
"""The terms of a request that is sent once and gets one answer."""


class TransactionsCore(Generic[W]):
    """The open requests of one router.

    Args:
        steps: Whether the results contain the steps of entities.
    """

    def __init__(self, steps: Steps = Steps.REPORTED) -> None:
        self._is_reported = steps is Steps.REPORTED
        self._is_sampled = steps is Steps.SAMPLED
        self._patience = TRANSACTION.patience(State.PENDING)
        self._open: OrderedDict[Key, Transaction[W]] = OrderedDict()
        self._ended: OrderedDict[Key, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self, request: Message, waiter: W, now: float, terms: Terms = ASKED_ONCE
    ) -> Step | None:
        """Begin to wait for the answer to a request.

        Args:
            request: The request as it was admitted.
            waiter: The pending reply that gets the answer.
            terms: The number of answers, and how often the request is sent.

        Raises:
            UndeclaredTransitionError: It is open already; ask `find` first.
        """
        key = (request.from_, request.to, request.id)
        known = self._open.get(key)
        if known is None:
            entity = Entity(TRANSACTION, f"{request.from_}|{request.to}|{request.id}")
        else:
            entity = known.entity
        step = self._take(entity, Trigger.OPENED)
        until = now + self._patience
        self._open[key] = Transaction(
            request, waiter, until, entity, terms.awaited, terms.attempts - 1
        )
        self._ended.pop(key, None)
        return step

    def waits_since(self, request: Message, now: float) -> None:
        """Begin the wait of an open request now, since its evidence has just been written.

        Args:
            request: The request; one that is not open is ignored.
        """
        transaction = self.find(request)
        if transaction is not None:
            transaction.until = now + self._patience
            self._open.move_to_end((request.from_, request.to, request.id))

    def find(self, request: Message) -> Transaction[W] | None:
        """Return the open transaction that a request repeats, or None."""
        return self._open.get((request.from_, request.to, request.id))

    def transactions(self) -> Iterable[Transaction[W]]:
        """Return the open transactions, oldest first."""
        return self._open.values()

    def answered(self, response: Message, now: float) -> Answer[W]:
        """Take an answer: a final one ends the transaction (I-T2, I-T4, I-T5).

        Args:
            response: The answer as it came.
        """
        key = (response.to, response.from_, response.id)
        transaction = self._open.get(key)
        if transaction is None:
            late = key in self._ended
            return Answer(None, DropReason.LATE_RESPONSE if late else DropReason.UNMATCHED)
        if not response.is_final:
            step = self._take(transaction.entity, Trigger.PROVISIONAL)
            transaction.until = now + self._patience
            self._open.move_to_end(key)
            return Answer(transaction, None, step)
        source = response.body.get("source")
        if transaction.awaited and isinstance(source, str):
            if source not in transaction.awaited:
                return Answer(None, DropReason.UNMATCHED)
            transaction.awaited -= {source}
            if transaction.awaited:
                step = self._take(transaction.entity, Trigger.ONE_ANSWERED)
                return Answer(transaction, None, step)
        del self._open[key]
        step = self._take(transaction.entity, Trigger.ANSWERED)
        return Answer(transaction, None, step, is_last=True)

    def give_up(self, request: Message, why: str) -> Ended[W] | None:
        """End a transaction by an answer of the router; the real answer is then late.

        Args:
            request: The request; if it is not open, None is returned.
            why: The reason, as half a sentence, for the trace.
        """
        transaction = self.find(request)
        return None if transaction is None else self._end(transaction, Trigger.REFUSED, why)

    def give_up_all(self, why: str) -> list[Ended[W]]:
        """End all open requests."""
        return [self._end(each, Trigger.REFUSED, why) for each in list(self._open.values())]

    def deadline(self) -> float:
        """Return when the next wait ends."""
        first = next(iter(self._open.values()), None)
        return math.inf if first is None else first.until

    def repeated(self, now: float) -> list[Repeated]:
        """Return the unanswered requests to send again; each begins a new wait.

        Call it before `overdue`.
        """
        due: list[Transaction[W]] = []
        for transaction in self._open.values():
            if transaction.until > now:
                break
            if transaction.repeats:
                due.append(transaction)
        return [self._repeat(transaction, now) for transaction in due]

    def _repeat(self, transaction: Transaction[W], now: float) -> Repeated:
        request = transaction.request
        transaction.repeats -= 1
        transaction.is_repeated = True
        transaction.until = now + self._patience
        self._open.move_to_end((request.from_, request.to, request.id))
        return Repeated(request, self._take(transaction.entity, Trigger.REPEATED))

    def overdue(self, now: float) -> list[Ended[W]]:
        """End and return every wait that is over: each gets a synthetic 408 (I-T6)."""
        expired: list[Transaction[W]] = []
        for transaction in self._open.values():
            if transaction.until > now:
                break
            expired.append(transaction)
        return [self._end(transaction, Trigger.SILENCE, "") for transaction in expired]

    def _end(self, transaction: Transaction[W], trigger: Trigger, why: str) -> Ended[W]:
        request = transaction.request
        key = (request.from_, request.to, request.id)
        step = self._take(transaction.entity, trigger, why)
        del self._open[key]
        self._ended[key] = None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        return Ended(request, transaction.waiter, step)

    def _take(self, entity: Entity, trigger: Trigger, why: str = "") -> Step | None:
        # The key of a request ends with the request's id.
        if self._is_reported or (self._is_sampled and entity.key[-1] == _SAMPLED_END):
            return entity.step(trigger, why)
        entity.step_unreported(trigger)
        return None


def same_request(first: Message, second: Message) -> bool:
    """Return whether two messages with the same key are the same message (I-T8, MSG-07).

    Args:
        first: The message that is known.
        second: The message that came with the same key.
    """
    return first.type is second.type and _essence(first) == _essence(second)


def _essence(message: Message) -> dict[str, object]:
    return {key: value for key, value in message.body.items() if key not in _HOP_FIELDS}


# ---- outstanding requests and duplicates


_SENDERS: Final = 16_384
"""Number of senders, or pairs, that are remembered; the longest silent one is forgotten first."""

_Instance: TypeAlias = tuple[str, int, int, str, int]
"""Receiver and id; for answers code and source; for provisional answers their number."""


def _instance(message: Message) -> _Instance:
    if not message.is_response:
        return message.to, message.id, 0, "", 0
    # Several may answer from one address (C-81), and send several provisional answers.
    source, nth = message.body.get("source"), message.body.get("sequence")
    sender = source if isinstance(source, str) else ""
    sequence = nth if isinstance(nth, int) and not message.is_final else 0
    return message.to, message.id, message.code, sender, sequence


def _size_of(instance: _Instance) -> int:
    return protocol.DEDUP_COST + len(instance[0]) + len(instance[3])


class _Window(OrderedDict[_Instance, float]):
    """The message instances of one sender, and the bytes of memory that they take."""

    def __init__(self, sender: str) -> None:
        super().__init__()
        self.size = protocol.DEDUP_COST + len(sender)


class DeduplicationWindow:
    """The last message instances of each sender (I-P22).

    It remembers `DEDUP_WINDOW` instances for each sender, for `DEDUP_SECONDS`, of at most
    `_SENDERS` senders; bytes of memory are limited, too. The longest silent sender is forgotten
    first.
    """

    def __init__(self) -> None:
        self._senders: OrderedDict[str, _Window] = OrderedDict()
        self._size = 0

    def is_new(self, message: Message, now: float) -> bool:
        """Return whether this message instance is new, and remember it.

        Args:
            message: The message as it arrived.
        """
        instance = _instance(message)
        window = self._senders.get(message.from_)
        is_known = window is not None
        if window is None:
            window = self._senders[message.from_] = _Window(message.from_)
            self._size += window.size
        else:
            self._senders.move_to_end(message.from_)
        seen_at = window.get(instance)
        if seen_at is not None and now - seen_at <= protocol.DEDUP_SECONDS:
            return False
        if seen_at is None:
            size = protocol.DEDUP_COST + len(instance[0]) + len(instance[3])  # as `_size_of`
            window.size += size
            self._size += size
        window[instance] = now
        while len(window) > protocol.DEDUP_WINDOW or window.size > protocol.DEDUP_BYTES:
            size = _size_of(window.popitem(last=False)[0])
            window.size -= size
            self._size -= size
        if not is_known or self._size > protocol.DEDUP_ALL_BYTES:
            self._forget(now)
        return True

    def knows(self, message: Message, now: float) -> bool:
        """Return whether a message instance is remembered.

        Args:
            message: The message as it came.
        """
        window = self._senders.get(message.from_)
        seen_at = None if window is None else window.get(_instance(message))
        return seen_at is not None and now - seen_at <= protocol.DEDUP_SECONDS

    def _forget(self, now: float) -> None:
        """Forget senders that were silent for long, or must give way."""
        while True:
            sender = next(iter(self._senders))
            window = self._senders[sender]
            is_over = now - next(reversed(window.values()), now) > protocol.DEDUP_SECONDS
            if (
                not is_over
                and len(self._senders) <= _SENDERS
                and self._size <= protocol.DEDUP_ALL_BYTES
            ):
                return
            del self._senders[sender]
            self._size -= window.size


class EndedDurables:
    """The durable messages that need not be delivered any more, of the last `_SENDERS` pairs.

    A node delivers the messages of one sender to one receiver one after the other, in the order of
    their positions in the log, so the last ended position implies all earlier ones. There is no
    time limit: a node may deliver a message again after hours.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], int] = OrderedDict()

    def add(self, message: Message, place: int) -> None:
        """Note that a message has got an answer that ends it.

        Args:
            place: Its position in the log of this runtime.
        """
        pair = (message.from_, message.to)
        self._places[pair] = max(place, self._places.get(pair, 0))
        self._places.move_to_end(pair)
        if len(self._places) > _SENDERS:
            self._places.popitem(last=False)

    def has(self, message: Message, place: int) -> bool:
        """Return whether a message has ended.

        Args:
            place: Its position in the log of this runtime.
        """
        return place <= self._places.get((message.from_, message.to), 0)


class OutstandingCore:
    """The outstanding requests of one component: delivered to it and not answered yet.

    Memory: `SANDBOX_OUTSTANDING` requests, most of them without their bodies; the oldest are
    forgotten, and those whose sender no longer waits.
    """

    def __init__(self) -> None:
        self._asked: dict[str, tuple[float, Message]] = {}

    def ask(self, request: Message, now: float) -> None:
        """Remember a delivered request for as long as its sender waits."""
        requests = self._asked
        while requests:
            oldest = next(iter(requests))
            until, _ = requests[oldest]
            if until > now and len(requests) < protocol.SANDBOX_OUTSTANDING:
                break
            del requests[oldest]
        # Only bodies of subscriptions are read later; others are not kept twice.
        is_read = request.type is MessageType.SUBSCRIBE
        stored = request if is_read else attrs.evolve(request, body={})
        requests[instance_id(request)] = (now + protocol.REPLY_TIMEOUT, stored)

    def forget(self, request: Message) -> None:
        """Forget a request that was answered by another component."""
        self._asked.pop(instance_id(request), None)

    def knows(self, request: Message) -> bool:
        """Return whether a request was delivered and not answered since."""
        return instance_id(request) in self._asked

    def is_open(self, now: float) -> bool:
        """Return whether the sender of a request may still wait for its answer."""
        return any(until > now for until, _ in self._asked.values())

    def asked(self, answer: Message) -> Message | None:
        """Return the delivered request that a message answers, or None; a final answer ends it."""
        if not answer.is_response:
            return None
        mid = request_id(answer)
        _, request = self._asked.get(mid, (0.0, None))
        if answer.is_final:
            self._asked.pop(mid, None)
        return request

    def unanswered(self) -> list[Message]:
        """Take out all requests that were not answered."""
        requests, self._asked = self._asked, {}
        return [request for _, request in requests.values()]


# The subscriptions that a runtime holds in other domains (PFY-03): the accepted requests of the
# runtime show them. A stub of a domain is not released while a subscription is held there, because
# its events would stop.

_Path: TypeAlias = tuple[str, str]


class HeldPaths:
    """Receivers and resources of accepted subscriptions, by domain.

    Memory: one entry for each subscription of the runtime; the owners of subscriptions bound their
    number.
    """

    def __init__(self) -> None:
        self._held: dict[str, set[_Path]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def holds(self, domain: str) -> bool:
        """Return whether a subscription is held in a domain."""
        return domain in self._held

    def record_success(self, request: Message) -> None:
        """Note that a request of this runtime was answered with success.

        Args:
            request: The request; only a subscription counts, and not one at another runtime:
                runtimes follow each other over their direct link (P2P-25).
        """
        if request.type is MessageType.SUBSCRIBE and scheme_of(request.to) != RUNTIME_SCHEME:
            self._held.setdefault(domain_of(request.to), set()).update(_paths(request))

    def record_message(self, message: Message) -> None:
        """Note a message that this runtime sends: subscriptions that it ends are no longer held.

        Its answer does not matter: no events are expected any more.
        """
        if message.type is not MessageType.UNSUBSCRIBE or message.is_response:
            return
        domain = domain_of(message.to)
        held = self._held.get(domain)
        if held is not None:
            held.difference_update(_paths(message))
            if not held:
                del self._held[domain]


def _paths(request: Message) -> Iterator[_Path]:
    """Return the resources of a request; without a list of resources, its receiver."""
    named = request.body.get("resources")
    names = named if isinstance(named, list) else [request.body.get("resource")]
    for name in names:
        yield request.to, name if isinstance(name, str) else request.to
