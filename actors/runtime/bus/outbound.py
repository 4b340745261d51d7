"""Routes out of a Message BUS: a message without a local listener leaves by a stub (BUS-06).

A message to an unknown destination waits until the registry has reported its route.

The stub of a node is given a window of messages, and then as many as its link has taken. What the
window has no space for waits here, in order, with the permit of its sender: so a component that
sends more than its node accepts waits itself (R11), and no queue behind the bus overflows.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from actors.kit.supervision.actor import Delivery, Purpose
from actors.runtime.bus.messages import (
    Deliveries,
    Full,
    InFlight,
    LinkListener,
    Listener,
    RouteSearch,
)
from actors.runtime.bus.open_requests import OpenRequests
from actors.runtime.hop_trace import HopTrace
from fsm.bus.sending_order import Announce, Forward, PairPathCore
from fsm.effects import Intent, LinkHint, hint_of, is_p2p_part
from fsm.p2p.transfer import Behind
from specs.addresses.address import is_below
from specs.child import object_of
from specs.limits.p2p import ORDER_HELD, ORDER_PAIRS
from specs.limits.protocol import MAILBOX, STUB_QUEUE, WINDOW_TIMEOUT
from specs.message import Message, MessageType, identified
from specs.reply_code import Code
from specs.trace import Op

_CAPACITY: Final = 4096
"""Maximum number of cached routes; beyond it the oldest is removed."""


_Waiting: TypeAlias = tuple[Message, Intent, str | None]
"""A waiting message, its permitted kinds of routes, and its route; None: the next one found."""


class RouteCache:
    """Cache of the routes that the registry has found, and the messages that wait for a route."""

    def __init__(self) -> None:
        self._routes: OrderedDict[tuple[str, Intent], tuple[str, float]] = OrderedDict()
        self._waiting: dict[str, deque[_Waiting]] = {}

    def find(self, to: str, intent: Intent, now: float) -> str | None:
        """Return the cached route to a target; None: none is known, or messages wait for one."""
        url, until = self._routes.get((to, intent), (None, now))
        return None if to in self._waiting or until <= now else url

    def is_waited_for(self, to: str) -> bool:
        """Return whether messages wait for a route to a target."""
        return to in self._waiting

    def is_full(self, to: str) -> bool:
        """Return whether no more message may wait for a route to a target."""
        return len(self._waiting.get(to, self._waiting)) >= STUB_QUEUE

    def wait(self, message: Message, intent: Intent, route: str | None = None) -> bool:
        """Let a message wait for a route; return whether a search must begin, as it is the first.

        Args:
            message: The message.
            intent: Its permitted routes.
            route: Its own route, which it takes after the messages before it; None: it has none.
        """
        queue = self._waiting.setdefault(message.to, deque())
        queue.append((message, intent if route is None else queue[-1][1], route))
        return len(queue) == 1

    def keep(self, to: str, intent: Intent, url: str, until: float) -> None:
        """Cache a route until a time."""
        self._routes[to, intent] = url, until
        if len(self._routes) > _CAPACITY:
            self._routes.popitem(last=False)

    def forget(self) -> None:
        """Forget every route: the registry's tables changed."""
        self._routes.clear()

    def forget_route(self, to: str, intent: Intent) -> None:
        """Forget the route to a target."""
        self._routes.pop((to, intent), None)

    def forget_stub(self, stub: str) -> None:
        """Forget the routes by a stub or by a link of it."""
        gone = [key for key, (url, _) in self._routes.items() if is_below(url, stub)]
        for key in gone:
            del self._routes[key]

    def take(self, to: str, intent: Intent) -> tuple[list[_Waiting], Intent | None]:
        """Remove and return the messages that wait for a route, with the next search's intent."""
        queue = self._waiting.get(to, deque())
        taken: list[_Waiting] = []
        while queue and queue[0][1] is intent:
            taken.append(queue.popleft())
        if queue:
            return taken, queue[0][1]
        self._waiting.pop(to, None)
        return taken, None


_Held: TypeAlias = tuple[Forward, float, InFlight | None]
"""A message that waits for a stub's window, its time of arrival, and the permit that it keeps."""


class _Window:
    """Flow control of one stub: how many messages it still takes, and which messages wait for that.

    Attributes:
        room: Number of messages that the stub still takes.
        held: The waiting messages, by sender, receiver and id, in order.
        unpermitted: Number of waiting messages without a permit.
    """

    __slots__ = ("held", "room", "unpermitted")

    def __init__(self) -> None:
        self.room = 0
        self.held: OrderedDict[tuple[str, str, int, bool], _Held] = OrderedDict()
        self.unpermitted = 0

    def give_up_at(self) -> float:
        """Return when the oldest waiting message must be refused."""
        return next(iter(self.held.values()))[1] + WINDOW_TIMEOUT if self.held else math.inf


class OwnBus(Protocol):
    """Methods of the Message BUS that its `Outbound` calls."""

    deliveries: Deliveries
    hops: HopTrace
    answers: OpenRequests

    def refuse(
        self, message: Message, code: Code, why: str, now: float, retry_after: float | None = None
    ) -> None:
        """Refuse a message: answer a request, count any other message."""

    def refuse_full(self, message: Message, full: Full, now: float) -> None:
        """Refuse a message for which a queue has no space, as `refuse` does."""

    def is_wanted(self, message: Message, now: float) -> bool:
        """Return whether a message that waited is still to be sent; if not, count it as dropped."""

    def give_permit_back(self, flight: InFlight, now: float) -> None:
        """Give the permit of a message back to its sender."""


class Outbound:
    """Sends the messages of one bus to stubs, by routes of the registry, and in order.

    Attributes:
        routes: The routes that the registry has reported.
        registry: Resolves routes; None before it has joined.
        anonymous: Stubs that get no identity of a sender (REG-15).
        sender: The message that is being submitted; None: there is none, or it waits for a window.
    """

    def __init__(self, bus: OwnBus) -> None:
        self.routes = RouteCache()
        self.registry: RouteSearch | None = None
        self.anonymous: set[str] = set()
        self.sender: InFlight | None = None
        self._bus = bus
        self._deliveries = bus.deliveries
        self._hops = bus.hops
        self._windows: dict[str, _Window] = {}
        self._paths = PairPathCore()
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()

    def record_session(self, request: Message, session: str) -> None:
        """Record which session with a node brought the last request of a sender and receiver."""
        pair = (request.from_, request.to)
        self._sessions[pair] = session
        self._sessions.move_to_end(pair)
        if len(self._sessions) > ORDER_PAIRS:
            self._sessions.popitem(last=False)

    def send(self, message: Message, intent: Intent, now: float) -> None:
        """Send a message by the route to its target; it waits until the registry knows one."""
        route = self.routes.find(message.to, intent, now)
        if route is not None:
            self.send_by_route(message, route, now)
            return
        if self.routes.is_full(message.to):
            self._bus.refuse_full(message, _NO_ROUTE_YET, now)
        elif self.routes.wait(message, intent):
            self.ask(message.to, intent, now, hint_of(message))

    def ask(self, to: str, intent: Intent, now: float, hint: LinkHint | None = None) -> None:
        """Ask the registry for the route to a target.

        Args:
            to: The target.
            intent: Permitted kinds of routes.
            now: The present time.
            hint: How to set up a link to the target, as its sender states.
        """
        if self.registry is None or not self.registry.try_ask(to, intent, hint):
            self.no_route(to, intent, now, Code.UNAVAILABLE, "the registry is busy")

    def no_route(
        self,
        to: str,
        intent: Intent,
        now: float,
        code: Code,
        why: str,
        retry_after: float | None = None,
    ) -> None:
        """Refuse the messages that wait for a route, as there is none."""
        self.routes.forget_route(to, intent)
        self._release(
            to, intent, now, lambda each: self._bus.refuse(each, code, why, now, retry_after)
        )

    def take_route(self, to: str, intent: Intent, url: str, until: float, now: float) -> None:
        """Cache a route of the registry, and send the messages that wait for the route."""
        self.routes.keep(to, intent, url, until)

        def send(message: Message) -> None:
            if self._bus.is_wanted(message, now):
                self.send_by_route(message, url, now)

        self._release(to, intent, now, send)

    def _release(self, to: str, intent: Intent, now: float, end: Callable[[Message], None]) -> None:
        """Call `end` for the messages that waited for a route; search a route for the others."""
        waiting, following = self.routes.take(to, intent)
        for message, _, route in waiting:
            if route is None:
                end(message)
            else:
                self.send_via(message, route, now)
        if following is not None:
            self.ask(to, following, now)

    def reply_via_session(self, answer: Message, session: str, now: float) -> None:
        """Send an answer by the session of its request, behind those that wait for a route."""
        if not self.routes.is_waited_for(answer.to):
            self.send_via(answer, session, now)
        elif self.routes.is_full(answer.to):
            self._bus.refuse_full(answer, _NO_ROUTE_YET, now)
        else:
            self.routes.wait(answer, Intent.KNOWN, session)

    def send_by_route(self, message: Message, route: str, now: float) -> None:
        """Send a message by a route, or an answer by the node that brings its requester's requests.

        Messages by two nodes could overtake each other. An answer whose link has ended takes the
        route of the other answers to its requester, to stay in order with them (I-B7).
        """
        if message.is_response and not is_p2p_part(route):
            session = self._sessions.get((message.to, message.from_))
            if session is not None and self._deliveries.has_reader(session):
                route = session
        self.send_via(message, route, now)

    def send_via(self, message: Message, route: str, now: float) -> None:
        """Send a message by a route, behind earlier messages to its receiver by other routes."""
        is_known = self._paths.waits(message)
        forwards = self._paths.send(message, route, now)
        if forwards is None:
            self._bus.refuse_full(message, _NO_PATH_YET, now)
            return
        is_sent = forwards and forwards[-1].message is message
        if not (is_known or is_sent or any(forward.message is message for forward in forwards)):
            self._hops.say(Op.QUEUE, message)
        self._flush(forwards, now, message)

    def settle(self, message: Message, now: float, *, is_reached: bool = False) -> None:
        """Record that a message is no longer outstanding, and send the messages that it held up.

        Args:
            message: A request with its final answer, or a message that was dropped.
            now: The present time.
            is_reached: Whether the receiver has answered.
        """
        effects = self._paths.settled(message, now, is_reached=is_reached)
        if not effects:
            return
        self._flush([effect for effect in effects if isinstance(effect, Forward)], now)
        for effect in effects:
            if isinstance(effect, Announce):
                for stub in self._deliveries.routing.find(effect.route):
                    stub.try_tell(_announcement(effect.behind, effect.route))

    def _send(self, forward: Forward, now: float) -> None:
        """Give a message to the stub of a route."""
        window = self._windows.get(forward.route)
        if window is None:
            self._deliver(forward, now)
        elif window.room <= 0 or window.held:
            self._hold(window, forward, now)
        else:
            window.room -= 1
            self._deliver(forward, now)

    def _hold(self, window: _Window, forward: Forward, now: float) -> None:
        message = forward.message
        key = (message.from_, message.to, message.id, message.is_response)
        if key in window.held:
            # The same request, repeated before it was sent.
            return
        sender, self.sender = self.sender, None
        if sender is None or sender.permit is None:
            if window.unpermitted >= STUB_QUEUE:
                self._bus.refuse_full(message, _NO_WINDOW, now)
                return
            sender = None
            window.unpermitted += 1
        window.held[key] = forward, now, sender
        self._hops.say(Op.QUEUE, message)

    def room(self, stub: str, count: int, now: float, *, is_first: bool) -> None:
        """Let the stub of a node take a number of further messages, and send those that wait.

        Args:
            stub: Address of the stub.
            count: Number of further messages that the stub takes.
            now: The present time.
            is_first: Whether the stub has just started, so that all earlier messages are gone.
        """
        window = self._windows.get(stub)
        if window is None:
            window = self._windows[stub] = _Window()
        window.room = count if is_first else window.room + count
        while window.room > 0 and window.held:
            forward = self._take(window, now)
            window.room -= 1
            self._hops.say(Op.FLUSH, forward.message)
            if forward.message.is_request:
                # The time of the request begins now: it has waited in the bus.
                self._bus.answers.restart_timeout(forward.message)
            self._deliver(forward, now)

    def _take(self, window: _Window, now: float) -> Forward:
        """Remove and return the oldest waiting message, and give its permit back."""
        _, (forward, _, sender) = window.held.popitem(last=False)
        if sender is None:
            window.unpermitted -= 1
        else:
            self._bus.give_permit_back(sender, now)
        return forward

    def stub_left(self, stub: str, now: float) -> None:
        """Refuse the messages that wait for a stub that is gone."""
        window = self._windows.pop(stub, None)
        while window is not None and window.held:
            message = self._take(window, now).message
            self._bus.refuse(message, Code.UNAVAILABLE, "the stub is gone", now)

    def _deliver(self, forward: Forward, now: float) -> None:
        message, next_route = forward.message, forward.then
        if self.anonymous and any(is_below(forward.route, stub) for stub in self.anonymous):
            message = identified(message, None)
        purpose = Purpose.SEND if next_route is None else Purpose.TURN_BACK
        if self._deliveries.deliver(message, forward.route, behind=forward.behind, purpose=purpose):
            return
        if self._deliveries.has_reader(forward.route):
            self._bus.refuse_full(message, _NO_MAILBOX, now)
        elif next_route is not None:
            # The link has ended and given back its messages.
            self._paths.returned((message,), now)
            self.send_via(message, next_route, now)
        else:
            self._bus.refuse(message, Code.UNAVAILABLE, "the stub is gone", now)

    def take_back(self, messages: tuple[Message, ...], by: str, now: float) -> dict[str, str]:
        """Record that a stub has given messages back, so that they are sent before later ones.

        Args:
            messages: The messages.
            by: Address of the stub or link.
            now: The present time.

        Returns:
            New routes of the messages that were the last ones on a closing path, by instance id.
        """
        routes = self._paths.returned(messages, now, by)
        if len(routes) < len(messages) or not messages:
            self.routes.forget_stub(by)
            self._paths.link_ended(by, now)
        return {key: route for key, route in routes.items() if self._deliveries.has_reader(route)}

    def branch(self, address: str, stub: Listener, link: str, now: float) -> LinkListener:
        """Return a listener that sends by a link, after outstanding messages by the node."""
        behind = self._paths.behind(object_of(address), address, now)
        is_announced = stub.try_tell(_announcement(behind, link))
        return LinkListener(stub, link, None if is_announced else behind)

    def deadline(self) -> float:
        """Return when the next held message is released or refused."""
        return min((self._paths.deadline(), *map(_Window.give_up_at, self._windows.values())))

    def tick(self, now: float) -> None:
        """Send held messages that are due; refuse messages that waited too long for a stub."""
        for window in self._windows.values():
            while window.give_up_at() <= now:
                self._bus.refuse_full(self._take(window, now).message, _NO_WINDOW, now)
        self._flush(self._paths.tick(now), now)

    def _flush(self, forwards: list[Forward], now: float, direct: Message | None = None) -> None:
        for forward in forwards:
            if forward.message is not direct:
                self._hops.say(Op.FLUSH, forward.message)
            self._send(forward, now)


_NO_ROUTE_YET: Final = Full("STUB_QUEUE", STUB_QUEUE, "too many messages wait for a route")
_NO_PATH_YET: Final = Full("ORDER_HELD", ORDER_HELD, "too many messages wait for a change of paths")
_NO_MAILBOX: Final = Full("MAILBOX", MAILBOX, "the mailbox of the stub is full")
_NO_WINDOW: Final = Full(
    "WINDOW_TIMEOUT", WINDOW_TIMEOUT, "the node does not take messages as fast as they come"
)


def _announcement(behind: Behind, link: str) -> Delivery:
    """Return the delivery by which a stub sends an announcement over a link."""
    pair = Message(behind.top, MessageType.UPDATE, behind.from_, behind.to)
    return Delivery(pair, link, behind=behind, purpose=Purpose.ANNOUNCE)
