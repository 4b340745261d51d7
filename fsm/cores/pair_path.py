"""Order of a pair's messages while their path changes (C-20, I-B7 across paths).

A pair is a sender and a receiver. Its messages leave by one route; when the route
changes, what is sent by the new one could overtake what is still on its way by the
old one. So it is held until every earlier message that went by another route is
answered, or `SWITCH_TIMEOUT` is over since it went: whichever is first. Answers are
never held: their ids say what they belong to.

A stub that loses its link gives messages back; they are routed again, before all
that is younger, because a sender's ids rise: order within a pair is order by id.
"""

import math
from bisect import insort
from collections import OrderedDict
from typing import TypeAlias, final

import attrs

from specs.limits import SWITCH_TIMEOUT
from specs.message import Message

__all__ = ["Forward", "PairPathCore"]

_Pair: TypeAlias = tuple[str, str]


@final
@attrs.frozen(slots=True)
class Forward:
    """An effect: the message goes by this route now."""

    message: Message
    route: str


@attrs.define(slots=True)
class _Path:
    """One pair's state.

    Attributes:
        route: The route in use.
        sent: Ids under way by `route`, with the time each was sent.
        old: Ids under way by other routes, with the time after which they
            count as arrived; infinity for what is being routed again.
        held: What waits, in order of id.
        last: When the youngest message was sent.
    """

    route: str
    sent: OrderedDict[int, float] = attrs.field(factory=OrderedDict)
    old: dict[int, float] = attrs.field(factory=dict)
    held: list[Forward] = attrs.field(factory=list)
    last: float = -math.inf


@final
class PairPathCore:
    """Keeps the order of every pair whose messages leave by stubs."""

    def __init__(self) -> None:
        self._paths: OrderedDict[_Pair, _Path] = OrderedDict()
        self._waiting: dict[_Pair, None] = {}

    @property
    def held(self) -> int:
        """How many messages wait for their path."""
        return sum(len(self._paths[pair].held) for pair in self._waiting)

    def send(self, message: Message, route: str, now: float) -> list[Forward]:
        """Route a request or event; it goes now, or when its path is free."""
        pair = (message.from_, message.to)
        path = self._paths.get(pair)
        if path is None:
            self._forget_idle(now)
            path = self._paths[pair] = _Path(route)
        path.old.pop(message.id, None)
        if path.route == route and not path.old and not path.held:
            _note(path, message.id, now)
            self._paths.move_to_end(pair)
            return [Forward(message, route)]
        insort(path.held, Forward(message, route), key=_id_of)
        return self._release(pair, path, now)

    def settled(self, from_: str, to: str, id_: int, now: float) -> list[Forward]:
        """Note that a request has its final answer, or will never be sent."""
        path = self._paths.get((from_, to))
        if path is None:
            return []
        path.sent.pop(id_, None)
        if path.old.pop(id_, None) is None:
            return []
        return self._release((from_, to), path, now)

    def returned(self, messages: tuple[Message, ...]) -> None:
        """Note that these will be routed again: nothing younger may pass them."""
        for message in messages:
            if message.is_response:
                continue
            pair = (message.from_, message.to)
            path = self._paths.get(pair)
            if path is None:
                path = self._paths[pair] = _Path("")
            path.sent.pop(message.id, None)
            path.old[message.id] = math.inf

    def arrived_at(self, from_: str, to: str, now: float) -> float:
        """Return when what a pair has sent counts as arrived: at most `SWITCH_TIMEOUT` from now."""
        path = self._paths.get((from_, to))
        if path is None:
            return -math.inf
        last = now if path.held else max(path.sent.values(), default=-math.inf)
        until = max([last + SWITCH_TIMEOUT, *path.old.values()])
        return min(until, now + SWITCH_TIMEOUT)

    def went_otherwise(self, from_: str, to: str, id_: int, at: float) -> None:
        """Note that a message of a pair left by a link of its own: nothing may pass it."""
        path = self._paths.setdefault((from_, to), _Path(""))
        path.old[id_] = at + SWITCH_TIMEOUT
        path.last = max(path.last, at)

    def deadline(self) -> float:
        """Return when the next held message may go at the latest."""
        return min((self._next(self._paths[pair]) for pair in self._waiting), default=math.inf)

    def tick(self, now: float) -> list[Forward]:
        """Release what has waited long enough."""
        due = [pair for pair in self._waiting if self._next(self._paths[pair]) <= now]
        return [effect for pair in due for effect in self._release(pair, self._paths[pair], now)]

    @staticmethod
    def _next(path: _Path) -> float:
        first = path.held[0].message.id
        return max((until for id_, until in path.old.items() if id_ < first), default=-math.inf)

    def _release(self, pair: _Pair, path: _Path, now: float) -> list[Forward]:
        free: list[Forward] = []
        while path.held and _may_go(path, path.held[0], now):
            following = path.held.pop(0)
            _note(path, following.message.id, now)
            free.append(following)
        if path.held:
            self._waiting[pair] = None
        else:
            self._waiting.pop(pair, None)
            path.old = {id_: until for id_, until in path.old.items() if until > now}
        return free

    def _forget_idle(self, now: float) -> None:
        """Forget the pairs that could not be overtaken any more."""
        while self._paths:
            pair, path = next(iter(self._paths.items()))
            under_way = path.held or any(until > now for until in path.old.values())
            if under_way or path.last + SWITCH_TIMEOUT > now:
                return
            del self._paths[pair]


def _id_of(forward: Forward) -> int:
    return forward.message.id


def _note(path: _Path, id_: int, now: float) -> None:
    path.sent[id_] = now
    path.last = now
    while path.sent and next(iter(path.sent.values())) + SWITCH_TIMEOUT <= now:
        path.sent.popitem(last=False)


def _may_go(path: _Path, following: Forward, now: float) -> bool:
    if following.route != path.route:
        path.old.update({id_: at + SWITCH_TIMEOUT for id_, at in path.sent.items()})
        path.sent.clear()
        path.route = following.route
    path.old = {id_: until for id_, until in path.old.items() if until > now}
    return all(id_ > following.message.id for id_ in path.old)
