"""The objects that components of this runtime observe (M-36..M-38, M-42..M-44, M-47).

Repeated requests to the owners of observed objects (M-38, M-42, STB-09).
"""

import math
from collections.abc import Awaitable
from functools import partial
from typing import Final, final

import attrs
import trio

from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import Spawn, SyncContext, code_in_use
from actors.runtime.sync.observer_routes import ObserverPaths, Reporter, Route, of_observer
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION, published_addresses
from actors.runtime.sync.reporter.reporter import NOTHING_STORED
from fsm.sync.leases import RenewalsCore
from specs.bodies.object import ObjectBack, ObserverExpelled
from specs.bodies.sync import ObjectName, Observe, Subscription
from specs.child import child_resources, children_addresses
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.limits.sync import BUSY_PAUSE, LEAVE_TRIES
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

_log = get_logger("actors.runtime")

_LATER: Final = frozenset({Code.NOT_FOUND, Code.TIMEOUT, Code.INTERNAL, Code.UNAVAILABLE})
"""Answers after which an owner is asked again: he may not be back yet."""


@final
@attrs.define
class Observed:
    """One object that is observed here.

    Attributes:
        observers: Observers, with the ids of their requests.
        asking: The ids of those requests that the reporter's end has not answered.
        leaving: Former observers, while the reporter's end is being notified.
        is_closing: Its path is being removed; a new observer waits for that.
        version: The newest that came here; 0: none.
        is_renewed: Its path is being set again, and its reporter's end asked for all.
    """

    observers: dict[str, int] = attrs.field(factory=dict)
    asking: set[tuple[str, int]] = attrs.field(factory=set)
    leaving: set[str] = attrs.field(factory=set)
    is_closing: bool = False
    version: int = 0
    is_renewed: bool = False
    waiting: list[tuple[Message, Observe]] = attrs.field(factory=list)


async def _is_decided(answer: Awaitable[Message]) -> bool:
    return (await answer).code not in _LATER


@final
class ObservedObjects:
    """The observers' end of every object observed here; one path serves all observers.

    Attributes:
        paths: By which routes their changes come here.
    """

    def __init__(self, context: SyncContext, spawn: Spawn, reporter: Reporter) -> None:
        self._context = context
        self._spawn = spawn
        self._objects: dict[str, Observed] = {}
        self._reporter = reporter
        self.paths: Final = ObserverPaths(context, spawn, self._renew, reporter)
        self._renewals = RenewalsCore()
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let what is said to observed objects' sync managers lead to `listener`."""
        self._listener = listener

    @property
    def is_empty(self) -> bool:
        """Whether nothing is observed here."""
        return not self._objects

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the observed objects."""
        return tuple(self._objects)

    @property
    def observers(self) -> set[str]:
        """The hyperties that observe something, are about to, or are about to stop."""
        found: set[str] = set()
        for entry in self._objects.values():
            found |= entry.leaving.union(entry.observers, (one.from_ for one, _ in entry.waiting))
        return found

    def observes(self, url: str, component: str) -> bool:
        """Return whether a component observes an object, and has been let in.

        Args:
            url: Address of the object.
            component: Address of the component.
        """
        entry = self._objects.get(url)
        asked = None if entry is None else entry.observers.get(component)
        return entry is not None and asked is not None and (component, asked) not in entry.asking

    def observed(self, address: str) -> str | None:
        """Return the observed object whose changes go to an address."""
        url = address.removesuffix(f"/{CHANGES}")
        return url if url != address and url in self._objects else None

    # --- time ---------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return self._renewals.deadline()

    def time_over(self) -> None:
        """Renew what is due: each subscription is a lease."""
        for url, observer in self._renewals.due(trio.current_time()):
            self._spawn(partial(self._renew_lease, url, observer))

    async def _renew_lease(self, url: str, observer: str) -> None:
        """Ask for an observer to go on; one that has left meanwhile is not asked for."""
        entry = self._objects.get(url)
        number = None if entry is None else entry.observers.get(observer)
        if entry is not None and number is not None:
            answer, link = await self.paths.join(url, observer, entry.version or None)
            self._on_lease_answer(url, observer, number, answer, link)

    def _on_lease_answer(
        self, url: str, observer: str, number: int, answer: Message, link: str | None
    ) -> None:
        """Take it how a renewal ended; it is made again if it is not decided.

        Where the lease was over already, the node has removed the path, and others here may
        have lost theirs: all of them subscribe again.
        """
        entry = self._objects.get(url)
        if entry is None or entry.observers.get(observer) != number:
            return
        if answer.code == Code.FORBIDDEN:
            self.on_refused_again(url, observer, number)
        elif answer.code > LAST_SUCCESS:
            self._renewals.unanswered(url, observer, self._context.now())
        else:
            self.paths.on_answer(url, Route(link))
            self._granted(url, observer, answer)
            if answer.body.get("renewed") is not True and self.paths.is_by_node(url):
                self._renew_once(url)
            if "value" in answer.body:
                self._show(url, observer, answer.body["value"])

    def _granted(self, url: str, observer: str, answer: Message) -> None:
        """Note for how long an observer is let in, and with what."""
        value, lease = answer.body.get("value"), answer.body.get("lease")
        life = float(lease) if isinstance(lease, int) and lease > 0 else math.inf
        self._renewals.granted(url, observer, life, self._context.now())
        if isinstance(value, dict):
            self._note_version(url, value)

    def _note_version(self, url: str, snapshot: JsonObject) -> None:
        version = snapshot.get("version")
        if isinstance(version, int):
            self._objects[url].version = max(version, self._objects[url].version)

    def on_change(self, url: str, event: Message) -> None:
        """Note that a change of an object has come here; its observers get it themselves.

        Args:
            url: Address of the object.
            event: The message.
        """
        if event.from_ == url:
            self._note_version(url, event.body)

    # --- begin --------------------------------------------------------------------------

    def observe(self, request: Message, body: Observe) -> None:
        """Observe an object for a component (M-36): its listener comes first (SYN-06).

        Args:
            request: The request.
            body: Body of the request.
        """
        url, names = body.resource, [] if body.p2p is True else child_resources(body.resource)
        self._context.answer(request, Code.TRYING, resources=[*names])
        entry = self._objects.get(url)
        if entry is not None and entry.is_closing:
            entry.waiting.append((request, body))
        else:
            self._observe(request, body)

    def resume(self, request: Message) -> None:
        """Answer an observer whether it had a stored copy of anything (M-52)."""
        if any(observer == request.from_ for _, observer in self._context.gate.rest.copies):
            self._context.answer(request, Code.OK)
        else:
            self._context.refuse(request, Code.NOT_FOUND, NOTHING_STORED)

    def _observe(self, request: Message, body: Observe) -> None:
        url = body.resource
        is_first = url not in self._objects
        entry = self._objects.setdefault(url, Observed())
        entry.observers[request.from_] = request.id
        entry.asking.add((request.from_, request.id))
        if is_first:
            self._context.bus.open_address(f"{url}/{CHANGES}", self._listener)
            self._follow(url, request.from_)
        self.paths.on_request(url, request.from_, p2p=body.p2p)
        self._spawn(partial(self._open if is_first else self._join, request, body))

    def _follow(self, url: str, observer: str) -> None:
        """Have an observer hear of an object; a gap shows by what is said next.

        Its reporter gets events of its children anyway, before all others.
        """
        children = () if self._reporter(url) == observer else children_addresses(url)
        for address in (f"{url}/{CHANGES}", *children):
            self._context.bus.follow(address, observer)

    async def _open(self, request: Message, body: Observe) -> None:
        url = body.resource
        answer, link, barred = await self.paths.open(url, request.from_)
        self.on_answer(request, url, answer, Route(link, barred, is_first=True))

    async def _join(self, request: Message, body: Observe) -> None:
        url = body.resource
        entry = self._objects.get(url)
        link: str | None = None
        if entry is not None and request.from_ in entry.observers:
            # A renewal is no new subscription: an expelled observer does not come back so.
            is_known = body.resume and entry.version
            version = entry.version if is_known else None
            answer, link = await self.paths.join(url, request.from_, version)
        else:
            answer = refuse(request, Code.GONE, "the observer left before it was subscribed")
        self.on_answer(request, url, answer, Route(link))

    def renew_paths(self, domain: str) -> None:
        """Set the paths again that the node of a domain has forgotten."""
        for url, entry in self._objects.items():
            is_affected = self._context.node_for(url) == domain and not entry.is_closing
            if is_affected and self.paths.is_by_node(url):
                self._spawn(partial(self._renew, url))

    def on_object_back(self, request: Message, body: ObjectBack) -> None:
        """Subscribe again to an object that is back, and list its observers here (M-52).

        Args:
            request: The request.
            body: Body of the request.
        """
        url = body.resource
        entry = self._objects.get(url)
        observers = [] if entry is None or entry.is_closing else [*entry.observers]
        self._context.answer(request, Code.OK, value=[*observers])
        if observers:
            self._renew_once(url)

    def _renew_once(self, url: str) -> None:
        """Set a path again, and ask its owner again, unless that is being done."""
        entry = self._objects[url]
        if not entry.is_renewed:
            entry.is_renewed = True
            self._spawn(partial(self._renew_for, url, entry))

    async def _renew_for(self, url: str, entry: Observed) -> None:
        try:
            await self._renew(url)
        finally:
            entry.is_renewed = False

    async def _renew(self, url: str) -> None:
        """Set a path again, and ask its owner again for all local observers.

        The node has forgotten both. What is lost is repeated, and the owner's runtime may come
        back later than this one: each is asked some times.
        """
        is_set, pause = False, READ_PAUSE
        for left in reversed(range(RECONNECT_TRIES)):
            is_set = is_set or not self._is_open(url) or await _is_decided(self.paths.set_path(url))
            if not is_set and not left:
                _log.warning("no path for an observed object", url=url)
            # Without a path the owner is asked at last: its answer brings what was missed so far.
            if (is_set or not left) and await self._is_known_again(url):
                return
            await trio.sleep(pause)
            pause *= 2

    def _is_open(self, url: str) -> bool:
        entry = self._objects.get(url)
        return entry is not None and not entry.is_closing

    async def _is_known_again(self, url: str) -> bool:
        entry = self._objects.get(url)
        if entry is None or entry.is_closing:
            return True
        for observer, number in tuple(entry.observers.items()):
            if observer not in entry.observers:
                # It has left while others were asked for.
                continue
            asked = self._of_observer(MessageType.SUBSCRIBE, url, observer)
            answer = await self._context.bus.request(asked)
            if answer.code in _LATER:
                return False
            if answer.code <= LAST_SUCCESS:
                self._show(url, observer, answer.body.get("value"))
            elif answer.code == Code.FORBIDDEN:
                self.on_refused_again(url, observer, number)
        return True

    def _show(self, url: str, observer: str, value: Json) -> None:
        """Show an observer what the object is now: it may have missed what was said."""
        body: JsonObject = {"resource": url, "value": value}
        self._context.bus.send(self._context.request(MessageType.UPDATE, observer, body))

    def _of_observer(self, kind: MessageType, url: str, observer: str) -> Message:
        return of_observer(self._context, kind, url, Subscription(observer))

    def on_answer(self, request: Message, url: str, answer: Message, route: Route) -> None:
        """Answer an observer; what was set up for nothing is removed.

        Args:
            request: The observer's own request.
            url: Address of the object.
            answer: What the reporter's end answered, or who has refused the path.
            route: The route of the answer.
        """
        entry = self._objects.get(url)
        if entry is not None:
            entry.asking.discard((request.from_, request.id))
        self.paths.on_answer(url, route)
        asked = None if entry is None else entry.observers.get(request.from_)
        if answer.code <= LAST_SUCCESS:
            value = answer.body.get("value")
            by_link: JsonObject = {} if route.link is None else {"p2p": True}
            if entry is not None:
                self._admit(url, entry, request.from_)
            if asked == request.id:
                self._granted(url, request.from_, answer)
            self._context.answer(request, Code.OK, value=value, **by_link)
            return
        if answer.code == Code.TIMEOUT and asked in {None, request.id}:
            # The reporter's yes may be outstanding: it must not stay. Of an observer that has
            # asked again it is the other request's.
            leaving = self._of_observer(MessageType.UNSUBSCRIBE, url, request.from_)
            self._context.bus.send(leaving)
        if asked == request.id:
            self._remove_observer(url, request.from_)
        self._close_if_left(url, None)
        if entry is not None and entry.observers and self.paths.is_by_node(url):
            # The node took the path away with the refusal; others may have come since.
            self._spawn(partial(self._renew, url))
        why = answer.body.get("description")
        extra = {"description": why} if isinstance(why, str) else {}
        self._context.answer(request, code_in_use(answer.code), **extra)

    def _admit(self, url: str, entry: Observed, observer: str) -> None:
        """Deliver an object to an observer, and to no observer before its admission (I-D9)."""
        for other, number in entry.asking:
            if entry.observers.get(other) == number:
                self._unfollow(url, other)
        if observer in entry.observers:
            self._follow(url, observer)

    # --- end ----------------------------------------------------------------------------

    def leave(self, request: Message, body: ObjectName) -> None:
        """Stop observing for a component (M-42).

        Args:
            request: The request.
            body: Body of the request.
        """
        url = body.resource
        entry = self._objects.get(url)
        if entry is not None and request.from_ in entry.observers:
            self._begin_leaving(url, request.from_, request)
        else:
            self._context.answer(request, Code.OK)

    def leave_all(self, observer: str) -> None:
        """Leave every object for a component that is gone."""
        for url, entry in self._objects.items():
            for waiting in [one for one in entry.waiting if one[0].from_ == observer]:
                entry.waiting.remove(waiting)
                request, _ = waiting
                self._context.refuse(request, Code.GONE, "the observer left")
            if observer in entry.observers:
                self._begin_leaving(url, observer, None)

    def _begin_leaving(self, url: str, observer: str, request: Message | None) -> None:
        self._remove_observer(url, observer)
        self._objects[url].leaving.add(observer)
        self._spawn(partial(self._leave, url, observer, request))

    def _remove_observer(self, url: str, observer: str) -> None:
        """Deliver no change to an observer any more; its neighbours observe on (I-D7)."""
        del self._objects[url].observers[observer]
        self._renewals.ended(url, observer)
        self.paths.on_left(url, observer)
        self._unfollow(url, observer)

    def _unfollow(self, url: str, observer: str) -> None:
        for address in published_addresses(url):
            self._context.bus.unfollow(address, observer)

    async def _leave(self, url: str, observer: str, request: Message | None) -> None:
        """Unsubscribe an observer; if the object answers 503, ask again later."""
        answer = await self.paths.leave(url, observer)
        for _ in range(LEAVE_TRIES - 1):
            if answer.code != Code.UNAVAILABLE:
                break
            await trio.sleep(BUSY_PAUSE)
            entry = self._objects.get(url)
            if entry is None or observer in entry.observers:
                # It observes again: that must not be taken back.
                break
            answer = await self.paths.leave(url, observer)
        # With the last one the path goes (SYN-20).
        entry = self._objects.get(url)
        if entry is not None:
            entry.leaving.discard(observer)
        self._close_if_left(url, request)

    def _close_if_left(self, url: str, request: Message | None) -> None:
        """Remove the path without remaining observers, not even again."""
        entry = self._objects.get(url)
        if entry is not None and not entry.observers and not entry.is_closing:
            entry.is_closing = True
            self._spawn(partial(self._close_path, url, request))
        elif request is not None:
            self._context.answer(request, Code.OK)

    def on_expelled(self, event: Message, body: ObserverExpelled) -> None:
        """Let an observer hear nothing more: its reporter's end has expelled it (SYN-21).

        One that has asked again since is being decided on anew, and stays until then.

        Args:
            event: The message.
            body: Body of the request.
        """
        self._context.answer(event, Code.OK)
        url, observer = body.resource, body.observer
        entry = self._objects.get(url)
        if entry is None or (observer, entry.observers.get(observer, 0)) in entry.asking:
            return
        if observer in entry.observers:
            self._remove_observer(url, observer)
            self._close_if_left(url, None)

    def on_refused_again(self, url: str, observer: str, number: int) -> None:
        """Cut an observer off, and notify it: it is not admitted any more (M-45).

        Args:
            url: Address of the object.
            observer: Address of the observer.
            number: Of the request by which it observes.
        """
        entry = self._objects.get(url)
        is_same = entry is not None and entry.observers.get(observer) == number
        if entry is not None and is_same and (observer, number) not in entry.asking:
            self._remove_observer(url, observer)
            body = write_body(ObjectName(url))
            self._context.bus.send(self._context.request(MessageType.UNSUBSCRIBE, observer, body))
            self._close_if_left(url, None)

    def on_deleted(self, url: str, event: Message) -> None:
        """Accept a deletion from the reporter only (M-47).

        Args:
            url: Address of the object.
            event: The message.
        """
        if event.from_ != f"{url}/{SUBSCRIPTION}":
            self._context.refuse(event, Code.FORBIDDEN, "only its reporter deletes an object")
            return
        self._context.answer(event, Code.OK, source=self._context.runtime)
        for observer in tuple(self._objects[url].observers):
            self._remove_observer(url, observer)
        self.paths.on_deleted(url)
        self._close_if_left(url, None)

    async def _close_path(self, url: str, request: Message | None) -> None:
        self._context.bus.close_address(f"{url}/{CHANGES}", self._listener)
        await self.paths.close(url)
        if request is not None:
            self._context.answer(request, Code.OK)
        entry = self._objects.pop(url)
        self.paths.forget(url)
        for waiting, body in entry.waiting:
            # It waited for that.
            self._observe(waiting, body)
