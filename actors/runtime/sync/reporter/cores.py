"""The cores of the objects reported here: fed in order, their effects performed in order.

`ReporterServices` is what all objects reported here share, `ObjectListeners` the addresses by
which others reach them, `Publications` the changes that are published, repeated and addressed
(M-40, M-47, I-D4).
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import assert_never, final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import ObjectRemoved, Report
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION, ObjectRegistrations
from actors.runtime.sync.reporter.children import ReportedChildren
from actors.runtime.sync.reporter.links import ObserverLinks
from actors.runtime.sync.reporter.pending import Invitations, ObserverLists, PendingSubscriptions
from actors.runtime.sync.reporter.stored import StoredReports
from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.registry.changes import LocalGone
from fsm.sync import reporter_io as core
from fsm.sync.leases import IsObserved, LeasesCore, RepeatedChange, RepeatsCore
from fsm.sync.reporter import ReporterCore
from fsm.sync.reporter_io import Denied, Granted
from specs.bodies.sync import Change, DataObject
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = [
    "ObjectListeners",
    "Publications",
    "ReportedCores",
    "ReporterServices",
    "reporter_services",
]


@final
class Publications:
    """Publishes changes to the runtimes that observe, and the last one again."""

    def __init__(self, context: SyncContext, links: ObserverLinks) -> None:
        self._context = context
        self._links = links
        self._repeats = RepeatsCore()
        self._was_observed: set[str] = set()

    def __len__(self) -> int:
        """Number of observed objects that are still reported here."""
        return len(self._was_observed)

    def deadline(self) -> float:
        """Return when a change is due again."""
        return self._repeats.deadline()

    def due(self, is_observed: IsObserved) -> RepeatedChange | None:
        """Return the change that is to be published again now."""
        return self._repeats.due(trio.current_time(), is_observed)

    def decided(self, url: str, decision: Granted | Denied) -> None:
        """Take note that an observer is let in, or is not.

        Args:
            url: Address of the object.
            decision: The decision.
        """
        self._repeats.observed(url, trio.current_time())
        self._was_observed |= {url} if isinstance(decision, Granted) else set()

    def written(self, written: DataObject, change: Change) -> None:
        """Take note of a new version.

        Args:
            written: The object.
            change: The new version.
        """
        self._context.written(written)
        self._repeats.published(written, change, trio.current_time())

    async def publish(self, url: str, reported: ReporterCore, change: Change) -> None:
        """Send a change to all observers of an object.

        Args:
            url: Address of the object.
            reported: Core of the object.
            change: The change.
        """
        runtimes = frozenset(reported.runtimes)
        # Also after the last observer has left: the node knows that there are no observers (SC-32).
        if runtimes or url in self._was_observed:
            body, to = write_body(change), f"{url}/{CHANGES}"
            update = self._context.request(MessageType.UPDATE, to, body, url)
            await self._context.publish(update, runtimes, self._links.direct(url))

    async def publish_end(self, url: str, runtimes: Iterable[str]) -> None:
        """Notify all observers of an object that it is gone (M-47).

        Args:
            url: Address of the object.
            runtimes: Addresses of the runtimes.
        """
        sender = f"{url}/{SUBSCRIPTION}"
        gone = self._context.request(MessageType.DELETE, f"{url}/{CHANGES}", {}, sender)
        await self._context.publish(gone, frozenset(runtimes), self._links.direct(url))

    def removed(self, url: str) -> None:
        """Forget an object that is deleted."""
        self._repeats.forget(url)
        self._was_observed.discard(url)
        self._context.ids.forget(url, f"{url}/{SUBSCRIPTION}")


@final
class ObjectListeners:
    """Lets each object's own address, its observers and its children lead to one listener."""

    def __init__(
        self,
        registrations: ObjectRegistrations,
        observers: ObserverLists,
        children: ReportedChildren,
    ) -> None:
        self._registrations = registrations
        self._observers = observers
        self._children = children
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let all objects' addresses lead to `listener`."""
        self._listener = listener

    async def open(self, thing: DataObject) -> None:
        """Listen for an object that is reported here from now on."""
        await self._observers.open(thing, self._listener)
        await self._registrations.listen(thing.url, self._listener)
        await self._children.open(thing, self._listener)

    async def leave(self, thing: DataObject) -> None:
        """Take everything of an object down, at the node, too."""
        await self._observers.close(thing.url, self._listener)
        await self._children.close(thing, self._listener)
        await self._registrations.leave(thing.url, self._listener)


@final
@attrs.frozen
class ReporterServices:
    """One of each, for all objects reported here.

    Attributes:
        context: What the sync manager may use.
        spawn: Runs a task of it.
        report: Reports to it.
        registrations: What an object has outside of its reporter.
        observers: Their observers resources.
        children: Their children.
        listeners: Their addresses.
        links: The links by which observers get changes.
        publications: What is published.
        pending: Hyperties whose requests are being decided.
        invitations: Invited hyperties.
        stored: Which of them are stored, and which rest.
        leases: How long their observers may observe.
    """

    context: SyncContext
    spawn: Spawn
    report: Report
    registrations: ObjectRegistrations
    observers: ObserverLists
    children: ReportedChildren
    listeners: ObjectListeners
    links: ObserverLinks
    publications: Publications
    pending: PendingSubscriptions
    invitations: Invitations
    stored: StoredReports
    leases: LeasesCore


def reporter_services(context: SyncContext, spawn: Spawn, report: Report) -> ReporterServices:
    """Make the parts of one sync manager.

    Args:
        context: Context of the sync manager.
        spawn: Starts a task of the sync manager.
        report: Sends a request to a reporter.
    """
    registrations = ObjectRegistrations(context)
    links = ObserverLinks(context, spawn, report)
    observers, children = ObserverLists(context), ReportedChildren(context, links.direct)
    return ReporterServices(
        context=context,
        spawn=spawn,
        report=report,
        registrations=registrations,
        observers=observers,
        children=children,
        listeners=ObjectListeners(registrations, observers, children),
        links=links,
        publications=Publications(context, links),
        pending=PendingSubscriptions(context, spawn, report),
        invitations=Invitations(context),
        stored=StoredReports(context),
        leases=LeasesCore(),
    )


@final
class ReportedCores:
    """Feeds the core of each object, and performs its effects, in order."""

    def __init__(self, services: ReporterServices) -> None:
        self._services = services
        self._context = services.context
        self._cores: dict[str, ReporterCore] = {}
        self._deleting: dict[str, Message | None] = {}
        services.registrations.renewals.may_ask = lambda url: self.find(url) is not None

    # --- the table ------------------------------------------------------------------------

    @property
    def all(self) -> Mapping[str, ReporterCore]:
        """Every object by its address, also those that are being deleted; not to be changed."""
        return self._cores

    def add(self, url: str, reported: ReporterCore) -> None:
        """Report an object from now on.

        Args:
            url: Address of the object.
            reported: Core of the object.
        """
        self._cores[url] = reported

    def drop(self, url: str) -> None:
        """Forget an object; one that is not there is fine."""
        self._cores.pop(url, None)

    def find(self, url: str) -> ReporterCore | None:
        """Return an object that is reported here and not deleted."""
        reported = self._cores.get(url)
        return None if reported is None or reported.is_deleted else reported

    def is_observed(self, url: str) -> bool:
        """Return whether a writable object has observers."""
        reported = self.find(url)
        return reported is not None and bool(reported.observers)

    # --- what happens ---------------------------------------------------------------------

    async def feed(self, url: str, happened: core.ReporterInput) -> None:
        """Let something happen to an object without an answer.

        Args:
            url: Address of the object.
            happened: The input.
        """
        reported = self._cores.get(url)
        if reported is not None:
            await self.perform(url, None, reported.feed(happened))

    async def ask(self, url: str, request: Message, happened: core.ReporterInput) -> None:
        """Let something happen to an object that a request asks for, and answer that.

        Args:
            url: Address of the object.
            request: The request.
            happened: The input.
        """
        reported = self._cores.get(url)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif not await self._services.stored.refused(request, url):
            await self.perform(url, request, reported.feed(happened))

    def _note_lease(self, url: str, observer: str) -> None:
        """Begin the lease of an observer, or end it with the observer."""
        leases, life = self._services.leases, self._cores[url].lease_of(observer)
        if life is None:
            leases.end(url, observer)
        else:
            leases.begin(url, observer, life, trio.current_time())

    async def delete(self, url: str, reported: ReporterCore) -> None:
        """Delete an object for its reporter, unasked.

        Args:
            url: Address of the object.
            reported: Core of the object.
        """
        deleting = core.DeleteAsked(reported.snapshot.reporter)
        await self.perform(url, None, reported.feed(deleting))

    # --- what is done ---------------------------------------------------------------------

    async def perform(
        self, url: str, request: Message | None, effects: list[core.ReporterEffect]
    ) -> None:
        """Do what the core of an object says; `request`, if there is one, is what it answers.

        Args:
            url: Address of the object.
            request: The request that is answered; None: none.
            effects: Effects of the core.
        """
        self._services.stored.note(url, self._cores[url], effects)
        await self._services.links.settle(url, self._cores[url])
        for effect in effects:
            match effect:
                case Step():
                    self._context.step(effect)
                case core.Obeyed() | core.Published() | Refused():
                    await self._answer_reporter(url, request, effect)
                case core.Deleted() | core.Vacated():
                    await self._end(url, request, effect)
                case _:
                    await self._serve(url, effect)

    async def _serve(self, url: str, effect: core.ObserverEffect) -> None:
        """Do what is to be done about one observer."""
        services = self._services
        match effect:
            case RowChanged():
                self._note_lease(url, effect.val)
                self._context.row(effect)
                if not self._cores[url].is_deleted:
                    await services.observers.changed(url, effect)
            case core.ReporterAsked():
                services.pending.ask(self._cores[url].snapshot, effect)
            case core.Granted() | core.Denied():
                self._note_lease(url, effect.observer)
                services.publications.decided(url, effect)
                await services.pending.answer(url, services.children.whole(effect))
            case core.Renewed():
                self._note_lease(url, effect.observer)
                await services.pending.answer(url, effect)
            case core.CutOff() | core.Expired():
                await services.observers.cut_off(url, effect)
            case _:
                assert_never(effect)

    async def _answer_reporter(
        self,
        url: str,
        request: Message | None,
        effect: core.Obeyed | core.Published | Refused,
    ) -> None:
        match effect:
            case core.Obeyed():
                if request is not None:
                    await self._context.answer(request, Code.OK)
            case core.Published(change):
                reported, publications = self._cores[url], self._services.publications
                publications.written(reported.snapshot, change)
                await publications.publish(url, reported, change)
                if request is not None:
                    await self._context.answer(request, Code.OK, version=change.version)
            case Refused(code, why):
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
                await self._services.invitations.object_gone(url)
                if runtimes:
                    await self._services.publications.publish_end(url, runtimes)
            case core.Vacated():
                # Not before: what observers say of the end finds the object where it was.
                await self._context.registry.tell(LocalGone(url))
                self._services.spawn(partial(self._remove, url, self._deleting.pop(url)))
            case _:
                assert_never(effect)

    async def _remove(self, url: str, request: Message | None) -> None:
        await self._services.listeners.leave(self._cores[url].snapshot)
        await self._services.report(ObjectRemoved(url, request))
