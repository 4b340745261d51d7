"""Message order at the receiving runtime when messages come by the node and by links (I-B7).

A pair is a sender and a receiver. A path is the node or one direct link. When the messages of a
pair change from the node to a direct link, the sending runtime first sends an announcement over the
link. The announcement names the last request or event, and the last answer, that went by the node.
Requests and events that the link brings wait for that request; answers wait for that answer.
The node keeps the order of requests and the order of answers, but not the order between both:
between two domains an answer returns by the connection of its request. If the node lost the awaited
message, the wait ends `REPLY_TIMEOUT` after it was sent: a lost request has failed by then (408).

Message order does not depend on this timeout. The ids of a sender's requests and events rise, so a
request or event with a lower id than an earlier one by another path is too late, and is refused.
The ids of answers do not rise, so the announcement lists the answers that may still be at the node.
An unlisted answer that the node brings is newer, so the waiting answers are handled before it.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

import attrs

from fsm.limits.shares import message_bytes
from fsm.p2p.transfer import Behind, Key
from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.limits import p2p
from specs.limits.protocol import REPLY_TIMEOUT, SESSION_IDLE
from specs.message import Message, instance_id, position_of

T = TypeVar("T")

NODE_PATH: Final = ""
"""The name that stands for the message node where others are names of direct links."""

_PAIR_BYTES: Final = 1024
_ANSWER_BYTES: Final = 192
"""Estimated memory for each sender with a receiver, and each remembered answer, without texts."""

ANSWERS_NAMED: Final = 64
"""Number of remembered answers of a sender to a receiver; the oldest is forgotten first (ours)."""


def key_of(message: Message) -> Key:
    """Return the key that identifies a message among those with the same sender and receiver."""
    return instance_id(message) if message.is_response else message.id


def _is_by_runtime(message: Message) -> bool:
    """Return whether an answer by the node was sent by the sender's runtime itself.

    Otherwise the stub of this runtime, or a node on the route, has refused the request instead.
    """
    via = message.via
    return len(via) > 1 and scheme_of(via[0]) == RUNTIME_SCHEME


def _concerns(message: Message, name: "_Wait") -> bool:
    from_, to, _, is_answers = name
    return (message.from_, message.to, message.is_response) == (from_, to, is_answers)


_Pair: TypeAlias = tuple[str, str]
_Wait: TypeAlias = tuple[str, str, str, bool]
"""Sender, receiver, the link whose messages wait, and whether the messages are answers."""


@attrs.define(slots=True)
class _Given:
    """State of delivery from one sender to one receiver: the last delivered messages.

    Attributes:
        at: Time of the last message.
        best: The highest id of the requests and events.
        path: The node or link by which the request or event with the highest id came.
        answers: Keys of the last answers.
        links: The links on which the sender's runtime has announced its earlier messages.
        owner: The node or link to which the memory is charged: it brought the first message.
        size: Approximate number of bytes of memory of this state.
    """

    at: float
    best: int = 0
    path: str = NODE_PATH
    answers: OrderedDict[str, None] = attrs.field(factory=OrderedDict)
    links: set[str] = attrs.field(factory=set)
    owner: str = NODE_PATH
    size: int = 0

    def has(self, key: Key) -> bool:
        """Return whether the message with this key, or a later request, has been delivered."""
        return key in self.answers if isinstance(key, str) else self.best >= key


@attrs.define(slots=True)
class _Waiting(Generic[T]):
    """Messages from a link that must wait for earlier messages by the node, after an announcement.

    Attributes:
        behind: The announcement of the earlier messages.
        last: Key of the message by the node that must be delivered before them.
        until: Time at which the messages stop waiting.
        held: The waiting messages, in order.
        size: Bytes of memory of the announcement and the messages.
    """

    behind: Behind
    last: Key
    until: float
    held: list[T] = attrs.field(factory=list)
    size: int = 0


class PairOrderCore(Generic[T]):
    """Restores the order of messages of each sender to each receiver, by node and links.

    Messages that came by a link too early wait; `T` is the item that the caller gets back when a
    message may be delivered. Messages that come too late are detected. `ORDER_PAIRS` pairs of
    sender and receiver are remembered in `ORDER_BYTES` of memory, each for `SESSION_IDLE` after its
    last message. At most `ORDER_WAITS` pairs and `ORDER_HELD` messages wait on one link.
    """

    def __init__(self) -> None:
        self._pairs: OrderedDict[_Pair, _Given] = OrderedDict()
        self._waiting: dict[_Wait, list[_Waiting[T]]] = {}
        self._waits: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._held_bytes: Counter[str] = Counter()
        self._of: dict[str, OrderedDict[_Pair, None]] = {}
        self._bytes: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """The number of messages that wait for earlier messages by the node."""
        return self._held.total()

    def announced(self, behind: Behind, link: str, now: float) -> list[T]:
        """Let later messages from a link wait for the announced earlier messages by the node.

        Messages that are already waiting keep to the announcement before them.

        Args:
            behind: The announcement: sender, receiver, and their last messages by the node.
            link: Name of the link that brought the announcement.

        Returns:
            The held items that no longer wait, in order.
        """
        state = self._state_of((behind.from_, behind.to), link, now)
        state.links.add(link)
        until = now + REPLY_TIMEOUT - behind.age
        answer = behind.last if isinstance(behind.last, str) else None
        released: list[T] = []
        for is_answer, last in ((False, behind.top or None), (True, answer)):
            name = (behind.from_, behind.to, link, is_answer)
            if last is None or state.has(last) or until <= now:
                released += self._release(name)
            else:
                released += self._wait(name, _Waiting(behind, last, until, size=behind.size))
        return released

    def _wait(self, name: _Wait, latest: _Waiting[T]) -> list[T]:
        waiting, link = self._waiting.get(name), name[2]
        is_full = self._held_bytes[link] + latest.size > p2p.HELD_BYTES
        if is_full or (waiting is None and self._waits[link] >= p2p.ORDER_WAITS):
            return self._release(name)
        if waiting is None:
            self._waits[link] += 1
            waiting = self._waiting[name] = []
        if waiting and not waiting[-1].held:
            self._held_bytes[link] -= waiting.pop().size
        waiting.append(latest)
        self._held_bytes[link] += latest.size
        return []

    def arrives(self, message: Message, path: str, what: T) -> list[T] | None:
        """Queue or pass on a message that arrived; return the items to handle now, in order.

        Args:
            message: The message as it arrived.
            path: The link that brought it, or `NODE_PATH`.
            what: The item that the host handles for this message.

        Returns:
            The items; empty: the message waits. None: refuse it, since too many messages wait.
        """
        if not self._waiting:
            return [what]
        if path == NODE_PATH:
            # If this message by the node is newer than the waiting messages, the messages that
            # these wait for were lost, so these are handled first.
            older = self._release_due(message, lambda each: self._is_after(each.behind, message))
            return [*older, what]
        name = (message.from_, message.to, path, message.is_response)
        waiting = self._waiting.get(name)
        if waiting is None:
            return [what]
        size = message_bytes(message)
        if self._held[path] >= p2p.ORDER_HELD or self._held_bytes[path] + size > p2p.HELD_BYTES:
            return None
        self._held[path] += 1
        self._held_bytes[path] += size
        waiting[-1].held.append(what)
        waiting[-1].size += size
        return []

    def _is_after(self, behind: Behind, message: Message) -> bool:
        """Return whether a message by the node is newer than the messages that were announced."""
        if not message.is_response:
            return message.id > behind.top
        if not _is_by_runtime(message):
            return False  # the message was not sent by the peer's runtime
        if message.id in behind.answers or len(behind.answers) >= p2p.ORDER_SENT:
            return False  # a full announcement omits older answers: perhaps also this one
        state = self._pairs.get((message.from_, message.to))
        return state is None or not state.has(instance_id(message))

    def is_late(self, message: Message, path: str) -> bool:
        """Return whether a request or event is too late: another path has brought a newer one.

        An older message is accepted from the node if its sender repeats it and the newer one came
        by the node, too, or if a durable queue has kept it.

        Args:
            message: The message as it arrived.
            path: The link that brought it, or `NODE_PATH`.
        """
        state = self._pairs.get((message.from_, message.to))
        if state is None or message.is_response or message.id >= state.best:
            return False
        is_repeat = path == state.path == NODE_PATH
        return not is_repeat and position_of(message) is None

    def given(self, message: Message, path: str, now: float) -> list[T]:
        """Record that a message was delivered or refused; return the items that no longer wait.

        Args:
            message: The message.
            path: The link that brought it, or `NODE_PATH`.
        """
        state = self._state_of((message.from_, message.to), path, now)
        if message.is_response:
            answer = instance_id(message)
            if answer not in state.answers:
                self._count(state, _ANSWER_BYTES + len(answer))
            state.answers[answer] = None
            if len(state.answers) > ANSWERS_NAMED:
                oldest, _ = state.answers.popitem(last=False)
                self._count(state, -_ANSWER_BYTES - len(oldest))
        elif message.id >= state.best:
            state.best, state.path = message.id, path
        if not self._waiting:
            return []
        return self._release_due(message, lambda waiting: state.has(waiting.last))

    def expects(self, from_: str, to: str, link: str) -> None:
        """Forget the announcement of a sender on a link, since a new one will be requested."""
        state = self._pairs.get((from_, to))
        if state is not None:
            state.links.discard(link)

    def is_reached(self, from_: str, to: str, link: str) -> bool:
        """Return whether a sender has announced its earlier messages on a link, and none waits."""
        state = self._pairs.get((from_, to))
        waits = any((from_, to, link, kind) in self._waiting for kind in (False, True))
        return state is not None and link in state.links and not waits

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        if not self._waiting:
            return math.inf
        times = (each.until for waiting in self._waiting.values() for each in waiting)
        return min(times, default=math.inf)

    def tick(self, now: float) -> list[T]:
        """Return the items whose wait is over, since the messages before them count as lost."""
        return self._release_due(None, lambda waiting: waiting.until <= now)

    def _release_due(
        self, message: Message | None, is_due: Callable[[_Waiting[T]], bool]
    ) -> list[T]:
        """Remove and return the messages that need not wait, and all before them on the same link.

        Args:
            message: Only messages with its sender, receiver and kind are released; None: all.
            is_due: Tells whether the messages after an announcement need no longer wait.
        """
        released: list[T] = []
        for name in [each for each in self._waiting if message is None or _concerns(message, each)]:
            due = [number for number, each in enumerate(self._waiting[name], 1) if is_due(each)]
            if due:
                released += self._release(name, due[-1])
        return released

    def _release(self, name: _Wait, count: int | None = None) -> list[T]:
        waiting = self._waiting.get(name, [])
        held = [what for each in waiting[:count] for what in each.held]
        self._held[name[2]] -= len(held)
        self._held_bytes[name[2]] -= sum(each.size for each in waiting[:count])
        del waiting[:count]
        if not waiting and self._waiting.pop(name, None) is not None:
            self._waits[name[2]] -= 1
        return held

    def _state_of(self, pair: _Pair, path: str, now: float) -> _Given:
        state = self._pairs.get(pair)
        if state is None:
            self._forget(now)
            state = self._pairs[pair] = _Given(now, owner=path)
            self._of.setdefault(path, OrderedDict())[pair] = None
            self._count(state, _PAIR_BYTES + sum(map(len, pair)))
        else:
            state.at = now
            self._pairs.move_to_end(pair)
            self._of[state.owner].move_to_end(pair)
        return state

    def _count(self, state: _Given, size: int) -> None:
        state.size += size
        self._bytes[state.owner] += size

    def _forget(self, now: float) -> None:
        while self._pairs:
            pair = next(iter(self._pairs))
            if self._pairs[pair].at + SESSION_IDLE > now:
                break
            self._drop(pair)
        while len(self._pairs) >= p2p.ORDER_PAIRS or self._bytes.total() > p2p.ORDER_BYTES:
            largest = max(self._bytes, key=self._bytes.__getitem__)
            self._drop(next(iter(self._of[largest])))

    def _drop(self, pair: _Pair) -> None:
        state = self._pairs.pop(pair)
        of = self._of[state.owner]
        del of[pair]
        self._bytes[state.owner] -= state.size
        if not of:
            del self._of[state.owner], self._bytes[state.owner]
