"""How objects that were stored are there again, and those who observe them hear of it (SYN-25).

The node gives a runtime back the addresses that it had; it may know nothing of them any more,
nor of the observers' paths. So each observer's sync manager is told that the object is back:
it sets its path again, subscribes again, and gets the object as it is now.

Objects that were stored when the runtime began: served again, and given back (SYN-28, M-51).
"""

from functools import partial
from typing import final

import structlog
import trio

from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.messages import StillObserved, Tell
from actors.runtime.sync.presence.registration import SUBSCRIPTION, ObjectPlaces
from actors.runtime.sync.reporter.cores import ReportedCores, ReporterParts
from actors.runtime.sync.reporter.stored import Revived
from fsm.registry.changes_io import LocalLive
from fsm.sync.reporter_io import UnsubscribeAsked
from specs.bodies.object import ObjectBack, Resume, StoreObject
from specs.errors import BadMessageError
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import BACK_AT_ONCE, BACK_TRIES
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = ["ObjectsBack", "Revival"]

_log = structlog.get_logger("actors.runtime")


@final
class ObjectsBack:
    """Sets up anew what stored objects have outside of their reporter's runtime."""

    def __init__(self, context: SyncContext, places: ObjectPlaces, tell: Tell) -> None:
        self._context = context
        self._places = places
        self._tell = tell
        self._room = trio.CapacityLimiter(BACK_AT_ONCE)

    async def announce(self, back: Revived) -> None:
        """Have an object found and observed again; as often as it takes."""
        url = back.shown.url
        if not await self._places.renewals.renew(url):
            return
        refusal = await self._places.register(back.shown)
        if refusal is not None:
            _log.warning("stored object is not registered", url=url, why=refusal.why)
        await self._context.registry.tell(LocalLive(url))
        managers = back.managers - {self._context.bus.url}
        async with trio.open_nursery() as nursery:
            for manager in sorted(managers):
                nursery.start_soon(self._call, url, manager)

    async def _call(self, url: str, manager: str) -> None:
        """Tell one sync manager; who it says does not observe any more, does not."""
        async with self._room:
            pause = READ_PAUSE
            for _ in range(BACK_TRIES):
                answer = await self._context.bus.request(self._word(url, manager))
                if answer.code <= LAST_SUCCESS:
                    there = answer.body.get("value")
                    observers = frozenset(map(str, there if isinstance(there, list) else ()))
                    await self._tell(StillObserved(url, manager, observers))
                    return
                await trio.sleep(pause)
                pause *= 2

    def _word(self, url: str, manager: str) -> Message:
        body = write_body(ObjectBack(url))
        sender = f"{url}/{SUBSCRIPTION}"
        return self._context.request(MessageType.SUBSCRIBE, manager, body, sender)


@final
class Revival:
    """Brings stored objects back, their observers first, then their reporters."""

    def __init__(self, parts: ReporterParts, cores: ReportedCores) -> None:
        self._parts = parts
        self._cores = cores

    async def revive(self) -> None:
        """Serve what was stored, from now on; its reporters are away (SYN-28)."""
        back = ObjectsBack(self._parts.context, self._parts.places, self._parts.tell)
        for there in self._parts.stored.revive():
            self._cores.add(there.shown.url, there.reported)
            await self._parts.doors.open(there.shown)
            await self._cores.perform(there.shown.url, None, there.effects)
            self._parts.spawn(partial(back.announce, there))

    async def still_observed(self, told: StillObserved) -> None:
        """Take note who does not observe any more an object that is back."""
        there = self._cores.all.get(told.url)
        for observer in () if there is None else there.observers:
            if observer not in told.observers:
                await self._cores.feed(told.url, UnsubscribeAsked(observer, told.manager))

    async def resume(self, request: Message, body: Resume) -> None:
        """Give a reporter the objects that it had (M-51)."""
        whole = self._parts.children.with_children
        await self._parts.stored.resume(request, body, self._cores.all, whole)

    async def store(self, request: Message, body: StoreObject) -> None:
        """Store an object that was handed over to its reporter (M-51, SYN-26).

        Raises:
            BadMessageError: The sender does not report it, or nothing is stored here.
        """
        reported, whole = self._cores.find(body.resource), self._parts.children.with_children
        if reported is None or reported.snapshot.reporter != request.from_:
            raise BadMessageError("its sender does not report it", Code.NOT_FOUND)
        shown = whole(reported.snapshot).children_objects
        await self._parts.stored.adopt(request, reported, shown or {})
