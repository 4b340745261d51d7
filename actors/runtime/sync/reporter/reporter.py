"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47).

After a restart the node may have forgotten addresses and the paths of observers. So the sync
manager of each observer is notified that the object is back (SYN-25) and subscribes again. The
object is served meanwhile, and given to its reporter when that resumes it (SYN-28, M-51).
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, final

import trio

from actors.kit.supervision.actor import Reply
from actors.runtime.sync.context import Spawn, SyncContext, observer_of
from actors.runtime.sync.messages import (
    Decided,
    ObjectReady,
    ObjectRegistered,
    ObjectRemoved,
    Report,
    SenderChecked,
    StillObserved,
)
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION, scheme_for
from actors.runtime.sync.reporter.cores import ReportedCores, ReporterServices, reporter_services
from actors.runtime.sync.reporter.pending import (
    OBSERVERS,
    allowed_observers,
    notification_in,
    trace_allowed,
)
from actors.runtime.sync.reporter.stored import NO_STORE, RestoredObjects
from fsm.effects import Refused
from fsm.engine import Step
from fsm.registry.changes import LocalLive
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import UnsubscribeAsked
from fsm.sync.value.value import check_path
from specs.bodies.object import AllowObserver, ExpelObserver, Resume
from specs.bodies.sync import (
    ChangeObject,
    CreateObject,
    DataObject,
    EndReport,
    InviteObservers,
    ReadAttribute,
    Subscription,
)
from specs.child import child_resources, parent_of
from specs.errors import BadMessageError
from specs.jsonvalue import Absence, value_at
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Op
from transports.bodies import read_body, write_body

if TYPE_CHECKING:
    from specs.jsonvalue import Json, JsonObject

__all__ = ["Admissions", "ObjectLifecycle", "ObjectRestore", "ReportedObjects"]


@final
class ObjectRestore:
    """Brings stored objects back, their observers first, then their reporters."""

    def __init__(self, services: ReporterServices, cores: ReportedCores) -> None:
        self._services = services
        self._cores = cores

    async def restore(self) -> None:
        """Serve what was stored, from now on; its reporters are away (SYN-28)."""
        back = RestoredObjects(
            self._services.context, self._services.registrations, self._services.report
        )
        for there in self._services.stored.restore():
            self._cores.add(there.shown.url, there.reported)
            await self._services.listeners.open(there.shown)
            await self._cores.perform(there.shown.url, None, there.effects)
            self._services.spawn(partial(back.announce, there))

    async def still_observed(self, report: StillObserved) -> None:
        """Note the former observers of a resumed object."""
        there = self._cores.all.get(report.url)
        for observer in () if there is None else there.observers:
            if observer not in report.observers:
                await self._cores.feed(report.url, UnsubscribeAsked(observer, report.manager))

    async def resume(self, request: Message, body: Resume) -> None:
        """Give a reporter the objects that it had (M-51).

        Args:
            request: The request.
            body: Body of the request.
        """
        whole = self._services.children.with_children
        await self._services.stored.resume(request, body, self._cores.all, whole)


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
        """The hyperties that are about to report something."""
        return self._creating

    # --- begin ----------------------------------------------------------------------------

    def create(self, request: Message, wanted: CreateObject) -> None:
        """Create an object (M-32).

        Args:
            request: The request.
            wanted: The requested object.

        Raises:
            BadMessageError: The schema is invalid, or the runtime has no store for it.
        """
        # Before anything is begun: a request for a hyperty's address is refused.
        scheme_for(wanted.schema, request.from_)
        if wanted.store and not self._context.gate.stores:
            raise BadMessageError(NO_STORE)
        self._creating.append(request.from_)
        self._services.spawn(partial(self._create, request, wanted))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        created = await self._services.registrations.find(request, wanted)
        await self._services.report(ObjectReady(request, wanted, created))

    async def ready(self, done: ObjectReady) -> None:
        """Add a new object, which can be observed from now on."""
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
        await self._services.report(ObjectRegistered(request, created.url, refusal))

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
        """Change an object on behalf of its reporter, and publish it (M-40).

        Args:
            request: The request.
            body: Body of the request.
        """
        check_path(body.attribute)
        await self._cores.ask(body.resource, request, core.ChangeAsked(request.from_, body))

    def renew_paths(self, domain: str, done: Reply[None]) -> None:
        """Claim the objects, and set their paths, that the node has forgotten."""
        is_own = domain == self._context.domain
        urls = [*self._cores.all] if is_own else []
        self._services.spawn(partial(self._renew_all, urls, done))

    async def _renew_all(self, urls: list[str], done: Reply[None]) -> None:
        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(self._services.registrations.renewals.renew, url)
        done.send(None)

    # --- end ------------------------------------------------------------------------------

    async def delete(self, request: Message, body: EndReport) -> None:
        """Delete an object, or one attribute of it, which is published as a change (M-46).

        Args:
            request: The request.
            body: Body of the request.
        """
        if body.attribute is not None:
            check_path(body.attribute)
            await self._cores.ask(
                body.resource, request, core.RemovalAsked(request.from_, body.attribute)
            )
        elif body.store and self._services.stored.rest(body.resource, request.from_):
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
            if reported.snapshot.reporter != reporter or reported.is_deleted:
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


@final
class Admissions:
    """Takes what observers ask of objects, and what reporters want of observers."""

    def __init__(self, services: ReporterServices, cores: ReportedCores) -> None:
        self._services = services
        self._context = services.context
        self._cores = cores

    # --- reporters ------------------------------------------------------------------------

    async def invite(self, request: Message, body: InviteObservers) -> None:
        """Invite one observer (M-33).

        Args:
            request: The request.
            body: Body of the request.
        """
        reported = self._cores.find(body.resource)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.snapshot.reporter != request.from_:
            await self._context.refuse(request, Code.FORBIDDEN, "only the reporter invites")
        elif not await self._services.stored.refused(request, body.resource):
            effects = reported.feed(core.Authorised(body.authorise[0]))
            if not _is_refused(effects):
                self._context.allowed_observer(
                    Op.ADD, body.resource, body.authorise[0], request.from_
                )
            await self._cores.perform(body.resource, request, effects)
            if not _is_refused(effects):
                await self._services.invitations.send(request, body)

    async def answered(self, url: str, answer: Message) -> None:
        """Take an answer to an invitation (M-34), or to the word that an object is gone.

        Args:
            url: Address of the object.
            answer: The answer.
        """
        if answer.from_ != f"{url}/{CHANGES}":
            await self._services.invitations.answered(url, answer)
        elif answer.is_final:
            await self._cores.feed(url, notification_in(answer))

    async def allow(self, request: Message, body: AllowObserver) -> None:
        """Let an observer in without a question, on behalf of the reporter.

        Args:
            request: The request.
            body: Body of the request.
        """
        allowing = core.AllowAsked(request.from_, body.observer)
        await self._obey(request, body.resource, allowing)

    async def expel(self, request: Message, body: ExpelObserver) -> None:
        """Expel an observer, on behalf of the reporter (SYN-21).

        Args:
            request: The request.
            body: Body of the request.
        """
        expelling = core.ExpelAsked(request.from_, body.observer)
        await self._obey(request, body.resource, expelling)

    async def _obey(
        self, request: Message, url: str, asked: core.AllowAsked | core.ExpelAsked
    ) -> None:
        """Do what a reporter wants; it is traced if it is done (I-D9)."""
        reported = self._cores.all.get(url)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif not await self._services.stored.refused(request, url):
            effects = reported.feed(asked)
            if not _is_refused(effects):
                done = Op.ADD if isinstance(asked, core.AllowAsked) else Op.DEL
                self._context.allowed_observer(done, url, asked.observer, asked.by)
            await self._cores.perform(url, request, effects)

    async def decided(self, done: Decided) -> None:
        """Take the reporter's decision about an observer."""
        await self._cores.feed(done.url, done.decision)

    # --- observers ------------------------------------------------------------------------

    async def asked(self, url: str, request: Message) -> None:
        """Take a request to one of the objects; to its observers there are no events but ours.

        Args:
            url: Address of the object.
            request: The request.
        """
        reported = self._cores.all[url]
        if request.is_request and await self._services.stored.refused(request, url):
            return
        if parent_of(request.to) == url:
            await self._services.children.said(reported, request)
        elif request.to != f"{url}/{OBSERVERS}":
            if not await self._services.links.is_looked_at(url, request):
                await self._asked(url, reported, request)
        elif request.is_request:
            await self._services.observers.asked(url, reported, request)

    async def _asked(self, url: str, reported: ReporterCore, request: Message) -> None:
        match request.type:
            case MessageType.SUBSCRIBE:
                if not await self._services.links.sent_on(url, observer_of(request), request):
                    await self._subscribe(url, request)
            case MessageType.UNSUBSCRIBE:
                await self._unsubscribe(url, reported, request)
            case MessageType.READ:
                await self._read(reported, request)
            case _:
                await self._context.refuse(request, Code.MALFORMED, "an object does not do this")

    async def _unsubscribe(self, url: str, reported: ReporterCore, request: Message) -> None:
        """Let an observer go."""
        left = core.UnsubscribeAsked(observer_of(request), request.from_)
        effects = reported.feed(left)
        self._services.links.left(url, left.observer)
        await self._cores.perform(url, request, effects)
        await self._context.answer(request, Code.OK)

    async def _subscribe(self, url: str, request: Message) -> None:
        observer, reported = observer_of(request), self._cores.all[url]
        if await self._services.stored.is_kept_out(request, observer, reported):
            return
        if self._services.pending.add(url, observer, request):
            body = read_body(request, Subscription)
            lease = self._context.lease if body.renews else None
            asked = core.SubscribeAsked(observer, request.from_, lease, body.version)
            await self._cores.perform(url, request, reported.feed(asked))
        else:
            why = "its requests wait for the reporter already"
            await self._context.refuse(request, Code.TOO_LARGE, why)

    async def sender_checked(self, checked: SenderChecked) -> None:
        """Go on with an observer that asked by a link, or send it to the node."""
        if checked.request.type is not MessageType.SUBSCRIBE:
            await self._looked_at(checked)
            return
        if not await self._services.links.is_admitted(observer_of(checked.request), checked):
            return
        if checked.url in self._cores.all:
            await self._subscribe(checked.url, checked.request)
        else:
            await self._context.refuse(checked.request, Code.NOT_FOUND, "no such object")

    async def _looked_at(self, checked: SenderChecked) -> None:
        """Accept an unsubscription or read by a link if its sender is proven (I-D1, S3)."""
        if not await self._services.links.is_proven(checked):
            return
        reported = self._cores.all.get(checked.url)
        if reported is None:
            # Elsewhere by now, or gone: a repeated request is answered which.
            await self._context.refuse(checked.request, Code.UNAVAILABLE, "it was here before")
        else:
            await self._asked(checked.url, reported, checked.request)

    async def _read(self, reported: ReporterCore, request: Message) -> None:
        if reported.is_deleted:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif not reported.may_read(request.from_):
            await self._context.refuse(request, Code.UNAUTHENTICATED, "not an observer")
        elif "attribute" in request.body:
            await self._read_attribute(reported.snapshot, request)
        else:
            shown = self._services.children.with_children(reported.snapshot)
            await self._context.answer(request, Code.OK, value=write_body(shown))

    async def _read_attribute(self, thing: DataObject, request: Message) -> None:
        try:
            path = read_body(request, ReadAttribute).attribute
        except BadMessageError as exc:
            await self._context.refuse(request, exc.code, exc.reason)
            return
        found = value_at(thing.data, path)
        if isinstance(found, Absence):
            await self._context.refuse(request, Code.NOT_FOUND, f"the object has no {path}")
        else:
            await self._context.answer(request, Code.OK, value=found, version=thing.version)


def _is_refused(effects: list[core.ReporterEffect]) -> bool:
    return any(isinstance(each, Refused) for each in effects)


@final
class ReportedObjects:
    """The reporter's end of every object created here.

    Attributes:
        listeners: Their addresses.
        links: The links by which observers get changes.
        children: Their children.
        lives: How they begin, change and end.
        admissions: Their observers.
        revival: How stored ones come back.
    """

    def __init__(self, context: SyncContext, spawn: Spawn, report: Report) -> None:
        self._services = services = reporter_services(context, spawn, report)
        self._cores = cores = ReportedCores(services)
        self.listeners: Final = services.listeners
        self.links: Final = services.links
        self.children: Final = services.children
        self.lifecycle: Final = ObjectLifecycle(services, cores)
        self.admissions: Final = Admissions(services, cores)
        self.restore: Final = ObjectRestore(services, cores)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is reported here, nor about to be."""
        return not self.reporters

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the reported objects."""
        return tuple(self._cores.all)

    @property
    def reporters(self) -> set[str]:
        """The hyperties that report something, or are about to; a resting object has none."""
        is_resting = self._services.stored.is_resting
        active = [each for url, each in self._cores.all.items() if not is_resting(url)]
        return {*self.lifecycle.creators, *(each.snapshot.reporter for each in active)}

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or one of its parts."""
        part = address.removesuffix(f"/{SUBSCRIPTION}").removesuffix(f"/{OBSERVERS}")
        url = parent_of(address) or part
        return url if url in self._cores.all else None

    # --- time -----------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        services = self._services
        invited, published = services.invitations.deadline(), services.publications.deadline()
        leased = services.leases.deadline()
        return min(invited, published, services.children.deadline(), leased)

    async def time_over(self) -> None:
        """Do what is due."""
        services, is_observed = self._services, self._cores.is_observed
        await services.invitations.silence_ended()
        await services.children.time_over(is_observed)
        for url, observer in services.leases.due(trio.current_time()):
            await self._cores.feed(url, core.LeaseOver(observer))
        repeated = services.publications.due(is_observed)
        if repeated is not None:
            reported = self._cores.all[repeated.url]
            await services.publications.publish(repeated.url, reported, repeated.change)
