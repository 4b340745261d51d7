"""Matching of answers to open requests, time-outs, and detection of duplicates (MSG-04..07).

The key of a request is its sender, its receiver and its id; only the receiver can answer it
(I-T1..I-T8). A provisional answer extends the wait; the first final answer ends it. If a request
goes to several receivers, each answer names its sender (`source`), and the last of these answers
ends the wait (C-81, I-T2); an answer without a name counts for all receivers. All waits are equally
long, so open requests are ordered by the end of their wait. Each open request is an instance of the
state machine `fsm.machines.transaction`; its transitions are reported if the caller wants that.

`OutstandingCore` remembers requests whose receiver may end before it answers (MN-20, R11).
`DeduplicationWindow` recognises messages that arrive twice, by two routes or by a retry (I-P22).
`EndedDurables` does so for durable messages, and `HeldPaths` remembers subscriptions elsewhere.
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
from specs.message import (
    DURABLE,
    Message,
    MessageType,
    instance_id,
    key_given_up,
    request_id,
)
from specs.reply_code import DropReason

W = TypeVar("W")


Key: TypeAlias = tuple[str, str, int]
"""Sender, receiver and id of a request."""

_REMEMBERED: Final = 4096
"""Number of ended requests that are remembered to recognise answers that come too late."""

_HOP_FIELDS: Final = frozenset({"via", "auth", "idToken", "accessToken", DURABLE})
"""Body fields that may differ between two deliveries of one message, ignored in comparisons."""


class Steps(Enum):
    """Choice of the state machine transitions that are reported, since each report takes time.

    Attributes:
        REPORTED: Every transition is reported.
        SAMPLED: The transitions of sampled requests are reported (`is_sampled`).
        UNREPORTED: No transition is reported.
    """

    REPORTED = "reported"
    SAMPLED = "sampled"
    UNREPORTED = "unreported"


_SAMPLE: Final = 10
_SAMPLED: Final = 7
_SAMPLED_END: Final = str(_SAMPLED)


def is_sampled(request_id: int) -> bool:
    """Return whether a request, by its id, is among the tenth whose transitions are reported."""
    return request_id % _SAMPLE == _SAMPLED


@attrs.define(slots=True, eq=False)
class Transaction(Generic[W]):
    """An open request: it has been sent and has no final answer yet.

    Attributes:
        request: The request as it was admitted.
        waiter: The object of the caller that will get the answer.
        until: Time at which the wait ends if no answer comes; only `TransactionsCore` changes this.
        entity: The state machine of the request.
        awaited: The receivers that have not answered yet, if there are several; empty: one answer
            is expected.
        repeats: The number of times that the request may still be sent again (MSG-07).
        is_repeated: Whether the request was sent again, so the outcome of the first try is unknown.
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
    """Result of matching an answer to the open requests: the request, or the reason to drop it.

    Attributes:
        transaction: The request that is answered; None: no request waits for the answer.
        drop: The reason to drop the answer; None: it is delivered.
        step: The state machine transition of the request; None: none, or not reported.
        is_last: Whether the answer ended the wait.
    """

    transaction: Transaction[W] | None
    drop: DropReason | None = None
    step: Step | None = None
    is_last: bool = False


@attrs.frozen(slots=True)
class Ended(Generic[W]):
    """A request whose wait has ended without an answer of the receiver.

    Attributes:
        request: The request as it was admitted.
        waiter: The object of the caller that will get a synthetic answer.
        step: The last state machine transition of the request; None: not reported.
    """

    request: Message
    waiter: W
    step: Step | None


@attrs.frozen(slots=True)
class Repeated:
    """A request to send again: the same message, with the same id (MSG-07).

    Attributes:
        request: The request.
        step: The state machine transition of the request; None: not reported.
    """

    request: Message
    step: Step | None


@attrs.frozen(slots=True)
class Terms:
    """Options of a request: expected answers, number of attempts, receivers reached by links.

    Attributes:
        awaited: The `source` of each answer, if several are expected.
        attempts: Maximum number of times the request is sent while no answer comes (MSG-07).
        direct: The receivers that a direct link reaches, so the node need not send to them.
    """

    awaited: frozenset[str] = frozenset()
    attempts: int = 1
    direct: frozenset[str] = frozenset()


ASKED_ONCE: Final = Terms()
"""The options of a request that is sent once and gets a single answer."""


class TransactionsCore(Generic[W]):
    """The open requests of one message bus, with their time-outs.

    Args:
        steps: The state machine transitions that the results contain.
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
            terms: The expected answers, and the number of attempts.

        Raises:
            UndeclaredTransitionError: The request is open already; call `find` first.
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
        """Restart the timer of an open request, which is only now sent.

        Args:
            request: The request; one that is not open is ignored.
        """
        transaction = self.find(request)
        if transaction is not None:
            transaction.until = now + self._patience
            self._open.move_to_end((request.from_, request.to, request.id))

    def find(self, request: Message) -> Transaction[W] | None:
        """Return the open request with the same sender, receiver and id, or None."""
        return self._open.get((request.from_, request.to, request.id))

    def transactions(self) -> Iterable[Transaction[W]]:
        """Return the open requests, ordered by the end of their wait."""
        return self._open.values()

    def answered(self, response: Message, now: float) -> Answer[W]:
        """Match an answer to its open request; a final answer ends the wait (I-T2, I-T4, I-T5).

        Args:
            response: The answer as it arrived.
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
        """End the wait for an answer, since the bus itself refuses the request.

        The receiver's own answer, if one comes, then counts as late.

        Args:
            request: The request; if it is not open, None is returned.
            why: The reason, as half a sentence, for the trace.
        """
        transaction = self.find(request)
        return None if transaction is None else self._end(transaction, Trigger.REFUSED, why)

    def abandon(self, key: Key) -> Ended[W] | None:
        """End the wait for an answer, since its requester no longer waits.

        Args:
            key: The request; if it is not open, None is returned.
        """
        transaction = self._open.get(key)
        return None if transaction is None else self._end(transaction, Trigger.GIVEN_UP, "")

    def has_ended(self, key: Key) -> bool:
        """Return whether a request has lately ended without an answer of its receiver."""
        return key in self._ended

    def give_up_all(self, why: str) -> list[Ended[W]]:
        """End the wait for the answers to all open requests."""
        return [self._end(each, Trigger.REFUSED, why) for each in list(self._open.values())]

    def deadline(self) -> float:
        """Return the time at which the next wait ends."""
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
        """End and return the requests whose time is over; the caller answers them 408 (I-T6)."""
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
    """Return whether two messages with the same key have the same content (I-T8, MSG-07).

    Args:
        first: The message that came before.
        second: The message that came with the same key.
    """
    return first.type is second.type and _essence(first) == _essence(second)


def _essence(message: Message) -> dict[str, object]:
    return {key: value for key, value in message.body.items() if key not in _HOP_FIELDS}


# ---- outstanding requests and duplicates


_SENDERS: Final = 16_384
"""Number of remembered senders, or pairs of addresses; the longest silent is forgotten first."""

_Instance: TypeAlias = tuple[str, int, int, str, int]
"""Key of a message: receiver, id; of answers also code, `source`, number if provisional."""


def _instance(message: Message) -> _Instance:
    if not message.is_response:
        return message.to, message.id, 0, "", 0
    # Several receivers may answer from the same address (C-81), each with provisional answers.
    source, nth = message.body.get("source"), message.body.get("sequence")
    sender = source if isinstance(source, str) else ""
    sequence = nth if isinstance(nth, int) and not message.is_final else 0
    return message.to, message.id, message.code, sender, sequence


def _size_of(instance: _Instance) -> int:
    return protocol.DEDUP_COST + len(instance[0]) + len(instance[3])


class _Window(OrderedDict[_Instance, float]):
    """The remembered messages of one sender, and the bytes of memory that they take."""

    def __init__(self, sender: str) -> None:
        super().__init__()
        self.size = protocol.DEDUP_COST + len(sender)


class DeduplicationWindow:
    """Recognises messages that arrive twice by the last messages of each sender (I-P22).

    The last `DEDUP_WINDOW` messages of each sender are remembered for `DEDUP_SECONDS`, for at most
    `_SENDERS` senders; bytes of memory are limited, too. The longest silent sender is forgotten
    first.
    """

    def __init__(self) -> None:
        self._senders: OrderedDict[str, _Window] = OrderedDict()
        self._size = 0

    def is_new(self, message: Message, now: float) -> bool:
        """Return whether a message arrives for the first time, and remember it.

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
        """Return whether a message has arrived before.

        Args:
            message: The message as it arrived.
        """
        window = self._senders.get(message.from_)
        seen_at = None if window is None else window.get(_instance(message))
        return seen_at is not None and now - seen_at <= protocol.DEDUP_SECONDS

    def _forget(self, now: float) -> None:
        """Forget the senders that were silent for long, and the oldest while memory is full."""
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
    """Recognises durable messages that arrive again although they were finally answered.

    A node delivers the durable messages of a sender to a receiver one after the other, in the
    order of their positions in a queue. So the last answered position of each pair of addresses is
    enough; `_SENDERS` pairs are kept without time limit, as messages may be repeated after hours.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], int] = OrderedDict()

    def add(self, message: Message, place: int) -> None:
        """Note that a durable message has been finally answered.

        Args:
            message: The message.
            place: The position of the message in the node's durable queue for this runtime.
        """
        pair = (message.from_, message.to)
        self._places[pair] = max(place, self._places.get(pair, 0))
        self._places.move_to_end(pair)
        if len(self._places) > _SENDERS:
            self._places.popitem(last=False)

    def has(self, message: Message, place: int) -> bool:
        """Return whether a durable message has been finally answered.

        Args:
            message: The message.
            place: The position of the message in the node's durable queue for this runtime.
        """
        return place <= self._places.get((message.from_, message.to), 0)


class OutstandingCore:
    """The requests that were delivered to one component and that it has not answered yet.

    At most `SANDBOX_OUTSTANDING` requests are kept, most of them without their bodies. The oldest
    are forgotten first, and requests whose sender no longer waits are forgotten, too.
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

    def end_given_up(self, message: Message) -> None:
        """Forget the request that a message gives up; ignore any other message."""
        key = key_given_up(message)
        if key is not None:
            from_, _, number = key
            self._asked.pop(f"{from_}#{number}", None)

    def knows(self, request: Message) -> bool:
        """Return whether a request was delivered to the component and is not answered yet."""
        return instance_id(request) in self._asked

    def is_open(self, now: float) -> bool:
        """Return whether the sender of any unanswered request may still wait for the answer."""
        return any(until > now for until, _ in self._asked.values())

    def asked(self, answer: Message) -> Message | None:
        """Return the delivered request that a message answers, or None.

        A final answer removes the request.
        """
        if not answer.is_response:
            return None
        mid = request_id(answer)
        _, request = self._asked.get(mid, (0.0, None))
        if answer.is_final:
            self._asked.pop(mid, None)
        return request

    def unanswered(self) -> list[Message]:
        """Remove and return all requests that were not answered."""
        requests, self._asked = self._asked, {}
        return [request for _, request in requests.values()]


# The subscriptions of a runtime in other domains, known from its accepted requests (PFY-03). The
# stub that connects to a domain is not released while a subscription exists in the domain, because
# the events of the subscription would no longer arrive.

_Path: TypeAlias = tuple[str, str]


class HeldPaths:
    """The accepted subscriptions of a runtime in each domain: requested address and resource.

    Memory is limited only by the components that subscribe, which limit their subscriptions.
    """

    def __init__(self) -> None:
        self._held: dict[str, set[_Path]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def holds(self, domain: str) -> bool:
        """Return whether the runtime has a subscription in a domain."""
        return domain in self._held

    def record_success(self, request: Message) -> None:
        """Add the subscription of a request that was answered with success.

        Args:
            request: The request. Requests other than subscriptions are ignored, and so are those to
                another runtime, since their events come over a direct link (P2P-25).
        """
        if request.type is MessageType.SUBSCRIBE and scheme_of(request.to) != RUNTIME_SCHEME:
            self._held.setdefault(domain_of(request.to), set()).update(_paths(request))

    def record_message(self, message: Message) -> None:
        """Remove the subscriptions that a message of this runtime cancels.

        The answer does not matter, since no events are expected any more.
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
    """Yield a pair (receiver, resource) for each resource of a request.

    The receiver takes the place of a resource that is missing or no text.
    """
    named = request.body.get("resources")
    names = named if isinstance(named, list) else [request.body.get("resource")]
    for name in names:
        yield request.to, name if isinstance(name, str) else request.to
