"""The sync manager of a runtime: reporters and observers meet through it (SYN-01..SYN-22).

It alone writes versions and publishes; a reporter asks it to (`update` to `R/sm`), so
that its snapshot is never behind what was published. What waits for others runs in
tasks; the tables change only in the mailbox's own task.

A sync manager serves the components of its own runtime (SYN-01, SYN-06).
"""

from typing import Final, assert_never, final

from typing_extensions import override

from actors.kit.supervision.actor import Actor, Reply
from actors.kit.supervision.delivery import Delivery
from actors.runtime.stubs.catalogue import SchemaRefusedError
from actors.runtime.sync.context import (
    ComponentLeft,
    ObjectsClosed,
    PathsForgotten,
    SyncContext,
    SyncMessage,
)
from actors.runtime.sync.messages import (
    Decided,
    LeaseAnswered,
    LinkIs,
    ObjectReady,
    ObjectRegistered,
    ObjectRemoved,
    ObjectsView,
    ObjectsWanted,
    ObserveDone,
    ObserverLeft,
    ObserverReport,
    PathClosed,
    RefusedAgain,
    ReporterReport,
    RouteMoved,
    SenderChecked,
    StillObserved,
    TaskReport,
)
from actors.runtime.sync.observer import ObservedObjects
from actors.runtime.sync.reporter.reporter import ReportedObjects
from specs.addresses.address import RUNTIME_SCHEME, scheme_of
from specs.bodies.object import (
    AllowObserver,
    Create,
    ExpelObserver,
    ObjectBack,
    ObserverExpelled,
    Resume,
    Subscribe,
    Unsubscribe,
    create_class,
    subscribe_class,
    unsubscribe_class,
)
from specs.bodies.sync import (
    ChangeObject,
    CreateObject,
    EndReport,
    InviteObservers,
    ObjectName,
    Observe,
)
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["SyncManager", "check_asker"]

_FOREIGN: Final = "a sync manager serves the components of its own runtime only"


def check_asker(message: Message, manager: str, *, is_foreign: bool) -> None:
    """Refuse a request of another runtime to a sync manager.

    An object may send two of them: it is back (M-52), or an observer is expelled (SYN-21).

    Args:
        message: The request.
        manager: Address of the sync manager; requests to its objects are not checked.
        is_foreign: Whether the request is from another runtime.

    Raises:
        BadMessageError: 403: it is neither.
    """
    if not is_foreign or message.to != manager:
        return
    match message.type:
        case MessageType.SUBSCRIBE:
            is_allowed = subscribe_class(message) is ObjectBack
        case MessageType.UNSUBSCRIBE:
            is_allowed = unsubscribe_class(message) is ObserverExpelled
        case _:
            is_allowed = False
    if not is_allowed:
        raise BadMessageError(_FOREIGN, Code.FORBIDDEN)


@final
class SyncManager(Actor[SyncMessage]):
    """`R/sm`."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._reported = ReportedObjects(context, self.spawn, self._report)
        self._observed = ObservedObjects(
            context, self.spawn, self._report, self._reported.children.answering
        )
        self._reported.children.observes = self._observed.observes
        self._closing: list[Reply[None]] = []
        self._leaving: list[ComponentLeft] = []

    async def _report(self, done: TaskReport) -> None:
        await self.me.tell(done)

    @override
    async def start(self) -> None:
        self._reported.listeners.start(self.me)
        self._observed.start(self.me)
        await self._context.bus.add_listener(self._context.bus.url, self.me)
        await self._reported.restore.restore()

    @override
    async def handle(self, message: SyncMessage) -> None:
        match message:
            case Delivery():
                await self._delivered(message.message, is_foreign=message.is_foreign)
            case (
                ObserveDone()
                | ObserverLeft()
                | RefusedAgain()
                | LeaseAnswered()
                | PathClosed()
                | RouteMoved()
            ):
                await self._observer_reports(message)
            case PathsForgotten(domain, done):
                self._reported.lifecycle.renew_paths(domain, done)
                self._observed.renew_paths(domain)
            case ObjectsClosed() | ComponentLeft() | ObjectsWanted():
                self._runtime_asks(message)
            case LinkIs():
                await self._link_is(message)
            case _:
                await self._reporter_reports(message)
        await self._close()

    def _runtime_asks(self, asked: ObjectsClosed | ComponentLeft | ObjectsWanted) -> None:
        match asked:
            case ObjectsClosed(done):
                self._closing.append(done)
            case ComponentLeft():
                self._leaving.append(asked)
            case ObjectsWanted(reply):
                reply.send(ObjectsView(self._reported.urls, self._observed.urls))
            case _:
                assert_never(asked)

    async def _link_is(self, report: LinkIs) -> None:
        if scheme_of(report.entity) == RUNTIME_SCHEME:
            await self._reported.links.link_is(report)
        else:
            self._observed.paths.link_is(report)

    async def _reporter_reports(self, report: ReporterReport) -> None:
        match report:
            case ObjectReady():
                await self._reported.lifecycle.ready(report)
            case ObjectRegistered():
                await self._reported.lifecycle.registered(report)
            case Decided():
                await self._reported.admissions.decided(report)
            case ObjectRemoved():
                await self._reported.lifecycle.removed(report)
            case SenderChecked():
                await self._reported.admissions.sender_checked(report)
            case StillObserved():
                await self._reported.restore.still_observed(report)
            case _:
                assert_never(report)

    async def _observer_reports(self, report: ObserverReport) -> None:
        match report:
            case ObserveDone():
                await self._observed.done(report)
            case ObserverLeft():
                await self._observed.left(report)
            case RefusedAgain():
                await self._observed.refused_again(report)
            case LeaseAnswered():
                await self._observed.lease_answered(report)
            case PathClosed(url):
                await self._observed.closed(url)
            case RouteMoved():
                await self._observed.paths.moved(report)
            case _:
                assert_never(report)

    @property
    def _busy(self) -> set[str]:
        """The hyperties that report or observe an object here."""
        return self._reported.reporters | self._observed.observers

    async def _close(self) -> None:
        """End the objects that must end, and answer the requests that wait for it."""
        gone = {left.component for left in self._leaving}
        if self._closing:
            gone |= self._busy
        for component in sorted(gone):
            await self._reported.lifecycle.leave(component)
            await self._observed.leave_all(component)
        for left in tuple(self._leaving):
            if left.component not in self._busy:
                self._leaving.remove(left)
                left.done.send(None)
        if self._reported.is_empty and self._observed.is_empty:
            while self._closing:
                self._closing.pop().send(None)

    @override
    def deadline(self) -> float:
        observed, written = self._observed.deadline(), self._context.gate.deadline()
        return min(self._reported.deadline(), observed, written)

    @override
    async def timed_out(self) -> None:
        await self._reported.time_over()
        self._observed.time_over()
        await self._context.gate.settle()

    @override
    async def drained(self) -> None:
        await self._context.gate.settle()

    @override
    async def stop(self) -> None:
        # Also after a timeout or a crash, every entity reaches an end.
        self._reported.lifecycle.let_go()

    # --- messages ---------------------------------------------------------------------------

    async def _delivered(self, message: Message, *, is_foreign: bool) -> None:
        if message.is_response:
            await self._answered(message)
            return
        try:
            check_asker(message, self._context.bus.url, is_foreign=is_foreign)
            await self._asked(message)
        except BadMessageError as exc:
            if message.is_request:
                await self._context.refuse(message, exc.code, exc.reason)

    async def _answered(self, answer: Message) -> None:
        """Take an answer to an object; other requests are awaited where they are made."""
        reported = self._reported.owner_of(answer.to)
        if reported is not None:
            await self._reported.admissions.answered(reported, answer)

    async def _asked(self, message: Message) -> None:
        if message.to == self._context.bus.url:
            await self._by_component(message)
            return
        reported = self._reported.owner_of(message.to)
        observed = self._observed.observed(message.to)
        if reported is not None:
            await self._reported.admissions.asked(reported, message)
        elif observed is not None and message.type is MessageType.DELETE:
            await self._observed.deleted(observed, message)
        elif observed is not None and message.type is MessageType.UPDATE:
            self._observed.changed(observed, message)
        elif message.is_request:
            await self._context.refuse(message, Code.NOT_FOUND, "no such object")

    async def _by_component(self, message: Message) -> None:
        match message.type:
            case MessageType.CREATE:
                await self._create(message, read_body(message, create_class(message)))
            case MessageType.UPDATE:
                await self._reported.lifecycle.change(message, read_body(message, ChangeObject))
            case MessageType.DELETE:
                await self._reported.lifecycle.delete(message, read_body(message, EndReport))
            case MessageType.SUBSCRIBE:
                await self._subscribe(message, read_body(message, subscribe_class(message)))
            case MessageType.UNSUBSCRIBE:
                await self._unsubscribe(message, read_body(message, unsubscribe_class(message)))
            case MessageType.READ:
                asked = read_body(message, ObjectName)
                self.spawn(self._answer_schema, message, asked.resource)
            case _:
                raise BadMessageError("a sync manager does not do this")

    async def _answer_schema(self, request: Message, address: str) -> None:
        """Return the rules for values of a data schema, to a future reporter."""
        try:
            found = await self._context.schemas.find(address)
        except SchemaRefusedError as exc:
            await self._context.refuse(request, exc.code, exc.why)
            return
        if found is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such data schema is known")
        else:
            await self._context.answer(request, Code.OK, value=found)

    async def _create(self, request: Message, body: Create) -> None:
        reported = self._reported
        match body:
            case CreateObject():
                reported.lifecycle.create(request, body)
            case Resume():
                await reported.restore.resume(request, body)
            case InviteObservers():
                await reported.admissions.invite(request, body)
            case AllowObserver():
                await reported.admissions.allow(request, body)
            case _:
                assert_never(body)

    async def _subscribe(self, request: Message, body: Subscribe) -> None:
        match body:
            case Observe():
                await self._observed.observe(request, body)
            case ObjectBack():
                await self._observed.back(request, body)
            case Resume():
                await self._observed.resume(request)
            case _:
                assert_never(body)

    async def _unsubscribe(self, request: Message, body: Unsubscribe) -> None:
        match body:
            case ObjectName():
                await self._observed.leave(request, body)
            case ExpelObserver():
                await self._reported.admissions.expel(request, body)
            case ObserverExpelled():
                await self._observed.expelled(request, body)
            case _:
                assert_never(body)
