"""Routes out of a Message BUS: a message without a listener here leaves by a stub (BUS-06, BUS-17).

A message to an unknown destination waits until the registry has reported its route.

The stub of a node is given a window of messages, and then as many as its link has taken. What the
window has no space for waits here, in order, with the permit of its sender: so a component that
sends more than its node accepts waits itself (R11), and no queue behind the bus overflows.
"""

import math
from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Final, Protocol

import attrs

from actors.kit.supervision.actor import Delivery, Purpose
from actors.runtime.bus.messages import (
    Deliveries,
    FairQueue,
    Full,
    InFlight,
    LinkListener,
    Listener,
    RouteSearch,
)
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
"""Routes remembered; the oldest goes first, and is asked for again."""


class Asking(Enum):
    """The result for a message that had no known route."""

    ASK = auto()
    """It waits, and the registry must be asked."""

    WAIT = auto()
    """It waits behind others, which have asked."""

    FULL = auto()
    """There is no room for it."""


@attrs.frozen(slots=True)
class Waiting:
    """A message, and what may be done for it.

    Attributes:
        route: Its own route; None: it goes by the route that is reported.
    """

    message: Message
    intent: Intent
    route: str | None = None


class RouteCache:
    """Per target: what waits, in order of arrival, and the route that was reported last."""

    def __init__(self) -> None:
        self._routes: OrderedDict[tuple[str, Intent], tuple[str, float]] = OrderedDict()
        self._waiting: dict[str, deque[Waiting]] = {}

    def find(self, to: str, intent: Intent, now: float) -> str | None:
        """Return the route to take now; None if it must be asked, or others wait for it."""
        url, until = self._routes.get((to, intent), (None, now))
        return None if to in self._waiting or until <= now else url

    def wait(self, message: Message, intent: Intent) -> Asking:
        """Let a message wait for its route."""
        queue = self._waiting.get(message.to)
        if queue is None:
            if len(self._waiting) >= STUB_QUEUE:
                return Asking.FULL
            self._waiting[message.to] = deque([Waiting(message, intent)])
            return Asking.ASK
        if len(queue) >= STUB_QUEUE:
            return Asking.FULL
        queue.append(Waiting(message, intent))
        return Asking.WAIT

    def wait_behind(self, message: Message, route: str) -> Asking | None:
        """Let a message with a route of its own wait behind others to its target.

        Returns:
            Its state; None: no message waits, so it may go.
        """
        queue = self._waiting.get(message.to)
        if queue is None:
            return None
        if len(queue) >= STUB_QUEUE:
            return Asking.FULL
        queue.append(Waiting(message, queue[-1].intent, route))
        return Asking.WAIT

    def reported(
        self, to: str, intent: Intent, url: str, until: float
    ) -> tuple[list[Waiting], Intent | None]:
        """Take a route; return the messages that can use it, and the next query for the rest."""
        self._routes[to, intent] = url, until
        if len(self._routes) > _CAPACITY:
            self._routes.popitem(last=False)
        return self._take(to, intent)

    def refused(self, to: str, intent: Intent) -> tuple[list[Waiting], Intent | None]:
        """Note that there is none; return the messages to refuse, and the next query."""
        self._routes.pop((to, intent), None)
        return self._take(to, intent)

    def forget(self) -> None:
        """Forget every route: the registry's tables changed."""
        self._routes.clear()

    def forget_stub(self, stub: str) -> None:
        """Forget the routes by a stub or by a link of it."""
        gone = [key for key, (url, _) in self._routes.items() if is_below(url, stub)]
        for key in gone:
            del self._routes[key]

    def _take(self, to: str, intent: Intent) -> tuple[list[Waiting], Intent | None]:
        queue = self._waiting.get(to, deque())
        taken: list[Waiting] = []
        while queue and queue[0].intent is intent:
            taken.append(queue.popleft())
        if queue:
            return taken, queue[0].intent
        self._waiting.pop(to, None)
        return taken, None


class Ending(Protocol):
    """Handling of messages without a route, and of their permits."""

    def refuse(
        self,
        message: Message,
        code: Code,
        why: str,
        now: float,
        retry_after: float | None = None,
    ) -> None:
        """End a message: a request is answered, anything else counted.

        Args:
            retry_after: Seconds until another attempt may succeed; None: not known, or never.
        """

    def overflow(self, message: Message, full: Full, now: float) -> None:
        """End a message that a full queue has no space for, likewise."""

    def restart_timeout(self, request: Message) -> None:
        """Begin the time of a request now: until now it has waited here."""


@attrs.frozen(slots=True)
class _Held:
    """A message that waits for the window of a stub; `sender`: whose permit it keeps."""

    forward: Forward
    since: float
    sender: InFlight | None


class _Window:
    """The window of one stub.

    Attributes:
        room: Messages that the stub still takes.
        held: Those that wait, by sender, receiver and id, in order.
        unpermitted: How many of them hold up nobody.
    """

    __slots__ = ("held", "room", "unpermitted")

    def __init__(self) -> None:
        self.room = 0
        self.held: OrderedDict[tuple[str, str, int, bool], _Held] = OrderedDict()
        self.unpermitted = 0

    def take(self) -> _Held:
        """Remove and return the oldest waiting message."""
        held = self.held.popitem(last=False)[1]
        self.unpermitted -= held.sender is None
        return held


class Outbound:
    """Routes of one runtime, and the order of what goes by them; part of the bus.

    Attributes:
        routes: The routes out that the registry reported.
        registry: Resolves routes; None before it has joined.
        anonymous: Stubs that get no identity of a sender (REG-15).
        sender: The message at hand as it was submitted; None: there is none, or it waits here.
    """

    def __init__(
        self, deliveries: Deliveries, hops: HopTrace, turns: FairQueue, ending: Ending
    ) -> None:
        self.routes = RouteCache()
        self.registry: RouteSearch | None = None
        self.anonymous: set[str] = set()
        self.sender: InFlight | None = None
        self._deliveries = deliveries
        self._turns = turns
        self._hops = hops
        self._ending = ending
        self._refuse = ending.refuse
        self._windows: dict[str, _Window] = {}
        self._paths = PairPathCore()
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()

    def asked_by(self, request: Message, session: str) -> None:
        """Note which session with a node brought the last request of a pair."""
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
        match self.routes.wait(message, intent):
            case Asking.ASK:
                self.ask(message.to, intent, now, hint_of(message))
            case Asking.FULL:
                self._ending.overflow(message, _NO_ROUTE_YET, now)
            case Asking.WAIT:
                pass

    def ask(self, to: str, intent: Intent, now: float, hint: LinkHint | None = None) -> None:
        """Ask the registry for the route to a target.

        Args:
            hint: How a link to it is set up, as the sender says.
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
        """Refuse the messages that wait for a route, each once: there is none."""
        waiting, following = self.routes.refused(to, intent)
        for one in waiting:
            if one.route is None:
                self._refuse(one.message, code, why, now, retry_after)
            else:
                self.send_via(one.message, one.route, now)
        if following is not None:
            self.ask(to, following, now)

    def reply_via_session(self, answer: Message, session: str, now: float) -> None:
        """Send an answer by the session of its request, behind those that wait for a route."""
        match self.routes.wait_behind(answer, session):
            case None:
                self.send_via(answer, session, now)
            case Asking.FULL:
                self._ending.overflow(answer, _NO_ROUTE_YET, now)
            case _:
                pass

    def send_by_route(self, message: Message, route: str, now: float) -> None:
        """Send a message by this route, or an answer by the node that brings its pair's requests.

        Two nodes are two paths. An answer whose link has ended takes the one that its pair's
        other answers take, so that it stays in order with them (I-B7).
        """
        if message.is_response and not is_p2p_part(route):
            session = self._sessions.get((message.to, message.from_))
            if session is not None and self._deliveries.is_there(session):
                route = session
        self.send_via(message, route, now)

    def send_via(self, message: Message, route: str, now: float) -> None:
        """Send a message by this route, behind the outstanding messages of the pair."""
        is_known = self._paths.waits(message)
        forwards = self._paths.send(message, route, now)
        if forwards is None:
            self._ending.overflow(message, _NO_PATH_YET, now)
            return
        is_sent = forwards and forwards[-1].message is message
        if not (is_known or is_sent or any(forward.message is message for forward in forwards)):
            self._hops.say(Op.QUEUE, message)
        self._flush(forwards, now, message)

    def settled(self, message: Message, now: float, *, is_reached: bool = False) -> None:
        """Note that a request has its final answer, or a message goes nowhere.

        What it held up goes. `is_reached`: its receiver has answered.

        Args:
            is_reached: Whether the receiver has answered.
        """
        effects = self._paths.settled(message, now, is_reached=is_reached)
        if not effects:
            return
        self._flush([one for one in effects if isinstance(one, Forward)], now)
        for one in effects:
            if isinstance(one, Announce):
                for stub in self._deliveries.routing.find(one.route):
                    stub.try_tell(_announcement(one.behind, one.route))

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
            # It is made once more before it has left.
            return
        sender, self.sender = self.sender, None
        if sender is None or sender.permit is None:
            if window.unpermitted >= STUB_QUEUE:
                self._ending.overflow(message, _NO_WINDOW, now)
                return
            sender = None
            window.unpermitted += 1
        window.held[key] = _Held(forward, now, sender)
        self._hops.say(Op.QUEUE, message)

    def room(self, stub: str, count: int, now: float, *, is_first: bool) -> None:
        """Send the waiting messages for which a stub has room again.

        Args:
            is_first: Whether the stub has just started, and has none of those it was given before.
        """
        window = self._windows.get(stub)
        if window is None:
            window = self._windows[stub] = _Window()
        window.room = count if is_first else window.room + count
        while window.room > 0 and window.held:
            held = window.take()
            window.room -= 1
            self._give_permit_back(held, now)
            self._hops.say(Op.FLUSH, held.forward.message)
            self._ending.restart_timeout(held.forward.message)
            self._deliver(held.forward, now)

    def _give_permit_back(self, held: _Held, now: float) -> None:
        if held.sender is not None and held.sender.permit is not None:
            self._turns.give_back(held.sender.permit, held.sender.by, now)

    def stub_left(self, stub: str, now: float) -> None:
        """Refuse the messages that wait for a stub that is gone."""
        window = self._windows.pop(stub, None)
        while window is not None and window.held:
            held = window.take()
            self._give_permit_back(held, now)
            self._refuse(held.forward.message, Code.UNAVAILABLE, "the stub is gone", now)

    def _deliver(self, forward: Forward, now: float) -> None:
        message, then = forward.message, forward.then
        if self.anonymous and any(is_below(forward.route, stub) for stub in self.anonymous):
            message = identified(message, None)
        purpose = Purpose.SEND if then is None else Purpose.TURN_BACK
        if self._deliveries.deliver(message, forward.route, behind=forward.behind, purpose=purpose):
            return
        if self._deliveries.is_there(forward.route):
            self._ending.overflow(message, _NO_MAILBOX, now)
        elif then is not None:
            # The link is gone, and has given back what it owed.
            self._paths.returned((message,), now)
            self.send_via(message, then, now)
        else:
            self._refuse(message, Code.UNAVAILABLE, "the stub is gone", now)

    def returned(self, messages: tuple[Message, ...], by: str, now: float) -> dict[str, str]:
        """Note that a stub gave these back: they are routed again, before what is younger.

        Args:
            by: Address of the stub.

        Returns:
            The routes of those that a link was given for that, by their instance.
        """
        routes = self._paths.returned(messages, now, by)
        if len(routes) < len(messages) or not messages:
            self.routes.forget_stub(by)
            self._paths.link_ended(by, now)
        return {key: route for key, route in routes.items() if self._deliveries.is_there(route)}

    def branch(self, address: str, stub: Listener, link: str, now: float) -> LinkListener:
        """Make a link a listener of an address, behind what went by the node."""
        behind = self._paths.behind(object_of(address), address, now)
        is_taken = stub.try_tell(_announcement(behind, link))
        return LinkListener(stub, link, None if is_taken else behind)

    def deadline(self) -> float:
        """Return when the next held message is released or refused."""
        return min((self._paths.deadline(), *map(_give_up_at, self._windows.values())))

    def tick(self, now: float) -> None:
        """Release messages held long enough; refuse those that wait for a stub too long."""
        for window in self._windows.values():
            while _give_up_at(window) <= now:
                held = window.take()
                self._give_permit_back(held, now)
                self._ending.overflow(held.forward.message, _NO_WINDOW, now)
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


def _give_up_at(window: _Window) -> float:
    """Return when the oldest message that waits for a window is refused."""
    if not window.held:
        return math.inf
    return next(iter(window.held.values())).since + WINDOW_TIMEOUT


def _announcement(behind: Behind, link: str) -> Delivery:
    """Return what has a link announce something before the next message of a pair."""
    pair = Message(behind.top, MessageType.UPDATE, behind.from_, behind.to)
    return Delivery(pair, link, behind=behind, purpose=Purpose.ANNOUNCE)
