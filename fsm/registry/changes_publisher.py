"""The publisher of changes: registries follow the entities of this runtime (P2P-23..26).

Each follower is an entity of the machine `object_subscription`: the list of local entities
is one more thing that is reported (I-C1..I-C6). A follower gets the list once its link is
live at this end too, so that the list and later changes go the same way. When the link is
no longer live, it follows no more, and asks anew when the link has come back.
"""

import math
from typing import Final, assert_never, final

import attrs

from fsm.engine import Entity
from fsm.intent import is_p2p_part
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION, State, Trigger
from fsm.registry.changes_io import (
    Answer,
    Asked,
    Effect,
    Follow,
    LeaveAsked,
    LocalGone,
    LocalLive,
    Publish,
    TimePassed,
    Unfollow,
    registry_of,
)
from fsm.registry.resolve.effects import LinkDown, LinkGone, LinkUp
from specs.bodies.word import Operation
from specs.limits.p2p import MAX_LIST_BYTES
from specs.limits.protocol import MAX_LIST
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code

__all__ = ["ChangesPublisher"]

_GONE: Final = "the link is gone"


@attrs.define(slots=True)
class _Follower:
    """A registry that asked to follow.

    Attributes:
        waiting: Its request, until that is answered.
        until: When that must be answered.
    """

    entity: Entity
    link: str
    waiting: Message | None
    until: float

    @property
    def is_active(self) -> bool:
        return self.entity.state is State.ACTIVE


@final
class ChangesPublisher:
    """The list of local entities, and its followers: at most one per remote runtime."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._live: dict[str, None] = {}
        self._links: dict[str, str] = {}
        self._followers: dict[str, _Follower] = {}

    @property
    def followers(self) -> tuple[str, ...]:
        """The runtimes that get every change."""
        return tuple(remote for remote, each in self._followers.items() if each.is_active)

    def deadline(self) -> float:
        """Return when `TimePassed` is due."""
        return min((each.until for each in self._followers.values()), default=math.inf)

    def feed(
        self,
        happened: LinkUp
        | LinkDown
        | LinkGone
        | Asked
        | LeaveAsked
        | LocalLive
        | LocalGone
        | TimePassed,
        now: float,
    ) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case LinkUp() | LinkDown() | LinkGone():
                return self._link(happened)
            case Asked():
                return self._asked(happened, now)
            case LeaveAsked(request, remote):
                return [*self._end(remote, Trigger.UNSUBSCRIBE), _done(request)]
            case LocalLive() | LocalGone():
                return self._changed(happened)
            case TimePassed():
                late = [one for one, each in self._followers.items() if each.until <= now]
                why = "the link did not become live in time"
                return [
                    done
                    for one in late
                    for done in self._end(one, Trigger.REFUSE, why, Code.UNAVAILABLE)
                ]
            case _:
                assert_never(happened)

    # ---- who follows

    def _link(self, happened: LinkUp | LinkDown | LinkGone) -> list[Effect]:
        remote = happened.remote
        if not isinstance(happened, LinkUp):
            self._links.pop(remote, None)
            return self._end(remote, Trigger.UNSUBSCRIBE, _GONE)
        self._links[remote] = happened.link
        follower = self._followers.get(remote)
        if follower is None:
            return []
        if follower.link != happened.link:
            return self._end(remote, Trigger.UNSUBSCRIBE, _GONE)
        return self._decide(remote, follower)

    def _asked(self, asked: Asked, now: float) -> list[Effect]:
        """Answer a registry that follows already at once: its answer may have been lost."""
        remote, request = asked.remote, asked.request
        there = self._followers.get(remote)
        if there is not None and there.is_active:
            return [Answer(self._list(request))]
        ended = self._end(remote, Trigger.UNSUBSCRIBE, "it asked again")
        key = f"{registry_of(self._runtime)}|{registry_of(remote)}"
        entity = Entity(OBJECT_SUBSCRIPTION, key)
        begun = entity.step(Trigger.REQUEST)
        follower = _Follower(entity, asked.link, request, now + entity.patience)
        self._followers[remote] = follower
        is_live = self._links.get(remote) == asked.link
        return [*ended, begun, *(self._decide(remote, follower) if is_live else [])]

    def _decide(self, remote: str, follower: _Follower) -> list[Effect]:
        """Let a registry with a live link follow; a list that is too long is refused."""
        request = follower.waiting
        if request is None:
            return []
        if len(self._live) > MAX_LIST or sum(map(len, self._live)) > MAX_LIST_BYTES:
            why = "too much lives here to be listed"
            return self._end(remote, Trigger.REFUSE, why, Code.TOO_LARGE)
        follower.waiting, follower.until = None, math.inf
        step = follower.entity.step(Trigger.ACCEPT)
        return [step, Follow(follower.link), Answer(self._list(request))]

    def _list(self, request: Message) -> Message:
        return reply_to(request, Code.OK, {"value": list(self._live)})

    def _end(
        self, remote: str, trigger: Trigger, why: str = "", code: Code = Code.GONE
    ) -> list[Effect]:
        follower = self._followers.pop(remote, None)
        if follower is None:
            return []
        unfollow = [Unfollow(follower.link)] if follower.is_active else []
        step = follower.entity.step(trigger, why)
        waiting = follower.waiting
        if waiting is None:
            return [*unfollow, step]
        return [step, Answer(refuse(waiting, code, why))]

    # ---- what changes

    def _changed(self, happened: LocalLive | LocalGone) -> list[Effect]:
        """Report each entity that comes or goes once, however often the input is repeated (I-C6).

        Addresses that serve links are not reported: no link leads to them (I-P13).
        """
        url, is_there = happened.url, happened.url in self._live
        match happened:
            case LocalLive() if not is_there and not is_p2p_part(url):
                self._live[url] = None
                return self._publish(Operation.ADD, url)
            case LocalGone() if is_there:
                del self._live[url]
                return self._publish(Operation.REMOVE, url)
            case _:
                return []

    def _publish(self, operation: Operation, url: str) -> list[Effect]:
        return [Publish(operation, url)] if self.followers else []


def _done(request: Message) -> Answer:
    return Answer(reply_to(request, Code.OK))
