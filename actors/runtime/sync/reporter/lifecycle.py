"""How objects reported here begin and end (M-32, M-35, M-40, M-46)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, final

from actors.runtime.sync.messages import ObjectReady, ObjectRegistered, ObjectRemoved
from actors.runtime.sync.presence.registration import scheme_for
from actors.runtime.sync.reporter.cores import ReportedCores, ReporterParts
from actors.runtime.sync.reporter.observers import guests_of, trace_guests
from actors.runtime.sync.reporter.stored import NO_STORE
from fsm.engine import Step
from fsm.registry.changes_io import LocalLive
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from fsm.sync.value.value import check_path
from specs.bodies.sync import ChangeObject, CreateObject, DataObject, EndReport
from specs.child import child_resources
from specs.errors import BadMessageError
from specs.message import Message
from specs.reply_code import Code

if TYPE_CHECKING:
    from specs.jsonvalue import Json, JsonObject

__all__ = ["ObjectLives"]


@final
class ObjectLives:
    """Creates, registers, changes and deletes objects for their reporters."""

    def __init__(self, parts: ReporterParts, cores: ReportedCores) -> None:
        self._parts = parts
        self._context = parts.context
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
        self._parts.spawn(partial(self._create, request, wanted))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        created = await self._parts.places.find(request, wanted)
        await self._parts.tell(ObjectReady(request, wanted, created))

    async def ready(self, done: ObjectReady) -> None:
        """Take a new object in: whoever finds it from now on can observe it."""
        self._creating.remove(done.request.from_)
        created = done.created
        if created is None:
            return
        reported = ReporterCore(created, guests_of(done.wanted))
        self._cores.add(created.url, reported)
        if done.wanted.store:
            self._parts.stored.begin(reported)
        await self._parts.doors.open(created)
        self._context.written(created)
        trace_guests(self._context, created, reported.guests)
        self._parts.spawn(partial(self._register, done.request, created))

    async def _register(self, request: Message, created: DataObject) -> None:
        refusal = await self._parts.places.register(created)
        await self._parts.tell(ObjectRegistered(request, created.url, refusal))

    async def registered(self, done: ObjectRegistered) -> None:
        """Answer the reporter; an object that is not registered is taken down (SYN-03)."""
        url, reported = done.url, self._cores.find(done.url)
        if reported is None:
            await self._context.refuse(done.request, Code.GONE, "its reporter left meanwhile")
        elif done.refusal is None:
            await self._context.registry.tell(LocalLive(url))
            names: list[Json] = [*child_resources(url)]
            told: JsonObject = {"childrenResources": names} if names else {}
            await self._context.answer(done.request, Code.OK, resource=url, **told)
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
                self._parts.spawn(partial(self._parts.places.renew, url))

    # --- end ------------------------------------------------------------------------------

    async def delete(self, request: Message, body: EndReport) -> None:
        """Delete an object (M-46)."""
        if body.store and self._parts.stored.rest(body.resource, request.from_):
            await self._context.answer(request, Code.OK)
        else:
            await self._cores.ask(body.resource, request, core.DeleteAsked(request.from_))

    async def removed(self, done: ObjectRemoved) -> None:
        """Forget an object, and say so to its reporter."""
        self._cores.drop(done.url)
        await self._parts.links.forget(done.url)
        self._parts.publications.removed(done.url)
        if done.request is not None:
            await self._context.answer(done.request, Code.OK)

    async def leave(self, reporter: str) -> None:
        """Delete what a reporter reports: it is leaving."""
        for url, reported in list(self._cores.all.items()):
            is_there = not reported.is_deleted and not reported.is_held
            if reported.snapshot.reporter != reporter or not is_there:
                continue
            if not self._parts.stored.rest(url, reporter):
                await self._cores.delete(url, reported)

    def let_go(self) -> None:
        """End every subscription and invitation without a word: time is over."""
        for url, reported in self._cores.all.items():
            self._parts.invitations.let_go(url)
            deleting = core.DeleteAsked(reported.snapshot.reporter)
            for effect in (*reported.feed(deleting), *reported.feed(core.ObserversTold())):
                if isinstance(effect, Step):
                    self._context.step(effect)
