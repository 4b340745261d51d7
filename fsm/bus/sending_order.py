"""Order of a pair's messages at the sending end while their path changes (C-20, I-B7).

A pair is a sender and a receiver; its requests, events and answers leave in the order in which they
were submitted. The steps at a change of paths depend on the former path:

- From the node to a direct link: the first message is sent at once, and announces which
  request or event, and which answer, went by the node last (`receiving_order` holds it at the
  other end until those have come). Between two domains they may take different connections:
  an answer returns by the connection of its request.
- From a link to the node, or to another link: the first message goes through the link's
stub. The stub gives it back when all messages before it are acknowledged or, when the
  link is lost, together with those that were not. Later messages wait here, at most
  `STUB_QUEUE` of them.

A stub gives back messages that it could not deliver. They are routed again before all
messages that have not been sent yet. Neither the order nor the end of a wait depends on the
speed of a path. Only a stub that has crashed does not give messages back; the core waits
for it no longer than `REPLY_TIMEOUT`.
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
"""Number of bytes of a remembered message without its text."""


@attrs.frozen(slots=True)
class Forward:
    """The order to send a message by a route now.

    Attributes:
        behind: The announcement that the link sends before it; None: none is needed.
        then: The stub gives the message back when all before it are acknowledged, and the message
            then goes by this route; None: the stub delivers it.
    """

    message: Message
    route: str
    behind: Behind | None = None
    then: str | None = None


@attrs.frozen(slots=True)
class Announce:
    """The order that a link sends an announcement in place of its last one."""

    behind: Behind
    route: str


_Sent: TypeAlias = tuple[float, int | None]
"""The time at which a message went by the node, and its id if it is an answer."""


@attrs.define(slots=True)
class _Path:
    """The state of one pair.

    Attributes:
        route: The route in use; empty: none, or no message is under way by it.
        at: Time at which the last message was sent.
        best: The highest id of the requests and events that were sent by any path.
        said: The last answers that were sent by any path.
        sent: Messages that were sent by the node and not answered; without repeats, whose first
            copy may have arrived long ago.
        announced: The announcement to the link in use.
        draining: The message that a link's stub will give back.
        then: The route of that message afterwards.
        returned: Messages that were given back, in order, each with its new route if it is known.
        stalled: Messages that were given back before `draining` was sent, and wait behind it.
        queued: The messages given back of which another copy is already waiting.
        ranks: Positions of the messages given back, while some of them have not been sent again.
        is_lost: Whether the link in use has given messages back.
        held: Messages that wait until those given back are sent, in order.
        size: Approximate number of bytes of memory that it takes besides these messages.
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
        return self.draining is None and not (self.returned or self.held)

    def drain(self, forward: Forward) -> None:
        """Give a message to the link's stub; messages that were given back wait behind it."""
        self.draining, self.then = key_of(forward.message), forward.route
        self.stalled, self.returned = self.returned, {}

    def end_drain(self) -> None:
        """Release the messages that wait behind the drained one."""
        self.draining = None
        self.returned |= self.stalled
        self.stalled = {}
        self._restore_order()

    def give_back(self, key: Key) -> None:
        """Note that a link gave a message back; a message given back again keeps its position."""
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
        """Take the next message and whether it was given back; None: its route is unknown."""
        if self.returned:
            key, route = next(iter(self.returned.items()))
            if route is None:
                return None
            del self.returned[key]
            self.queued.discard(key)
            return route, True
        return self.held.popleft(), False

    def is_new(self, message: Message, key: Key) -> bool:
        """Return whether a message is sent for the first time, and remember it."""
        if not message.is_response:
            is_new, self.best = message.id > self.best, max(self.best, message.id)
            return is_new
        is_new, self.said[key] = key not in self.said, None
        if len(self.said) > ANSWERS_NAMED:
            self.said.popitem(last=False)
        return is_new

    def note(self, message: Message, key: Key, now: float) -> None:
        """Note that a message goes by the node."""
        while self.sent and next(iter(self.sent.values()))[0] + REPLY_TIMEOUT <= now:
            self.sent.popitem(last=False)  # no requester waits for the answer any more
        # The second copy of a message comes after the messages that follow the first one.
        self.sent.setdefault(key, (now, message.id if message.is_response else None))
        if len(self.sent) > ORDER_SENT:
            # Requests do not displace answers, since an announcement lists only those.
            same_kind = [each for each in self.sent if isinstance(each, str) == message.is_response]
            if len(same_kind) > ORDER_SENT:
                del self.sent[same_kind[0]]


class PairPathCore:
    """Keeps the order of every pair whose messages leave by stubs.

    The core remembers `ORDER_PAIRS` pairs of `ORDER_BYTES`, each for `SESSION_IDLE` after its last
    message.
    """

    def __init__(self) -> None:
        self._paths: OrderedDict[_Pair, _Path] = OrderedDict()
        self._drained: OrderedDict[_Pair, float] = OrderedDict()
        self._bytes = 0

    @property
    def held(self) -> int:
        """The number of messages that wait for their path."""
        return sum(len(path.held) for path in self._paths.values())

    def waits(self, message: Message) -> bool:
        """Return whether a message that was given back, and routed again, is already waiting.

        Args:
            message: The message, perhaps another copy.
        """
        path = self._paths.get((message.from_, message.to))
        if path is None or not (path.returned or path.stalled):
            return False
        key = key_of(message)
        is_routed = (path.returned.get(key) or path.stalled.get(key)) is not None
        return is_routed or key in path.queued

    def send(self, message: Message, route: str, now: float) -> list[Forward] | None:
        """Route a message; return the messages to send now, in order, or None if too many wait.

        Args:
            message: The message, new or given back.
            route: Its route: a link's stub, or the node.
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

        Args:
            message: The request, or the message.
            is_reached: Whether its receiver has answered, so that all requests before it have
                arrived.
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
        """Note messages that will be routed again; messages not sent yet must not pass them.

        Args:
            by: The stub that gives them back; empty: they were given to no stub.

        Returns:
            By instance, the new routes of the messages that a stub has drained.
        """
        routes: dict[str, str] = {}
        for message in messages:
            pair, key = (message.from_, message.to), key_of(message)
            path = self._path(pair, now)
            if not is_p2p_part(by):
                # Another copy of a message that a link gives back may be under way by the node.
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
        """Note that a link gave messages back; if it is used again, pairs are announced again.

        Messages that were sent shortly before may still wait at its stub, so their pairs leave the
        link through the stub. Other pairs leave it at once, and so do the reports of objects and
        registries, whose receivers read the whole state again.
        """
        for (from_, to), path in self._paths.items():
            if path.route == link:
                path.is_lost = True
                is_past = path.at + STUB_DELAY <= now or is_below(to, from_)
                path.route = "" if is_past else link

    def behind(self, from_: str, to: str, now: float) -> Behind:
        """Return the announcement of the messages of a pair that may be under way by the node."""
        path = self._paths.get((from_, to))
        if path is None or not path.sent:
            return Behind(from_, to)
        last = next((key for key in reversed(path.sent) if isinstance(key, str)), None)
        top = max((key for key in path.sent if isinstance(key, int)), default=0)
        age = max(0.0, now - next(reversed(path.sent.values()))[0])
        answers = frozenset(answer for _, answer in path.sent.values() if answer is not None)
        return Behind(from_, to, last or top, top, age, answers)

    def deadline(self) -> float:
        """Return the time of the next call of `tick`."""
        return next(iter(self._drained.values()), math.inf)

    def tick(self, now: float) -> list[Forward]:
        """Release the messages that wait for a stub that gives nothing back: it has crashed."""
        released: list[Forward] = []
        while self._drained and self.deadline() <= now:
            pair, _ = self._drained.popitem(last=False)
            path = self._paths[pair]
            path.route = ""
            path.end_drain()
            released += self._release(pair, now)
        return released

    def _go(self, pair: _Pair, forward: Forward, now: float, *, is_back: bool) -> Forward:
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
        """Forget the pairs that can have no messages under way any more."""
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


# The paths by which the components of a runtime write the children of data objects (P2P-30).
#
# By default the node spreads the writes of a creator. If the changes of an object come by a direct
# link, its children go by that link to the reporter's runtime, which reports them to all others.
# If links reach all runtimes that observe an object reported here, no children go by the node.
#
# When a link ends, the node does not know the observers that subscribed by the link, and would
# refuse their writes. So writes wait here, in order, until the sync manager has set the path at the
# node, for CHILD_WAIT seconds at most.


class Elsewhere(Enum):
    """The handling of a child's message besides its local delivery, without a link."""

    BY_NODE = auto()
    """The node spreads the message."""

    NOWHERE = auto()
    """The message is not sent: links bring the object's report to all others."""

    WAITS = auto()
    """The message waits for a path."""

    REPEATED = auto()
    """The message already waits for a path: its sender has repeated it."""

    FULL = auto()
    """The message is refused, since too many are waiting."""


ChildPath: TypeAlias = str | Elsewhere
"""The name of a link, or the handling without one."""


@attrs.define(slots=True, eq=False)
class _Row:
    """The path of one list of children.

    Attributes:
        path: A link, or `NOWHERE`.
        until: Time at which the wait for another path ends; infinity: no message waits.
    """

    path: ChildPath
    until: float = math.inf
    waiting: deque[Message] = attrs.field(factory=deque)


class ChildPaths:
    """The paths of all lists of children that are written here; other lists go by the node."""

    def __init__(self) -> None:
        self._rows: Final[dict[str, _Row]] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """The number of messages that wait for a path."""
        return self._waiting

    def link_of(self, address: str) -> str | None:
        """Return the link of a list of children, or None."""
        row = self._rows.get(address)
        return row.path if row is not None and isinstance(row.path, str) else None

    def lead(self, address: str, path: ChildPath) -> list[Message]:
        """Set another path for a list of children; return the messages that waited, in order.

        Args:
            address: Address of the children.
            path: A link, `NOWHERE` or `BY_NODE`.
        """
        row = self._rows.pop(address, None)
        if path is not Elsewhere.BY_NODE:
            self._rows[address] = _Row(path)
        return [] if row is None else self._empty_row(row)

    def find(self, message: Message, now: float, *, is_there: bool) -> ChildPath:
        """Return the path of a component's message, which is kept here if the path is `WAITS`.

        Args:
            is_there: Whether the link of its children takes messages.
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
        """Note that a link has given messages back: later messages wait for another path."""
        for row in self._rows.values():
            if row.path == link:
                row.until = min(row.until, now + CHILD_WAIT)

    def deadline(self) -> float:
        """Return the time of the next call of `tick`."""
        return min((row.until for row in self._rows.values()), default=math.inf)

    def tick(self, now: float) -> list[Message]:
        """Return messages that waited long enough; they go by a live link, or by the node."""
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
