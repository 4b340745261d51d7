"""The objects that components of this runtime observe (M-36..M-38, M-42..M-44, M-47).

One route serves all observers of an object in this runtime: a path at a node, or a direct link
(P2P-30); it is moved in a task, one move at a time. Requests to the owners of observed objects
are repeated (M-38, M-42, STB-09).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

import attrs
import trio

from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Delivery
from actors.runtime.registry.registry import Registry
from actors.runtime.sync.output import LinkWatches, Spawn, SyncOutput, code_in_use
from actors.runtime.sync.reporter.reporter import NOTHING_STORED
from fsm.bus.child_paths import Elsewhere
from fsm.effects import is_p2p_part
from fsm.sync.leases import RenewalsCore
from fsm.sync.routes import Moving, ObserverRoute
from specs.addresses.address import subscription_manager
from specs.bodies.link import Path
from specs.bodies.object import ObjectBack, ObjectName, Observe, ObserverExpelled, Subscription
from specs.child import (
    CHANGES,
    SUBSCRIPTION,
    child_resources,
    children_addresses,
    published_addresses,
)
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.limits.sync import BUSY_PAUSE, LEAVE_TRIES, REPEAT_LAST
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

_log = get_logger("actors.runtime")

_UNHEARD: Final = frozenset({Code.TIMEOUT, Code.UNAVAILABLE, Code.BAD_BACKEND, Code.INTERNAL})
"""Answers that come instead of the addressed component."""

_LATER: Final = (_UNHEARD - {Code.BAD_BACKEND}) | {Code.NOT_FOUND}
"""Answers after which an owner is asked again: he may not be back yet."""

_NOT_BY_LINK: Final = _UNHEARD | {Code.UNAUTHENTICATED}
"""Answers by a link to which the node may know a better one."""

_LEFT: Final = "the observer left before it was subscribed"

Reporter: TypeAlias = Callable[[str], str | None]
"""Returns the local reporter of an object; None: there is none."""


@final
@attrs.define(eq=False)
class Observed:
    """One object that is observed here.

    Attributes:
        route: The route of its changes.
        observers: Observers, with the ids of their requests.
        asking: The ids of those requests that the reporter's end has not answered.
        leaving: Former observers, while the reporter's end is being notified.
        is_closing: Its path is being removed; a new observer waits for that.
        version: The newest that came here; 0: none.
        is_renewed: Its path is being set again, and its reporter's end asked for all.
        is_lost: That has failed, and is repeated.
        is_sought: A task repeats it, or looks in time whether that is still needed.
        is_deleted: Whether its reporter has deleted it, and the children with it.
        child_link: The link by which children that are written here go; None: by the node.
    """

    route: ObserverRoute
    observers: dict[str, int] = attrs.field(factory=dict)
    asking: set[tuple[str, int]] = attrs.field(factory=set)
    leaving: set[str] = attrs.field(factory=set)
    is_closing: bool = False
    version: int = 0
    is_renewed: bool = False
    is_lost: bool = False
    is_sought: bool = False
    is_deleted: bool = False
    child_link: str | None = None
    waiting: list[tuple[Message, Observe]] = attrs.field(factory=list)


@final
class ObservedObjects:
    """The observers' end of every object observed here.

    Args:
        out: What the sync manager sends.
        registry: Registry of the runtime.
        spawn: Runs a task of the sync manager.
        reporter: Local reporter of an object: then the path of its children is for that, too.
    """

    def __init__(
        self, out: SyncOutput, registry: Registry, spawn: Spawn, reporter: Reporter
    ) -> None:
        self._out = out
        self._spawn = spawn
        self._objects: dict[str, Observed] = {}
        self._reporter = reporter
        self._watches = LinkWatches(registry, spawn, self._on_link)
        self._paths: set[str] = set()
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
            answer, link = await self._ask_for(url, observer, entry.version or None)
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
            self._renewals.unanswered(url, observer, self._out.now())
        else:
            entry.route.asked(link)
            self._granted(url, observer, answer)
            if answer.body.get("renewed") is not True and entry.route.used is None:
                self._renew_once(url)
            if "value" in answer.body:
                self._show(url, observer, answer.body["value"])

    def _granted(self, url: str, observer: str, answer: Message) -> None:
        """Note for how long an observer is let in, and with what."""
        value, lease = answer.body.get("value"), answer.body.get("lease")
        life = float(lease) if isinstance(lease, int) and lease > 0 else math.inf
        self._renewals.granted(url, observer, life, self._out.now())
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
        self._out.answer(request, Code.TRYING, resources=[*names])
        entry = self._objects.get(url)
        if entry is not None and entry.is_closing:
            entry.waiting.append((request, body))
        else:
            self._observe(request, body)

    def resume(self, request: Message) -> None:
        """Answer an observer whether it had a stored copy of anything (M-52)."""
        if any(observer == request.from_ for _, observer in self._out.gate.rest.copies):
            self._out.answer(request, Code.OK)
        else:
            self._out.refuse(request, Code.NOT_FOUND, NOTHING_STORED)

    def _observe(self, request: Message, body: Observe) -> None:
        url, entry = body.resource, self._objects.get(body.resource)
        is_first = entry is None
        if entry is None:
            route = ObserverRoute(partial(self._move, url))
            entry = self._objects[url] = Observed(route)
        entry.observers[request.from_] = request.id
        entry.asking.add((request.from_, request.id))
        if is_first:
            self._out.bus.open_address(f"{url}/{CHANGES}", self._listener)
            self._follow(url, request.from_)
        # What links are made of never comes by one (I-P13).
        entry.route.prefer(request.from_, p2p=False if is_p2p_part(url) else body.p2p)
        self._spawn(partial(self._open if is_first else self._join, request, body))

    def _follow(self, url: str, observer: str) -> None:
        """Have an observer hear of an object; a gap shows by what is said next.

        Its reporter gets events of its children anyway, before all others.
        """
        children = () if self._reporter(url) == observer else children_addresses(url)
        for address in (f"{url}/{CHANGES}", *children):
            self._out.bus.follow(address, observer)

    async def _open(self, request: Message, body: Observe) -> None:
        """Ask for the first observer: by the live link there is, else by the node."""
        url, observer = body.resource, request.from_
        entry = self._objects.get(url)
        route = None if entry is None else entry.route
        link = None
        if route is not None and route.may_use_links:
            link = await self._watches.link_to(url)
        if link is not None:
            self._set_event_link(url, link)
            answer = await self._ask_by_link(MessageType.SUBSCRIBE, url, observer)
            if answer.code <= LAST_SUCCESS or answer.code == Code.FORBIDDEN:
                self.on_answer(request, url, answer, link, is_first=True)
                return
            self._set_event_link(url, None)
        answer = await self._set_path(url)
        if route is None or not route.is_wanted_by(observer):
            # Its unsubscription has gone already: what is asked now would never be taken back.
            answer = attrs.evolve(answer, body={"code": Code.GONE, "description": _LEFT})
        if answer.code <= LAST_SUCCESS:
            answer = await self._ask_by_node(MessageType.SUBSCRIBE, url, observer)
        self.on_answer(request, url, answer, barred=link, is_first=True)

    async def _join(self, request: Message, body: Observe) -> None:
        url = body.resource
        entry = self._objects.get(url)
        link: str | None = None
        if entry is not None and request.from_ in entry.observers:
            # A renewal is no new subscription: an expelled observer does not come back so.
            is_known = body.resume and entry.version
            version = entry.version if is_known else None
            answer, link = await self._ask_for(url, request.from_, version)
        else:
            answer = refuse(request, Code.GONE, _LEFT)
        self.on_answer(request, url, answer, link)

    async def _ask_for(
        self, url: str, observer: str, version: int | None
    ) -> tuple[Message, str | None]:
        """Ask for one more observer, by the route in use; return the answer, and the link used.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            version: Of what came here, if it observes already, and goes on.
        """
        entry, bus = self._objects.get(url), self._out.bus
        asked = Subscription(observer, version=version)
        if entry is not None and entry.route.used is not None:
            used = entry.route.used
            answer = await bus.request_direct(self._of_observer(MessageType.SUBSCRIBE, url, asked))
            is_decided = answer.code <= LAST_SUCCESS or answer.code == Code.FORBIDDEN
            if is_decided or not entry.route.is_wanted_by(observer):
                return answer, used
        return await bus.request(self._of_observer(MessageType.SUBSCRIBE, url, asked)), None

    def renew_paths(self, domain: str) -> None:
        """Set the paths again that the node of a domain has forgotten."""
        for url, entry in self._objects.items():
            is_affected = self._out.node_for(url) == domain and not entry.is_closing
            if is_affected and entry.route.used is None:
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
        self._out.answer(request, Code.OK, value=[*observers])
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
        back later than this one: each is asked some times at once, and then now and then, as no
        change comes here before that.
        """
        is_set, pause = False, READ_PAUSE
        for left in reversed(range(RECONNECT_TRIES)):
            is_set = is_set or not self._is_open(url)
            if not is_set:
                is_set = (await self._set_path(url)).code not in _LATER
            # Without a path the owner is asked at last: its answer brings what was missed so far.
            if (is_set or not left) and await self._is_known_again(url) and is_set:
                if self._is_open(url):
                    self._objects[url].is_lost = False
                return
            await trio.sleep(pause)
            pause *= 2
        entry = self._objects.get(url)
        if entry is not None and not (entry.is_closing or entry.is_lost):
            _log.warning("no path for an observed object", url=url)
            entry.is_lost = True
            if not entry.is_sought:
                entry.is_sought = True
                self._spawn(partial(self._find_again, url, entry))

    async def _find_again(self, url: str, entry: Observed) -> None:
        """Set a path again, and ask its owner again, until both are known or a link serves."""
        while entry.is_lost:
            await trio.sleep(REPEAT_LAST)
            if self._objects.get(url) is not entry or entry.is_closing:
                return
            entry.is_lost &= entry.route.used is None
            if entry.is_lost:
                await self._renew(url)
        entry.is_sought = False

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
            answer = await self._ask_by_node(MessageType.SUBSCRIBE, url, observer)
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
        self._out.bus.send(self._out.request(MessageType.UPDATE, observer, body))

    async def _ask_by_node(self, kind: MessageType, url: str, observer: str) -> Message:
        return await self._out.bus.request(self._of_observer(kind, url, Subscription(observer)))

    async def _ask_by_link(self, kind: MessageType, url: str, observer: str) -> Message:
        asked = self._of_observer(kind, url, Subscription(observer))
        return await self._out.bus.request_direct(asked)

    def _of_observer(self, kind: MessageType, url: str, asked: Subscription) -> Message:
        """Write a request for an observer; what it is granted is renewed from here."""
        renews = True if kind is MessageType.SUBSCRIBE else None
        body = write_body(attrs.evolve(asked, renews=renews))
        return self._out.request(kind, f"{url}/{SUBSCRIPTION}", body)

    def on_answer(
        self,
        request: Message,
        url: str,
        answer: Message,
        link: str | None = None,
        barred: str | None = None,
        *,
        is_first: bool = False,
    ) -> None:
        """Answer an observer; what was set up for nothing is removed.

        Args:
            request: The observer's own request.
            url: Address of the object.
            answer: What the reporter's end answered, or who has refused the path.
            link: The link by which it was answered; None: by the node.
            barred: The link by which the first observer was not let in.
            is_first: Whether it is the first observer of its object here.
        """
        entry = self._objects.get(url)
        if entry is not None:
            entry.asking.discard((request.from_, request.id))
            if is_first:
                self._opened(url, entry, link, barred)
            else:
                entry.route.asked(link)
        asked = None if entry is None else entry.observers.get(request.from_)
        if answer.code <= LAST_SUCCESS:
            value = answer.body.get("value")
            by_link: JsonObject = {} if link is None else {"p2p": True}
            if entry is not None:
                self._admit(url, entry, request.from_)
            if asked == request.id:
                self._granted(url, request.from_, answer)
            self._out.answer(request, Code.OK, value=value, **by_link)
            return
        if answer.code == Code.TIMEOUT and asked in {None, request.id}:
            # The reporter's yes may be outstanding: it must not stay. Of an observer that has
            # asked again it is the other request's.
            leaves = Subscription(request.from_)
            leaving = self._of_observer(MessageType.UNSUBSCRIBE, url, leaves)
            self._out.bus.send(leaving)
        if asked == request.id:
            self._remove_observer(url, request.from_)
        self._close_if_left(url, None)
        if entry is not None and entry.observers and entry.route.used is None:
            # The node took the path away with the refusal; others may have come since.
            self._spawn(partial(self._renew, url))
        why = answer.body.get("description")
        extra = {"description": why} if isinstance(why, str) else {}
        self._out.answer(request, code_in_use(answer.code), **extra)

    def _opened(self, url: str, entry: Observed, link: str | None, barred: str | None) -> None:
        """Note by which route the first observer subscribed; follow links from now on."""
        entry.route.opened(link, barred)
        self._set_child_path(url, entry, entry.route.used)
        if not is_p2p_part(url):
            self._watches.watch(url, link or barred, is_wanted=entry.route.wants_link)

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
            self._out.answer(request, Code.OK)

    def leave_all(self, observer: str) -> None:
        """Leave every object for a component that is gone."""
        for url, entry in self._objects.items():
            for waiting in [one for one in entry.waiting if one[0].from_ == observer]:
                entry.waiting.remove(waiting)
                request, _ = waiting
                self._out.refuse(request, Code.GONE, "the observer left")
            if observer in entry.observers:
                self._begin_leaving(url, observer, None)

    def _begin_leaving(self, url: str, observer: str, request: Message | None) -> None:
        self._remove_observer(url, observer)
        self._objects[url].leaving.add(observer)
        self._spawn(partial(self._leave, url, observer, request))

    def _remove_observer(self, url: str, observer: str) -> None:
        """Deliver no change to an observer any more; its neighbours observe on (I-D7)."""
        entry = self._objects[url]
        del entry.observers[observer]
        self._renewals.ended(url, observer)
        entry.route.left(observer)
        self._unfollow(url, observer)

    def _unfollow(self, url: str, observer: str) -> None:
        for address in published_addresses(url):
            self._out.bus.unfollow(address, observer)

    async def _leave(self, url: str, observer: str, request: Message | None) -> None:
        """Unsubscribe an observer; if the object answers 503, ask again later."""
        answer = await self._unsubscribe(url, observer)
        for _ in range(LEAVE_TRIES - 1):
            if answer.code != Code.UNAVAILABLE:
                break
            await trio.sleep(BUSY_PAUSE)
            entry = self._objects.get(url)
            if entry is None or observer in entry.observers:
                # It observes again: that must not be taken back.
                break
            answer = await self._unsubscribe(url, observer)
        # With the last one the path goes (SYN-20).
        entry = self._objects.get(url)
        if entry is not None:
            entry.leaving.discard(observer)
        self._close_if_left(url, request)

    async def _unsubscribe(self, url: str, observer: str) -> Message:
        """Notify the reporter that an observer leaves, by the route in use; return its answer."""
        entry = self._objects.get(url)
        if entry is not None and entry.route.used is not None:
            answer = await self._ask_by_link(MessageType.UNSUBSCRIBE, url, observer)
            if answer.code not in _NOT_BY_LINK or entry.route.is_wanted_by(observer):
                # A leave must not take back that it observes again.
                return answer
        return await self._ask_by_node(MessageType.UNSUBSCRIBE, url, observer)

    def _close_if_left(self, url: str, request: Message | None) -> None:
        """Remove the path without remaining observers, not even again."""
        entry = self._objects.get(url)
        if entry is not None and not entry.observers and not entry.is_closing:
            entry.is_closing = True
            self._spawn(partial(self._close_path, url, request))
        elif request is not None:
            self._out.answer(request, Code.OK)

    def on_expelled(self, event: Message, body: ObserverExpelled) -> None:
        """Let an observer hear nothing more: its reporter's end has expelled it (SYN-21).

        One that has asked again since is being decided on anew, and stays until then.

        Args:
            event: The message.
            body: Body of the request.
        """
        self._out.answer(event, Code.OK)
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
            self._out.bus.send(self._out.request(MessageType.UNSUBSCRIBE, observer, body))
            self._close_if_left(url, None)

    def on_deleted(self, url: str, event: Message) -> None:
        """Accept a deletion from the reporter only (M-47).

        Args:
            url: Address of the object.
            event: The message.
        """
        if event.from_ != f"{url}/{SUBSCRIPTION}":
            self._out.refuse(event, Code.FORBIDDEN, "only its reporter deletes an object")
            return
        self._out.answer(event, Code.OK, source=self._out.runtime)
        entry = self._objects[url]
        for observer in tuple(entry.observers):
            self._remove_observer(url, observer)
        entry.is_deleted = True
        self._close_if_left(url, None)

    async def _close_path(self, url: str, request: Message | None) -> None:
        self._out.bus.close_address(f"{url}/{CHANGES}", self._listener)
        await self._remove_path(url)
        if request is not None:
            self._out.answer(request, Code.OK)
        entry = self._objects.pop(url)
        self._set_event_link(url, None)
        self._watches.unwatch(url)
        self._set_child_path(url, entry, None)
        for waiting, body in entry.waiting:
            # It waited for that.
            self._observe(waiting, body)

    # --- the path at a node -----------------------------------------------------------------

    async def _set_path(self, url: str) -> Message:
        """Have the node deliver the events of an object here, and of its children (M-37)."""
        self._paths.add(url)
        return await self._request_path(MessageType.SUBSCRIBE, url, published_addresses(url))

    async def _remove_path(self, url: str) -> None:
        """Have the node deliver nothing any more (M-44); a path that was never set costs nothing.

        The path of the children stays as long as the object is reported here.
        """
        if url not in self._paths:
            return
        self._paths.discard(url)
        entry = self._objects[url]
        changes, *others = published_addresses(url)
        children = () if self._reporter(url) is not None else tuple(others)
        # The children of a deleted object have died with it, and are nothing of it any more.
        parts = [children, (changes,)] if entry.is_deleted else [(changes, *children)]
        for part in parts:
            if part:
                await self._request_path(MessageType.UNSUBSCRIBE, url, part)

    async def _request_path(self, kind: MessageType, url: str, paths: tuple[str, ...]) -> Message:
        to = subscription_manager(self._out.node_for(url))
        body = write_body(Path(paths, self._out.runtime))
        return await self._out.bus.request(self._out.request(kind, to, body))

    # --- moves ------------------------------------------------------------------------------

    def _on_link(self, url: str, link: str | None) -> None:
        """Note that another link leads to where an object is reported, or none."""
        entry = self._objects.get(url)
        if entry is not None:
            entry.route.link_is(link)

    def _move(self, url: str, link: str | None) -> None:
        entry = self._objects[url]
        if link is None:
            self._spawn(partial(self._to_node, url, entry))
        else:
            self._spawn(partial(self._to_link, url, entry, link))

    def _set_event_link(self, url: str, link: str | None) -> None:
        """Let changes come by a link, before it is asked for (SYN-06); or by none."""
        for address in published_addresses(url):
            self._out.bus.set_event_link(address, link)

    def _set_child_path(self, url: str, entry: Observed, link: str | None) -> None:
        """Have what observers here write of children take the route of the changes."""
        if link != entry.child_link:
            entry.child_link = link
            for address in children_addresses(url):
                self._out.bus.set_child_path(address, link or Elsewhere.BY_NODE)

    async def _to_node(self, url: str, entry: Observed) -> None:
        await self._renew(url)
        if self._objects.get(url) is entry:
            self._set_event_link(url, None)
        self._on_moved(url, entry, None, Moving.DONE)

    async def _to_link(self, url: str, entry: Observed, link: str) -> None:
        """Ask for one observer by the link: then its whole runtime is served by that (I-D12).

        The path stays until what went by the node has come.
        """
        observer = entry.route.anybody
        if observer is None:
            how = Moving.REFUSED
        else:
            self._set_event_link(url, link)
            how = _outcome(await self._ask_by_link(MessageType.SUBSCRIBE, url, observer))
        if how is Moving.DONE and url in self._paths:
            for address in published_addresses(url):
                await self._out.bus.caught_up(address, link)
            if self._objects.get(url) is entry:
                # Before: the node refuses children without a path.
                self._set_child_path(url, entry, link)
                await self._remove_path(url)
        self._on_moved(url, entry, link, how)

    def _on_moved(self, url: str, entry: Observed, link: str | None, how: Moving) -> None:
        """Take it how a move ended; one of an object that was left means nothing."""
        if self._objects.get(url) is entry:
            entry.route.moved(link, how)
            self._set_child_path(url, entry, entry.route.used)


def _outcome(answer: Message) -> Moving:
    if answer.code <= LAST_SUCCESS:
        return Moving.DONE
    return Moving.UNSURE if answer.code in _UNHEARD else Moving.REFUSED
