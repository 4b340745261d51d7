"""The links by which observers of objects reported here get changes and children.

A request that came by a link is served by it, for all observers in the runtime at its other end
(P2P-30, SYN-27, I-D12). The sender is verified first, as a node would (MN-03); if that fails it
is sent to the node (401).
"""

from functools import partial
from typing import assert_never, final

from actors.runtime.sync.context import LinkWatches, Spawn, SyncContext, observer_of
from actors.runtime.sync.messages import LinkIs, Report, SenderChecked
from actors.runtime.sync.registration import published_addresses
from fsm.bus.child_paths import Elsewhere
from fsm.intent import is_p2p_part
from fsm.sync.reporter import ReporterCore
from fsm.sync.routes import KeepIn, LinksReach, RouteEffect, RuntimeRoutes, SendOut
from specs.addresses.address import runtime_of
from specs.child import children_addresses
from specs.limits.sync import MAX_WITNESSED
from specs.message import Message, MessageType
from specs.reply_code import Code

__all__ = ["ObserverLinks", "link_of"]


def link_of(request: Message) -> str | None:
    """Return the address of the link that a request came by; None: it came otherwise."""
    by = request.via[-1] if request.via else ""
    return by if is_p2p_part(by) else None


@final
class ObserverLinks:
    """The links by which the observers of all objects reported here get changes."""

    def __init__(self, context: SyncContext, spawn: Spawn, report: Report) -> None:
        self._context = context
        self._spawn = spawn
        self._report = report
        self._routes = RuntimeRoutes(context.runtime)
        self._watches = LinkWatches(context.registry, spawn, report)
        self._asking: dict[tuple[str, str], Message] = {}
        self._looked_at = 0

    def direct(self, url: str) -> frozenset[str]:
        """Return the runtimes that get changes of an object by a link."""
        return self._routes.direct(url)

    # --- requesters ----------------------------------------------------------------------

    async def sent_on(self, url: str, observer: str, request: Message) -> bool:
        """Find out the sender of a request by a link; return whether that was necessary.

        `SenderChecked` says what came of it.

        Args:
            url: Address of the object.
            observer: Address of the observer.
            request: The request.
        """
        link = link_of(request)
        if link is None:
            self._routes.asked(url, runtime_of(request.from_), None)
            return False
        if len(self._asking) >= MAX_WITNESSED:
            await self._context.refuse(request, Code.UNAVAILABLE, "too many ask at once")
            return True
        self._asking[url, observer] = request
        self._spawn(partial(self._find_out, url, observer, request, link))
        return True

    async def is_looked_at(self, url: str, request: Message) -> bool:
        """Check the sender of an unsubscription or read by a link; return whether necessary.

        `SenderChecked` says what came of it.

        Args:
            url: Address of the object.
            request: The request.
        """
        link = link_of(request)
        if link is None or request.type not in {MessageType.UNSUBSCRIBE, MessageType.READ}:
            return False
        is_read = request.type is MessageType.READ
        observer = request.from_ if is_read else observer_of(request)
        if self._looked_at >= MAX_WITNESSED:
            await self._context.refuse(request, Code.UNAVAILABLE, "too many ask at once")
            return True
        self._looked_at += 1
        self._spawn(partial(self._look, url, observer, request, link))
        return True

    async def _look(self, url: str, observer: str, request: Message, link: str) -> None:
        try:
            await self._find_out(url, observer, request, link)
        finally:
            self._looked_at -= 1

    async def _find_out(self, url: str, observer: str, request: Message, link: str) -> None:
        is_so = await self._watches.speaks_for(link, request.from_, observer)
        await self._report(SenderChecked(url, request, link, is_so))

    async def is_admitted(self, observer: str, checked: SenderChecked) -> bool:
        """Return whether a request by a link is to be decided on now; else it is refused.

        Args:
            observer: Address of the observer.
            checked: Result of the check.
        """
        there = self._asking.get((checked.url, observer))
        if there is checked.request:
            del self._asking[checked.url, observer]
        if there is not checked.request:
            await self._context.refuse(checked.request, Code.GONE, "the observer left meanwhile")
            return False
        if not await self.is_proven(checked):
            return False
        runtime = runtime_of(checked.request.from_)
        self._routes.asked(checked.url, runtime, checked.link)
        self._watches.watch(runtime, checked.link)
        return True

    async def is_proven(self, checked: SenderChecked) -> bool:
        """Return whether a request by a link is from its stated sender; else it is refused."""
        if not checked.is_so:
            why = "where the observer lives is not known here; ask by the node"
            await self._context.refuse(checked.request, Code.UNAUTHENTICATED, why)
        return checked.is_so

    def left(self, url: str, observer: str) -> None:
        """Note that an observer leaves: what it asked before is not decided on.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        self._asking.pop((url, observer), None)

    # --- observers -------------------------------------------------------------------------

    async def settle(self, url: str, reported: ReporterCore) -> None:
        """Notify each runtime that observes an object by its route, before any change.

        Args:
            url: Address of the object.
            reported: Core of the object.
        """
        if not self._routes.is_used(url):
            return
        active = reported.runtimes
        effects = self._routes.left(url, active, reported.asking)
        for runtime in active:
            effects += self._routes.counts(url, runtime)
        await self._perform([*effects, *self._routes.reach(url, active)])

    async def link_is(self, report: LinkIs) -> None:
        """Note that another link leads to a runtime, or none: it asks anew."""
        await self._perform(self._routes.link_is(report.entity, report.link))

    async def forget(self, url: str) -> None:
        """Note that an object is gone."""
        await self._perform(self._routes.forget(url))

    async def _perform(self, effects: list[RouteEffect]) -> None:
        for effect in effects:
            if isinstance(effect, LinksReach):
                path = Elsewhere.NOWHERE if effect.is_all else Elsewhere.BY_NODE
                for address in children_addresses(effect.url):
                    self._context.bus.set_child_path(address, path)
            else:
                await self._branch(effect)
        for runtime in set(self._watches.watched()) - self._routes.watched():
            self._watches.unwatch(runtime)

    async def _branch(self, effect: SendOut | KeepIn) -> None:
        """Have what an object publishes go out by a link, too, or no longer."""
        bus = self._context.bus
        for address in published_addresses(effect.url):
            match effect:
                case SendOut(_, link):
                    bus.add_link(address, link)
                case KeepIn(_, link):
                    bus.remove_link(address, link)
                case _:
                    assert_never(effect)
