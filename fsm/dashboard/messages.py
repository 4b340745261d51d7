"""The messages of the few connections that an operator looks at: what hops of them are remembered.

Nothing is watched that was not asked for within `STORY_LEASE` seconds. A message belongs to the
story of a connection from when it passes its link; its hops elsewhere, and its answer, do too. Of
a message only its head is kept.
"""

from collections import deque
from typing import final

import attrs

from specs.jsonvalue import JsonObject
from specs.limits.dashboard import STORIES, STORY_LEASE, STORY_MESSAGES, TEXT_CHARS
from specs.message import Message, instance_id, request_id
from specs.trace import Fact, Op


@final
@attrs.frozen(slots=True)
class Hop:
    """Something that happened to a message.

    Attributes:
        number: 1, 2, 3, ... of the node.
        at: Seconds since 1970 UTC.
        op: The event, as a trace names it.
        runtime: Runtime of the link that the message came over, or was written to; empty: none.
        message: Its id, verb, sender, receiver and code; of an answer, the id of its request.
        why: Reason of a drop, or part of the node that took it.
    """

    number: int
    at: float
    op: str
    runtime: str
    message: JsonObject
    why: str

    def as_json(self) -> JsonObject:
        """Return it as an object of JSON."""
        place: JsonObject = {"n": self.number, "at": self.at, "op": self.op}
        return {**place, "runtime": self.runtime, "why": self.why, **self.message}


@final
@attrs.define
class _Story:
    until: float
    hops: deque[Hop] = attrs.field(factory=lambda: deque(maxlen=STORY_MESSAGES))
    ids: deque[str] = attrs.field(factory=lambda: deque(maxlen=STORY_MESSAGES))
    known: set[str] = attrs.field(factory=set)

    def know(self, mid: str) -> None:
        if mid not in self.known:
            if len(self.ids) == STORY_MESSAGES:
                self.known.discard(self.ids[0])
            self.ids.append(mid)
            self.known.add(mid)


@final
class Watched:
    """The watched connections, by runtime."""

    def __init__(self) -> None:
        self._stories: dict[str, _Story] = {}
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._stories)

    def ask(self, runtime: str, now: float) -> bool:
        """Watch a connection from now on, for a while; False: enough others are watched.

        Args:
            runtime: Address of its runtime.
            now: Current time, in seconds.
        """
        self.expire(now)
        story = self._stories.get(runtime)
        if story is None and len(self._stories) >= STORIES:
            return False
        if story is None:
            story = self._stories[runtime] = _Story(now)
        story.until = now + STORY_LEASE
        return True

    def expire(self, now: float) -> None:
        """Forget what was not asked for lately."""
        for runtime, story in tuple(self._stories.items()):
            if now >= story.until:
                del self._stories[runtime]

    def hops(self, runtime: str, after: int) -> list[Hop]:
        """Return the hops of a watched connection after the one of a number, the oldest first.

        Args:
            runtime: Address of its runtime.
            after: Number of the last hop that is known.
        """
        story = self._stories.get(runtime)
        return [] if story is None else [hop for hop in story.hops if hop.number > after]

    def passed(self, op: Op, message: Message, runtime: str, why: str, wall: float) -> None:
        """Note what happened to a message, if a watched connection has to do with it.

        Args:
            op: The event.
            message: The message.
            runtime: Runtime of the link that it passed; empty: none.
            why: Reason or part.
            wall: Seconds since 1970 UTC.
        """
        mid = instance_id(message)
        hop: Hop | None = None
        for watched, story in self._stories.items():
            if watched == runtime:
                story.know(mid)
            if mid in story.known:
                hop = hop or self._hop(op, message, runtime, why, wall)
                story.hops.append(hop)

    def reported(self, fact: Fact, wall: float) -> None:
        """Note what a record says of a message, if a watched connection has to do with it.

        Args:
            fact: The record.
            wall: Seconds since 1970 UTC.
        """
        stories = [story for story in self._stories.values() if fact.mid in story.known]
        if not stories or fact.op is None:
            return
        self._number += 1
        head: JsonObject = {
            "id": fact.id,
            "type": fact.type,
            "from": (fact.from_ or "")[:TEXT_CHARS],
            "to": (fact.to or "")[:TEXT_CHARS],
            "code": fact.code,
            "ref": fact.ref or "",
        }
        hop = Hop(self._number, wall, fact.op.value, "", head, (fact.why or "")[:TEXT_CHARS])
        for story in stories:
            story.hops.append(hop)

    def _hop(self, op: Op, message: Message, runtime: str, why: str, wall: float) -> Hop:
        self._number += 1
        head: JsonObject = {
            "id": message.id,
            "type": message.type.value,
            "from": message.from_[:TEXT_CHARS],
            "to": message.to[:TEXT_CHARS],
            "code": message.code,
            "ref": request_id(message) if message.is_response else "",
        }
        return Hop(self._number, wall, op.value, runtime[:TEXT_CHARS], head, why[:TEXT_CHARS])
