"""Reports of entities between linked registries: each follows the other's changes (P2P-23..26).

Each follower of this registry is an entity of the machine `object_subscription`: the list of local
entities is reported like an object (I-C1..I-C6). A follower gets the list once its link is live at
this end too, so that the list and later changes take the same route. When the link is no longer
live, it ceases to follow, and asks again when the link has come back.

Each registry that this one follows is an entity of the machine `observer_copy` (I-C3). Its changes
may come before its list, which answers a request: early changes are kept and applied to the list in
order. When the link is no longer live, following ends. The known entities are kept, so that after
the link has come back the new list shows which of them have left meanwhile.
"""

import math
from typing import Final

import attrs

from fsm.effects import is_p2p_part
from fsm.engine import Entity, Step
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

_REGISTRY: Final = "/registry"
_CHANGES: Final = "/changes"


def registry_of(runtime: str) -> str:
    """Return the address of a runtime's registry."""
    return f"{runtime_of(runtime)}{_REGISTRY}"


def changes_of(runtime: str) -> str:
    """Return the address at which a runtime's registry reports changes of its entities."""
    return f"{registry_of(runtime)}{_CHANGES}"


class ChangesPort:
    """The calls of the two cores to their host; a method does nothing unless it is overridden.

    No method calls a core.
    """

    def step(self, step: Step) -> None:
        """Trace a step of a machine."""

    def answer(self, message: Message) -> None:
        """Send an answer by the route that is known now, before later reports."""

    def follow(self, link: str) -> None:
        """Send the changes of this registry over a link, too."""

    def unfollow(self, link: str) -> None:
        """Stop sending the changes of this registry over a link."""

    def publish(self, operation: Operation, url: str) -> None:
        """Report to all followers that an entity of this runtime came or went (M-09)."""

    def listen(self, remote: str) -> None:
        """Deliver the changes of a remote registry to this registry."""

    def unlisten(self, remote: str) -> None:
        """Stop delivering the changes of a remote registry. Idempotent."""

    def ask(self, remote: str, number: int) -> None:
        """Subscribe at the other registry (M-08); `take_list` follows, with this number."""

    def list_entities(self, remote: str, there: tuple[str, ...], gone: tuple[str, ...]) -> None:
        """Note which entities have come to a runtime, and which have left it (M-08, M-09, I-R8)."""


_GONE: Final = "the link is gone"


@attrs.define(slots=True)
class _Follower:
    """A remote registry that asked to follow this one.

    Attributes:
        waiting: Its request, until the request is answered.
        until: Deadline of the answer.
    """

    entity: Entity
    link: str
    waiting: Message | None
    until: float

    @property
    def is_active(self) -> bool:
        return self.entity.state is State.ACTIVE


class ChangesPublisher:
    """The list of local entities and its followers, at most one for each remote runtime."""

    def __init__(self, runtime: str, port: ChangesPort) -> None:
        self.port = port
        self._runtime = runtime
        self._live: dict[str, None] = {}
        self._links: dict[str, str] = {}
        self._followers: dict[str, _Follower] = {}

    @property
    def followers(self) -> tuple[str, ...]:
        """The runtimes that get every change."""
        return tuple(remote for remote, each in self._followers.items() if each.is_active)

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return min((each.until for each in self._followers.values()), default=math.inf)

    # ---- inputs

    def link_up(self, remote: str, link: str) -> None:
        """Note that a link is live, and answer the request that came over it (P2P-23)."""
        self._links[remote] = link
        follower = self._followers.get(remote)
        if follower is not None and follower.link != link:
            self._end(remote, Trigger.UNSUBSCRIBE, _GONE)
        elif follower is not None:
            self._decide(remote, follower)

    def link_down(self, remote: str) -> None:
        """Note that a link is no longer live, or has ended."""
        self._links.pop(remote, None)
        self._end(remote, Trigger.UNSUBSCRIBE, _GONE)

    def subscribe(self, request: Message, remote: str, link: str, now: float) -> None:
        """Take a subscription over a link (M-08).

        A runtime that follows already is answered at once: its answer may have been lost.
        """
        known = self._followers.get(remote)
        if known is not None and known.is_active:
            self.port.answer(self._list(request))
            return
        self._end(remote, Trigger.UNSUBSCRIBE, "it asked again")
        key = f"{registry_of(self._runtime)}|{registry_of(remote)}"
        entity = Entity(OBJECT_SUBSCRIPTION, key)
        self.port.step(entity.step(Trigger.REQUEST))
        follower = _Follower(entity, link, request, now + entity.patience)
        self._followers[remote] = follower
        if self._links.get(remote) == link:
            self._decide(remote, follower)

    def unsubscribe(self, request: Message, remote: str) -> None:
        """Take the end of a subscription (M-10). Idempotent."""
        self._end(remote, Trigger.UNSUBSCRIBE)
        self.port.answer(reply_to(request, Code.OK))

    def add_local(self, url: str) -> None:
        """Report once that a hyperty or object of this runtime can be reached (I-C6).

        Addresses that serve links are not reported: no link leads to them (I-P13).
        """
        if url not in self._live and not is_p2p_part(url):
            self._live[url] = None
            self._publish(Operation.ADD, url)

    def remove_local(self, url: str) -> None:
        """Report once that a hyperty or object can no longer be reached (I-C6)."""
        if url in self._live:
            del self._live[url]
            self._publish(Operation.REMOVE, url)

    def time_over(self, now: float) -> None:
        """Refuse requests that came over links that did not become live."""
        for remote in [follower for follower, each in self._followers.items() if each.until <= now]:
            why = "the link did not become live in time"
            self._end(remote, Trigger.REFUSE, why, Code.UNAVAILABLE)

    # ---- followers

    def _decide(self, remote: str, follower: _Follower) -> None:
        """Accept a follower with a live link; refuse if the list is too long."""
        request = follower.waiting
        if request is None:
            return
        if len(self._live) > MAX_LIST or sum(map(len, self._live)) > MAX_LIST_BYTES:
            why = "too much lives here to be listed"
            self._end(remote, Trigger.REFUSE, why, Code.TOO_LARGE)
            return
        follower.waiting, follower.until = None, math.inf
        self.port.step(follower.entity.step(Trigger.ACCEPT))
        self.port.follow(follower.link)
        self.port.answer(self._list(request))

    def _list(self, request: Message) -> Message:
        return reply_to(request, Code.OK, {"value": list(self._live)})

    def _end(self, remote: str, trigger: Trigger, why: str = "", code: Code = Code.GONE) -> None:
        follower = self._followers.pop(remote, None)
        if follower is None:
            return
        if follower.is_active:
            self.port.unfollow(follower.link)
        self.port.step(follower.entity.step(trigger, why))
        if follower.waiting is not None:
            self.port.answer(refuse(follower.waiting, code, why))

    def _publish(self, operation: Operation, url: str) -> None:
        if self.followers:
            self.port.publish(operation, url)


_NOTHING: Final[dict[str, None]] = {}


@attrs.define(slots=True)
class _Followed:
    """A remote registry that this one asked for its list.

    Attributes:
        ask: Number of the request.
        early: Changes that came before the list: their operations and entities.
        early_bytes: Number of characters of the entities in them.
    """

    entity: Entity
    link: str
    ask: int
    early: list[tuple[Operation, tuple[str, ...]]] = attrs.field(factory=list)
    early_bytes: int = 0


class ChangesFollower:
    """The entities of each remote runtime, as its registry reports them."""

    def __init__(self, runtime: str, port: ChangesPort) -> None:
        self.port = port
        self._runtime = runtime
        self._followed: dict[str, _Followed] = {}
        self._known: dict[str, dict[str, None]] = {}
        self._asks = 0

    @property
    def followed(self) -> tuple[str, ...]:
        """The runtimes whose list has come, and whose registries report changes."""
        is_live = {
            item: each.entity.state is CopyState.LIVE for item, each in self._followed.items()
        }
        return tuple(remote for remote, has_reported in is_live.items() if has_reported)

    def last_reported(self, remote: str) -> tuple[str, ...]:
        """Return the entities last reported of a runtime, even if its link is lost."""
        return tuple(self._known.get(remote, ()))

    # ---- inputs

    def link_up(self, remote: str, link: str) -> None:
        """Ask the registry at the other end of a link that is live (P2P-23)."""
        self._end(remote, "another link")
        self._asks += 1
        key = f"{registry_of(remote)}|{registry_of(self._runtime)}"
        followed = _Followed(Entity(OBSERVER_COPY, key), link, self._asks)
        self._followed[remote] = followed
        self.port.step(followed.entity.step(CopyTrigger.OBSERVE))
        self.port.listen(remote)
        self.port.ask(remote, followed.ask)

    def link_down(self, remote: str) -> None:
        """Note that a link is no longer live; it may come back."""
        self._end(remote, "the link is lost")

    def link_gone(self, remote: str) -> None:
        """Note that there is no link entry for a runtime any more."""
        self._known.pop(remote, None)
        self._end(remote, "the link is over")

    def take_list(
        self, remote: str, number: int, urls: tuple[str, ...] | None, why: str = ""
    ) -> None:
        """Take the answer to `ask`; without a list, the early changes are discarded.

        Args:
            remote: The other runtime.
            number: Number of the request.
            urls: Addresses of the entities there; None: the other registry refused.
            why: The reason, as half a sentence.
        """
        followed = self._followed.get(remote)
        if followed is None or followed.ask != number:
            return
        former = self._known.pop(remote, _NOTHING)
        if urls is None:
            self._end(remote, why)
            self._report(remote, former, _NOTHING)
            return
        self.port.step(followed.entity.step(CopyTrigger.SNAPSHOT))
        known = self._known[remote] = dict[str, None]()
        _add(urls, known)
        for operation, addresses in followed.early:
            _apply(operation, addresses, known)
        followed.early.clear()
        followed.early_bytes = 0
        self._report(remote, former, known)

    def change(self, remote: str, link: str, operation: Operation, urls: tuple[str, ...]) -> None:
        """Apply a change that the other registry reports over a link (M-09)."""
        followed = self._followed.get(remote)
        if followed is None or followed.link != link:
            return
        self.port.step(followed.entity.step(CopyTrigger.CHANGED))
        if followed.entity.state is CopyState.LIVE:
            known = self._known[remote]
            former = _known_of(urls, known)
            _apply(operation, urls, known)
            self._report(remote, former, _known_of(urls, known))
            return
        followed.early.append((operation, urls))
        followed.early_bytes += sum(map(len, urls))
        if len(followed.early) > EARLY_CHANGES or followed.early_bytes > LINK_ENTITY_BYTES:
            self._end(remote, "it sends too many changes before its list")

    # ---- decisions

    def _end(self, remote: str, why: str) -> None:
        followed = self._followed.pop(remote, None)
        if followed is not None:
            self.port.step(followed.entity.step(CopyTrigger.GIVEN_UP, why))
            self.port.unlisten(remote)

    def _report(self, remote: str, former: dict[str, None], known: dict[str, None]) -> None:
        removed = tuple(url for url in former if url not in known)
        added = tuple(url for url in known if url not in former)
        if removed or added:
            self.port.list_entities(remote, added, removed)


def _known_of(urls: tuple[str, ...], known: dict[str, None]) -> dict[str, None]:
    """Return the listed entities that are already known."""
    return dict.fromkeys(url for url in urls if url in known)


def _apply(operation: Operation, urls: tuple[str, ...], known: dict[str, None]) -> None:
    if operation is Operation.REMOVE:
        for url in urls:
            known.pop(url, None)
    else:
        _add(urls, known)


def _add(urls: tuple[str, ...], known: dict[str, None]) -> None:
    """Add entities to the known ones of a peer, up to its limits."""
    space = LINK_ENTITY_BYTES - sum(map(len, known))
    for url in urls:
        space -= len(url)
        if len(known) >= MAX_LINK_ENTITIES or space < 0:
            return
        known[url] = None
