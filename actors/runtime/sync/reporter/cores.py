"""The cores of the objects reported here, and what is done for what they decide."""

from collections.abc import Mapping
from functools import partial
from typing import assert_never, final

import trio

from actors.runtime.sync.messages import ObjectRemoved
from actors.runtime.sync.reporter.services import ReporterParts
from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.registry.changes_io import LocalGone
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from specs.message import Message
from specs.reply_code import Code

__all__ = ["ReportedCores"]


@final
class ReportedCores:
    """Feeds the core of each object, and performs its effects, in order."""

    def __init__(self, parts: ReporterParts) -> None:
        self._parts = parts
        self._context = parts.context
        self._cores: dict[str, ReporterCore] = {}
        self._deleting: dict[str, Message | None] = {}
        parts.places.renewals.may_ask = self._may_claim

    # --- the table ------------------------------------------------------------------------

    @property
    def all(self) -> Mapping[str, ReporterCore]:
        """Every object by its address, also those that are being deleted; not to be changed."""
        return self._cores

    def add(self, url: str, reported: ReporterCore) -> None:
        """Report an object from now on."""
        self._cores[url] = reported

    def drop(self, url: str) -> None:
        """Forget an object; one that is not there is fine."""
        self._cores.pop(url, None)

    def find(self, url: str) -> ReporterCore | None:
        """Return an object that is reported here and not deleted."""
        reported = self._cores.get(url)
        return None if reported is None or reported.is_deleted else reported

    def is_observed(self, url: str) -> bool:
        """Say whether anybody observes an object that its reporter may write."""
        reported = self.find(url)
        if reported is None or reported.is_held:
            return False
        return bool(reported.observers)

    def _may_claim(self, url: str) -> bool:
        """Say whether an object is certainly reported here."""
        reported = self.find(url)
        return reported is not None and not reported.is_held

    # --- what happens ---------------------------------------------------------------------

    async def feed(self, url: str, happened: core.ReporterInput) -> None:
        """Let something happen to an object that nobody is answered for."""
        reported = self._cores.get(url)
        if reported is not None:
            await self.perform(url, None, reported.feed(happened))

    async def ask(self, url: str, request: Message, happened: core.ReporterInput) -> None:
        """Let something happen to an object that a request asks for, and answer that."""
        reported = self._cores.get(url)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif not await self._parts.stored.refused(request, url):
            await self.perform(url, request, reported.feed(happened))

    async def lease_over(self, url: str, observer: str) -> None:
        """Let go of an observer that has not renewed; not while the object is handed over."""
        reported = self._cores[url]
        if reported.is_held:
            self._note_lease(url, observer)
        else:
            await self.feed(url, core.LeaseOver(observer))

    def _note_lease(self, url: str, observer: str) -> None:
        """Begin the lease of an observer, or end it with the observer."""
        leases, life = self._parts.leases, self._cores[url].lease_of(observer)
        if life is None:
            leases.end(url, observer)
        else:
            leases.begin(url, observer, life, trio.current_time())

    async def delete(self, url: str, reported: ReporterCore) -> None:
        """Delete an object for its reporter, unasked."""
        deleting = core.DeleteAsked(reported.snapshot.reporter)
        await self.perform(url, None, reported.feed(deleting))

    # --- what is done ---------------------------------------------------------------------

    async def perform(
        self, url: str, request: Message | None, effects: list[core.ReporterEffect]
    ) -> None:
        """Do what the core of an object says; `request`, if there is one, is what it answers."""
        self._parts.stored.note(url, self._cores[url], effects)
        await self._parts.links.settle(url, self._cores[url])
        for effect in effects:
            match effect:
                case Step():
                    self._context.step(effect)
                case core.Obeyed() | core.Published() | core.Refused():
                    await self._answer_reporter(url, request, effect)
                case core.Deleted() | core.Vacated():
                    await self._end(url, request, effect)
                case _:
                    await self._serve(url, effect)

    async def _serve(self, url: str, effect: core.ObserverEffect) -> None:
        """Do what is to be done about one observer."""
        parts = self._parts
        match effect:
            case RowChanged():
                self._note_lease(url, effect.val)
                self._context.row(effect)
                if not self._cores[url].is_deleted:
                    await parts.audiences.changed(url, effect)
            case core.ReporterAsked():
                parts.pending.ask(self._cores[url].snapshot, effect)
            case core.Granted() | core.Denied():
                self._note_lease(url, effect.observer)
                parts.publications.decided(url, effect)
                await parts.pending.answer(url, parts.children.whole(effect))
            case core.Renewed():
                self._note_lease(url, effect.observer)
                await parts.pending.answer(url, effect)
            case core.CutOff() | core.Expired():
                await parts.audiences.cut_off(url, effect)
            case _:
                assert_never(effect)

    async def _answer_reporter(
        self,
        url: str,
        request: Message | None,
        effect: core.Obeyed | core.Published | core.Refused,
    ) -> None:
        match effect:
            case core.Obeyed():
                if request is not None:
                    await self._context.answer(request, Code.OK)
            case core.Published(change):
                reported, publications = self._cores[url], self._parts.publications
                publications.written(reported.snapshot, change)
                await publications.publish(url, reported, change)
                if request is not None:
                    await self._context.answer(request, Code.OK, version=change.version)
            case core.Refused(code, why):
                if request is not None:
                    await self._context.refuse(request, code, why)
            case _:
                assert_never(effect)

    async def _end(
        self, url: str, request: Message | None, effect: core.Deleted | core.Vacated
    ) -> None:
        match effect:
            case core.Deleted(runtimes):
                self._deleting[url] = request
                self._context.deleted(url, self._cores[url].snapshot.reporter)
                await self._parts.invitations.object_gone(url)
                if runtimes:
                    await self._parts.publications.publish_end(url, runtimes)
            case core.Vacated():
                # Not before: what observers say of the end finds the object where it was.
                await self._context.registry.tell(LocalGone(url))
                self._parts.spawn(partial(self._remove, url, self._deleting.pop(url)))
            case _:
                assert_never(effect)

    async def _remove(self, url: str, request: Message | None) -> None:
        await self._parts.doors.leave(self._cores[url].snapshot)
        await self._parts.tell(ObjectRemoved(url, request))
