"""What a Message BUS does with each message, step by step (BUS-03, 06, 07, 11..14).

Source check, via, duplicates, policy, then: an answer goes to its transaction, any
other message to the listeners of its `to`, or, if there are none, by the route the
registry knows. Nothing here waits: mailboxes are given what they have room for.
"""

from typing import TYPE_CHECKING, final

import trio

from actors.kit.delivery import Delivery
from actors.runtime.admission import Admission, Refusal
from actors.runtime.bus_messages import Origin, Submitted
from actors.runtime.hops import Hops
from actors.runtime.policy import Policy
from actors.runtime.route_cache import Asking, RouteCache
from actors.runtime.waiter import Waiter
from fsm.cores.intent import Intent, intent_of
from fsm.cores.pair_path import Forward, PairPathCore
from fsm.cores.resolve_effects import NoRoute, Route
from fsm.cores.resolve_inputs import Asked, HeardFrom
from fsm.cores.routing import Router, RoutingCore
from fsm.cores.transactions import Ended, SeenWindow, TransactionsCore, same_request
from specs.address import is_below
from specs.message import Message, refuse
from specs.reply_code import Code, DropReason
from specs.trace import Op

if TYPE_CHECKING:
    from actors.kit.actor import ActorRef

__all__ = ["Forwarding"]

_HEARD_LIMIT = 4096


@final
class Forwarding:
    """The messages of one runtime on their way.

    Attributes:
        routing: Who listens to what.
        admission: Who may send as what.
        routes: The ways out that the registry told.
        registry: Knows the ways out; None before it has joined.
    """

    def __init__(self, runtime: str, policy: Policy, hops: Hops) -> None:
        self.routing: RoutingCore[ActorRef[Delivery]] = RoutingCore(Router.MESSAGE_BUS)
        self.admission = Admission(runtime, policy, hops)
        self.routes = RouteCache()
        self.registry: ActorRef[Asked | HeardFrom] | None = None
        self._runtime = runtime
        self._hops = hops
        self._open: TransactionsCore[Waiter] = TransactionsCore(hops.steps)
        self._seen = SeenWindow()
        self._paths = PairPathCore()
        self._heard: set[tuple[str, str]] = set()

    # ---- in

    def submit(self, submitted: Submitted) -> None:
        """Take a message from a component."""
        message, by = submitted.message, submitted.by
        refusal = self.admission.refusal(message, by)
        if refusal is not None:
            self._deny(submitted, refusal)
            return
        self._hops.submitted(message, by)
        origin = self.admission.origin(by) or Origin.LOCAL
        now = trio.current_time()
        if origin is Origin.P2P_STUB:
            self._learn(message.from_, by)
        if not self._is_first(message, submitted, origin, now):
            return
        if message.is_response:
            self._answer(message, now)
            return
        if message.is_request:
            # A stub that asks for itself is answered here, not over its own link.
            is_ours = origin is Origin.LOCAL or is_below(message.from_, self._runtime)
            session = submitted.by if origin is Origin.NODE_STUB else None
            waiter = Waiter(is_ours, intent_of(message), session, submitted.reply)
            self._hops.step(self._open.open(message, waiter, now, submitted.runtimes))
        self._forward(message, origin, now)
        if self.routing.find(message.to) and submitted.runtimes - {self._runtime}:
            # Those who observe here are not all (BUS-09).
            self._outward(message, now, intent_of(message))

    def _deny(self, submitted: Submitted, refusal: Refusal) -> None:
        message = submitted.message
        self._hops.denied(message, submitted.by, int(refusal.code or 0), refusal.why)
        self._hops.dropped(message, refusal.reason)
        if refusal.code is None or not message.is_request:
            if submitted.reply is not None:
                submitted.reply.send(refuse(message, Code.MALFORMED, refusal.why))
            return
        self._reject(submitted, refusal.code, refusal.why)

    def _reject(self, submitted: Submitted, code: Code, why: str) -> None:
        """Answer the one who submitted, whoever `from` says it is."""
        response = refuse(submitted.message, code, why)
        self._hops.synthesised(response, submitted.message)
        if submitted.reply is not None:
            submitted.reply.send(response)
        else:
            self._deliver(response, submitted.by)

    def _is_first(self, message: Message, submitted: Submitted, origin: Origin, now: float) -> bool:
        if message.is_response and origin is Origin.LOCAL:
            return True
        # What is open is known for longer than the window reaches back.
        there = self._open.find(message) if message.is_request else None
        if self._seen.is_new(message, now) and there is None:
            return True
        if there is not None and not same_request(there.request, message):
            self._reject(submitted, Code.MALFORMED, "another request had this id")
        elif submitted.reply is not None:
            self._reject(submitted, Code.CONFLICT, "this request has been made before")
        self._hops.dropped(message, DropReason.DUPLICATE)
        return False

    def _learn(self, from_: str, by: str) -> None:
        if (from_, by) in self._heard or is_below(from_, self._runtime):
            return
        if len(self._heard) >= _HEARD_LIMIT:
            self._heard.clear()
        if self.registry is not None and self.registry.try_tell(HeardFrom(from_, by)):
            self._heard.add((from_, by))

    # ---- answers

    def _answer(self, response: Message, now: float) -> None:
        answer = self._open.answered(response, now)
        if answer.transaction is None:
            self._hops.dropped(response, answer.drop or DropReason.UNMATCHED)
            return
        self._hops.step(answer.step)
        if answer.is_last:
            self._settle(answer.transaction.request, now)
        self._give(response, answer.transaction.waiter, now)

    def _give(self, response: Message, waiter: Waiter, now: float) -> None:
        if waiter.reply is not None:
            self._hops.say(Op.CALLBACK, response)
            if response.is_final:
                waiter.reply.send(response)
        elif not waiter.is_ours and waiter.session and self.routing.find(waiter.session):
            # An answer returns over the session that brought the request (MN-18).
            self._send(Forward(response, waiter.session), now)
        elif not waiter.is_ours:
            self._outward(response, now, waiter.way_back(response))
        elif not self._deliver(response, response.to):
            self._hops.dropped(response, DropReason.NO_TARGET)

    def refuse(self, message: Message, code: Code, why: str, now: float) -> None:
        """End a message here: a request is answered, anything else counted."""
        self._settle(message, now)
        reason = DropReason.OVERFLOW if code is Code.TOO_LARGE else DropReason.NO_TARGET
        refused = f"{int(code)} {why}"
        ended = self._open.give_up(message, refused) if message.is_request else None
        if ended is None:
            self._hops.dropped(message, reason)
            return
        self._hops.step(ended.step)
        response = refuse(message, code, why)
        self._hops.synthesised(response, message)
        self._give(response, ended.waiter, now)

    def _settle(self, request: Message, now: float) -> None:
        if request.is_response:
            return
        forwards = self._paths.settled(request.from_, request.to, request.id, now)
        self._flush(forwards, now)

    # ---- out

    def _forward(self, message: Message, origin: Origin, now: float) -> None:
        if self.routing.find(message.to):
            if not self._deliver(message, message.to):
                self.refuse(message, Code.TOO_LARGE, "the receiver's mailbox is full", now)
        elif origin is not Origin.LOCAL and not is_below(message.from_, self._runtime):
            # What came from outside goes nowhere else: a runtime is no relay.
            self.refuse(message, Code.NOT_FOUND, "target not found", now)
        elif is_below(message.to, self._runtime):
            self.refuse(message, Code.NOT_FOUND, "target not found", now)
        else:
            self._outward(message, now, intent_of(message))

    def _deliver(self, message: Message, route: str) -> bool:
        """Give a message to all listeners of a route; tell whether one had room."""
        delivery = Delivery(message, route)
        had_room = False
        for listener in self.routing.find(route):
            if listener.try_tell(delivery):
                had_room = True
                self._hops.say(Op.DELIVER, message, listener=listener.name)
        return had_room

    def _outward(self, message: Message, now: float, intent: Intent) -> None:
        route = self.routes.find(message.to, intent, now)
        if route is not None:
            self._by_route(message, route, now)
            return
        match self.routes.wait(message, intent):
            case Asking.ASK:
                self._ask(message.to, intent, now)
            case Asking.FULL:
                self.refuse(message, Code.TOO_LARGE, "too many wait for a route", now)
            case Asking.WAIT:
                pass

    def _ask(self, to: str, intent: Intent, now: float) -> None:
        asked = Asked(to, intent)
        if self.registry is None or not self.registry.try_tell(asked):
            self.no_route(NoRoute(to, intent, Code.UNAVAILABLE, "the registry is busy"), now)

    def routed(self, route: Route, now: float) -> None:
        """Take a route from the registry: those who waited for it go."""
        messages, following = self.routes.told(route)
        for message in messages:
            if self._is_wanted(message, now):
                self._by_route(message, route.url, now)
        if following is not None:
            self._ask(route.to, following, now)

    def no_route(self, refused: NoRoute, now: float) -> None:
        """Take the registry's refusal: those who waited are refused, each once."""
        messages, following = self.routes.refused(refused.to, refused.intent)
        for message in messages:
            if self._is_wanted(message, now):
                self.refuse(message, refused.code, refused.why, now)
        if following is not None:
            self._ask(refused.to, following, now)

    def _is_wanted(self, message: Message, now: float) -> bool:
        """Say whether a message that waited still matters; a 408 may have come first."""
        if not message.is_request or self._open.find(message) is not None:
            return True
        self._hops.dropped(message, DropReason.NO_TARGET)
        self._settle(message, now)
        return False

    def _by_route(self, message: Message, route: str, now: float) -> None:
        if message.is_response:
            self._send(Forward(message, route), now)
            return
        forwards = self._paths.send(message, route, now)
        if not any(forward.message is message for forward in forwards):
            self._hops.say(Op.QUEUE, message)
        self._flush(forwards, now, message)

    def _flush(self, forwards: list[Forward], now: float, direct: Message | None = None) -> None:
        for forward in forwards:
            if forward.message is not direct:
                self._hops.say(Op.FLUSH, forward.message)
            self._send(forward, now)

    def _send(self, forward: Forward, now: float) -> None:
        if self._deliver(forward.message, forward.route):
            return
        if self.routing.find(forward.route):
            self.refuse(forward.message, Code.TOO_LARGE, "the stub's mailbox is full", now)
        else:
            self.refuse(forward.message, Code.UNAVAILABLE, "the stub is gone", now)

    # ---- back, and time

    def hand_back(self, messages: tuple[Message, ...], by: str, now: float) -> None:
        """Route again what a stub could not deliver (I-R9, I-P22)."""
        self.routes.forget_stub(by)
        self._paths.returned(messages)
        for message in messages:
            if self._is_wanted(message, now):
                self._outward(message, now, intent_of(message))

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return min(self._open.deadline(), self._paths.deadline())

    def tick(self, now: float) -> None:
        """Answer 408 for those who waited too long, release what was held (MSG-06)."""
        for ended in self._open.overdue(now):
            self._hops.step(ended.step)
            self._settle(ended.request, now)
            if ended.waiter.is_ours:
                self._time_out(ended, now)
        self._flush(self._paths.tick(now), now)

    def leave(self) -> None:
        """End what is open: the bus stops, and whoever waits here is told so by that."""
        for ended in self._open.give_up_all("the runtime ends"):
            self._hops.step(ended.step)

    def _time_out(self, ended: Ended[Waiter], now: float) -> None:
        response = refuse(ended.request, Code.TIMEOUT, "Request Timeout")
        self._hops.synthesised(response, ended.request)
        self._give(response, ended.waiter, now)
