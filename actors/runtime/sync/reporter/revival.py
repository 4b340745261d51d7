"""Objects that were stored when the runtime began: served again, and given back (SYN-28, M-51)."""

from functools import partial
from typing import final

from actors.runtime.sync.messages import StillObserved
from actors.runtime.sync.reporter.cores import ReportedCores
from actors.runtime.sync.reporter.restore import ObjectsBack
from actors.runtime.sync.reporter.services import ReporterParts
from fsm.sync.reporter_io import UnsubscribeAsked
from specs.bodies.object import Resume
from specs.errors import BadMessageError
from specs.message import Message
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["Revival"]


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

    async def resume(self, request: Message) -> None:
        """Give a reporter what it had, or store what it was handed (M-51, SYN-26)."""
        wish, whole = read_body(request, Resume), self._parts.children.with_children
        if wish.resource is None:
            await self._parts.stored.resume(request, wish, self._cores.all, whole)
            return
        reported = self._cores.find(wish.resource)
        if reported is None or reported.snapshot.reporter != request.from_:
            raise BadMessageError("its sender does not report it", Code.NOT_FOUND)
        shown = whole(reported.snapshot).children_objects
        await self._parts.stored.adopt(request, reported, shown or {})
