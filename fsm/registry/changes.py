"""Changes between linked registries: the entities of their runtimes (P2P-23..26).

Each follower of this registry is an entity of the machine `object_subscription`: the list of
local entities is one more thing that is reported (I-C1..I-C6). A follower gets the list once its
link is live at this end too, so that the list and later changes take the same route. When the
link is no longer live, it follows no more, and asks anew when the link has come back.

Each registry that this one follows is an entity of the machine `observer_copy` (I-C3). Its
changes may come before its list, which a request brings: they are kept, and applied to the list
in order. When the link is no longer live, following ends. The known entities are kept, so that
after the link has come back the new list shows which of them have gone meanwhile.
"""

import math
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.effects import Answer
from fsm.engine import Entity, Step
from fsm.intent import is_p2p_part
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION, State, Trigger
from fsm.machines.sync.observer_copy import OBSERVER_COPY
from fsm.machines.sync.observer_copy import State as CopyState
from fsm.machines.sync.observer_copy import Trigger as CopyTrigger
from specs.addresses.address import runtime_of
from specs.bodies.word import Operation
from specs.limits.p2p import LINK_ENTITY_BYTES, MAX_LINK_ENTITIES, MAX_LIST_BYTES
from specs.limits.protocol import EARLY_CHANGES, MAX_LIST
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code

__all__ = [
    "Ask",
    "Asked",
    "ChangesFollower",
    "ChangesPublisher",
    "Effect",
    "Follow",
    "Input",
    "LeaveAsked",
    "LinkDown",
    "LinkGone",
    "LinkUp",
    "Listed",
    "Listen",
    "LocalGone",
    "LocalLive",
    "Publish",
    "Reported",
    "SnapshotRead",
    "TimePassed",
    "Unfollow",
    "Unlisten",
    "changes_of",
    "registry_of",
]

_REGISTRY: Final = "/registry"
_CHANGES: Final = "/changes"


def registry_of(runtime: str) -> str:
    """Return the address of a runtime's registry."""
    return f"{runtime_of(runtime)}{_REGISTRY}"


def changes_of(runtime: str) -> str:
    """Return the address at which a runtime's registry reports changes of its entities."""
    return f"{registry_of(runtime)}{_CHANGES}"


# ---- what happens


@final
@attrs.frozen(slots=True)
class LinkUp:
    """A link is live: the registries at both ends can report their entities now (P2P-23)."""

    remote: str
    link: str


@final
@attrs.frozen(slots=True)
class LinkDown:
    """A link is no longer live; it may come back."""

    remote: str


@final
@attrs.frozen(slots=True)
class LinkGone:
    """There is no entry for this runtime any more."""

    remote: str


@final
@attrs.frozen(slots=True)
class Asked:
    """The other registry subscribes to changes, over a link (M-08)."""

    request: Message
    remote: str
    link: str


@final
@attrs.frozen(slots=True)
class LeaveAsked:
    """The other registry ends its subscription (M-10). Idempotent."""

    request: Message
    remote: str


@final
@attrs.frozen(slots=True)
class LocalLive:
    """A hyperty or object of this runtime can be reached. Idempotent."""

    url: str


@final
@attrs.frozen(slots=True)
class LocalGone:
    """A hyperty or object of this runtime can no longer be reached. Idempotent."""

    url: str


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The answer to `Ask`.

    Attributes:
        ask: Its number.
        urls: Addresses of the entities there; None: the other registry does not answer.
    """

    remote: str
    ask: int
    urls: tuple[str, ...] | None
    why: str = ""


@final
@attrs.frozen(slots=True)
class Reported:
    """The other registry reports over a link which entities came or went (M-09)."""

    remote: str
    link: str
    operation: Operation
    urls: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class TimePassed:
    """The deadline may have passed."""


Input: TypeAlias = (
    LinkUp
    | LinkDown
    | LinkGone
    | Asked
    | LeaveAsked
    | LocalLive
    | LocalGone
    | SnapshotRead
    | Reported
    | TimePassed
)


# ---- what is to be done


@final
@attrs.frozen(slots=True)
class Follow:
    """Send the changes of this registry over a link, too."""

    link: str


@final
@attrs.frozen(slots=True)
class Unfollow:
    """Send the changes of this registry over a link no longer."""

    link: str


@final
@attrs.frozen(slots=True)
class Publish:
    """Report to all followers which entity came or went here (M-09)."""

    operation: Operation
    url: str


@final
@attrs.frozen(slots=True)
class Listen:
    """Deliver the changes of a remote registry to this registry."""

    remote: str


@final
@attrs.frozen(slots=True)
class Unlisten:
    """Deliver the changes of a remote registry no longer. Idempotent."""

    remote: str


@final
@attrs.frozen(slots=True)
class Ask:
    """Subscribe at the other registry (M-08); the host answers `SnapshotRead` with this number."""

    remote: str
    ask: int


@final
@attrs.frozen(slots=True)
class Listed:
    """The registry of a remote runtime has reported its entities (M-08, M-09, I-R8).

    Attributes:
        there: Entities that live there.
        gone: Entities that no longer do.
    """

    remote: str
    there: tuple[str, ...]
    gone: tuple[str, ...]


Effect: TypeAlias = Step | Follow | Unfollow | Answer | Publish | Listen | Unlisten | Ask | Listed

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

    # ---- followers

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


_NOTHING: Final[dict[str, None]] = {}


@attrs.define(slots=True)
class _Followed:
    """A registry that was asked for its list.

    Attributes:
        ask: The number of the question.
        early: The changes that came before the list.
        early_bytes: Characters of the entities in them.
    """

    entity: Entity
    link: str
    ask: int
    early: list[Reported] = attrs.field(factory=list)
    early_bytes: int = 0


@final
class ChangesFollower:
    """The entities of each remote runtime, as its registry reports them."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._followed: dict[str, _Followed] = {}
        self._known: dict[str, dict[str, None]] = {}
        self._asks = 0

    @property
    def followed(self) -> tuple[str, ...]:
        """The runtimes whose list has come, and whose registries report changes."""
        is_live = {one: each.entity.state is CopyState.LIVE for one, each in self._followed.items()}
        return tuple(remote for remote, has_reported in is_live.items() if has_reported)

    def known(self, remote: str) -> tuple[str, ...]:
        """Return the entities last reported of a runtime, also of one whose link is lost."""
        return tuple(self._known.get(remote, ()))

    def feed(
        self, happened: LinkUp | LinkDown | LinkGone | SnapshotRead | Reported
    ) -> list[Effect]:
        """Take an input; return the effects, in order."""
        match happened:
            case LinkUp(remote, link):
                return [*self._end(remote, "another link"), *self._follow(remote, link)]
            case LinkDown(remote):
                return self._end(remote, "the link is lost")
            case LinkGone(remote):
                self._known.pop(remote, None)
                return self._end(remote, "the link is over")
            case SnapshotRead():
                return self._answered(happened)
            case Reported():
                return self._reported(happened)
            case _:
                assert_never(happened)

    # ---- following

    def _follow(self, remote: str, link: str) -> list[Effect]:
        self._asks += 1
        key = f"{registry_of(remote)}|{registry_of(self._runtime)}"
        followed = _Followed(Entity(OBSERVER_COPY, key), link, self._asks)
        self._followed[remote] = followed
        return [
            followed.entity.step(CopyTrigger.OBSERVE),
            Listen(remote),
            Ask(remote, followed.ask),
        ]

    def _end(self, remote: str, why: str) -> list[Effect]:
        followed = self._followed.pop(remote, None)
        if followed is None:
            return []
        return [followed.entity.step(CopyTrigger.GIVEN_UP, why), Unlisten(remote)]

    # ---- reports

    def _answered(self, read: SnapshotRead) -> list[Effect]:
        """Take the list; without one the changes before it cannot be relied on."""
        followed = self._followed.get(read.remote)
        if followed is None or followed.ask != read.ask:
            return []
        former = self._known.pop(read.remote, _NOTHING)
        if read.urls is None:
            return [*self._end(read.remote, read.why), *_listed(read.remote, former, _NOTHING)]
        step = followed.entity.step(CopyTrigger.SNAPSHOT)
        known = dict[str, None]()
        _add(read.urls, known)
        for report in followed.early:
            _apply(report, known)
        followed.early.clear()
        followed.early_bytes = 0
        self._known[read.remote] = known
        return [step, *_listed(read.remote, former, known)]

    def _reported(self, report: Reported) -> list[Effect]:
        followed = self._followed.get(report.remote)
        if followed is None or followed.link != report.link:
            return []
        step = followed.entity.step(CopyTrigger.CHANGED)
        if followed.entity.state is CopyState.LIVE:
            known = self._known[report.remote]
            former = _known_of(report.urls, known)
            _apply(report, known)
            return [step, *_listed(report.remote, former, _known_of(report.urls, known))]
        followed.early.append(report)
        followed.early_bytes += sum(map(len, report.urls))
        if len(followed.early) > EARLY_CHANGES or followed.early_bytes > LINK_ENTITY_BYTES:
            return [step, *self._end(report.remote, "it sends too many changes before its list")]
        return [step]


def _known_of(urls: tuple[str, ...], known: dict[str, None]) -> dict[str, None]:
    """Return those that are known: nothing else of a long list can have changed."""
    return dict.fromkeys(url for url in urls if url in known)


def _apply(report: Reported, known: dict[str, None]) -> None:
    if report.operation is Operation.REMOVE:
        for url in report.urls:
            known.pop(url, None)
    else:
        _add(report.urls, known)


def _add(urls: tuple[str, ...], known: dict[str, None]) -> None:
    """Add entities to what is known of a peer, up to its limits."""
    left = LINK_ENTITY_BYTES - sum(map(len, known))
    for url in urls:
        left -= len(url)
        if len(known) >= MAX_LINK_ENTITIES or left < 0:
            return
        known[url] = None


def _listed(remote: str, former: dict[str, None], known: dict[str, None]) -> list[Effect]:
    gone = tuple(url for url in former if url not in known)
    there = tuple(url for url in known if url not in former)
    return [Listed(remote, there, gone)] if gone or there else []
