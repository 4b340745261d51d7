"""The Message BUS: router of one runtime, between its sandboxes and its stubs.

Its methods are called directly and never wait; its task serves timers only. How each message is
processed (BUS-03, 06, 07, 11..14): after the pipelines of checks, an answer goes to the sender of
its request; any other message goes to the listeners of its `to`, or, if `to` has no listener, to a
stub. The bus never waits for space in a mailbox. It puts messages from outside into order, whatever
route they have taken (C-20, I-B7).
"""

import math
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Final, Never, Self

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import (
    Actor,
    Delivery,
    OpenReplies,
    Purpose,
    Reply,
)
from actors.kit.trace import Tracer
from actors.runtime.bus.admission import Admission
from actors.runtime.bus.interceptor import NO_INTERCEPTORS, Interceptor
from actors.runtime.bus.messages import (
    RECEIVER_FULL,
    Announced,
    Deliveries,
    Full,
    InFlight,
    Origin,
    Permits,
    RouteSearch,
    Turn,
)
from actors.runtime.bus.open_requests import OpenRequests
from actors.runtime.bus.outbound import Outbound
from actors.runtime.bus.pipeline import Pipelines
from actors.runtime.hop_trace import HopTrace
from actors.runtime.own_sender import OwnSender
from actors.runtime.policy import Judge, Refusal
from fsm.bus.link_senders import Holding, SenderProof
from fsm.bus.listeners import ForwardRefusedError, ForwardRule, ForwardRules
from fsm.bus.receiving_order import NODE_PATH, PairOrderCore
from fsm.bus.sending_order import ChildPath, ChildPaths, Elsewhere
from fsm.effects import Intent, intent_of
from fsm.limits.rates import FairQueue, Rate, TokenBuckets
from fsm.limits.shares import message_bytes
from fsm.p2p.transfer import Behind
from specs.addresses.address import is_below, runtime_of
from specs.child import is_of_creator, object_of, parent_of
from specs.limits.bus import OPEN_REQUESTS
from specs.limits.protocol import REPLY_TIMEOUT, STUB_QUEUE, WARNING_PAUSE
from specs.message import (
    GIVEN_UP,
    Message,
    identified,
    instance_id,
    key_given_up,
    position_of,
    refuse,
)
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from specs.routing import Direction
from specs.trace import Op

_log = get_logger("actors.runtime")

_CROWDED: Final = Full(
    "OPEN_REQUESTS",
    OPEN_REQUESTS,
    "too many requests to this receiver are open; wait for answers",
)

_NO_CHILD_PATH: Final = Full(
    "STUB_QUEUE", STUB_QUEUE, "too many changes of children wait for another path"
)

_IN_ORDER: Final = frozenset({DropReason.DENIED, DropReason.CRASHED})
"""Drop reasons of messages from outside that were next in their order: later ones may follow."""

_NAME: Final = "bus"

_TIMER_PAUSE: Final = 0.05
"""Minimum seconds between two computations of the next timer while messages come. One for each
message would take as long as the routing. All timeouts but those of `turns` last for seconds.
"""


class DeadMail:
    """Counts messages to ended actors, and answers requests among them 503 (OBS-06)."""

    def __init__(self, bus: "MessageBus", counters: Counters) -> None:
        self._bus: Final = bus
        self._counters: Final = counters

    def __call__(self, actor: str, message: object) -> None:
        if isinstance(message, Turn):
            return  # its task ends with the actor
        self._counters.dead_letters[actor] += 1
        if isinstance(message, Delivery) and not self._bus.try_report(message):
            self._counters.drop(DropReason.NO_TARGET, message.message, actor)


class MessageBus(Actor[Never]):
    """Routes the messages of one runtime.

    Each call is made in `with bus:`, which raises ActorStoppedError if the runtime has closed; the
    methods under `messages`, `answers of the registry` and `the tables` do this themselves. An
    exception in the bus is not raised to the caller: it ends the runtime, as in any core component.

    Attributes:
        hops: Writes the trace records of the bus; a MiniBUS writes those of its deliveries, too.
        deliveries: Puts messages into the mailboxes of listeners.
        replies: The calls that wait for an answer; the end of the runtime ends them with an error.
        routing: The listeners of all addresses.
        turns: Queue of the permits that return to their senders later, in a fair order.
        admission: The addresses that components may use as sender.
        answers: The open requests.
        outbound: Sends messages to stubs, by the routes that the registry finds.
        order: Puts messages from outside into order, for each sender and receiver.
        children: Routes for changes of children that local components write.
    """

    def __init__(
        self,
        own: OwnSender,
        policy: Judge,
        tracer: Tracer,
        counters: Counters,
        interceptors: tuple[Interceptor, ...] = NO_INTERCEPTORS,
    ) -> None:
        self._own = own
        runtime = self._runtime = own.identity.runtime
        self._sync_manager = f"{runtime}/sm"
        self._now = 0.0
        self._warned: TokenBuckets[str] = TokenBuckets(Rate(1 / WARNING_PAUSE, 1))
        self.hops = HopTrace(tracer, _NAME, counters)
        self.turns: FairQueue[Permits] = FairQueue()
        self.deliveries = Deliveries(self.hops)
        self.routing = self.deliveries.routing
        self.answers = OpenRequests(self.deliveries, self.hops)
        self.admission = Admission(runtime, policy, self.hops, self.deliveries.listens)
        self.outbound = Outbound(self)
        self._proofs = SenderProofs(self)
        self._pipelines = Pipelines(self.admission, self._refuse_repetition, interceptors)
        self.order: PairOrderCore[tuple[InFlight, str]] = PairOrderCore()
        self.children = ChildPaths()
        self._rules = ForwardRules()
        self._catching_up: list[tuple[str, str, Reply[None], float]] = []
        self._next_timer = math.inf
        self._compute_timer_at = -math.inf
        self._is_timer_old = False
        self._is_closed = False
        self._crash: Exception | None = None
        self.replies: Final = OpenReplies()

    # ---- messages

    def submit(self, flight: InFlight) -> None:
        """Check and route a message that a component submits."""
        if self._is_closed:
            if flight.permit is not None:
                flight.permit.give_back()
            raise ActorStoppedError(_NAME)
        try:  # as `with self`, for each message
            now = trio.current_time()
            self._submit(flight, now)
            is_watched = self._is_timer_old and now < self._compute_timer_at
            if not is_watched or self.turns.held or self.admission.after is not None:
                self._settle(now)
        except Exception as error:  # noqa: BLE001 - see `_fail`
            self._fail(error)

    def overflow(self, deliveries: Iterable[Delivery]) -> None:
        """Refuse messages that do not fit into the full mailbox of a component in a sandbox."""
        for delivery in deliveries:
            if not self.try_report(delivery, RECEIVER_FULL):
                self.hops.record_drop(delivery.message, DropReason.OVERFLOW)

    def try_report(self, delivery: Delivery, full: Full | None = None) -> bool:
        """End a message that a local receiver will not handle; return whether the bus is open.

        The message may have further receivers.

        Args:
            delivery: The delivery to that receiver.
            full: The queue without space for the message; None: the receiver is gone.
        """
        with suppress(ActorStoppedError), self:
            message, now = delivery.message, trio.current_time()
            is_over = delivery.route != message.to
            if delivery.purpose is Purpose.ANNOUNCE:
                pass
            elif full is not None:
                self.refuse_full(message, full, now, is_over=is_over)
            else:
                end = self._end if is_over else self.refuse
                end(message, Code.UNAVAILABLE, "the receiver is gone", now)
        return not self._is_closed

    # ---- answers of the registry

    def take_route(self, to: str, intent: Intent, url: str, until: float) -> None:
        """Cache a route of the registry, and send the messages that wait for the route."""
        with self:
            self.outbound.take_route(to, intent, url, until, trio.current_time())

    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Refuse the messages that wait for a route, as there is none."""
        with self:
            self.outbound.no_route(to, intent, trio.current_time(), code, why, retry_after)

    def forget_routes(self) -> None:
        """Forget every route: the registry's tables have changed."""
        with self:
            self.outbound.routes.forget()

    def add_peer(self, link: str, remote: str) -> None:
        """Accept messages of a remote runtime over a link (I-B10)."""
        with self:
            self.hops.rows(self.admission.senders.add_link(link, remote))

    def remove_peer(self, link: str) -> None:
        """Accept no more messages over a link."""
        with self:
            self.hops.rows(self.admission.senders.remove_link(link))

    def set_owner(self, entity: str, owner: str | None) -> None:
        """Set the owner of an address; None: no registry names one."""
        with self:
            self._proofs.set_owner(entity, owner, trio.current_time())

    def forget_owner(self, entity: str) -> None:
        """Forget the owner of an address: it may have changed."""
        with self:
            self.hops.rows(self.admission.senders.forget_owner(entity))

    # ---- the tables

    def grant(self, owner: str, address: str, origin: Origin) -> None:
        """Let a component send from an address and from those below it."""
        with self:
            self.admission.grant(owner, address, origin)

    def set_name(self, component: str, name: str | None) -> None:
        """Set the name of a hyperty, for policies; None: it has ended."""
        with self:
            self.admission.set_name(component, name)

    def join(self, registry: RouteSearch) -> None:
        """Set the registry that resolves routes."""
        self.outbound.registry = registry

    def release(self, stub: str, domain: str) -> bool:
        """Forget the routes by a stub, unless a request or a subscription depends on it."""
        is_free = False
        with self:
            is_free = not self.answers.depends_on(stub, domain)
            if is_free:
                self.outbound.routes.forget_stub(stub)
        return is_free

    # ---- time and end

    def __enter__(self) -> Self:
        if self._is_closed:
            raise ActorStoppedError(_NAME)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            try:
                self._settle(trio.current_time())
            except Exception as failure:  # noqa: BLE001 - see `_fail`
                error = failure
        if not isinstance(error, Exception) or isinstance(error, ForwardRefusedError):
            return False
        self._fail(error)
        return True

    def _fail(self, error: Exception) -> None:
        """Let this actor crash, and so the runtime, as the error is a bug of the bus."""
        self._crash = self._crash or error
        self.wake()

    def _settle(self, now: float) -> None:
        if self.admission.after is not None:
            self.admission.settle()
        due = self.turns.deadline() if self.turns.held else math.inf
        if now >= self._compute_timer_at:
            self._compute_timer_at = now + _TIMER_PAUSE
            due = min(due, self._due())
        else:
            self._is_timer_old = True
            due = min(due, self._compute_timer_at)
        if due < self._next_timer:
            self._next_timer = due
            self.wake()

    @override
    async def handle(self, message: Never) -> None:
        """Do nothing: this actor receives no messages."""

    @override
    def deadline(self) -> float:
        due = min(self._due(), self.turns.deadline())
        if self._is_timer_old:
            due = min(due, self._compute_timer_at)
        self._next_timer = due if self._crash is None else -math.inf
        return self._next_timer

    @override
    async def timed_out(self) -> None:
        if self._crash is not None:
            raise self._crash
        now = trio.current_time()
        self._is_timer_old = self._is_timer_old and now < self._compute_timer_at
        for permits in self.turns.due(now):
            permits.give_back()
        self._tick(now)
        self.admission.settle()

    @override
    async def stop(self) -> None:
        self.answers.leave()
        if self._crash is None:
            self.close()
        # After a crash the bus stays open for the other parts, which are being stopped.

    def close(self) -> None:
        """Stop the bus: later calls and calls that wait raise ActorStoppedError. Idempotent."""
        self._is_closed = True
        self.replies.lose(ActorStoppedError(_NAME))

    # ---- in

    def _submit(self, flight: InFlight, now: float) -> None:
        """Check a message and route it; one from a link first waits for the proof of its sender."""
        self.outbound.sender = flight
        by = flight.by
        # Nearly always the component submits under its own address.
        origin = self.admission.origins.get(by) or self._origin(by)
        flight.origin = origin
        is_by_peer = origin is Origin.P2P_STUB and flight.message.is_last_by(by)
        if not (is_by_peer and self._proofs.waits(flight, now)):
            self._admit(flight, now)
        # The permit of a message that waits at a stub is given back later.
        if flight.permit is not None and self.outbound.sender is flight:
            self.give_permit_back(flight, now)
        self.outbound.sender = None

    def give_permit_back(self, flight: InFlight, now: float) -> None:
        """Return the permit of a message to its sender, at once or later in a fair order."""
        permit = flight.permit
        if permit is not None and self.turns.may_continue(flight.by, permit, now):
            permit.give_back()

    def _origin(self, by: str) -> Origin:
        return self.admission.origin(by) or Origin.LOCAL

    def take_after_proof(self, item: InFlight | Announced, now: float) -> None:
        """Process a message or announcement whose wait for the proof of its sender is over."""
        if isinstance(item, InFlight):
            item.origin = self._origin(item.by)
            self._admit(item, now)
        else:
            self.take_announcement(*item, now)

    def _admit(self, flight: InFlight, now: float) -> None:
        """Route a message that has passed the sender check; put one from outside into order."""
        message, by, origin = flight.message, flight.by, flight.origin
        is_local = origin is Origin.LOCAL
        identity = self._own.identity
        if is_local and message.identity is not identity and not is_below(by, self._runtime):
            # A part of the runtime may send for others, and then names the identity itself.
            message = identified(message, identity)
        if is_local or self.admission.direction(message, origin) is Direction.OUTGOING:
            self._now = now
            self._take(flight, self._pipelines.pass_through(message, by, Direction.OUTGOING), now)
            return
        flight.is_outgoing = False
        path = by if origin is Origin.P2P_STUB else NODE_PATH
        due = self.order.arrives(message, path, (flight, path))
        if due:
            self._take_in_order(due, now, flight)
        elif due is not None:
            self.hops.say(Op.QUEUE, message)
        else:
            why = "too many messages of this link wait for what the node has still to bring"
            self.deny(flight, Refusal(DropReason.OVERFLOW, why, Code.UNAVAILABLE), now)

    def take_announcement(self, behind: Behind, link: str, now: float) -> None:
        """Process a link's announcement of which messages precede its own; check its sender."""
        if self._proofs.may_announce(behind, link, now):
            self._take_in_order(self.order.announced(behind, link, now), now)

    def _take_in_order(
        self, due: list[tuple[InFlight, str]], now: float, direct: InFlight | None = None
    ) -> None:
        """Route messages from outside that are next in order, and then their successors (I-B7).

        Args:
            due: The messages, each with the name of the route it came by.
            now: The present time.
            direct: The message that has just come, and has not waited; None: all have waited.
        """
        queue = deque(due)
        while queue:
            flight, path = queue.popleft()
            message = flight.message
            if flight is not direct:
                self.hops.say(Op.FLUSH, message)
            if self._take_arrived(flight, path, now):
                queue.extend(self.order.given(message, path, now))
        if self._catching_up:
            self._report_caught_up(now)

    def allow_events(self, address: str, link: str | None) -> None:
        """Accept the events of an address by this link only; None: by no link."""
        self.admission.allow_events(address, link)
        if link is not None:
            self.order.expects(object_of(address), address, link)

    def catch_up(self, address: str, link: str, done: Reply[None], now: float) -> None:
        """Complete a call once all events that were sent to an address by the node have arrived.

        Args:
            address: The address.
            link: Address of the link that carries the later events.
            done: Completes the call.
            now: The present time.
        """
        self._catching_up.append((address, link, done, now + REPLY_TIMEOUT))
        self._report_caught_up(now)

    def _report_caught_up(self, now: float) -> None:
        calls, self._catching_up = self._catching_up, []
        for address, link, done, until in calls:
            if until <= now or self.order.is_reached(object_of(address), address, link):
                done.send(None)
            else:
                self._catching_up.append((address, link, done, until))

    def _take_arrived(self, flight: InFlight, path: str, now: float) -> bool:
        """Route a message from outside that is next in order; return whether others may follow."""
        self._now = now
        message, by = flight.message, flight.by
        passed = self._pipelines.pass_through(message, by, Direction.INCOMING)
        if isinstance(passed, Message) and self.order.is_late(passed, path):
            self.answers.reject_late(flight)
            return False
        flight.origin = self.admission.origins.get(by) or self._origin(by)
        is_known = isinstance(passed, Message) or passed.reason is DropReason.DUPLICATE
        if message.is_request and flight.origin is Origin.NODE_STUB and is_known:
            self.outbound.record_session(message, by)
        self._take(flight, passed, now)
        return isinstance(passed, Message) or passed.reason in _IN_ORDER

    def _take(self, flight: InFlight, passed: Message | Refusal, now: float) -> None:
        if isinstance(passed, Refusal):
            self._turn_down(flight, passed, now)
            return
        flight.message = passed
        if self.hops.is_on:
            self.hops.record_submission(passed, flight.by)
        if passed.is_response:
            if flight.origin is not Origin.LOCAL and self._may_come(passed, flight.by):
                self.hops.record_drop(passed, DropReason.UNMATCHED)
            else:
                self._answer(passed, now)
            return
        is_by_node = flight.origin is Origin.NODE_STUB and not flight.is_outgoing
        is_event = passed.is_event
        if is_event and GIVEN_UP in passed.body and not self._end_given_up(passed, flight, now):
            return
        if not is_event and not (is_by_node and self._is_notice(passed.to)):
            if self.answers.is_crowding(passed) and self.routing.find(passed.to):
                self._warn(passed, _CROWDED)
                why = _CROWDED.why
                self.answers.reject(flight, Code.UNAVAILABLE, why, _CROWDED.retry_after)
                return
            self.answers.open(flight, now)
        if flight.origin is Origin.P2P_STUB and is_of_creator(passed):
            self._deliver_child(passed, now)
        else:
            self._forward(flight, now)
        if self._is_for_others(flight) and self.routing.find(passed.to):
            # There are listeners elsewhere, too (BUS-09).
            self._send_out(passed, flight.intent or intent_of(passed), now)
        if self._rules.targets:
            self._copy(flight, passed, now)

    def _end_given_up(self, event: Message, flight: InFlight, now: float) -> bool:
        """Close the request that an event gives up; return whether the event is to be forwarded.

        A request that this runtime has not sent, or that is answered, is not given up elsewhere.
        """
        key = key_given_up(event)
        if key is None:
            return True
        ended = self.answers.abandon(key)
        if ended is not None:
            self.outbound.settle(ended.request, now)
            if ended.waiter.reply is not None:
                # A requester in a sandbox process has a task here, which ends with this.
                ended.waiter.reply(refuse(ended.request, Code.TIMEOUT, "it was given up"))
        elif flight.is_outgoing and not self.answers.has_ended(key):
            self.hops.record_drop(event, DropReason.UNMATCHED)
            return False
        return True

    # ---- copies

    def add_rule(self, rule: ForwardRule, writer: str) -> None:
        """Copy messages from one address of this runtime to another (BUS-08, BUS-10).

        Raises:
            ForwardRefusedError: An address is of another runtime, or the rule cannot be added.
        """
        for address in (rule.source, rule.target):
            if not self.admission.is_local(address):
                why = f"{address} is no address of this runtime"
                raise ForwardRefusedError(rule.source, rule.target, why)
        self.hops.rows(self._rules.add(rule, writer))

    def remove_rule(self, rule: ForwardRule, writer: str) -> None:
        """End a rule for one of its owners. Idempotent."""
        self.hops.rows(self._rules.remove(rule, writer))

    def _copy(self, flight: InFlight, passed: Message, now: float) -> None:
        """Deliver the copies of a message that has passed the checks.

        A copy passes the same checks as a message of its sender to its own receiver. The failure of
        a copy does not affect the sender: a requester gets the answer of the first receiver only.
        """
        direction = Direction.OUTGOING if flight.is_outgoing else Direction.INCOMING
        for copy in self._rules.copies(passed):
            checked = self._pipelines.pass_through(copy, flight.by, direction)
            if isinstance(checked, Refusal):
                self.hops.record_denial(copy, flight.by, int(checked.code or 0), checked.why)
                self.hops.record_drop(copy, checked.reason)
                continue
            self.hops.record_submission(checked, flight.by)
            if self._deliver_copy(checked, flight, now):
                self._copy(flight, checked, now)

    def _deliver_copy(self, copy: Message, of: InFlight, now: float) -> bool:
        is_crowding = copy.is_request and self.answers.is_crowding(copy)
        is_foreign = not of.is_outgoing
        if is_crowding or not self.deliveries.deliver(copy, copy.to, is_foreign=is_foreign):
            is_there = is_crowding or self.deliveries.has_reader(copy.to)
            self.hops.record_drop(copy, DropReason.OVERFLOW if is_there else DropReason.NO_TARGET)
            return not is_there
        if copy.is_request:
            self.answers.open(InFlight(copy, of.by, is_outgoing=False, is_copy=True), now)
        return True

    # ---- refused messages

    def _is_for_others(self, flight: InFlight) -> bool:
        """Return whether a message must also leave the runtime, for receivers elsewhere."""
        terms = flight.terms
        if terms.awaited:
            return not terms.awaited <= {self._runtime, *terms.direct}
        return flight.is_outgoing and parent_of(flight.message.to) is not None

    def _is_notice(self, to: str) -> bool:
        """Return whether a message tells about children whose reporter is in another runtime.

        The reporter answers it, so no local component does; no link brings it to other observers.
        """
        return parent_of(to) is not None and not self.admission.is_granted(to)

    def _refuse_repetition(self, message: Message, by: str) -> Refusal | None:
        # The transaction checks answers of components; forwarded answers are checked here.
        if message.is_response and self._is_of_component(by):
            return None
        return self.answers.refuse_repetition(message, self._now)

    def _turn_down(self, flight: InFlight, refusal: Refusal, now: float) -> None:
        """Refuse a message, and count it against the link if its peer has forged the sender."""
        self.deny(flight, refusal, now)
        is_unknown = refusal.reason is DropReason.UNKNOWN_SOURCE
        if is_unknown and self.admission.is_by_peer(flight.message, flight.by):
            self._proofs.record_forgery(flight.by, now)

    def deny(self, flight: InFlight, refusal: Refusal, now: float) -> None:
        """Refuse a message that the checks have rejected, with code and reason of the refusal."""
        message, by = flight.message, flight.by
        if refusal.reason is DropReason.DUPLICATE:
            # The trace identifies it with the message that was admitted before.
            self.hops.record_submission(message, by)
        else:
            self.hops.record_denial(message, by, int(refusal.code or 0), refusal.why)
        self.hops.record_drop(message, refusal.reason)
        kept = self.answers.find_answer(message) if refusal.reason is DropReason.DUPLICATE else None
        if message.is_response:
            self._deny_answer(flight, refusal, now)
        elif kept is not None and refusal.code is None:
            # The answer was lost, or the request came by two routes.
            answer, request = kept
            self.hops.record_submission(answer, answer.from_)
            self._return_answer(answer, request, now)
        elif message.is_request and refusal.code is not None:
            self.answers.reject(flight, refusal.code, refusal.why)
        elif flight.reply is not None:
            flight.reply(refuse(message, refusal.in_place, refusal.why))
        elif refusal.code is not None and parent_of(message.to) and self._is_of_component(by):
            # A change of a foreign child is refused (SC-36).
            self.answers.reject(flight, refusal.code, refusal.why)

    def _is_of_component(self, by: str) -> bool:
        admission = self.admission
        return (admission.origins.get(by) or admission.origin(by)) is Origin.LOCAL

    def _deny_answer(self, flight: InFlight, refusal: Refusal, now: float) -> None:
        """Send the requester a refusal in the place of an answer that was not admitted.

        Either a stage of the application has refused the answer, or the address of a part of the
        runtime was closed while the request waited in its mailbox.
        """
        response, by = flight.message, flight.by
        is_by_application = refusal.reason in {DropReason.DENIED, DropReason.CRASHED}
        is_part = self._is_of_component(by) and is_below(by, self._runtime)
        request = self.answers.request_of(response) if response.is_final else None
        if request is None:
            return
        if is_by_application:
            self._end(request, refusal.code or Code.FORBIDDEN, refusal.why, now)
        elif is_part and refusal.reason is DropReason.UNKNOWN_SOURCE:
            self._end(request, Code.NOT_FOUND, "target not found", now)

    # ---- answers

    def _is_decided_here(self, address: str) -> bool:
        """Return whether an address belongs to the children of an object that this runtime reports.

        Only the local reporter answers for them; a copy for others that is dropped refuses nothing.
        """
        return parent_of(address) is not None and self.admission.is_granted(address)

    def _may_come(self, refusal: Message, by: str) -> bool:
        """Return whether an answer may still come, although a stub has refused the request.

        The refused message may be a copy, or a repetition of a request that may have arrived.
        """
        if self._is_decided_here(refusal.from_):
            return True
        is_own = refusal.code == Code.UNAVAILABLE and not refusal.is_last_by(by)
        return is_own and self.answers.is_repeated(refusal)

    def _answer(self, response: Message, now: float) -> None:
        answer = self.answers.take_answer(response, now)
        if answer.transaction is None:
            return
        if answer.is_last:
            is_reached = response.code <= LAST_SUCCESS
            self.outbound.settle(answer.transaction.request, now, is_reached=is_reached)
        self._return_answer(response, answer.transaction.waiter, now)
        if not answer.is_last and not response.is_final:
            self.answers.restart_timeout(answer.transaction.request)

    def _return_answer(self, response: Message, request: InFlight, now: float) -> None:
        if request.is_copy:
            return
        if request.reply is not None or request.is_outgoing:
            self.answers.give_answer(response, request.reply, request.progress)
        elif request.origin is Origin.NODE_STUB and self.routing.find(request.by):
            # An answer returns over the session that brought the request (MN-18).
            self.outbound.reply_via_session(response, request.by, now)
        else:
            self.outbound.send(response, request.answer_intent(response), now)

    def refuse(
        self,
        message: Message,
        code: Code,
        why: str,
        now: float,
        retry_after: float | None = None,
        reason: DropReason = DropReason.NO_TARGET,
    ) -> None:
        """Refuse a message that cannot be delivered: answer a request, count any other message.

        A request whose answer may still come is only counted; see `_may_come`.

        Args:
            retry_after: Seconds until another attempt may succeed; None: not known, or never.
        """
        is_undecided = code == Code.UNAVAILABLE and self.answers.is_repeated(message)
        if is_undecided or self._is_decided_here(message.to):
            self.outbound.settle(message, now)
            self.hops.record_drop(message, reason)
        else:
            self._end(message, code, why, now, retry_after, reason)

    def _end(
        self,
        message: Message,
        code: Code,
        why: str,
        now: float,
        retry_after: float | None = None,
        reason: DropReason = DropReason.NO_TARGET,
    ) -> None:
        self.outbound.settle(message, now)
        ended = self.answers.give_up(message, f"{int(code)} {why}") if message.is_request else None
        if ended is None:
            self.hops.record_drop(message, reason)
            return
        response = refuse(message, code, why, retry_after)
        if parent_of(message.to) is not None:
            # Several runtimes answer from this address; `source` tells them apart (C-81).
            response = attrs.evolve(response, body={**response.body, "source": self._runtime})
        self.hops.record_own_answer(response)
        self._return_answer(response, ended.waiter, now)

    def refuse_full(
        self, message: Message, full: Full, now: float, *, is_over: bool = False
    ) -> None:
        """End a message for which a queue has no space; the log names the limit that was reached.

        Args:
            is_over: Whether a request is answered at once, as no answer can come any more.
        """
        self._warn(message, full)
        end = self._end if is_over else self.refuse
        end(message, Code.UNAVAILABLE, full.why, now, full.retry_after, DropReason.OVERFLOW)

    def _warn(self, message: Message, full: Full) -> None:
        """Log that a limit causes refusals, once in `WARNING_PAUSE` seconds for each limit."""
        if self._warned.try_spend(full.limit, trio.current_time()):
            _log.warning(
                "messages are given up",
                why=full.why,
                limit=full.limit,
                value=full.value,
                runtime=self._runtime,
                to=message.to,
            )

    def _refuse_full_receiver(self, message: Message, now: float) -> None:
        if self.deliveries.has_reader(message.to):
            self.refuse_full(message, RECEIVER_FULL, now, is_over=True)
        else:
            self._end(message, Code.UNAVAILABLE, "the receiver is gone", now)

    # ---- out

    def set_child_path(self, address: str, path: ChildPath, now: float) -> None:
        """Change the route of local changes of children, and send those that waited for it.

        Args:
            address: Address of the children.
            path: The new route: by the node, or by a direct link.
            now: The present time.
        """
        for message in self.children.lead(address, path):
            self.hops.say(Op.FLUSH, message)
            self._send_out(message, intent_of(message), now)

    def _send_out(self, message: Message, intent: Intent, now: float) -> None:
        """Send a message out by a stub; a change of children takes the route of the children."""
        if message.is_response or parent_of(message.to) is None:
            self.outbound.send(message, intent, now)
            return
        link = self.children.link_of(message.to)
        is_there = link is not None and self.deliveries.has_reader(link)
        match self.children.find(message, now, is_there=is_there):
            case Elsewhere.BY_NODE:
                self.outbound.send(message, intent, now)
            case Elsewhere.FULL:
                self.refuse_full(message, _NO_CHILD_PATH, now)
            case Elsewhere.WAITS:
                self.hops.say(Op.QUEUE, message)
            case Elsewhere.NOWHERE | Elsewhere.REPEATED:
                pass
            case link:
                self.outbound.send_via(message, link, now)

    def _deliver_child(self, message: Message, now: float) -> None:
        """Deliver a creator's change of a child, which came by a direct link, to the sync manager.

        The sync manager knows the observers, and reports valid changes to all others (I-D10).
        """
        if not self.admission.is_granted(message.to):
            self.refuse(message, Code.UNAVAILABLE, "the object is not reported here", now)
        elif not self.deliveries.deliver(message, self._sync_manager, is_foreign=True):
            self._refuse_full_receiver(message, now)

    def _forward(self, flight: InFlight, now: float) -> None:
        message = flight.message
        is_given = self.deliveries.deliver(message, message.to, is_foreign=not flight.is_outgoing)
        if is_given is not None:
            if not is_given:
                self._refuse_full_receiver(message, now)
        elif flight.is_outgoing and not is_below(message.to, self._runtime):
            self._send_out(message, flight.intent or intent_of(message), now)
        else:
            # A message from outside is not sent out again: a runtime is no relay.
            self.refuse(message, Code.NOT_FOUND, "target not found", now)

    def is_wanted(self, message: Message, now: float) -> bool:
        """Return whether a message that waited is still to be sent: not after an answer 408.

        A change of children is sent to all observers in any case.
        """
        is_for_all = not message.is_request or parent_of(message.to) is not None
        if is_for_all or self.answers.is_open(message):
            return True
        self.hops.record_drop(message, DropReason.NO_TARGET)
        self.outbound.settle(message, now)
        return False

    # ---- back, and time

    def hand_back(self, messages: tuple[Message, ...], by: str, now: float) -> None:
        """Route messages again that a stub has returned as undeliverable (I-R9, I-P22).

        Args:
            messages: The messages.
            by: Address of the stub or link.
            now: The present time.
        """
        is_link = self.admission.origin(by) is Origin.P2P_STUB
        routes = self.outbound.take_back(messages, by, now)
        for message in messages:
            route = routes.get(instance_id(message))
            if route is not None:
                if self.is_wanted(message, now):
                    self.outbound.send_via(message, route, now)
            elif is_link and message.is_event and is_below(message.to, message.from_):
                # An event for followers behind this link, which has ended: they read the whole
                # object again.
                self.refuse(message, Code.NOT_FOUND, "target not found", now)
            elif self.answers.is_direct(message):
                self.refuse(message, Code.UNAVAILABLE, "the link is gone", now)
            elif self.is_wanted(message, now):
                is_published = is_below(message.to, message.from_)
                intent = Intent.NODE if is_published else intent_of(message)
                self.children.lose_link(by, now)
                self._send_out(message, intent, now)

    def deliver(self, message: Message, component: str, now: float) -> None:
        """Deliver a message to a component other than its receiver, which acts for the receiver."""
        if not self.deliveries.deliver(message, component):
            self._end(message, Code.UNAVAILABLE, "the receiver takes no more", now)

    def _due(self) -> float:
        """Return the time at which `_tick` must run next."""
        return min(
            self.answers.deadline(),
            self.admission.senders.deadline(),
            self.order.deadline(),
            self.outbound.deadline(),
            self.children.deadline(),
            *(until for *_, until in self._catching_up),
        )

    def _tick(self, now: float) -> None:
        """Answer overdue requests 408, repeat others, and send delayed messages (MSG-06)."""
        for request in self.answers.take_repetitions(now):
            # A local receiver has the request; one that was sent out may be lost.
            is_out = parent_of(request.to) is not None and not self._is_decided_here(request.to)
            if is_out or not self.routing.find(request.to):
                self.hops.record_submission(request, request.from_)
                self.outbound.settle(request, now)
                self._send_out(request, intent_of(request), now)
        for ended in self.answers.take_overdue(now):
            self.outbound.settle(ended.request, now)
            # The node that delivers a durable message waits for an answer, too.
            if ended.waiter.is_outgoing or position_of(ended.request) is not None:
                response = refuse(ended.request, Code.TIMEOUT, "Request Timeout")
                self.hops.record_own_answer(response)
                self._return_answer(response, ended.waiter, now)
        for message in self.children.tick(now):
            self.hops.say(Op.FLUSH, message)
            link = self.children.link_of(message.to)
            if link is not None and self.deliveries.has_reader(link):
                self.outbound.send_via(message, link, now)
            else:
                self.outbound.send(message, intent_of(message), now)
        self._proofs.tick(now)
        self.outbound.tick(now)
        self._take_in_order(self.order.tick(now), now)


_UNPROVEN = Refusal(
    DropReason.UNKNOWN_SOURCE,
    "the owner of the sender's address cannot be verified now; send the message by the node",
    Code.UNAUTHENTICATED,
)
_FULL = Refusal(
    DropReason.OVERFLOW, "too many messages of links wait for their senders", Code.UNAVAILABLE
)


class SenderProofs:
    """Keeps messages from direct links for a Message BUS until their senders are proven."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._senders = bus.admission.senders

    def waits(self, flight: InFlight, now: float) -> bool:
        """Return whether a message must wait for the proof of its sender; if so, keep it."""
        message, link = flight.message, flight.by
        if self._bus.admission.sender_proof(message, link) is not SenderProof.UNKNOWN:
            return False
        self._hold(link, message.from_, flight, message_bytes(message), now)
        return True

    def may_announce(self, behind: Behind, link: str, now: float) -> bool:
        """Return whether an announcement of a link about a sender may be used now.

        An announcement waits for the proof of its sender, as the messages after it do.
        """
        match self._bus.admission.announcer_proof(behind.from_, link):
            case SenderProof.PROVEN:
                return True
            case SenderProof.UNKNOWN:
                self._hold(link, behind.from_, (behind, link), behind.size, now)
            case SenderProof.FOREIGN:
                self.record_forgery(link, now)
        return False

    def _hold(
        self, link: str, from_: str, item: InFlight | Announced, size: int, now: float
    ) -> None:
        match self._senders.hold(link, from_, item, now, size):
            case Holding.ASK:
                registry, entity = self._bus.outbound.registry, runtime_of(from_)
                remote = self._senders.remote(link) or ""
                if registry is None or not registry.try_ask_owner(entity, remote):
                    self._refuse(self._senders.drop(link, entity), _UNPROVEN, now)
            case Holding.FULL:
                self._refuse([item], _FULL, now)
            case Holding.WAIT:
                pass

    def _refuse(self, items: list[InFlight | Announced], refusal: Refusal, now: float) -> None:
        """Refuse messages whose sender was not proven, and drop such announcements."""
        for item in items:
            if isinstance(item, InFlight):
                self._bus.deny(item, refusal, now)

    def record_forgery(self, link: str, now: float) -> None:
        """Count a message with a forged sender against its link; too many of them end the link."""
        registry = self._bus.outbound.registry
        if self._senders.count_forgery(link, now) and registry is not None:
            # If the registry has no room, the next forged message reports the link again.
            registry.try_report_forged(link)

    def set_owner(self, entity: str, owner: str | None, now: float) -> None:
        """Note the owner of an address, or None; judge the messages that waited for this."""
        rows, waiting = self._senders.set_owner(entity, owner)
        self._bus.hops.rows(rows)
        for item, is_proven in waiting:
            if is_proven or isinstance(item, InFlight):
                self._bus.take_after_proof(item, now)
        self._bus.hops.rows(self._senders.sweep())

    def tick(self, now: float) -> None:
        """Refuse messages that have waited too long for the proof of their sender."""
        self._refuse(self._senders.take_overdue(now), _UNPROVEN, now)
        self._bus.hops.rows(self._senders.sweep())
