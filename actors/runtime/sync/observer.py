"""The objects that components of this runtime observe (M-36..M-38, M-42..M-44, M-47).

One route serves all observers of an object in this runtime: a path at a node, or a direct link
(P2P-30); a task changes the route, one change at a time. Requests to the reporters of observed
objects are repeated (M-38, M-42, STB-09).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import attrs
import trio

from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Delivery
from actors.runtime.sync.output import NOTHING_STORED, LinkWatches, SyncOutput, code_in_use
from fsm.bus.sending_order import Elsewhere
from fsm.effects import is_p2p_part
from fsm.sync.leases import RenewalsCore
from fsm.sync.routes import Moving, ObserverRoute
from fsm.sync.stored import CopyKept
from specs import child
from specs.addresses.address import subscription_manager
from specs.bodies import object as bodies
from specs.bodies.link import Path
from specs.jsonvalue import Json
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.limits.sync import BUSY_PAUSE, LEAVE_TRIES, REPEAT_LAST
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

_log = get_logger("actors.runtime")

_BY_ROUTERS: Final = frozenset({Code.TIMEOUT, Code.UNAVAILABLE, Code.BAD_BACKEND, Code.INTERNAL})
"""Codes that routers answer in the place of the receiver."""

_LATER: Final = (_BY_ROUTERS - {Code.BAD_BACKEND}) | {Code.NOT_FOUND}
"""Codes after which a request is repeated: the reporter may not be back yet."""

_NOT_BY_LINK: Final = _BY_ROUTERS | {Code.UNAUTHENTICATED}
"""Codes of answers by a link after which the request is also sent by the node."""

_LEFT: Final = "the observer left before it was subscribed"

Reporter: TypeAlias = Callable[[str], str | None]
"""Function that returns the local reporter of an object; None: it is reported elsewhere."""


def _is_decided(answer: Message) -> bool:
    """Return whether an answer is the reporter's decision; if not, another route may be tried."""
    return answer.code <= LAST_SUCCESS or answer.code == Code.FORBIDDEN


class Observed:
    """One object that is observed here.

    Args:
        table: All objects that are observed here.
        url: Address of the object.

    Attributes:
        route: The route of its changes.
        observers: Observers, with the ids of their requests.
        asking: The ids of those requests that the reporter's end has not answered.
        leaving: Former observers, while the reporter's end is being notified.
        waiting: Requests of observers that came while the object was being closed.
        is_closing: Whether its path is being removed; new observers wait for the end.
    """

    def __init__(self, table: "ObservedObjects", url: str) -> None:
        self.route: Final = ObserverRoute(self._move)
        self.observers: Final[dict[str, int]] = {}
        self.asking: Final[set[tuple[str, int]]] = set()
        self.leaving: Final[set[str]] = set()
        self.waiting: Final[list[tuple[Message, bodies.Observe]]] = []
        self.is_closing = False
        self._table, self._out, self._bus, self._url = table, table.out, table.out.bus, url
        self._version = 0  # the newest version that has come
        self._has_path = False
        self._is_renewed = False  # a task renews path and subscriptions
        self._is_lost = False  # the renewal has failed, and is repeated
        self._is_sought = False  # a task repeats the renewal while it is needed
        self._is_deleted = False  # the reporter has deleted it, with its children
        self._child_link: str | None = None  # carries local changes of children

    def admits(self, component: str) -> bool:
        """Return whether a component observes the object, and was admitted."""
        asked = self.observers.get(component)
        return asked is not None and (component, asked) not in self.asking

    def note_version(self, snapshot: Json) -> None:
        """Record the version of a snapshot that has come."""
        version = snapshot.get("version") if isinstance(snapshot, dict) else None
        if isinstance(version, int):
            self._version = max(version, self._version)

    # --- leases -------------------------------------------------------------------------

    async def renew_lease(self, observer: str) -> None:
        """Renew the lease of an observer; repeat later if the reporter's end has not decided.

        If the lease was over already, the node has removed the path, also of the other local
        observers: all of them subscribe again.
        """
        number = self.observers.get(observer)
        if number is None:
            return
        answer, link = await self._ask_for(observer, self._version or None)
        if self.observers.get(observer) != number:
            return
        if answer.code == Code.FORBIDDEN:
            self.refuse_again(observer, number)
        elif answer.code > LAST_SUCCESS:
            self._table.leases.unanswered(self._url, observer, self._out.now())
        else:
            self.route.asked(link)
            self._grant(observer, answer)
            if answer.body.get("renewed") is not True and self.route.used is None:
                self._out.spawn(self.renew_once)
            if "value" in answer.body:
                self._show(observer, answer.body["value"])

    def _grant(self, observer: str, answer: Message) -> None:
        """Record the lease and the version that an observer was granted."""
        lease = answer.body.get("lease")
        life = float(lease) if isinstance(lease, int) and lease > 0 else math.inf
        self._table.leases.granted(self._url, observer, life, self._out.now())
        self.note_version(answer.body.get("value"))

    # --- begin --------------------------------------------------------------------------

    def observe(self, request: Message, body: bodies.Observe, *, is_first: bool) -> None:
        """Observe the object for a component, for the first or for another one."""
        observer = request.from_
        self.observers[observer] = request.id
        self.asking.add((observer, request.id))
        if is_first:
            self._bus.open_address(f"{self._url}/{child.CHANGES}", self._table.listener)
            self._follow(observer)
        # The object that describes a link never comes by a link (I-P13).
        self.route.prefer(observer, p2p=False if is_p2p_part(self._url) else body.p2p)
        self._out.spawn(partial(self._open if is_first else self._join, request, body))

    def _follow(self, observer: str) -> None:
        """Deliver the events of the object to an observer from now on.

        Its reporter gets events of its children anyway, before all others.
        """
        is_reporter = self._table.reporter(self._url) == observer
        children = () if is_reporter else child.children_addresses(self._url)
        for address in (f"{self._url}/{child.CHANGES}", *children):
            self._bus.follow(address, observer)

    def _unfollow(self, observer: str) -> None:
        for address in child.published_addresses(self._url):
            self._bus.unfollow(address, observer)

    async def _open(self, request: Message, _body: bodies.Observe) -> None:
        """Subscribe for the first observer: by a live link if there is one, else by the node."""
        observer, link = request.from_, None
        if self.route.may_use_links:
            link = await self._table.watches.link_to(self._url)
        if link is not None:
            self._set_event_link(link)
            answer = await self._bus.request_direct(
                self._request_for(MessageType.SUBSCRIBE, observer)
            )
            if _is_decided(answer):
                self.answer(request, answer, link, is_first=True)
                return
            self._set_event_link(None)
        if self._table.objects.get(self._url) is not self:
            # The object was closed meanwhile: nobody would remove a new path.
            self.answer(request, refuse(request, Code.GONE, _LEFT), is_first=True)
            return
        answer = await self._set_path()
        if not self.route.is_wanted_by(observer):
            # Its unsubscription was sent already: nobody would undo a new subscription.
            answer = attrs.evolve(answer, body={"code": Code.GONE, "description": _LEFT})
        if answer.code <= LAST_SUCCESS:
            answer = await self._bus.request(self._request_for(MessageType.SUBSCRIBE, observer))
        self.answer(request, answer, barred=link, is_first=True)

    async def _join(self, request: Message, body: bodies.Observe) -> None:
        answer, link = refuse(request, Code.GONE, _LEFT), None
        if request.from_ in self.observers:
            # A renewal is no new subscription, so an expelled observer is not admitted again.
            version = self._version if body.resume and self._version else None
            answer, link = await self._ask_for(request.from_, version)
        self.answer(request, answer, link)

    async def _ask_for(self, observer: str, version: int | None) -> tuple[Message, str | None]:
        """Subscribe for one observer by the route in use; return the answer and the link used.

        Args:
            observer: Address of the observer.
            version: The version that has come, for a renewal; None: a new subscription.
        """
        link = self.route.used
        if link is not None:
            request = self._request_for(MessageType.SUBSCRIBE, observer, version)
            answer = await self._bus.request_direct(request)
            if _is_decided(answer) or not self.route.is_wanted_by(observer):
                return answer, link
        request = self._request_for(MessageType.SUBSCRIBE, observer, version)
        return await self._bus.request(request), None

    def _request_for(self, kind: MessageType, observer: str, version: int | None = None) -> Message:
        """Return the subscription request for an observer; this runtime sends renewals."""
        renews = True if kind is MessageType.SUBSCRIBE else None
        body = write_body(bodies.Subscription(observer, renews=renews, version=version))
        return self._out.request(kind, f"{self._url}/{child.SUBSCRIPTION}", body)

    def answer(
        self,
        request: Message,
        answer: Message,
        link: str | None = None,
        barred: str | None = None,
        *,
        is_first: bool = False,
    ) -> None:
        """Answer an observer; after a refusal, remove its subscription.

        Args:
            request: The observer's own request.
            answer: The answer of the reporter's end, or the refusal of the path.
            link: The link that has brought the answer; None: the node has.
            barred: The link by which the first observer was refused; None: there is none.
            is_first: Whether it is the first observer of its object here.
        """
        observer, present = request.from_, self._table.objects.get(self._url)
        asked = None if present is None else present.observers.get(observer)
        is_present, is_newest = present is self, asked == request.id
        if is_present:
            self.asking.discard((observer, request.id))
            if is_first:
                self._record_route(link, barred)
            else:
                self.route.asked(link)
        if answer.code <= LAST_SUCCESS:
            if is_present:
                self._admit(observer)
            if is_newest:
                self._grant(observer, answer)
            by_link: dict[str, Json] = {} if link is None else {"p2p": True}
            self._out.answer(request, Code.OK, value=answer.body.get("value"), **by_link)
            return
        if answer.code == Code.TIMEOUT and (is_newest or asked is None):
            # The subscription may still succeed, and must be undone; but not if the observer has
            # sent another request.
            self._bus.send(self._request_for(MessageType.UNSUBSCRIBE, observer))
        if is_newest:
            self._remove_observer(observer)
        if is_present:
            self.close_if_left()
            if self.observers and self.route.used is None:
                # The node has removed the path with the refusal; other observers may have come.
                self._out.spawn(self.renew)
        why = answer.body.get("description")
        extra = {"description": why} if isinstance(why, str) else {}
        self._out.answer(request, code_in_use(answer.code), **extra)

    def _record_route(self, link: str | None, barred: str | None) -> None:
        """Record the route of the first subscription, and watch links from now on."""
        self.route.opened(link, barred)
        self._set_child_path(self.route.used)
        if not is_p2p_part(self._url):
            is_wanted = self.route.wants_link
            self._table.watches.watch(self._url, link or barred, is_wanted=is_wanted)

    def _admit(self, observer: str) -> None:
        """Deliver the object to an observer once it is admitted, not before (I-D9)."""
        for other, number in self.asking:
            if self.observers.get(other) == number:
                self._unfollow(other)
        if observer in self.observers:
            self._follow(observer)

    # --- again --------------------------------------------------------------------------

    async def renew_once(self) -> None:
        """Renew route and subscriptions at the node, unless a task is doing so already."""
        if self._is_renewed:
            return
        self._is_renewed = True
        try:
            await self.renew()
        finally:
            self._is_renewed = False

    async def renew(self) -> None:
        """Set the route at the node again, and subscribe again for all local observers.

        The node has forgotten both. Messages may be lost, and the reporter's runtime may come back
        later than this one: the requests are repeated several times at once, and then now and
        then, as no change comes before.
        """
        is_set, pause = False, READ_PAUSE
        for remaining in reversed(range(RECONNECT_TRIES)):
            is_set = is_set or self.is_closing
            if not is_set:
                is_set = (await self._set_path()).code not in _LATER
            # At the last attempt, subscribe also without a path, to get the newest value.
            if (is_set or not remaining) and await self._subscribe_again() and is_set:
                self._is_lost = False
                return
            await trio.sleep(pause)
            pause *= 2
        if not (self.is_closing or self._is_lost):
            _log.warning("no path for an observed object", url=self._url)
            self._is_lost = True
            if not self._is_sought:
                self._is_sought = True
                self._out.spawn(self._renew_until_known)

    async def _renew_until_known(self) -> None:
        """Renew route and subscriptions until this succeeds, or a link serves the observers."""
        while self._is_lost:
            await trio.sleep(REPEAT_LAST)
            if self.is_closing:
                return
            self._is_lost &= self.route.used is None
            if self._is_lost:
                await self.renew()
        self._is_sought = False

    async def _subscribe_again(self) -> bool:
        for observer, number in () if self.is_closing else tuple(self.observers.items()):
            if observer not in self.observers:
                # The observer has left meanwhile.
                continue
            answer = await self._bus.request(self._request_for(MessageType.SUBSCRIBE, observer))
            if answer.code in _LATER:
                return False
            if answer.code <= LAST_SUCCESS:
                self._show(observer, answer.body.get("value"))
            elif answer.code == Code.FORBIDDEN:
                self.refuse_again(observer, number)
        return True

    def _show(self, observer: str, value: Json) -> None:
        """Send an observer the whole object, as it may have missed changes."""
        body: dict[str, Json] = {"resource": self._url, "value": value}
        self._bus.send(self._out.request(MessageType.UPDATE, observer, body))

    # --- end ----------------------------------------------------------------------------

    def begin_leaving(self, observer: str, request: Message | None) -> None:
        """Remove an observer, notify the reporter's runtime, and then answer the request."""
        self._remove_observer(observer)
        self.leaving.add(observer)
        self._out.spawn(partial(self._leave, observer, request))

    def _remove_observer(self, observer: str) -> None:
        """Stop delivery to one observer; the others are not affected (I-D7)."""
        del self.observers[observer]
        self._table.leases.ended(self._url, observer)
        self.route.left(observer)
        self._unfollow(observer)

    async def _leave(self, observer: str, request: Message | None) -> None:
        """Unsubscribe an observer; if the object answers 503, ask again later."""
        answer = await self._unsubscribe(observer)
        for _ in range(LEAVE_TRIES - 1):
            if answer.code != Code.UNAVAILABLE:
                break
            await trio.sleep(BUSY_PAUSE)
            if self._table.objects.get(self._url) is not self or observer in self.observers:
                # The observer observes again: the new subscription must stay.
                break
            answer = await self._unsubscribe(observer)
        # Without observers the path is removed (SYN-20).
        self.leaving.discard(observer)
        self.close_if_left(request)

    async def _unsubscribe(self, observer: str) -> Message:
        """Notify the reporter that an observer leaves, by the route in use; return its answer."""
        if self.route.used is not None:
            answer = await self._bus.request_direct(
                self._request_for(MessageType.UNSUBSCRIBE, observer)
            )
            if answer.code not in _NOT_BY_LINK or self.route.is_wanted_by(observer):
                # A repetition could end the new subscription of an observer that observes again.
                return answer
        return await self._bus.request(self._request_for(MessageType.UNSUBSCRIBE, observer))

    def close_if_left(self, request: Message | None = None) -> None:
        """Remove the route, once, if no observer remains; then answer the request."""
        if not self.observers and not self.is_closing:
            self.is_closing = True
            self._out.spawn(partial(self._close, request))
        elif request is not None:
            self._out.answer(request, Code.OK)

    async def _close(self, request: Message | None) -> None:
        self._bus.close_address(f"{self._url}/{child.CHANGES}", self._table.listener)
        await self._remove_path()
        if request is not None:
            self._out.answer(request, Code.OK)
        del self._table.objects[self._url]
        self._set_event_link(None)
        self._table.watches.unwatch(self._url)
        self._set_child_path(None)
        for waiting in self.waiting:
            self._table.admit(*waiting)

    def expel(self, observer: str) -> None:
        """Remove an observer that the reporter's end has expelled (SYN-21).

        An observer with a newer request stays until the request is decided.
        """
        if self.admits(observer):
            self._remove_observer(observer)
            self.close_if_left()

    def refuse_again(self, observer: str, number: int) -> None:
        """Remove an observer that is no longer admitted, and notify the observer (M-45).

        Args:
            observer: Address of the observer.
            number: Id of the request by which it observes.
        """
        if self.observers.get(observer) == number and self.admits(observer):
            self._remove_observer(observer)
            body = write_body(bodies.ObjectName(self._url))
            self._bus.send(self._out.request(MessageType.UNSUBSCRIBE, observer, body))
            self.close_if_left()

    def on_event(self, event: Message) -> None:
        """Handle a change or the deletion of the object, from its reporter only (M-47)."""
        if event.type is MessageType.UPDATE:
            if event.from_ == self._url:
                self.note_version(event.body)
        elif event.from_ != f"{self._url}/{child.SUBSCRIPTION}":
            self._out.refuse(event, Code.FORBIDDEN, "only its reporter deletes an object")
        else:
            self._out.answer(event, Code.OK, source=self._out.runtime)
            for observer in tuple(self.observers):
                self._remove_observer(observer)
            self._is_deleted = True
            self.close_if_left()

    # --- the path at a node, and moves ----------------------------------------------------

    async def _set_path(self) -> Message:
        """Let the node deliver the events of the object and its children to this runtime (M-37)."""
        self._has_path = True
        addresses = child.published_addresses(self._url)
        return await self._request_path(MessageType.SUBSCRIBE, addresses)

    async def _remove_path(self) -> None:
        """Remove the route at the node, if one was set (M-44).

        The path of the children stays as long as the object is reported here.
        """
        if not self._has_path:
            return
        self._has_path = False
        changes, *others = child.published_addresses(self._url)
        children = () if self._table.reporter(self._url) is not None else tuple(others)
        # The children of a deleted object are gone, so their path is removed on its own.
        parts = [children, (changes,)] if self._is_deleted else [(changes, *children)]
        for part in filter(None, parts):
            await self._request_path(MessageType.UNSUBSCRIBE, part)

    async def _request_path(self, kind: MessageType, paths: tuple[str, ...]) -> Message:
        to = subscription_manager(self._out.node_for(self._url))
        body = write_body(Path(paths, self._out.runtime))
        return await self._bus.request(self._out.request(kind, to, body))

    def _set_event_link(self, link: str | None) -> None:
        """Accept changes from a link, before the subscription (SYN-06); None: from no link."""
        for address in child.published_addresses(self._url):
            self._bus.set_event_link(address, link)

    def _set_child_path(self, link: str | None) -> None:
        """Send local changes of children by the route of the object's changes."""
        if link != self._child_link:
            self._child_link = link
            for address in child.children_addresses(self._url):
                self._bus.set_child_path(address, link or Elsewhere.BY_NODE)

    def _move(self, link: str | None) -> None:
        self._out.spawn(partial(self._run_move, link))

    async def _run_move(self, link: str | None) -> None:
        """Change the route of an object's events; ignore the result if it was closed meanwhile."""
        if link is None:
            how = Moving.DONE
            await self.renew()
        else:
            how = await self._move_to_link(link)
        if self._table.objects.get(self._url) is self:
            if link is None:
                self._set_event_link(None)
            self.route.moved(link, how)
            self._set_child_path(self.route.used)

    async def _move_to_link(self, link: str) -> Moving:
        """Subscribe one observer by the link, which then serves the whole runtime (I-D12).

        The path stays until all events by the node have come.
        """
        observer = self.route.anybody
        if observer is None:
            return Moving.REFUSED
        self._set_event_link(link)
        answer = await self._bus.request_direct(self._request_for(MessageType.SUBSCRIBE, observer))
        if answer.code > LAST_SUCCESS:
            return Moving.UNSURE if answer.code in _BY_ROUTERS else Moving.REFUSED
        if self._has_path:
            for address in child.published_addresses(self._url):
                await self._bus.caught_up(address, link)
            if self._table.objects.get(self._url) is self:
                # Before the removal, as the node refuses changes of children without a path.
                self._set_child_path(link)
                await self._remove_path()
        return Moving.DONE


class ObservedObjects:
    """All objects that components of this runtime observe.

    Args:
        out: The output of the sync manager.
        reporter: Returns the local reporter of an object, who needs the path of its children.

    Attributes:
        objects: The objects, by their addresses.
        leases: When the subscriptions of their observers are renewed.
        watches: The links that lead to their reporters.
        listener: Receiver of the events of observed objects.
    """

    def __init__(self, out: SyncOutput, reporter: Reporter) -> None:
        self.out: Final = out
        self.reporter: Final = reporter
        self.objects: Final[dict[str, Observed]] = {}
        self.watches: Final = LinkWatches(out, self._on_link)
        self.leases: Final = RenewalsCore()
        self.listener: ActorRef[Delivery]

    @property
    def observers(self) -> set[str]:
        """The hyperties that observe an object, or are about to start or stop."""
        users: set[str] = set()
        for each in self.objects.values():
            users |= each.leaving.union(each.observers, (item.from_ for item, _ in each.waiting))
        return users

    def find(self, address: str) -> Observed | None:
        """Return the observed object whose changes go to an address."""
        url = address.removesuffix(f"/{child.CHANGES}")
        return None if url == address else self.objects.get(url)

    def time_over(self) -> None:
        """Renew the leases of subscriptions that are due."""
        for url, observer in self.leases.due(trio.current_time()):
            if url in self.objects:
                self.out.spawn(partial(self.objects[url].renew_lease, observer))

    def _on_link(self, url: str, link: str | None) -> None:
        """Record the new link to the reporter of an object; None: the link has ended."""
        if url in self.objects:
            self.objects[url].route.link_is(link)

    def renew_paths(self, domain: str) -> None:
        """Set the routes again that the node of a domain has lost."""
        for url, each in self.objects.items():
            is_affected = self.out.node_for(url) == domain and not each.is_closing
            if is_affected and each.route.used is None:
                self.out.spawn(each.renew)

    # --- requests -------------------------------------------------------------------------

    def observe(self, request: Message, body: bodies.Observe) -> None:
        """Observe an object for a component, and send it the names of the children (M-36)."""
        names = [] if body.p2p is True else child.child_resources(body.resource)
        self.out.answer(request, Code.TRYING, resources=[*names])
        observed = self.objects.get(body.resource)
        if observed is not None and observed.is_closing:
            observed.waiting.append((request, body))
        else:
            self.admit(request, body)

    def admit(self, request: Message, body: bodies.Observe) -> None:
        """Start to observe an object that is not being closed."""
        url, is_first = body.resource, body.resource not in self.objects
        if is_first:
            self.objects[url] = Observed(self, url)
        self.objects[url].observe(request, body, is_first=is_first)

    def resume(self, request: Message) -> None:
        """Answer an observer whether a copy of it is stored (M-52)."""
        copies = self.out.gate.rest.rows(CopyKept)
        if any(copy.observer == request.from_ for copy in copies):
            self.out.answer(request, Code.OK)
        else:
            self.out.refuse(request, Code.NOT_FOUND, NOTHING_STORED)

    def on_object_back(self, request: Message, body: bodies.ObjectBack) -> None:
        """Subscribe again to an object that is back, and list its observers here (M-52)."""
        observed = self.objects.get(body.resource)
        is_open = observed is not None and not observed.is_closing
        observers = [*observed.observers] if observed is not None and is_open else []
        self.out.answer(request, Code.OK, value=[*observers])
        if observed is not None and observers:
            self.out.spawn(observed.renew_once)

    def leave(self, request: Message, body: bodies.ObjectName) -> None:
        """Stop observing for a component (M-42)."""
        observed = self.objects.get(body.resource)
        if observed is not None and request.from_ in observed.observers:
            observed.begin_leaving(request.from_, request)
        else:
            self.out.answer(request, Code.OK)

    def leave_all(self, observer: str) -> None:
        """Leave every object for a component that is gone."""
        for each in self.objects.values():
            for waiting in [item for item in each.waiting if item[0].from_ == observer]:
                each.waiting.remove(waiting)
                self.out.refuse(waiting[0], Code.GONE, "the observer left")
            if observer in each.observers:
                each.begin_leaving(observer, None)

    def on_expelled(self, event: Message, body: bodies.ObserverExpelled) -> None:
        """Remove an observer that the reporter's end has expelled (SYN-21)."""
        self.out.answer(event, Code.OK)
        if body.resource in self.objects:
            self.objects[body.resource].expel(body.observer)
