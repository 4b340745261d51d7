"""What is published of the objects reported here, when again, and to whom (M-40, M-47, I-D4).

Those who observe what is reported here, and are told by a link (P2P-30, SYN-27, I-D12).

Whoever asks by a link is told by it: its runtime, with all observers there, by that way
only. Who it speaks for is found out first, as a node would know it (MN-03); if it cannot be
found out the asker is sent to the node (401).
"""

from collections.abc import Iterable
from functools import partial
from typing import assert_never, final

import trio

from actors.runtime.sync.context import Spawn, SyncContext, observer_of
from actors.runtime.sync.link_watches import LinkWatches
from actors.runtime.sync.messages import LinkIs, SenderChecked, Tell
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION
from fsm.intent import is_p2p_part
from fsm.sync.leases import IsObserved, RepeatedChange, RepeatsCore
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import Denied, Granted
from fsm.sync.routes import KeepIn, RouteEffect, RuntimeRoutes, SendOut
from specs.addresses.address import runtime_of
from specs.bodies.sync import Change, DataObject
from specs.limits.sync import MAX_WITNESSED
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["ObserverLinks", "Publications", "link_of"]


def link_of(request: Message) -> str | None:
    """Return the address of the link that a request came by; None: it came otherwise."""
    by = request.via[-1] if request.via else ""
    return by if is_p2p_part(by) else None


@final
class ObserverLinks:
    """The links by which the observers of all objects reported here are told."""

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._routes = RuntimeRoutes()
        self._watches = LinkWatches(context.registry, spawn, tell)
        self._asking: dict[tuple[str, str], Message] = {}
        self._looked_at = 0

    def direct(self, url: str) -> frozenset[str]:
        """Return the runtimes that are told of an object by a link."""
        return self._routes.direct(url)

    # --- who asks -------------------------------------------------------------------------

    async def sent_on(self, url: str, observer: str, request: Message) -> bool:
        """Find out for whom a request by a link speaks; tell whether that was to be done.

        `SenderChecked` says what came of it.
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
        """Find out who leaves or reads by a link; tell whether that was to be done.

        `SenderChecked` says what came of it.
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
        await self._tell(SenderChecked(url, request, link, is_so))

    async def is_admitted(self, observer: str, checked: SenderChecked) -> bool:
        """Say whether a request by a link is to be decided on now; else it is refused."""
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
        """Say whether a request by a link is from whom it says; else it is refused."""
        if not checked.is_so:
            why = "where the observer lives is not known here; ask by the node"
            await self._context.refuse(checked.request, Code.UNAUTHENTICATED, why)
        return checked.is_so

    def left(self, url: str, observer: str) -> None:
        """Take it that an observer leaves: what it asked before is not decided on."""
        self._asking.pop((url, observer), None)

    # --- who is told ----------------------------------------------------------------------

    async def settle(self, url: str, reported: ReporterCore) -> None:
        """Tell each runtime that observes an object by its way, before anything is said."""
        if not self._routes.is_used(url):
            return
        active = reported.runtimes
        effects = self._routes.left(url, active, reported.asking)
        for runtime in active:
            effects += self._routes.counts(url, runtime)
        await self._perform(effects)

    async def link_is(self, report: LinkIs) -> None:
        """Take it that another link leads to a runtime, or none: it asks anew."""
        await self._perform(self._routes.link_is(report.entity, report.link))

    async def forget(self, url: str) -> None:
        """Take it that an object is gone."""
        await self._perform(self._routes.forget(url))

    async def _perform(self, effects: list[RouteEffect]) -> None:
        for effect in effects:
            match effect:
                case SendOut(url, link):
                    await self._context.bus.send_out(f"{url}/{CHANGES}", link)
                case KeepIn(url, link):
                    await self._context.bus.keep_in(f"{url}/{CHANGES}", link)
                case _:
                    assert_never(effect)
        for runtime in set(self._watches.watched()) - self._routes.watched():
            self._watches.unwatch(runtime)


@final
class Publications:
    """Publishes changes to the runtimes that observe, and the last one again."""

    def __init__(self, context: SyncContext, links: ObserverLinks) -> None:
        self._context = context
        self._links = links
        self._repeats = RepeatsCore()
        self._was_observed: set[str] = set()

    def __len__(self) -> int:
        """How many objects were observed that are still reported here."""
        return len(self._was_observed)

    def deadline(self) -> float:
        """Return when a change is due again."""
        return self._repeats.deadline()

    def due(self, is_observed: IsObserved) -> RepeatedChange | None:
        """Return the change that is to be published again now."""
        return self._repeats.due(trio.current_time(), is_observed)

    def decided(self, url: str, decision: Granted | Denied) -> None:
        """Take note that an observer is let in, or is not."""
        self._repeats.observed(url, trio.current_time())
        self._was_observed |= {url} if isinstance(decision, Granted) else set()

    def written(self, written: DataObject, change: Change) -> None:
        """Take note of a new version."""
        self._context.written(written)
        self._repeats.published(written, change, trio.current_time())

    async def publish(self, url: str, reported: ReporterCore, change: Change) -> None:
        """Tell all who observe an object what has changed."""
        runtimes = frozenset(reported.runtimes)
        # Also after the last observer has left: the node knows that nobody is there (SC-32).
        if runtimes or url in self._was_observed:
            body, to = write_body(change), f"{url}/{CHANGES}"
            update = self._context.request(MessageType.UPDATE, to, body, url)
            await self._context.publish(update, runtimes, self._links.direct(url))

    async def publish_end(self, url: str, runtimes: Iterable[str]) -> None:
        """Tell all who observed an object that it is gone (M-47)."""
        sender = f"{url}/{SUBSCRIPTION}"
        gone = self._context.request(MessageType.DELETE, f"{url}/{CHANGES}", {}, sender)
        await self._context.publish(gone, frozenset(runtimes), self._links.direct(url))

    def removed(self, url: str) -> None:
        """Forget an object that is deleted, or that another runtime reports now."""
        self._repeats.forget(url)
        self._was_observed.discard(url)
        self._context.ids.forget(url, f"{url}/{SUBSCRIPTION}")
