"""How objects reported here begin, are restored and end (M-32, M-35, M-40, M-46, M-51).

After a restart the node gives a runtime the addresses that it had. The node may not know them any
more, nor the paths of observers. So the sync manager of each observer is told that the object is
back (SYN-25): it sets its path, subscribes again, and gets the object as it is now. The object is
served meanwhile, and given to its reporter when that resumes it (SYN-28, M-51).
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, final

import structlog
import trio

from actors.runtime.sync.context import SyncContext
from actors.runtime.sync.messages import (
    ObjectReady,
    ObjectRegistered,
    ObjectRemoved,
    StillObserved,
    Tell,
)
from actors.runtime.sync.registration import SUBSCRIPTION, ObjectRegistrations, scheme_for
from actors.runtime.sync.reporter.cores import ReportedCores, ReporterServices
from actors.runtime.sync.reporter.observers import allowed_observers, trace_allowed
from actors.runtime.sync.reporter.stored import NO_STORE, Restored
from fsm.engine import Step
from fsm.registry.changes import LocalLive
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import UnsubscribeAsked
from fsm.sync.value.value import check_path
from specs.bodies.object import ObjectBack, Resume, StoreObject
from specs.bodies.sync import ChangeObject, CreateObject, DataObject, EndReport
from specs.child import child_resources
from specs.errors import BadMessageError
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import RESTORE_TRIES, RESTORES_AT_ONCE
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

if TYPE_CHECKING:
    from specs.jsonvalue import Json, JsonObject

__all__ = ["ObjectLifecycle", "ObjectRestore", "RestoredObjects"]

_log = structlog.get_logger("actors.runtime")


@final
class RestoredObjects:
    """Sets up anew what stored objects have outside of their reporter's runtime."""

    def __init__(
        self, context: SyncContext, registrations: ObjectRegistrations, tell: Tell
    ) -> None:
        self._context = context
        self._registrations = registrations
        self._tell = tell
        self._limiter = trio.CapacityLimiter(RESTORES_AT_ONCE)

    async def announce(self, back: Restored) -> None:
        """Have an object found and observed again; as often as it takes."""
        url = back.shown.url
        if not await self._registrations.renewals.renew(url):
            return
        refusal = await self._registrations.register(back.shown)
        if refusal is not None:
            _log.warning("stored object is not registered", url=url, why=refusal.why)
        await self._context.registry.tell(LocalLive(url))
        managers = back.managers - {self._context.bus.url}
        async with trio.open_nursery() as nursery:
            for manager in sorted(managers):
                nursery.start_soon(self._call, url, manager)

    async def _call(self, url: str, manager: str) -> None:
        """Tell one sync manager; who it says does not observe any more, does not."""
        async with self._limiter:
            pause = READ_PAUSE
            for _ in range(RESTORE_TRIES):
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
class ObjectRestore:
    """Brings stored objects back, their observers first, then their reporters."""

    def __init__(self, services: ReporterServices, cores: ReportedCores) -> None:
        self._services = services
        self._cores = cores

    async def restore(self) -> None:
        """Serve what was stored, from now on; its reporters are away (SYN-28)."""
        back = RestoredObjects(
            self._services.context, self._services.registrations, self._services.tell
        )
        for there in self._services.stored.restore():
            self._cores.add(there.shown.url, there.reported)
            await self._services.listeners.open(there.shown)
            await self._cores.perform(there.shown.url, None, there.effects)
            self._services.spawn(partial(back.announce, there))

    async def still_observed(self, report: StillObserved) -> None:
        """Take note who does not observe any more an object that is back."""
        there = self._cores.all.get(report.url)
        for observer in () if there is None else there.observers:
            if observer not in report.observers:
                await self._cores.feed(report.url, UnsubscribeAsked(observer, report.manager))

    async def resume(self, request: Message, body: Resume) -> None:
        """Give a reporter the objects that it had (M-51)."""
        whole = self._services.children.with_children
        await self._services.stored.resume(request, body, self._cores.all, whole)

    async def store(self, request: Message, body: StoreObject) -> None:
        """Store an object that was handed over to its reporter (M-51, SYN-26).

        Raises:
            BadMessageError: The sender does not report it, or nothing is stored here.
        """
        reported, whole = self._cores.find(body.resource), self._services.children.with_children
        if reported is None or reported.snapshot.reporter != request.from_:
            raise BadMessageError("its sender does not report it", Code.NOT_FOUND)
        shown = whole(reported.snapshot).children_objects
        await self._services.stored.adopt(request, reported, shown or {})


@final
class ObjectLifecycle:
    """Creates, registers, changes and deletes objects for their reporters."""

    def __init__(self, services: ReporterServices, cores: ReportedCores) -> None:
        self._services = services
        self._context = services.context
        self._cores = cores
        self._creating: list[str] = []

    @property
    def creators(self) -> Sequence[str]:
        """Who is about to report something."""
        return self._creating

    # --- begin ----------------------------------------------------------------------------

    def create(self, request: Message, wanted: CreateObject) -> None:
        """Create an object (M-32)."""
        # Before anything is begun: who asks for a hyperty's address gets none.
        scheme_for(wanted.schema, request.from_)
        if wanted.store and not self._context.gate.stores:
            raise BadMessageError(NO_STORE)
        self._creating.append(request.from_)
        self._services.spawn(partial(self._create, request, wanted))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        created = await self._services.registrations.find(request, wanted)
        await self._services.tell(ObjectReady(request, wanted, created))

    async def ready(self, done: ObjectReady) -> None:
        """Take a new object in: whoever finds it from now on can observe it."""
        self._creating.remove(done.request.from_)
        created = done.created
        if created is None:
            return
        reported = ReporterCore(created, allowed_observers(done.wanted))
        self._cores.add(created.url, reported)
        if done.wanted.store:
            self._services.stored.begin(reported)
        await self._services.listeners.open(created)
        self._context.written(created)
        trace_allowed(self._context, created, reported.guests)
        self._services.spawn(partial(self._register, done.request, created))

    async def _register(self, request: Message, created: DataObject) -> None:
        refusal = await self._services.registrations.register(created)
        await self._services.tell(ObjectRegistered(request, created.url, refusal))

    async def registered(self, done: ObjectRegistered) -> None:
        """Answer the reporter; an object that is not registered is taken down (SYN-03)."""
        url, reported = done.url, self._cores.find(done.url)
        if reported is None:
            await self._context.refuse(done.request, Code.GONE, "its reporter left meanwhile")
        elif done.refusal is None:
            await self._context.registry.tell(LocalLive(url))
            names: list[Json] = [*child_resources(url)]
            extra: JsonObject = {"childrenResources": names} if names else {}
            await self._context.answer(done.request, Code.OK, resource=url, **extra)
        else:
            await self._context.refuse(done.request, done.refusal.code, done.refusal.why)
            await self._cores.delete(url, reported)

    # --- while it lives -------------------------------------------------------------------

    async def change(self, request: Message, body: ChangeObject) -> None:
        """Change an object on behalf of its reporter, and publish it (M-40)."""
        check_path(body.attribute)
        await self._cores.ask(body.resource, request, core.ChangeAsked(request.from_, body))

    def renew_paths(self, domain: str) -> None:
        """Claim the objects, and set their paths, that the node has forgotten."""
        if domain == self._context.domain:
            # Whose one in doubt is, who doubts finds out.
            for url in [url for url, each in self._cores.all.items() if not each.is_held]:
                self._services.spawn(partial(self._services.registrations.renewals.renew, url))

    # --- end ------------------------------------------------------------------------------

    async def delete(self, request: Message, body: EndReport) -> None:
        """Delete an object (M-46)."""
        if body.store and self._services.stored.rest(body.resource, request.from_):
            await self._context.answer(request, Code.OK)
        else:
            await self._cores.ask(body.resource, request, core.DeleteAsked(request.from_))

    async def removed(self, done: ObjectRemoved) -> None:
        """Forget an object, and say so to its reporter."""
        self._cores.drop(done.url)
        await self._services.links.forget(done.url)
        self._services.publications.removed(done.url)
        if done.request is not None:
            await self._context.answer(done.request, Code.OK)

    async def leave(self, reporter: str) -> None:
        """Delete what a reporter reports: it is leaving."""
        for url, reported in list(self._cores.all.items()):
            is_there = not reported.is_deleted and not reported.is_held
            if reported.snapshot.reporter != reporter or not is_there:
                continue
            if not self._services.stored.rest(url, reporter):
                await self._cores.delete(url, reported)

    def let_go(self) -> None:
        """End every subscription and invitation without a word: time is over."""
        for url, reported in self._cores.all.items():
            self._services.invitations.let_go(url)
            deleting = core.DeleteAsked(reported.snapshot.reporter)
            for effect in (*reported.feed(deleting), *reported.feed(core.ObserversNotified())):
                if isinstance(effect, Step):
                    self._context.step(effect)
