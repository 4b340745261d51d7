"""Message order at the sending runtime while messages change between node and links (C-20, I-B7).

A pair is a sender and a receiver; its requests, events and answers must arrive in the order in
which they were submitted. The procedure at a change depends on the former route:

- From the node to a direct link: the first message is sent at once, after an announcement of the
  last request or event, and the last answer, that went by the node. The receiving runtime
  (`receiving_order`) delays the message until those have come. Both are named because they may
  take different connections between two domains: an answer returns by that of its request.
- From a link to the node, or to another link: the first message is still given to the link's
  stub. The stub returns it when all messages before it are acknowledged; if the link is lost, the
  stub returns it together with the messages that were not. Later messages wait here, at most
  `STUB_QUEUE` of them.

A stub returns messages that it could not deliver. They are routed again before all messages that
have not been sent yet. Neither message order nor the end of a wait depends on the speed of node or
link. Only a crashed stub returns no messages; `PairPathCore` waits at most `REPLY_TIMEOUT` for it.
Class `ChildPaths` chooses node or link for messages to the children of data objects.
"""

import math
from collections import OrderedDict, deque
from enum import Enum, auto
from typing import Final, TypeAlias

import attrs

from fsm.bus.receiving_order import ANSWERS_NAMED, key_of
from fsm.effects import is_p2p_part
from fsm.p2p.transfer import Behind, Key
from specs.addresses.address import is_below
from specs.limits.p2p import ORDER_BYTES, ORDER_PAIRS, ORDER_SENT, STUB_DELAY
from specs.limits.protocol import REPLY_TIMEOUT, SESSION_IDLE, STUB_QUEUE
from specs.limits.sync import CHILD_WAIT
from specs.message import Message, instance_id

_Pair: TypeAlias = tuple[str, str]

_NAME_BYTES: Final = 192
"""Estimated memory of the key of a remembered message, without the text."""


@attrs.frozen(slots=True)
class Forward:
    """Instruction for the bus to send a message now, through a link's stub or the node.

    Attributes:
        message: The message.
        route: Address of the link's stub, or the route by the node.
        behind: The announcement of earlier messages that the link sends first; None: not needed.
        then: The route that the message takes after the link's stub has returned it, which the
            stub does when all earlier messages are acknowledged; None: the stub delivers it.
    """

    message: Message
    route: str
    behind: Behind | None = None
    then: str | None = None


@attrs.frozen(slots=True)
class Announce:
    """Instruction for the bus to announce on a link which earlier messages went by the node."""

    behind: Behind
    route: str


_Sent: TypeAlias = tuple[float, int | None]
"""The time at which a message was sent by the node, and its id if it is an answer."""


@attrs.define(slots=True)
class _Path:
    """State of sending from one sender to one receiver: sent, returned and waiting messages.

    Attributes:
        route: The current route; empty: none, or no sent message can still be on its way by it.
        at: Time at which the last message was sent.
        best: The highest id of the requests and events that were sent by any route.
        said: Keys of the last answers that were sent by any route.
        sent: Keys of messages that were sent by the node and not answered; without repetitions,
            since the first attempt may have arrived long ago.
        announced: The last announcement to the current link.
        draining: Key of the message that a link's stub will return when it is empty.
        then: The route that the `draining` message takes afterwards.
        returned: Messages that stubs have returned, in order, each with its new route if known.
        stalled: Messages that were returned before `draining` was sent, and must follow it.
        queued: Keys of messages that were returned twice, and for which a duplicate already waits.
        ranks: Positions of the returned messages, while some of them have not been sent again.
        is_lost: Whether the current link has returned messages.
        held: New messages that wait until the returned messages are sent, in order.
        size: Approximate number of bytes of memory of this state, without messages.
    """

    route: str
    at: float
    best: int = 0
    said: OrderedDict[Key, None] = attrs.field(factory=OrderedDict)
    sent: OrderedDict[Key, _Sent] = attrs.field(factory=OrderedDict)
    announced: Behind | None = None
    draining: Key | None = None
    then: str = ""
    returned: dict[Key, Forward | None] = attrs.field(factory=dict)
    stalled: dict[Key, Forward | None] = attrs.field(factory=dict)
    queued: set[Key] = attrs.field(factory=set)
    ranks: dict[Key, int] = attrs.field(factory=dict)
    is_lost: bool = False
    held: deque[Forward] = attrs.field(factory=deque)
    size: int = 0

    @property
    def is_at_rest(self) -> bool:
        """Whether no message waits to be sent or must still be returned by a stub."""
        return self.draining is None and not (self.returned or self.held)

    def drain(self, forward: Forward) -> None:
        """Note that a message was given to a link's stub, which returns it after all earlier ones.

        Messages that were returned before wait for that.
        """
        self.draining, self.then = key_of(forward.message), forward.route
        self.stalled, self.returned = self.returned, {}

    def end_drain(self) -> None:
        """Let the messages that waited for the `draining` message be sent."""
        self.draining = None
        self.returned |= self.stalled
        self.stalled = {}
        self._restore_order()

    def give_back(self, key: Key) -> None:
        """Note that a stub returned a message; if it did so before, the position is kept."""
        if self.draining is None and not (self.returned or self.stalled):
            self.ranks.clear()
        is_again = key in self.ranks
        self.ranks.setdefault(key, len(self.ranks))
        if self.returned.get(key) or self.stalled.get(key):
            self.queued.add(key)
        self.returned[key] = None
        if is_again:
            self._restore_order()

    def _restore_order(self) -> None:
        self.returned = dict(sorted(self.returned.items(), key=lambda item: self.ranks[item[0]]))

    def next(self) -> tuple[Forward, bool] | None:
        """Remove and return the next message, and whether a stub had returned it.

        None: the next message has been returned and has no new route yet.
        """
        if self.returned:
            key, route = next(iter(self.returned.items()))
            if route is None:
                return None
            del self.returned[key]
            self.queued.discard(key)
            return route, True
        return self.held.popleft(), False

    def is_new(self, message: Message, key: Key) -> bool:
        """Return whether a message is sent for the first time, and remember its key."""
        if not message.is_response:
            is_new, self.best = message.id > self.best, max(self.best, message.id)
            return is_new
        is_new, self.said[key] = key not in self.said, None
        if len(self.said) > ANSWERS_NAMED:
            self.said.popitem(last=False)
        return is_new

    def note(self, message: Message, key: Key, now: float) -> None:
        """Note that a message is sent by the node, for later announcements."""
        while self.sent and next(iter(self.sent.values()))[0] + REPLY_TIMEOUT <= now:
            self.sent.popitem(last=False)  # no requester waits for the answer any more
        # A repeated message keeps the position of its first attempt.
        self.sent.setdefault(key, (now, message.id if message.is_response else None))
        if len(self.sent) > ORDER_SENT:
            # A request never displaces an answer, since announcements list answers only.
            same_kind = [each for each in self.sent if isinstance(each, str) == message.is_response]
            if len(same_kind) > ORDER_SENT:
                del self.sent[same_kind[0]]


class PairPathCore:
    """Keeps the order of messages of each sender to each receiver while their route changes.

    It remembers `ORDER_PAIRS` pairs of sender and receiver in `ORDER_BYTES` of memory, each for
    `SESSION_IDLE` after the last message.
    """

    def __init__(self) -> None:
        self._paths: OrderedDict[_Pair, _Path] = OrderedDict()
        self._drained: OrderedDict[_Pair, float] = OrderedDict()
        self._bytes = 0

    @property
    def held(self) -> int:
        """The number of new messages that wait to be sent."""
        return sum(len(path.held) for path in self._paths.values())

    def waits(self, message: Message) -> bool:
        """Return whether a message that a stub has returned is already waiting to be sent again.

        Args:
            message: The message, or a duplicate of it.
        """
        path = self._paths.get((message.from_, message.to))
        if path is None or not (path.returned or path.stalled):
            return False
        key = key_of(message)
        is_routed = (path.returned.get(key) or path.stalled.get(key)) is not None
        return is_routed or key in path.queued

    def send(self, message: Message, route: str, now: float) -> list[Forward] | None:
        """Queue a message for a route; return the messages to send now, in order.

        None is returned, and the message is not queued, if too many messages wait.

        Args:
            message: The message: a new one, or one that a stub has returned.
            route: The route: a link's stub, or the node.
        """
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

        The result lists the messages and announcements that must now be sent.

        Args:
            message: The request, or the message that will not be sent.
            is_reached: Whether the receiver itself has answered: all earlier requests have arrived.
        """
        pair = (message.from_, message.to)
        path = self._paths.get(pair)
        if path is None:
            return []
        key = key_of(message)
        effects: list[Forward | Announce] = []
        if key in path.sent:
            earlier = list(path.sent)[: list(path.sent).index(key)] if is_reached else []
            for request in filter(lambda each: isinstance(each, int), earlier):
                del path.sent[request]
            del path.sent[key]
            told = path.announced
            if told is not None and key in {told.last, told.top} and is_p2p_part(path.route):
                path.announced = self.behind(*pair, now)
                effects.append(Announce(path.announced, path.route))
        if key == path.draining:
            path.end_drain()
            self._drained.pop(pair, None)
        path.returned.pop(key, None)
        path.stalled.pop(key, None)
        path.queued.discard(key)
        return [*effects, *self._release(pair, now)]

    def returned(self, messages: tuple[Message, ...], now: float, by: str = "") -> dict[str, str]:
        """Note messages that will be routed again; new messages must not overtake them.

        Args:
            messages: The messages, in order.
            by: The stub that returned them; empty: no stub ever had them.

        Returns:
            The new routes, by instance id, of messages that a stub returned because it is empty.
        """
        routes: dict[str, str] = {}
        for message in messages:
            pair, key = (message.from_, message.to), key_of(message)
            path = self._path(pair, now)
            if not is_p2p_part(by):
                # If a link returns a message, a duplicate may still be on its way by the node.
                path.sent.pop(key, None)
            path.give_back(key)
            if key == path.draining or is_below(message.to, message.from_):
                path.route = ""
            if key == path.draining:
                routes[instance_id(message)] = path.then
                path.end_drain()
                self._drained.pop(pair, None)
        return routes

    def link_ended(self, link: str, now: float) -> None:
        """Note that a link returned messages, so that later messages change their route.

        If messages to the same receiver may still wait at the link's stub, the next message goes
        through the stub first. Other messages change their route at once, and so do the reports of
        objects and registries, whose receivers read the whole state again.
        """
        for (from_, to), path in self._paths.items():
            if path.route == link:
                path.is_lost = True
                is_past = path.at + STUB_DELAY <= now or is_below(to, from_)
                path.route = "" if is_past else link

    def behind(self, from_: str, to: str, now: float) -> Behind:
        """Return the announcement of messages that may still be on their way by the node."""
        path = self._paths.get((from_, to))
        if path is None or not path.sent:
            return Behind(from_, to)
        last = next((key for key in reversed(path.sent) if isinstance(key, str)), None)
        top = max((key for key in path.sent if isinstance(key, int)), default=0)
        age = max(0.0, now - next(reversed(path.sent.values()))[0])
        answers = frozenset(answer for _, answer in path.sent.values() if answer is not None)
        return Behind(from_, to, last or top, top, age, answers)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return next(iter(self._drained.values()), math.inf)

    def tick(self, now: float) -> list[Forward]:
        """Return the messages that waited for a crashed stub too long, to send them now."""
        released: list[Forward] = []
        while self._drained and self.deadline() <= now:
            pair, _ = self._drained.popitem(last=False)
            path = self._paths[pair]
            path.route = ""
            path.end_drain()
            released += self._release(pair, now)
        return released

    def _go(self, pair: _Pair, forward: Forward, now: float, *, is_back: bool) -> Forward:
        """Return the instruction to send a message, if necessary through the former link first."""
        path, message, route = self._paths[pair], forward.message, forward.route
        path.at = now
        if is_p2p_part(path.route) and route != path.route:
            path.drain(forward)
            self._drained[pair] = now + REPLY_TIMEOUT
            return Forward(message, path.route, then=route)
        key = key_of(message)
        is_first = path.is_new(message, key) or is_back
        if is_p2p_part(route) and (path.route != route or path.is_lost):
            path.is_lost = False
            path.announced = self.behind(*pair, now)
            forward = Forward(message, route, path.announced)
        elif not is_p2p_part(route) and is_first:
            path.note(message, key, now)
        path.route = route
        return forward

    def _release(self, pair: _Pair, now: float) -> list[Forward]:
        path, released = self._paths[pair], list[Forward]()
        while path.draining is None and (path.returned or path.held):
            next_message = path.next()
            if next_message is None:
                break
            forward, is_back = next_message
            released.append(self._go(pair, forward, now, is_back=is_back))
        size = (2 + len(path.said) + len(path.sent)) * (_NAME_BYTES + sum(map(len, pair)))
        self._bytes += size - path.size
        path.size = size
        return released

    def _path(self, pair: _Pair, now: float) -> _Path:
        path = self._paths.get(pair)
        if path is None:
            self._forget_idle(now)
            path = self._paths[pair] = _Path("", now)
        else:
            self._paths.move_to_end(pair)
        return path

    def _forget_idle(self, now: float) -> None:
        """Forget senders with receivers that were idle for long, and the oldest if too many."""
        for _ in range(len(self._paths)):
            pair, path = next(iter(self._paths.items()))
            is_small = len(self._paths) < ORDER_PAIRS and self._bytes < ORDER_BYTES
            if path.at + SESSION_IDLE > now and is_small:
                return
            if path.is_at_rest:
                del self._paths[pair]
                self._bytes -= path.size
            else:
                self._paths.move_to_end(pair)


# Routes of the messages with which a runtime's components write children of data objects (P2P-30).
#
# By default the node distributes these messages to all observers. If this runtime gets the changes
# of an object by a direct link, it sends children by that link to the reporter's runtime, which
# reports them to all others. If links reach all runtimes that observe an object reported here, no
# children are sent by the node.
#
# When a link ends, the node does not know the observers that subscribed by the link, and would
# refuse their messages. So the messages wait here, in order, until the sync manager has subscribed
# at the node, for CHILD_WAIT seconds at most.


class Elsewhere(Enum):
    """Treatment of a message to an object's child, beyond local delivery, if no link is used."""

    BY_NODE = auto()
    """The node distributes the message."""

    NOWHERE = auto()
    """The message is not sent: all other runtimes get the object's report by links."""

    WAITS = auto()
    """The message waits until its route is known."""

    REPEATED = auto()
    """The message is a repetition of a message that already waits."""

    FULL = auto()
    """The message is refused, since too many messages wait."""


ChildPath: TypeAlias = str | Elsewhere
"""The name of the link for a message to a child, or the treatment without a link."""


@attrs.define(slots=True, eq=False)
class _Row:
    """The route of messages to one list of children of a data object.

    Attributes:
        path: The name of a link, or `NOWHERE`.
        until: Time at which the wait for another route ends; infinity: no message waits.
        waiting: The messages that wait.
    """

    path: ChildPath
    until: float = math.inf
    waiting: deque[Message] = attrs.field(factory=deque)


class ChildPaths:
    """Routes of messages to lists of children of data objects; lists not in it use the node."""

    def __init__(self) -> None:
        self._rows: Final[dict[str, _Row]] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """The number of messages that wait for a route."""
        return self._waiting

    def link_of(self, address: str) -> str | None:
        """Return the link by which messages to a list of children are sent, or None."""
        row = self._rows.get(address)
        return row.path if row is not None and isinstance(row.path, str) else None

    def lead(self, address: str, path: ChildPath) -> list[Message]:
        """Set the route to a list of children; return the messages that waited for it, in order.

        Args:
            address: Address of the list of children.
            path: The name of a link, `NOWHERE` or `BY_NODE`.
        """
        row = self._rows.pop(address, None)
        if path is not Elsewhere.BY_NODE:
            self._rows[address] = _Row(path)
        return [] if row is None else self._empty_row(row)

    def find(self, message: Message, now: float, *, is_there: bool) -> ChildPath:
        """Return the route of a message to a child; if the result is `WAITS`, keep the message.

        Args:
            message: The message of a component of this runtime.
            is_there: Whether the link of this list of children accepts messages now.
        """
        row = self._rows.get(message.to)
        if row is None:
            return Elsewhere.BY_NODE
        if row.path is Elsewhere.NOWHERE or (is_there and row.until == math.inf):
            return row.path
        if any(instance_id(each) == instance_id(message) for each in row.waiting):
            return Elsewhere.REPEATED
        if self._waiting >= STUB_QUEUE:
            return Elsewhere.FULL
        row.until = min(row.until, now + CHILD_WAIT)
        row.waiting.append(message)
        self._waiting += 1
        return Elsewhere.WAITS

    def lose_link(self, link: str, now: float) -> None:
        """Note that a link has returned messages: later messages wait for another route."""
        for row in self._rows.values():
            if row.path == link:
                row.until = min(row.until, now + CHILD_WAIT)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return min((row.until for row in self._rows.values()), default=math.inf)

    def tick(self, now: float) -> list[Message]:
        """Return the messages whose wait is over; the caller sends them by a link or the node."""
        free: list[Message] = []
        for row in self._rows.values():
            if row.until <= now:
                row.until = math.inf
                free += self._empty_row(row)
        return free

    def _empty_row(self, row: _Row) -> list[Message]:
        self._waiting -= len(row.waiting)
        free, row.waiting = [*row.waiting], deque()
        return free
