"""Exchange of registered hyperties and objects between two runtimes with a link (P2P-23..26).

The registries of both runtimes subscribe to each other's list of local hyperties and objects.

`ChangesPublisher` reports the list of this runtime. Each subscribed registry has an instance of the
state machine `object_subscription`, as if the list were a data object (I-C1..I-C6). The subscriber
gets the list after this runtime, too, regards the link as live, so that the list and later changes
take the same route. The subscription ends with the link, and begins again when the link is back.

`ChangesFollower` receives the lists of other registries; each has an instance of the state machine
`observer_copy` (I-C3). Changes may come before the list: they are kept and then applied in order.
If the link is lost, the last known list is kept. After the link has come back, the comparison with
the new list shows which hyperties and objects have left meanwhile.
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
    """Return the address from which a runtime's registry publishes changes of its list."""
    return f"{registry_of(runtime)}{_CHANGES}"


class ChangesPort:
    """Calls of `ChangesPublisher` and `ChangesFollower` to their host, which sends the messages.

    Each method does nothing unless it is overridden. No method calls the two classes.
    """

    def step(self, step: Step) -> None:
        """Trace a state machine transition."""

    def answer(self, message: Message) -> None:
        """Send an answer by the current route, ahead of later reports."""

    def follow(self, link: str) -> None:
        """Send the changes of the local list over a link from now on."""

    def unfollow(self, link: str) -> None:
        """Stop sending the changes of the local list over a link."""

    def publish(self, operation: Operation, url: str) -> None:
        """Report to all subscribers that a local hyperty or object was added or removed (M-09)."""

    def listen(self, remote: str) -> None:
        """Deliver the changes of a remote registry to this registry."""

    def unlisten(self, remote: str) -> None:
        """Stop delivering the changes of a remote registry. Idempotent."""

    def ask(self, remote: str, number: int) -> None:
        """Subscribe at another registry (M-08); pass the answer to `take_list` with this number."""

    def list_entities(self, remote: str, there: tuple[str, ...], gone: tuple[str, ...]) -> None:
        """Take the added and removed hyperties and objects of a runtime (M-08, M-09, I-R8)."""


_GONE: Final = "the link is gone"


@attrs.define(slots=True)
class _Follower:
    """A remote registry that has subscribed to the local list.

    Attributes:
        entity: State machine of the subscription.
        link: The link over which the request came.
        waiting: The request, until it is answered.
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
    """Publishes the list of local hyperties and objects to the registries of linked runtimes."""

    def __init__(self, runtime: str, port: ChangesPort) -> None:
        self.port = port
        self._runtime = runtime
        self._live: dict[str, None] = {}
        self._links: dict[str, str] = {}
        self._followers: dict[str, _Follower] = {}

    @property
    def followers(self) -> tuple[str, ...]:
        """The runtimes whose registries get every change of the list."""
        return tuple(remote for remote, each in self._followers.items() if each.is_active)

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called next."""
        return min((each.until for each in self._followers.values()), default=math.inf)

    # ---- inputs

    def link_up(self, remote: str, link: str) -> None:
        """Note that a link is live, and answer the subscription that came over it (P2P-23)."""
        self._links[remote] = link
        follower = self._followers.get(remote)
        if follower is not None and follower.link != link:
            self._end(remote, Trigger.UNSUBSCRIBE, _GONE)
        elif follower is not None:
            self._decide(remote, follower)

    def link_down(self, remote: str) -> None:
        """End the subscription of a runtime whose link is no longer live."""
        self._links.pop(remote, None)
        self._end(remote, Trigger.UNSUBSCRIBE, _GONE)

    def subscribe(self, request: Message, remote: str, link: str, now: float) -> None:
        """Handle a request to subscribe to the local list, received over a link (M-08).

        If the runtime is already subscribed, it is answered again: the answer may have been lost.
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
        """End a subscription at the subscriber's request (M-10). Idempotent."""
        self._end(remote, Trigger.UNSUBSCRIBE)
        self.port.answer(reply_to(request, Code.OK))

    def add_local(self, url: str) -> None:
        """Add a hyperty or object of this runtime to the list, and report it (I-C6). Idempotent.

        Addresses of link stubs are not listed, since messages to them never go by a link (I-P13).
        """
        if url not in self._live and not is_p2p_part(url):
            self._live[url] = None
            self._publish(Operation.ADD, url)

    def remove_local(self, url: str) -> None:
        """Remove a hyperty or object from the list, and report that (I-C6). Idempotent."""
        if url in self._live:
            del self._live[url]
            self._publish(Operation.REMOVE, url)

    def time_over(self, now: float) -> None:
        """Refuse the subscriptions whose link has not become live in time."""
        for remote in [follower for follower, each in self._followers.items() if each.until <= now]:
            why = "the link did not become live in time"
            self._end(remote, Trigger.REFUSE, why, Code.UNAVAILABLE)

    # ---- followers

    def _decide(self, remote: str, follower: _Follower) -> None:
        """Accept a waiting subscription whose link is live; refuse if the list is too long."""
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
    """A remote registry to whose list this registry has subscribed.

    Attributes:
        entity: State machine of the copy of the list.
        link: The link to the remote runtime.
        ask: Number of the request.
        early: Changes that came before the list: operations and addresses.
        early_bytes: Number of characters of the addresses in `early`.
    """

    entity: Entity
    link: str
    ask: int
    early: list[tuple[Operation, tuple[str, ...]]] = attrs.field(factory=list)
    early_bytes: int = 0


class ChangesFollower:
    """Keeps the lists of hyperties and objects that the registries of linked runtimes report."""

    def __init__(self, runtime: str, port: ChangesPort) -> None:
        self.port = port
        self._runtime = runtime
        self._followed: dict[str, _Followed] = {}
        self._known: dict[str, dict[str, None]] = {}
        self._asks = 0

    @property
    def followed(self) -> tuple[str, ...]:
        """The runtimes whose list has arrived and is kept up to date."""
        is_live = {
            item: each.entity.state is CopyState.LIVE for item, each in self._followed.items()
        }
        return tuple(remote for remote, has_reported in is_live.items() if has_reported)

    def last_reported(self, remote: str) -> tuple[str, ...]:
        """Return the last known hyperties and objects of a runtime, even if its link is lost."""
        return tuple(self._known.get(remote, ()))

    # ---- inputs

    def link_up(self, remote: str, link: str) -> None:
        """Subscribe at the registry of a runtime whose link has become live (P2P-23)."""
        self._end(remote, "another link")
        self._asks += 1
        key = f"{registry_of(remote)}|{registry_of(self._runtime)}"
        followed = _Followed(Entity(OBSERVER_COPY, key), link, self._asks)
        self._followed[remote] = followed
        self.port.step(followed.entity.step(CopyTrigger.OBSERVE))
        self.port.listen(remote)
        self.port.ask(remote, followed.ask)

    def link_down(self, remote: str) -> None:
        """End the subscription at a runtime whose link is lost; keep the list, as it may return."""
        self._end(remote, "the link is lost")

    def link_gone(self, remote: str) -> None:
        """End the subscription at a runtime whose link is removed, and forget the list."""
        self._known.pop(remote, None)
        self._end(remote, "the link is over")

    def take_list(
        self, remote: str, number: int, urls: tuple[str, ...] | None, why: str = ""
    ) -> None:
        """Take the list of another registry, which answers the request of `ask`.

        Args:
            remote: The other runtime.
            number: Number of the request.
            urls: Addresses of the hyperties and objects; None: the other registry refused.
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
        """Apply a change of the list that another registry reports over a link (M-09)."""
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
    """Return those of the given addresses that are in the list of known addresses."""
    return dict.fromkeys(url for url in urls if url in known)


def _apply(operation: Operation, urls: tuple[str, ...], known: dict[str, None]) -> None:
    if operation is Operation.REMOVE:
        for url in urls:
            known.pop(url, None)
    else:
        _add(urls, known)


def _add(urls: tuple[str, ...], known: dict[str, None]) -> None:
    """Add addresses to the list of a remote runtime, up to the limits of number and size."""
    space = LINK_ENTITY_BYTES - sum(map(len, known))
    for url in urls:
        space -= len(url)
        if len(known) >= MAX_LINK_ENTITIES or space < 0:
            return
        known[url] = None
