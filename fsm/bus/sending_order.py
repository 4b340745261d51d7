"""Order of a pair's messages at the end that sends them, while their path changes (C-20, I-B7).

A pair is a sender and a receiver; its requests, events and answers leave in the order in
which they were given. What a change of paths needs depends on the path that is left:

- From the node to a direct link the first message is sent at once, and announces which
  message went by the node last (`pair_order` holds it at the other end until that has come).
- From a link to the node, or to another link, the first message goes through the link's
  stub, which gives it back when all before it is acknowledged, or with all that was not
  when the link is lost. What follows waits here, at most `STUB_QUEUE` messages.

A stub gives back what it could not deliver. It is routed again before all that has not been
sent yet. Neither the order nor the end of a wait depends on how fast a path is; only a stub
that has crashed does not give back, and is waited for no longer than `REPLY_TIMEOUT`.
"""

import math
from collections import OrderedDict, deque
from typing import TypeAlias, final

import attrs

from fsm.bus.receiving_order import ANSWERS_NAMED, key_of
from fsm.intent import is_p2p_part
from fsm.p2p.control import Behind, Key
from specs.limits.p2p import ORDER_PAIRS, ORDER_SENT
from specs.limits.protocol import REPLY_TIMEOUT, SESSION_IDLE, STUB_QUEUE
from specs.message import Message, instance_id

__all__ = ["Announce", "Forward", "PairPathCore"]

_Pair: TypeAlias = tuple[str, str]


@final
@attrs.frozen(slots=True)
class Forward:
    """An effect: the message goes by this route now.

    Attributes:
        behind: What the link announces before it; None: nothing has changed.
        then: The stub gives it back when all before it is acknowledged, and it goes by
            this route; None: the stub delivers it.
    """

    message: Message
    route: str
    behind: Behind | None = None
    then: str | None = None


@final
@attrs.frozen(slots=True)
class Announce:
    """An effect: the link announces this in place of what it announced before."""

    behind: Behind
    route: str


@attrs.frozen(slots=True)
class _Sent:
    """A message that went by the node: when, and the id of an answer."""

    at: float
    answer: int | None


@attrs.define(slots=True)
class _Path:
    """One pair's state.

    Attributes:
        route: The route in use; empty: none, or nothing is under way by it.
        at: When a message was sent last.
        top: The highest id of the requests and events that went by the node.
        best: The highest id of the requests and events that went by any path.
        said: The last answers that went by any path.
        sent: What went by the node and was not answered; without repeats, whose first copy
            may have come long ago.
        announced: What the link in use was told to be behind.
        draining: The message that a link's stub is to give back.
        then: Where that message goes afterwards.
        returned: What was given back, in order, and its new route as soon as it has one.
        stalled: What was given back before `draining` was sent, and waits behind it.
        held: What waits for these, in order.
    """

    route: str
    at: float
    top: int = 0
    best: int = 0
    said: OrderedDict[Key, None] = attrs.field(factory=OrderedDict)
    sent: OrderedDict[Key, _Sent] = attrs.field(factory=OrderedDict)
    announced: Key | None = None
    draining: Key | None = None
    then: str = ""
    returned: dict[Key, Forward | None] = attrs.field(factory=dict)
    stalled: dict[Key, Forward | None] = attrs.field(factory=dict)
    held: deque[Forward] = attrs.field(factory=deque)

    @property
    def is_at_rest(self) -> bool:
        return self.draining is None and not (self.returned or self.held)

    def drain(self, forward: Forward) -> None:
        """Give a message to the link's stub; what was given back waits behind it."""
        self.draining, self.then = key_of(forward.message), forward.route
        self.stalled, self.returned = self.returned, {}

    def drained(self) -> None:
        """Let what waits behind the message go on."""
        self.draining = None
        self.returned |= self.stalled
        self.stalled = {}

    def next(self) -> tuple[Forward, bool] | None:
        """Take the message whose turn it is, and whether it was given back; None: nobody's."""
        if self.draining is not None:
            return None
        if self.returned:
            key, following = next(iter(self.returned.items()))
            if following is None:
                return None
            del self.returned[key]
            return following, True
        return (self.held.popleft(), False) if self.held else None

    def is_new(self, message: Message) -> bool:
        """Say whether a message goes for the first time, and remember it."""
        if not message.is_response:
            is_new, self.best = message.id > self.best, max(self.best, message.id)
            return is_new
        key = key_of(message)
        is_new, self.said[key] = key not in self.said, None
        if len(self.said) > ANSWERS_NAMED:
            self.said.popitem(last=False)
        return is_new

    def note(self, message: Message, now: float) -> None:
        """Note that a message goes by the node."""
        key = key_of(message)
        self.sent[key] = _Sent(now, message.id if message.is_response else None)
        self.sent.move_to_end(key)
        if len(self.sent) > ORDER_SENT:
            # Requests do not displace answers: an announcement names these only.
            alike = [one for one in self.sent if isinstance(one, str) == message.is_response]
            if len(alike) > ORDER_SENT:
                del self.sent[alike[0]]
        self.top = self.top if message.is_response else max(self.top, message.id)


@final
class PairPathCore:
    """Keeps the order of every pair whose messages leave by stubs.

    The core remembers `ORDER_PAIRS` pairs, each for `SESSION_IDLE` after its last message.
    """

    def __init__(self) -> None:
        self._paths: OrderedDict[_Pair, _Path] = OrderedDict()
        self._drained: OrderedDict[_Pair, float] = OrderedDict()

    @property
    def held(self) -> int:
        """How many messages wait for their path."""
        return sum(len(path.held) for path in self._paths.values())

    def send(self, message: Message, route: str, now: float) -> list[Forward] | None:
        """Route a message; return what goes now, in order; None: too many wait already."""
        pair, key = (message.from_, message.to), key_of(message)
        path = self._path(pair, now)
        if key in path.returned:
            path.returned[key] = Forward(message, route)
        elif key in path.stalled:
            path.stalled[key] = Forward(message, route)
        elif len(path.held) >= STUB_QUEUE:
            return None
        else:
            path.held.append(Forward(message, route))
        return self._release(pair, now)

    def settled(
        self, message: Message, now: float, *, is_reached: bool = False
    ) -> list[Forward | Announce]:
        """Note that a request has its final answer, or that a message will never be sent.

        Args:
            message: The request, or the message.
            now: Seconds, of the host's clock.
            is_reached: Whether its receiver has answered: then all before it has come.
        """
        pair, key = (message.from_, message.to), key_of(message)
        path = self._paths.get(pair)
        if path is None:
            return []
        effects: list[Forward | Announce] = []
        if key in path.sent:
            while is_reached and next(iter(path.sent)) != key:
                path.sent.popitem(last=False)
            del path.sent[key]
            if key == path.announced and is_p2p_part(path.route):
                behind = self.behind(*pair, now)
                path.announced = behind.last
                effects.append(Announce(behind, path.route))
        if key == path.draining:
            path.drained()
            self._drained.pop(pair, None)
        path.returned.pop(key, None)
        path.stalled.pop(key, None)
        return [*effects, *self._release(pair, now)]

    def returned(self, messages: tuple[Message, ...], now: float) -> dict[str, str]:
        """Note that these will be routed again: nothing that was not sent yet may pass them.

        Returns:
            The routes of those that a link was given for that, by their instance.
        """
        routes: dict[str, str] = {}
        for message in messages:
            pair, key = (message.from_, message.to), key_of(message)
            path = self._path(pair, now)
            path.route = ""
            path.sent.pop(key, None)
            path.returned[key] = None
            if key == path.draining:
                routes[instance_id(message)] = path.then
                path.drained()
                self._drained.pop(pair, None)
        return routes

    def link_ended(self, link: str) -> None:
        """Take it that nothing is on its way by a link: what was, has been given back."""
        for path in self._paths.values():
            if path.route == link:
                path.route = ""

    def behind(self, from_: str, to: str, now: float) -> Behind:
        """Return what of a pair may be on its way by the node."""
        path = self._paths.get((from_, to))
        if path is None or not path.sent:
            return Behind(from_, to)
        last = next(reversed(path.sent))
        age = max(0.0, now - path.sent[last].at)
        answers = frozenset(one.answer for one in path.sent.values() if one.answer is not None)
        return Behind(from_, to, last, path.top, age, answers)

    def deadline(self) -> float:
        """Return when `tick` is due."""
        return next(iter(self._drained.values()), math.inf)

    def tick(self, now: float) -> list[Forward]:
        """Release what waits for a stub that gives nothing back: it has crashed."""
        free: list[Forward] = []
        while self._drained and self.deadline() <= now:
            pair, _ = self._drained.popitem(last=False)
            path = self._paths[pair]
            path.route = ""
            path.drained()
            free += self._release(pair, now)
        return free

    def _go(self, pair: _Pair, forward: Forward, now: float, *, is_back: bool) -> Forward:
        path, message, route = self._paths[pair], forward.message, forward.route
        path.at = now
        if is_p2p_part(path.route) and route != path.route:
            path.drain(forward)
            self._drained[pair] = now + REPLY_TIMEOUT
            return Forward(message, path.route, then=route)
        is_first = path.is_new(message) or is_back
        if is_p2p_part(route) and path.route != route:
            behind = self.behind(*pair, now)
            forward = Forward(message, route, behind)
            path.announced = behind.last
        elif not is_p2p_part(route) and is_first:
            path.note(message, now)
        path.route = route
        return forward

    def _release(self, pair: _Pair, now: float) -> list[Forward]:
        path, free = self._paths[pair], list[Forward]()
        following = path.next()
        while following is not None:
            forward, is_back = following
            free.append(self._go(pair, forward, now, is_back=is_back))
            following = path.next()
        return free

    def _path(self, pair: _Pair, now: float) -> _Path:
        path = self._paths.get(pair)
        if path is None:
            self._forget_idle(now)
            path = self._paths[pair] = _Path("", now)
        else:
            self._paths.move_to_end(pair)
        return path

    def _forget_idle(self, now: float) -> None:
        """Forget the pairs of which nothing can be on its way any more."""
        for _ in range(len(self._paths)):
            pair, path = next(iter(self._paths.items()))
            if path.at + SESSION_IDLE > now and len(self._paths) < ORDER_PAIRS:
                return
            if path.is_at_rest:
                del self._paths[pair]
            else:
                self._paths.move_to_end(pair)
