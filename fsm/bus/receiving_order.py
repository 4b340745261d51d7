"""Order of a pair's messages at the end that receives them, by whatever paths (I-B7).

A pair is a sender and a receiver. A sender that changes from the node to a direct link announces
over the link which request or event, and which answer, went by the node last. Requests and events
of the pair that the link brings wait until the node has brought that request, answers until the
node has brought that answer. The node keeps the order of requests and the order of answers, but not
the order between the two: between two domains an answer returns by the connection of its request.
The wait for a message that the node lost ends `REPLY_TIMEOUT` after the message was sent: by then a
missing request has been answered 408.

The order does not depend on that time. The ids of a sender rise, so a request or event that comes
by one path after a younger one has come by another is too late: the host refuses it. The ids of
answers do not rise, so the announcement lists those that may be under way: any other answer of the
sender's runtime that the node brings is younger than the waiting answers, which are handled before
it.
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
"""The name of the path by the node, by whatever stub; other paths have the names of their links."""

_PAIR_BYTES: Final = 1024
_ANSWER_BYTES: Final = 192
"""Number of bytes of a pair, and of each of its answers, without their texts."""

ANSWERS_NAMED: Final = 64
"""Number of answers of a pair that are remembered; the oldest is forgotten first (ours)."""


def key_of(message: Message) -> Key:
    """Return the name of a message within its pair."""
    return instance_id(message) if message.is_response else message.id


def _is_by_runtime(message: Message) -> bool:
    """Return whether the sender's runtime itself has sent a message that the node brings.

    Otherwise the own stub has refused a request (it is no hop), or a node on the way has.
    """
    via = message.via
    return len(via) > 1 and scheme_of(via[0]) == RUNTIME_SCHEME


def _concerns(message: Message, name: "_Wait") -> bool:
    from_, to, _, is_answers = name
    return (message.from_, message.to, message.is_response) == (from_, to, is_answers)


_Pair: TypeAlias = tuple[str, str]
_Wait: TypeAlias = tuple[str, str, str, bool]
"""A pair, the link whose messages wait, and whether the messages are answers."""


@attrs.define(slots=True)
class _Given:
    """The state of a pair.

    Attributes:
        at: Time of its last message.
        best: The highest id of its requests and events.
        path: The path by which that message came.
        answers: The last answers.
        links: The links whose announcements are valid.
        owner: The path for which its memory is counted: the first that brought a message of it.
        size: Approximate number of bytes of memory that it takes.
    """

    at: float
    best: int = 0
    path: str = NODE_PATH
    answers: OrderedDict[str, None] = attrs.field(factory=OrderedDict)
    links: set[str] = attrs.field(factory=set)
    owner: str = NODE_PATH
    size: int = 0

    def has(self, key: Key) -> bool:
        return key in self.answers if isinstance(key, str) else self.best >= key


@attrs.define(slots=True)
class _Waiting(Generic[T]):
    """The messages that came after one announcement and before the next.

    Attributes:
        behind: The announcement.
        last: The message that they wait for.
        until: Time at which the messages stop waiting.
        held: The messages.
    """

    behind: Behind
    last: Key
    until: float
    held: list[T] = attrs.field(factory=list)
    size: int = 0


class PairOrderCore(Generic[T]):
    """Holds messages that came by a link too early, and detects those that come too late.

    `T` is the item that the host handles when a message's turn has come. The core remembers
    `ORDER_PAIRS` pairs in `ORDER_BYTES` of memory, each for `SESSION_IDLE` after its last message,
    which is as long as a node keeps a message for a session that is away; the path that takes most
    memory loses its oldest pair first. At most `ORDER_WAITS` pairs and `ORDER_HELD` messages of
    `HELD_BYTES` wait on one link.
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
        """The number of waiting messages."""
        return self._held.total()

    def announced(self, behind: Behind, link: str, now: float) -> list[T]:
        """Take an announcement for the further messages that this link brings.

        Messages of the pair that are waiting still wait for the announcement before them.

        Args:
            behind: The pair, and its last messages by the node.
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
        """Take a message that came; return the items to handle now, in order.

        Args:
            message: The message as it arrived.
            path: The link that brought it, or `NODE_PATH`.
            what: The item that the host handles for this message.

        Returns:
            Nothing: the message waits. None: too many messages wait already.
        """
        if not self._waiting:
            return [what]
        if path == NODE_PATH:
            # Messages that wait for lost ones go first: this message by the node is younger.
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
        """Return whether the node sent a message after the last one in an announcement."""
        if not message.is_response:
            return message.id > behind.top
        if not _is_by_runtime(message):
            return False  # the message was not sent by the peer's runtime
        if message.id in behind.answers or len(behind.answers) >= p2p.ORDER_SENT:
            return False  # an announcement does not list the older ones of so many
        state = self._pairs.get((message.from_, message.to))
        return state is None or not state.has(instance_id(message))

    def is_late(self, message: Message, path: str) -> bool:
        """Return whether a request or event comes after a younger one by another path.

        Only the node may bring such a message: it repeats a message that the node lost, or a log
        has kept it.

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
        """Note a message as delivered or finally refused; return the items that no longer wait.

        Args:
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
        """Forget the announcement of a pair by a link: the sender will be asked to repeat it."""
        state = self._pairs.get((from_, to))
        if state is not None:
            state.links.discard(link)

    def is_reached(self, from_: str, to: str, link: str) -> bool:
        """Return whether a link has announced a pair, and all earlier messages of the pair came."""
        state = self._pairs.get((from_, to))
        waits = any((from_, to, link, kind) in self._waiting for kind in (False, True))
        return state is not None and link in state.links and not waits

    def deadline(self) -> float:
        """Return the time of the next call of `tick`."""
        if not self._waiting:
            return math.inf
        times = (each.until for waiting in self._waiting.values() for each in waiting)
        return min(times, default=math.inf)

    def tick(self, now: float) -> list[T]:
        """Return the items that waited so long that the messages before them count as lost."""
        return self._release_due(None, lambda waiting: waiting.until <= now)

    def _release_due(
        self, message: Message | None, is_due: Callable[[_Waiting[T]], bool]
    ) -> list[T]:
        """Release the messages that are due, and those that came by the same link before them.

        Args:
            message: Restricts the release to messages that wait for its pair and kind; None: all.
            is_due: Whether the messages after an announcement no longer wait.
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
