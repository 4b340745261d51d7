"""The open requests of a Message BUS: requesters, answers, routes of answers (MSG-04..07)."""

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
    """The open requests of one bus, and the answers that it keeps in case a request is repeated."""

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
        """Start to wait for the answer to a request."""
        request = flight.message
        step = self._open.open(request, flight, now, flight.terms)
        if step is not None:
            self._hops.step(step)
            self.restart_timeout(request)
        if flight.is_outgoing and request.type is MessageType.UNSUBSCRIBE:
            self._held.record_message(request)
        self._load[request.from_, request.to] += 1

    def restart_timeout(self, request: Message) -> None:
        """Restart the timeout of a request from now on (I-T6)."""
        self._open.waits_since(request, trio.current_time())

    def is_crowding(self, request: Message) -> bool:
        """Return whether a sender has the most open requests that one receiver allows (R11)."""
        return self._load.get((request.from_, request.to), 0) >= OPEN_REQUESTS

    def is_open(self, request: Message) -> bool:
        """Return whether a requester still waits for the answer."""
        return self._open.find(request) is not None

    def is_repeated(self, message: Message) -> bool:
        """Return whether a request, or the request of an answer, was sent more than once."""
        request = self.request_of(message) if message.is_response else message
        transaction = None if request is None else self._open.find(request)
        return transaction is not None and transaction.is_repeated

    def depends_on(self, stub: str, domain: str) -> bool:
        """Return whether open requests or subscriptions need a stub.

        Args:
            stub: Address of the stub.
            domain: The domain that the stub leads to.
        """
        return self._held.holds(domain) or any(
            transaction.waiter.by == stub or domain_of(transaction.request.to) == domain
            for transaction in self._open.transactions()
        )

    def is_direct(self, message: Message) -> bool:
        """Return whether a request may only travel by a direct link that is up."""
        transaction = None if message.is_response else self._open.find(message)
        return transaction is not None and transaction.waiter.intent is Intent.DIRECT

    def refuse_repetition(self, message: Message, now: float) -> Refusal | None:
        """Return the refusal of a message that came before; None: the message is new."""
        # Open requests are remembered for longer than the window of the deduplication.
        open_transaction = None if message.is_response else self._open.find(message)
        is_new = self._seen.is_new if DURABLE not in message.body else self._is_new
        if is_new(message, now) and open_transaction is None:
            return None
        earlier, _ = self._answered.get((message.from_, message.to, message.id), (None, None))
        earlier = open_transaction or earlier
        if earlier is not None and not transactions.same_request(earlier.request, message):
            why = "another request had this id"
            return Refusal(DropReason.DUPLICATE, why, Code.MALFORMED)
        why = "this request has been made before"
        # The node that delivers a durable message waits for the end of it.
        is_over = open_transaction is None and position_of(message) is not None
        return Refusal(DropReason.DUPLICATE, why, Code.CONFLICT if is_over else None, Code.CONFLICT)

    def _is_new(self, message: Message, now: float) -> bool:
        position = position_of(message)
        if position is None:
            return self._seen.is_new(message, now)
        # The node delivers it until its request has ended; other causes may repeat it, too.
        return not self._durables.has(message, position) and not self._seen.knows(message, now)

    def _end_durable(self, request: Message) -> bool:
        """Record that a durable request needs no further delivery; return whether it is durable."""
        position = position_of(request)
        if position is None:
            return False
        self._durables.add(request, position)
        self._seen.is_new(request, trio.current_time())
        return True

    def take_answer(self, response: Message, now: float) -> transactions.Answer[InFlight]:
        """Find the request of an answer, and close the request if the answer is its last."""
        answer = self._open.answered(response, now)
        if answer.transaction is None:
            self._hops.record_drop(response, answer.drop or DropReason.UNMATCHED)
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
        """Keep the answer for a remote requester, which may repeat the request (MSG-07)."""
        request = transaction.request
        if self._end_durable(request):
            return
        self._answered[request.from_, request.to, request.id] = transaction, response
        if len(self._answered) > ANSWERS_KEPT:
            self._answered.popitem(last=False)

    def find_answer(self, request: Message) -> tuple[Message, InFlight] | None:
        """Return a copy of the answer to a repeated request, and that request; None: no answer.

        The copy is a new object: both answers may be on their way, and the paths tell messages
        apart by their objects.
        """
        kept = self._answered.get((request.from_, request.to, request.id))
        if kept is None or request.is_response:
            return None
        transaction, response = kept
        return attrs.evolve(response), transaction.waiter

    def request_of(self, response: Message) -> Message | None:
        """Return the open request that an answer belongs to; None: there is none."""
        request = Message(response.id, response.type, response.to, response.from_)
        transaction = self._open.find(request)
        return None if transaction is None else transaction.request

    def give_up(self, request: Message, why: str) -> transactions.Ended[InFlight] | None:
        """Close a request that gets no answer from its receiver: the bus answers it."""
        ended = self._open.give_up(request, why)
        if ended is not None:
            self._hops.step(ended.step)
            self._forget_request(request)
        return ended

    def abandon(self, key: transactions.Key) -> transactions.Ended[InFlight] | None:
        """Close an open request that its requester has given up; nobody answers the request."""
        ended = self._open.abandon(key)
        if ended is not None:
            self._hops.step(ended.step)
            self._hops.count_given_up()
            self._forget_request(ended.request)
        return ended

    def has_ended(self, key: transactions.Key) -> bool:
        """Return whether a request has lately ended without an answer of its receiver."""
        return self._open.has_ended(key)

    def reject(
        self, flight: InFlight, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Refuse a request by an answer to the component that submits it, for any `from`."""
        response = refuse(flight.message, code, why, retry_after)
        self._hops.record_own_answer(response)
        if flight.reply is not None:
            flight.reply(response)
        elif not self._deliveries.deliver(response, flight.by):
            self._hops.record_drop(response, DropReason.NO_TARGET)

    def reject_late(self, flight: InFlight) -> None:
        """Refuse a message because a later message of its sender has arrived before it (I-B7)."""
        message = flight.message
        self._hops.record_submission(message, flight.by)
        self._hops.record_drop(message, DropReason.OVERTAKEN)
        if message.is_request:
            why = "a later message of its sender came first, by another path"
            self.reject(flight, Code.UNAVAILABLE, why)

    def give_answer(
        self,
        response: Message,
        reply: Callable[[Message], object] | None,
        progress: Callable[[Message], object] | None = None,
    ) -> None:
        """Deliver an answer to a component of this runtime.

        Args:
            response: The answer.
            reply: Takes a final answer; None: the listener of its receiver does.
            progress: Takes a provisional answer, if it is wanted.
        """
        if reply is not None:
            self._hops.say(Op.CALLBACK, response)
            if response.is_final:
                reply(response)
            elif progress is not None:
                progress(response)
        elif not self._deliveries.deliver(response, response.to):
            self._hops.record_drop(response, DropReason.NO_TARGET)

    def deadline(self) -> float:
        """Return when the next timeout is due."""
        return self._open.deadline()

    def take_repetitions(self, now: float) -> list[Message]:
        """Return the requests that must be sent again now (MSG-07)."""
        repetitions = self._open.repeated(now)
        for repetition in repetitions:
            self._hops.step(repetition.step)
        return [repetition.request for repetition in repetitions]

    def take_overdue(self, now: float) -> list[transactions.Ended[InFlight]]:
        """Close and return all requests whose timeout is over (MSG-06)."""
        timeouts = self._open.overdue(now)
        for ended in timeouts:
            self._hops.step(ended.step)
            self._forget_request(ended.request)
            if not ended.waiter.is_outgoing:
                self._end_durable(ended.request)
        return timeouts

    def leave(self) -> None:
        """Close all open requests, because the bus stops."""
        for ended in self._open.give_up_all("the runtime ends"):
            self._hops.step(ended.step)

    def _forget_request(self, request: Message) -> None:
        pair = request.from_, request.to
        remaining = self._load[pair] - 1
        if remaining:
            self._load[pair] = remaining
        else:
            del self._load[pair]
