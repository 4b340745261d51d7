"""The links by which observers of objects reported here get changes and children.

A request that came by a link is served by it, for all observers in the runtime at its other end
(P2P-30, SYN-27, I-D12). The sender is verified first, as a node would (MN-03); if that fails it
is sent to the node (401).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

from actors.runtime.sync.output import LinkWatches, SyncOutput, observer_of
from fsm.bus.child_paths import Elsewhere
from fsm.effects import is_p2p_part
from fsm.sync.reporter import ReportedObject
from fsm.sync.routes import RuntimeRoutes
from specs.addresses.address import runtime_of
from specs.child import children_addresses, published_addresses
from specs.limits.sync import MAX_WITNESSED
from specs.message import Message, MessageType
from specs.reply_code import Code

Verified: TypeAlias = Callable[[str, Message], None]
"""Takes a request to an object whose sender is proven."""

_VERIFIED: Final = {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.READ}


def link_of(request: Message) -> str | None:
    """Return the address of the link that a request came by; None: it came otherwise."""
    by = request.via[-1] if request.via else ""
    return by if is_p2p_part(by) else None


@final
class ObserverLinks:
    """The links by which the observers of all objects reported here get changes.

    Attributes:
        routes: Decides; knows which runtimes get the changes of an object by a link.
    """

    def __init__(self, out: SyncOutput) -> None:
        self._out = out
        self.routes = RuntimeRoutes(self, out.runtime)
        self._watches = LinkWatches(out, self._on_link)
        self._asking: dict[tuple[str, str], Message] = {}
        self._looks = 0

    # --- requesters ----------------------------------------------------------------------

    def verifies(self, url: str, request: Message, verified: Verified) -> bool:
        """Verify the sender of a request by a link; return whether that is necessary.

        Args:
            url: Address of the object.
            request: The request.
            verified: Takes the request if its sender is the stated one; else it is refused.
        """
        if request.type not in _VERIFIED:
            return False
        observer = request.from_ if request.type is MessageType.READ else observer_of(request)
        link, is_subscribe = link_of(request), request.type is MessageType.SUBSCRIBE
        if link is None:
            if is_subscribe:
                self.routes.asked(url, runtime_of(request.from_), None)
            return False
        if (len(self._asking) if is_subscribe else self._looks) >= MAX_WITNESSED:
            self._out.refuse(request, Code.UNAVAILABLE, "too many ask at once")
            return True
        if is_subscribe:
            self._asking[url, observer] = request
        else:
            self._looks += 1
        self._out.spawn(partial(self._verify, url, observer, request, verified))
        return True

    async def _verify(self, url: str, observer: str, request: Message, verified: Verified) -> None:
        link, is_subscribe = link_of(request) or "", request.type is MessageType.SUBSCRIBE
        try:
            is_so = await self._watches.speaks_for(link, request.from_, observer)
        finally:
            self._looks -= not is_subscribe
        if is_subscribe and self._asking.get((url, observer)) is not request:
            self._out.refuse(request, Code.GONE, "the observer left meanwhile")
            return
        if is_subscribe:
            del self._asking[url, observer]
        if not is_so:
            why = "where the observer lives is not known here; ask by the node"
            self._out.refuse(request, Code.UNAUTHENTICATED, why)
            return
        if is_subscribe:
            runtime = runtime_of(request.from_)
            self.routes.asked(url, runtime, link)
            self._watches.watch(runtime, link)
        verified(url, request)

    def on_left(self, url: str, observer: str) -> None:
        """Note that an observer leaves: what it asked before is not decided on.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        self._asking.pop((url, observer), None)

    # --- observers -------------------------------------------------------------------------

    def settle(self, url: str, reported: ReportedObject) -> None:
        """Notify each runtime that observes an object by its route, before any change.

        Args:
            url: Address of the object.
            reported: Core of the object.
        """
        if not self.routes.is_used(url):
            return
        active = reported.runtimes
        self.routes.left(url, active, reported.asking)
        for runtime in active:
            self.routes.counts(url, runtime)
        self.routes.reach(url, active)
        self._unwatch()

    def _on_link(self, runtime: str, link: str | None) -> None:
        """Note that another link leads to a runtime, or none: it asks anew."""
        self.routes.link_is(runtime, link)
        self._unwatch()

    def forget(self, url: str) -> None:
        """Note that an object is gone."""
        self.routes.forget(url)
        self._unwatch()

    def _unwatch(self) -> None:
        for runtime in set(self._watches.watched) - self.routes.watched():
            self._watches.unwatch(runtime)

    # --- the port of the routes

    def add_link(self, url: str, link: str) -> None:
        """Have what an object publishes go out by a link, too."""
        for address in published_addresses(url):
            self._out.bus.add_link(address, link)

    def remove_link(self, url: str, link: str) -> None:
        """Have what an object publishes go out by that link no longer."""
        for address in published_addresses(url):
            self._out.bus.remove_link(address, link)

    def set_reached(self, url: str, *, is_all: bool) -> None:
        """Have what is said of children go to the node, unless links reach all."""
        for address in children_addresses(url):
            path = Elsewhere.NOWHERE if is_all else Elsewhere.BY_NODE
            self._out.bus.set_child_path(address, path)
