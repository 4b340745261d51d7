"""The sync manager of a runtime, which connects reporters and observers (SYN-01..SYN-22).

Only the sync manager writes versions and publishes; a reporter sends it requests (`update` to
`R/sm`), so that its snapshot is never behind the published changes. Work that waits for others runs
in tasks; between two waits of a task nothing else changes the tables. Answers to the requests of
tasks are taken from the mailbox in order: earlier messages of the same sender are handled first.

A sync manager serves the components of its own runtime (SYN-01, SYN-06).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, assert_never

from trio import current_time
from typing_extensions import override

from actors.kit.supervision.actor import Actor, Delivery, Reply
from actors.runtime.bus.messages import Turn
from actors.runtime.registry.allocation import AddressAllocation
from actors.runtime.registry.registrations import Registrar
from actors.runtime.stubs.catalogue import Catalogue, SchemaRefusedError
from actors.runtime.sync.observer import ObservedObjects
from actors.runtime.sync.output import Job, SyncOutput
from actors.runtime.sync.reporter import ReportedObjects
from actors.runtime.sync.schemas import find_schema
from fsm.sync.value.value import check_path
from specs.bodies import object as bodies
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body

_FOREIGN: Final = "a sync manager serves the components of its own runtime only"


def check_asker(message: Message, manager: str, *, is_foreign: bool) -> None:
    """Refuse a request of another runtime to a sync manager.

    An object may send two: that it is back (M-52), and that an observer is expelled (SYN-21).

    Args:
        message: The request.
        manager: Address of the sync manager; requests to its objects are not checked.
        is_foreign: Whether the request is from another runtime.

    Raises:
        BadMessageError: 403: the request is neither.
    """
    if not is_foreign or message.to != manager:
        return
    match message.type:
        case MessageType.SUBSCRIBE:
            is_allowed = bodies.subscribe_class(message) is bodies.ObjectBack
        case MessageType.UNSUBSCRIBE:
            is_allowed = bodies.unsubscribe_class(message) is bodies.ObserverExpelled
        case _:
            is_allowed = False
    if not is_allowed:
        raise BadMessageError(_FOREIGN, Code.FORBIDDEN)


SyncMessage: TypeAlias = Delivery | Turn | Callable[[], None]
"""A message to R/sm, or a call to make after the earlier messages."""


class SyncManager(Actor[SyncMessage]):
    """The actor of the sync manager, at `R/sm`."""

    def __init__(
        self,
        out: SyncOutput,
        allocation: AddressAllocation,
        registrar: Registrar,
        catalogue: Catalogue,
    ) -> None:
        self._out = out
        self._catalogue = catalogue
        out.spawn = self._begin
        self._reported = ReportedObjects(out, allocation, registrar, self._progress)
        self._observed = ObservedObjects(out, self._reported.reporter_of)
        # Components that are gone, None for all of them; each with the call to answer at the end.
        self._leaving: list[tuple[str | None, Reply[None]]] = []

    @override
    async def start(self) -> None:
        self._observed.listener = self.me
        self._out.bus.take_turns(self.me)
        self._out.bus.open_address(self._out.bus.url, self.me)
        self._reported.start(self.me)

    @override
    async def handle(self, message: SyncMessage) -> None:
        match message:
            case Delivery():
                self._on_message(message.message, is_foreign=message.is_foreign)
            case Turn():
                await message.take()
            case _:
                message()
        if self._leaving:
            self._end_due()

    # --- calls of the runtime, in the order of the mailbox -------------------------------

    async def urls(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the addresses of the objects that are reported here, and observed here."""
        return await self.me.ask(
            lambda done: (
                lambda: done.send((tuple(self._reported.reports), tuple(self._observed.objects)))
            )
        )

    async def renew_paths(self, domain: str) -> None:
        """Claim the addresses and set the paths again that the node of a domain has lost (STB-09).

        Returns when the objects reported here are claimed and have their paths.
        """

        def renew(done: Reply[None]) -> None:
            self._reported.renew_paths(domain, done)
            self._observed.renew_paths(domain)

        await self.me.ask(lambda done: partial(renew, done))

    async def leave_all(self, component: str) -> None:
        """Delete the objects that a component reports, and leave those that it observes.

        Returns when the objects are gone; observers that do not answer delay the return.
        """
        await self.me.ask(lambda done: lambda: self._leaving.append((component, done)))

    async def close(self) -> None:
        """Delete all reported objects, and leave all observed ones, as `leave_all` does."""
        await self.me.ask(lambda done: lambda: self._leaving.append((None, done)))

    def _begin(self, job: Job) -> None:
        self.spawn(self._run, job)

    async def _run(self, job: Job) -> None:
        """Run a job in a task; then remove components that have left, and set the timer."""
        await job()
        self._progress()

    def _progress(self) -> None:
        """After a task has changed the tables, remove components that have left; set the timer."""
        if self._leaving:
            self._end_due()
        self.wake()

    @property
    def _busy(self) -> set[str]:
        """The hyperties that report or observe an object here."""
        return self._reported.reporters | self._observed.observers

    def _end_due(self) -> None:
        """End the objects of leaving components, and complete the calls that wait for that."""
        gone = {who for who, _ in self._leaving}
        everybody = self._busy if None in gone else set[str]()
        for component in sorted(everybody.union(filter(None, gone))):
            self._reported.leave(component)
            self._observed.leave_all(component)
        for entry in tuple(self._leaving):
            who, done = entry
            busy = self._reported.reporters or self._observed.objects
            if not busy if who is None else who not in self._busy:
                self._leaving.remove(entry)
                done.send(None)

    @override
    def deadline(self) -> float:
        due = min(self._observed.leases.deadline(), self._out.gate.retry_at)
        return min(due, self._reported.deadline()) if self._reported.reports else due

    @override
    async def timed_out(self) -> None:
        self._reported.time_over()
        self._observed.time_over()

    @override
    async def drained(self) -> None:
        await self._out.gate.settle()

    @override
    async def stop(self) -> None:
        # Also after a timeout or a crash, every entity reaches an end.
        self._reported.end_all()

    # --- messages ---------------------------------------------------------------------------

    def _on_message(self, message: Message, *, is_foreign: bool) -> None:
        if message.is_response:
            self._reported.on_answer(message)
            return
        try:
            check_asker(message, self._out.bus.url, is_foreign=is_foreign)
            self._on_request(message)
        except BadMessageError as exc:
            if message.is_request:
                self._out.refuse(message, exc.code, exc.reason)

    def _on_request(self, message: Message) -> None:
        if message.to == self._out.bus.url:
            self._on_component_request(message)
            return
        report, observed = self._reported.find(message.to), self._observed.find(message.to)
        if report is not None:
            self._reported.on_request(report, message)
        elif observed is not None and message.type in {MessageType.DELETE, MessageType.UPDATE}:
            observed.on_event(message)
        elif message.is_request:
            self._out.refuse(message, Code.NOT_FOUND, "no such object")

    def _on_component_request(self, message: Message) -> None:
        match message.type:
            case MessageType.CREATE:
                self._create(message, read_body(message, bodies.create_class(message)))
            case MessageType.UPDATE:
                change, by = read_body(message, bodies.ChangeObject), message.from_
                check_path(change.attribute)
                self._reported.act(message, change.resource, lambda core: core.change(by, change))
            case MessageType.DELETE:
                self._reported.delete(message, read_body(message, bodies.EndReport))
            case MessageType.SUBSCRIBE:
                self._subscribe(message, read_body(message, bodies.subscribe_class(message)))
            case MessageType.UNSUBSCRIBE:
                self._unsubscribe(message, read_body(message, bodies.unsubscribe_class(message)))
            case MessageType.READ:
                named = read_body(message, bodies.ObjectName)
                self.spawn(self._answer_schema, message, named.resource)
            case _:
                raise BadMessageError("a sync manager does not do this")

    async def _answer_schema(self, request: Message, address: str) -> None:
        """Answer a request for a data schema from a hyperty that is about to report an object."""
        try:
            schema = await find_schema(self._catalogue, address)
        except SchemaRefusedError as exc:
            self._out.refuse(request, exc.code, exc.why)
            return
        if schema is None:
            self._out.refuse(request, Code.NOT_FOUND, "no such data schema is known")
        else:
            self._out.answer(request, Code.OK, value=schema)

    def _create(self, request: Message, body: bodies.Create) -> None:
        reported, by = self._reported, request.from_
        match body:
            case bodies.CreateObject():
                reported.create(request, body)
            case bodies.Resume():
                reported.resume(request, body)
            case bodies.InviteObservers():
                reported.invite(request, body)
            case bodies.AllowObserver():
                now, observer = current_time(), body.observer
                reported.act(request, body.resource, lambda core: core.allow(by, observer, now))
            case _:
                assert_never(body)

    def _subscribe(self, request: Message, body: bodies.Subscribe) -> None:
        match body:
            case bodies.Observe():
                self._observed.observe(request, body)
            case bodies.ObjectBack():
                self._observed.on_object_back(request, body)
            case bodies.Resume():
                self._observed.resume(request)
            case _:
                assert_never(body)

    def _unsubscribe(self, request: Message, body: bodies.Unsubscribe) -> None:
        match body:
            case bodies.ObjectName():
                self._observed.leave(request, body)
            case bodies.ExpelObserver():
                by, observer = request.from_, body.observer
                self._reported.act(request, body.resource, lambda core: core.expel(by, observer))
            case bodies.ObserverExpelled():
                self._observed.on_expelled(request, body)
            case _:
                assert_never(body)
