"""Routes of the changes and children of observed objects: links, and paths at nodes (P2P-30).

A move runs in a task of the sync manager, one at a time for each object.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, final

import attrs

from actors.runtime.sync.context import LinkWatches, Spawn, SyncContext
from actors.runtime.sync.registration import SUBSCRIPTION, published_addresses
from fsm.bus.child_paths import Elsewhere
from fsm.intent import is_p2p_part
from fsm.sync.routes import Moving, ObserverRoute
from specs.addresses.address import subscription_manager
from specs.bodies.link import Path
from specs.bodies.sync import Subscription
from specs.child import children_addresses
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

Renew: TypeAlias = Callable[[str], Awaitable[None]]
"""Sets the path of an object at its node, and asks its reporter for all observers again."""

Reporter: TypeAlias = Callable[[str], str | None]
"""Returns the local reporter of an object; None: there is none."""

Opened: TypeAlias = tuple[Message, str | None, str | None]
"""The answer to the first observer; the link it was let in by, and the one it was not."""


@final
@attrs.frozen(slots=True)
class Route:
    """The route by which an observer was answered.

    Attributes:
        link: The link; None: the node.
        barred: The link by which it was not let in.
        is_first: Whether it is the first observer of its object here.
    """

    link: str | None = None
    barred: str | None = None
    is_first: bool = False


_LEFT: Final = "the observer left before it was subscribed"

_UNHEARD: Final = frozenset({Code.TIMEOUT, Code.UNAVAILABLE, Code.BAD_BACKEND, Code.INTERNAL})
"""Answers that come instead of the addressed component."""

_NOT_BY_LINK: Final = _UNHEARD | {Code.UNAUTHENTICATED}
"""Answers by a link to which the node may know a better one."""


@final
class ObserverPaths:
    """Each observed object's route.

    Args:
        context: What the sync manager may use.
        spawn: Runs a task of it.
        renew: Sets a path.
        reporter: Local reporter of an object: then the path of its children is for that, too.
    """

    def __init__(
        self, context: SyncContext, spawn: Spawn, renew: Renew, reporter: Reporter
    ) -> None:
        self._context = context
        self._reporter = reporter
        self._spawn = spawn
        self._renew = renew
        self._watches = LinkWatches(context.registry, spawn, self._on_link)
        self._routes: dict[str, ObserverRoute] = {}
        self._paths: set[str] = set()
        self._led: dict[str, str] = {}
        self._deleted: set[str] = set()

    def is_by_node(self, url: str) -> bool:
        """Return whether the changes of an object come by a path at a node."""
        return url not in self._routes or self._routes[url].used is None

    # --- observers ------------------------------------------------------------------------

    def on_request(self, url: str, observer: str, *, p2p: bool | None) -> None:
        """Note what an observer wants; what links are made of never comes by one (I-P13).

        Args:
            url: Address of the object.
            observer: Address of the observer.
            p2p: Whether a direct link is wanted; None: if there is one.
        """
        route = self._routes.setdefault(url, ObserverRoute(partial(self._move, url)))
        route.prefer(observer, p2p=False if is_p2p_part(url) else p2p)

    def on_left(self, url: str, observer: str) -> None:
        """Note that an observer is gone.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        route = self._routes.get(url)
        if route is not None:
            route.left(observer)

    async def open(self, url: str, observer: str) -> Opened:
        """Ask for the first observer: by the live link there is, else by the node.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        route = self._routes.get(url)
        link = (
            await self._watches.link_to(url) if route is not None and route.may_use_links else None
        )
        if link is not None:
            self._set_event_link(url, link)
            answer = await self._ask_by_link(MessageType.SUBSCRIBE, url, observer)
            if answer.code <= LAST_SUCCESS or answer.code == Code.FORBIDDEN:
                return answer, link, None
            self._set_event_link(url, None)
        answer = await self.set_path(url)
        if route is None or not route.is_wanted_by(observer):
            # Its unsubscription has gone already: what is asked now would never be taken back.
            answer = attrs.evolve(answer, body={"code": Code.GONE, "description": _LEFT})
        if answer.code <= LAST_SUCCESS:
            answer = await self._ask_by_node(MessageType.SUBSCRIBE, url, observer)
        return answer, None, link

    def on_answer(self, url: str, by: Route) -> None:
        """Note by which route an observer was answered; from the first on, follow links.

        Args:
            url: Address of the object.
            by: The route of the answer.
        """
        route = self._routes.get(url)
        if route is None:
            return
        if not by.is_first:
            route.asked(by.link)
            return
        route.opened(by.link, by.barred)
        self._set_child_path(url, route.used)
        if not is_p2p_part(url):
            self._watches.watch(url, by.link or by.barred, is_wanted=route.wants_link)

    async def join(
        self, url: str, observer: str, version: int | None = None
    ) -> tuple[Message, str | None]:
        """Ask for one more observer, by the route in use; return the answer, and the route.

        Args:
            url: The object.
            observer: The observing hyperty.
            version: Of what came here, if it observes already, and goes on.
        """
        route, bus = self._routes.get(url), self._context.bus
        asks = Subscription(observer, version=version)
        if route is not None and route.used is not None:
            used = route.used
            answer = await bus.request_direct(self._subscribe(url, asks))
            is_decided = answer.code <= LAST_SUCCESS or answer.code == Code.FORBIDDEN
            if is_decided or not route.is_wanted_by(observer):
                return answer, used
        return await bus.request(self._subscribe(url, asks)), None

    def _subscribe(self, url: str, asks: Subscription) -> Message:
        return of_observer(self._context, MessageType.SUBSCRIBE, url, asks)

    async def leave(self, url: str, observer: str) -> Message:
        """Notify the reporter that an observer leaves, by the route in use; return its answer.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        route = self._routes.get(url)
        if route is not None and route.used is not None:
            answer = await self._ask_by_link(MessageType.UNSUBSCRIBE, url, observer)
            if answer.code not in _NOT_BY_LINK or route.is_wanted_by(observer):
                # A leave must not take back that it observes again.
                return answer
        return await self._ask_by_node(MessageType.UNSUBSCRIBE, url, observer)

    async def _ask_by_node(self, kind: MessageType, url: str, observer: str) -> Message:
        return await self._context.bus.request(self._of_observer(kind, url, observer))

    async def _ask_by_link(self, kind: MessageType, url: str, observer: str) -> Message:
        return await self._context.bus.request_direct(self._of_observer(kind, url, observer))

    def _of_observer(self, kind: MessageType, url: str, observer: str) -> Message:
        return of_observer(self._context, kind, url, Subscription(observer))

    # --- the path at a node -------------------------------------------------------------------

    async def set_path(self, url: str) -> Message:
        """Have the node deliver the events of an object here, and of its children (M-37)."""
        self._paths.add(url)
        return await self._request(MessageType.SUBSCRIBE, url, published_addresses(url))

    async def close(self, url: str) -> None:
        """Have the node deliver nothing any more (M-44); a path that was never set costs nothing.

        The path of the children stays as long as the object is reported here.
        """
        if url not in self._paths:
            return
        self._paths.discard(url)
        changes, *others = published_addresses(url)
        children = () if self._reporter(url) is not None else tuple(others)
        # The children of a deleted object have died with it, and are nothing of it any more.
        parts = [children, (changes,)] if url in self._deleted else [(changes, *children)]
        self._deleted.discard(url)
        for part in parts:
            if part:
                await self._request(MessageType.UNSUBSCRIBE, url, part)

    def on_deleted(self, url: str) -> None:
        """Note that the object is gone; its paths are removed by `close`."""
        self._deleted.add(url)

    async def _request(self, kind: MessageType, url: str, paths: tuple[str, ...]) -> Message:
        to = subscription_manager(self._context.node_for(url))
        body = write_body(Path(paths, self._context.runtime))
        return await self._context.bus.request(self._context.request(kind, to, body))

    # --- moves ----------------------------------------------------------------------------------

    def _on_link(self, url: str, link: str | None) -> None:
        """Note that another link leads to where an object is reported, or none."""
        route = self._routes.get(url)
        if route is not None:
            route.link_is(link)

    def _move(self, url: str, link: str | None) -> None:
        route = self._routes[url]
        to_link = partial(self._to_link, url, route)
        self._spawn(partial(self._to_node, url, route) if link is None else partial(to_link, link))

    def _set_event_link(self, url: str, link: str | None) -> None:
        """Let changes come by a link, before it is asked for (SYN-06); or by none."""
        for address in published_addresses(url):
            self._context.bus.set_event_link(address, link)

    def _set_child_path(self, url: str, link: str | None) -> None:
        """Have what observers here write of children take the route of the changes."""
        if link == self._led.get(url):
            return
        if link is None:
            del self._led[url]
        else:
            self._led[url] = link
        for address in children_addresses(url):
            self._context.bus.set_child_path(address, link or Elsewhere.BY_NODE)

    async def _to_node(self, url: str, route: ObserverRoute) -> None:
        await self._renew(url)
        if self._routes.get(url) is route:
            self._set_event_link(url, None)
        self._on_moved(url, route, None, Moving.DONE)

    async def _to_link(self, url: str, route: ObserverRoute, link: str) -> None:
        """Ask for one observer by the link: then its whole runtime is served by that (I-D12).

        The path stays until what went by the node has come.
        """
        observer = route.anybody
        if observer is None:
            how = Moving.REFUSED
        else:
            self._set_event_link(url, link)
            answer = await self._ask_by_link(MessageType.SUBSCRIBE, url, observer)
            how = _outcome(answer)
        if how is Moving.DONE and url in self._paths:
            for address in published_addresses(url):
                await self._context.bus.caught_up(address, link)
            if self._routes.get(url) is route:
                # Before: the node refuses children without a path.
                self._set_child_path(url, link)
                await self.close(url)
        self._on_moved(url, route, link, how)

    def _on_moved(self, url: str, route: ObserverRoute, link: str | None, how: Moving) -> None:
        """Take it how a move ended; one of an object that was left means nothing."""
        if self._routes.get(url) is route:
            route.moved(link, how)
            self._set_child_path(url, route.used)

    def forget(self, url: str) -> None:
        """Note that an object is observed no more."""
        self._set_event_link(url, None)
        self._watches.unwatch(url)
        self._routes.pop(url, None)
        self._set_child_path(url, None)
        # A deletion may have been reported while its path was being closed.
        self._deleted.discard(url)


def _outcome(answer: Message) -> Moving:
    if answer.code <= LAST_SUCCESS:
        return Moving.DONE
    return Moving.UNSURE if answer.code in _UNHEARD else Moving.REFUSED


def of_observer(
    context: SyncContext, kind: MessageType, url: str, subscription: Subscription
) -> Message:
    """Write a request for an observer; what it is granted is renewed from here.

    Args:
        context: Context of the sync manager.
        kind: Type of the message.
        url: Address of the object.
        subscription: Observer and terms of the subscription.
    """
    renews = True if kind is MessageType.SUBSCRIBE else None
    body = write_body(attrs.evolve(subscription, renews=renews))
    return context.request(kind, f"{url}/{SUBSCRIPTION}", body)
