"""The open requests of a Message BUS: senders, answers, return routes (MSG-04..07, BUS-07)."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TypeAlias

import attrs
import trio

from actors.runtime.bus.messages import Deliveries, InFlight
from actors.runtime.hop_trace import HopTrace
from actors.runtime.policy import Refusal
from fsm.bus import transactions
from fsm.bus.transactions import HeldPaths
from fsm.effects import Intent
from specs.addresses.address import domain_of
from specs.limits.bus import ANSWERS_KEPT, OPEN_REQUESTS
from specs.message import DURABLE, Message, MessageType, position_of, refuse
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from specs.trace import Op

_Pair: TypeAlias = tuple[str, str]


class OpenRequests:
    """Hosts the core of open requests; part of the bus."""

    def __init__(self, deliveries: Deliveries, hops: HopTrace) -> None:
        self._deliveries = deliveries
        self._hops = hops
        self._open: transactions.TransactionsCore[InFlight] = transactions.TransactionsCore(
            hops.steps
        )
        self._seen = transactions.DeduplicationWindow()
        self._durables = transactions.EndedDurables()
        self._answered: OrderedDict[
            transactions.Key, tuple[transactions.Transaction[InFlight], Message]
        ] = OrderedDict()
        self._load: Counter[_Pair] = Counter()
        self._held = HeldPaths()

    def open(self, flight: InFlight, now: float) -> None:
        """Begin to wait for the answer to a request."""
        request = flight.message
        step = self._open.open(request, flight, now, flight.terms)
        if step is not None:
            self._hops.step(step)
            self.restart_timeout(request)
        if flight.is_outgoing and request.type is MessageType.UNSUBSCRIBE:
            self._held.record_message(request)
        self._load[request.from_, request.to] += 1

    def restart_timeout(self, request: Message) -> None:
        """Begin the wait when its evidence is written, however long that took (I-T6)."""
        self._open.waits_since(request, trio.current_time())

    def is_crowding(self, request: Message) -> bool:
        """Return whether a sender has as much open at one receiver as it may (R11)."""
        return self._load.get((request.from_, request.to), 0) >= OPEN_REQUESTS

    def is_open(self, request: Message) -> bool:
        """Return whether a requester still waits for the answer."""
        return self._open.find(request) is not None

    def is_repeated(self, message: Message) -> bool:
        """Return whether an open request, or that of an answer, was sent more than once."""
        request = self.asked_of(message) if message.is_response else message
        transaction = None if request is None else self._open.find(request)
        return transaction is not None and transaction.is_repeated

    def depends_on(self, stub: str, domain: str) -> bool:
        """Return whether a request by a stub or to its domain is open, or a subscription is held.

        Args:
            domain: The domain that it leads to.
        """
        return self._held.holds(domain) or any(
            transaction.waiter.by == stub or domain_of(transaction.request.to) == domain
            for transaction in self._open.transactions()
        )

    def is_direct(self, message: Message) -> bool:
        """Return whether a request goes by a live link or not at all."""
        there = None if message.is_response else self._open.find(message)
        return there is not None and there.waiter.intent is Intent.DIRECT

    def refuse_repetition(self, message: Message, now: float) -> Refusal | None:
        """Return the objection to a message that came before; None: it is new."""
        # What is open is known for longer than the window reaches back.
        there = None if message.is_response else self._open.find(message)
        is_new = self._seen.is_new if DURABLE not in message.body else self._is_new
        if is_new(message, now) and there is None:
            return None
        before, _ = self._answered.get((message.from_, message.to, message.id), (None, None))
        before = there or before
        if before is not None and not transactions.same_request(before.request, message):
            why = "another request had this id"
            return Refusal(DropReason.DUPLICATE, why, Code.MALFORMED)
        why = "this request has been made before"
        # The node that delivers a durable message waits for the end of it.
        is_over = there is None and position_of(message) is not None
        return Refusal(DropReason.DUPLICATE, why, Code.CONFLICT if is_over else None, Code.CONFLICT)

    def _is_new(self, message: Message, now: float) -> bool:
        place = position_of(message)
        if place is None:
            return self._seen.is_new(message, now)
        # It is delivered until it has ended, and may come twice for other reasons as well.
        return not self._durables.has(message, place) and not self._seen.knows(message, now)

    def _is_over(self, request: Message) -> bool:
        """Note that a durable request needs no further delivery; False: it is no durable one."""
        place = position_of(request)
        if place is None:
            return False
        self._durables.add(request, place)
        self._seen.is_new(request, trio.current_time())
        return True

    def take_answer(self, response: Message, now: float) -> transactions.Answer[InFlight]:
        """Take an answer; an unawaited one is dropped."""
        answer = self._open.answered(response, now)
        if answer.transaction is None:
            self._hops.dropped(response, answer.drop or DropReason.UNMATCHED)
        else:
            if answer.step is not None:
                self._hops.step(answer.step)
            if answer.is_last:
                self._forget_request(answer.transaction.request)
                if not answer.transaction.waiter.is_outgoing:
                    self._remember(answer.transaction, response)
                elif (
                    answer.transaction.request.type is MessageType.SUBSCRIBE
                    and response.code <= LAST_SUCCESS
                ):
                    self._held.record_success(answer.transaction.request)
        return answer

    def _remember(self, transaction: transactions.Transaction[InFlight], response: Message) -> None:
        """Keep the answer to a remote requester, in case it repeats the request (MSG-07)."""
        request = transaction.request
        if self._is_over(request):
            return
        self._answered[request.from_, request.to, request.id] = transaction, response
        if len(self._answered) > ANSWERS_KEPT:
            self._answered.popitem(last=False)

    def again(self, request: Message) -> tuple[Message, InFlight] | None:
        """Return the answer to a request that was answered before, and that request.

        The answer is another object than the first: both may be on their way, and a path that
        changes tells messages apart by their objects.
        """
        found = self._answered.get((request.from_, request.to, request.id))
        if found is None or request.is_response:
            return None
        transaction, response = found
        return attrs.evolve(response), transaction.waiter

    def asked_of(self, response: Message) -> Message | None:
        """Return the open request that this would answer."""
        request = Message(response.id, response.type, response.to, response.from_)
        found = self._open.find(request)
        return None if found is None else found.request

    def give_up(self, request: Message, why: str) -> transactions.Ended[InFlight] | None:
        """End the wait for a request that the bus answers itself."""
        ended = self._open.give_up(request, why)
        if ended is not None:
            self._hops.step(ended.step)
            self._forget_request(request)
        return ended

    def reject(
        self, flight: InFlight, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Answer the component that submits a request, for any `from`."""
        response = refuse(flight.message, code, why, retry_after)
        self._hops.synthesised(response)
        if flight.reply is not None:
            flight.reply(response)
        elif not self._deliveries.deliver(response, flight.by):
            self._hops.dropped(response, DropReason.NO_TARGET)

    def reject_late(self, flight: InFlight) -> None:
        """Refuse what a younger message has overtaken by another path (I-B7)."""
        message = flight.message
        self._hops.submitted(message, flight.by)
        self._hops.dropped(message, DropReason.OVERTAKEN)
        if message.is_request:
            why = "a later message of its sender came first, by another path"
            self.reject(flight, Code.UNAVAILABLE, why)

    def give_answer(self, response: Message, reply: Callable[[Message], object] | None) -> None:
        """Give an answer to a component here."""
        if reply is not None:
            self._hops.say(Op.CALLBACK, response)
            if response.is_final:
                reply(response)
        elif not self._deliveries.deliver(response, response.to):
            self._hops.dropped(response, DropReason.NO_TARGET)

    def deadline(self) -> float:
        """Return when the next wait is over."""
        return self._open.deadline()

    def repeated_now(self, now: float) -> list[Message]:
        """Return the requests that are to be sent once more (MSG-07)."""
        again = self._open.repeated(now)
        for repeated in again:
            self._hops.step(repeated.step)
        return [repeated.request for repeated in again]

    def overdue(self, now: float) -> list[transactions.Ended[InFlight]]:
        """End and return all waits that are over (MSG-06)."""
        over = self._open.overdue(now)
        for ended in over:
            self._hops.step(ended.step)
            self._forget_request(ended.request)
            if not ended.waiter.is_outgoing:
                self._is_over(ended.request)
        return over

    def leave(self) -> None:
        """End what is open: the bus stops, which ends all waits here, too."""
        for ended in self._open.give_up_all("the runtime ends"):
            self._hops.step(ended.step)

    def _forget_request(self, request: Message) -> None:
        pair = request.from_, request.to
        left = self._load[pair] - 1
        if left:
            self._load[pair] = left
        else:
            del self._load[pair]
