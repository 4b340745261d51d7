"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47).

After a restart the node may have forgotten addresses and the paths of observers. So the sync
manager of each observer is notified that the object is back (SYN-25) and subscribes again. The
object is served meanwhile, and given to its reporter when that resumes it (SYN-28, M-51).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs
import trio

from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Delivery, Reply
from actors.runtime.registry.allocation import AddressAllocation
from actors.runtime.registry.registrations import Registrar
from actors.runtime.registry.registry import Registry
from actors.runtime.sync.output import Spawn, SyncOutput, code_in_use, observer_of
from actors.runtime.sync.registration import ObjectRegistrations
from actors.runtime.sync.reporter.children import Observes, ReportedChildren
from actors.runtime.sync.reporter.links import ObserverLinks
from actors.runtime.sync.schemas import scheme_for
from fsm.effects import Refused, RowChanged
from fsm.sync.invitations import InvitationsCore
from fsm.sync.leases import LeasesCore, RepeatsCore, RepeatTimes
from fsm.sync.reporter import ReportedObject
from fsm.sync.stored import Keep, ObjectAtRest, ObjectForgotten, asked_for
from fsm.sync.value.value import check_path
from specs.addresses.address import RUNTIME_SCHEME, runtime_of, scheme_of, subscription_manager
from specs.bodies.object import (
    AllowObserver,
    Change,
    ChangeObject,
    CreateObject,
    CutPath,
    DataObject,
    EndReport,
    ExpelObserver,
    Forward,
    Invitation,
    InviteObservers,
    ObjectBack,
    ObserverExpelled,
    ObserverList,
    ObserversChange,
    ReadAttribute,
    Resume,
    Subscription,
    Wrapped,
)
from specs.bodies.word import Operation
from specs.child import CHANGES, SUBSCRIPTION, child_resources, parent_of
from specs.errors import BadMessageError
from specs.jsonvalue import Absence, value_at
from specs.limits.protocol import READ_PAUSE
from specs.limits.sync import MAX_REPEATED_ASKS, RESTORE_TRIES, RESTORES_AT_ONCE
from specs.message import Message, MessageType, reason_in, refuse
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code
from specs.trace import Op
from transports.bodies import read_body, write_body

if TYPE_CHECKING:
    from fsm.engine import Step
    from specs.jsonvalue import Json, JsonObject


_log = get_logger("actors.runtime")

_OBSERVERS: Final = "observers"
_NO_OBJECT: Final = "no such object"
_SILENCE: Final = "the reporter did not answer"
NO_STORE: Final = "this runtime stores nothing: open it with a store"
_BROKEN: Final = "the store cannot be written now; nothing was changed"
_AWAY: Final = "its reporter is away"
NOTHING_STORED: Final = "nothing of that is stored"
_TAKEN: Final = "it is reported already"

Act: TypeAlias = Callable[[ReportedObject], Refused | None]
"""What a reporter wants of an object; returns why it is refused."""


@final
class Report:
    """One object that is reported here: the port of its core, and the requests about it.

    Args:
        objects: All objects that are reported here.
        created: The object.
        allowed: Observers that are allowed from the beginning.
        expelled: Observers that are not allowed although the object is public.
        is_public: Whether all other observers are allowed.

    Attributes:
        core: Decides.
        children: Its children.
        is_resting: Whether the object is stored, and its reporter away.
        deletion: The request to delete the object, until it is answered.
    """

    def __init__(
        self,
        objects: "ReportedObjects",
        created: DataObject,
        allowed: tuple[str, ...] = (),
        expelled: tuple[str, ...] = (),
        *,
        is_public: bool = False,
    ) -> None:
        self.core: Final = ReportedObject(created, self, allowed, expelled, is_public=is_public)
        self.is_resting = False
        self.deletion: Message | None = None
        self._url = created.url
        self._objects = objects
        self._out = objects.out
        self.children: Final = ReportedChildren(
            objects.out, self.core, objects.links.direct, objects.observes, objects.signs
        )
        self._waiting: dict[str, list[Message]] = {}
        self._was_observed = False
        # The reporter sees its observers, unless it is a part of a runtime.
        self._has_list = scheme_of(created.reporter) != RUNTIME_SCHEME
        self._list_version = 0

    @property
    def is_stored(self) -> bool:
        """Whether the object is stored."""
        return self._url in self._out.gate.stored

    def open(self, listener: ActorRef[Delivery]) -> None:
        """Report observers to the object's reporter.

        What is said at `O/observers` stays in the runtime: the sync manager listens, too.
        """
        if self._has_list:
            address = f"{self._url}/{_OBSERVERS}"
            self._out.bus.open_address(address, listener)
            self._out.bus.follow(address, self.core.snapshot.reporter)

    def close(self, listener: ActorRef[Delivery]) -> None:
        """Report observers and children no more."""
        if self._has_list:
            address = f"{self._url}/{_OBSERVERS}"
            self._out.bus.close_address(address, listener)
            self._out.bus.unfollow_all(address)
        self.children.close(listener)

    def rest(self, by: str) -> bool:
        """Note that a reporter is away; return whether its object is stored and waits for it."""
        if not self.is_stored or self.core.snapshot.reporter != by:
            return False
        self.is_resting = True
        return True

    def settle(self) -> None:
        """Use the routes that the observers' runtimes asked for, after each change of observers."""
        self._objects.links.settle(self._url, self.core)

    # --- requests -----------------------------------------------------------------------------

    def is_stuck(self, request: Message) -> bool:
        """Refuse a request that changes what cannot be stored now; return whether it was."""
        is_stuck = self.is_stored and self._out.gate.is_broken
        if is_stuck and request.is_request:
            # At once: what is refused need not wait for the disk.
            self._out.bus.send(refuse(request, Code.UNAVAILABLE, _BROKEN))
        return is_stuck

    def do(self, request: Message, act: Act) -> None:
        """Do what a reporter wants, and answer it."""
        before = self.core.snapshot.version
        refusal = act(self.core)
        self.settle()
        version = self.core.snapshot.version
        if refusal is not None:
            self._out.refuse(request, refusal.code, refusal.why)
        elif version == before:
            self._out.answer(request, Code.OK)
        else:
            self._out.answer(request, Code.OK, version=version)

    def delete(self, by: str, request: Message | None = None) -> None:
        """Delete the object; its reporter is answered when nothing is left of it."""
        refusal = self.core.delete(by)
        self.settle()
        if refusal is None:
            self.deletion = request
        elif request is not None:
            self._out.refuse(request, refusal.code, refusal.why)

    def serve(self, request: Message) -> None:
        """Take a request to the object, whose sender is verified."""
        match request.type:
            case MessageType.SUBSCRIBE:
                self._subscribe(request)
            case MessageType.UNSUBSCRIBE:
                observer = observer_of(request)
                self._objects.links.on_left(self._url, observer)
                self.core.unsubscribe(observer, request.from_)
                self.settle()
                self._out.answer(request, Code.OK)
            case MessageType.READ:
                self._read(request)
            case _:
                self._out.refuse(request, Code.MALFORMED, "an object does not do this")

    def _subscribe(self, request: Message) -> None:
        observer = observer_of(request)
        if self.is_resting and not self.core.may_read(observer):
            self._out.refuse(request, Code.UNAVAILABLE, _AWAY)
            return
        waiting = self._waiting.setdefault(observer, [])
        if len(waiting) >= MAX_REPEATED_ASKS:
            why = "its requests wait for the reporter already"
            self._out.refuse(request, Code.TOO_LARGE, why)
            return
        waiting.append(request)
        body = read_body(request, Subscription)
        lease = self._out.config.lease if body.renews else None
        self.core.subscribe(observer, request.from_, lease, body.version)
        self.settle()

    def _read(self, request: Message) -> None:
        core = self.core
        if core.is_deleted:
            self._out.refuse(request, Code.NOT_FOUND, _NO_OBJECT)
        elif not core.may_read(request.from_):
            self._out.refuse(request, Code.UNAUTHENTICATED, "not an observer")
        elif "attribute" in request.body:
            self._read_attribute(request)
        else:
            shown = write_body(self.children.with_children(core.snapshot))
            self._out.answer(request, Code.OK, value=shown)

    def _read_attribute(self, request: Message) -> None:
        thing = self.core.snapshot
        try:
            path = read_body(request, ReadAttribute).attribute
        except BadMessageError as exc:
            self._out.refuse(request, exc.code, exc.reason)
            return
        found = value_at(thing.data, path)
        if isinstance(found, Absence):
            self._out.refuse(request, Code.NOT_FOUND, f"the object has no {path}")
        else:
            self._out.answer(request, Code.OK, value=found, version=thing.version)

    def read_observers(self, request: Message) -> None:
        """Return the observers, to the reporter only."""
        if request.type is not MessageType.READ:
            self._out.refuse(request, Code.MALFORMED, "observers are read, and no more")
        elif request.from_ != self.core.snapshot.reporter:
            self._out.refuse(request, Code.UNAUTHENTICATED, "only the reporter may")
        else:
            listed = ObserverList(self._list_version, self.core.observers)
            self._out.answer(request, Code.OK, value=write_body(listed))

    # --- the port of the core -----------------------------------------------------------------

    def step(self, step: "Step") -> None:
        """Trace a step."""
        self._out.step(step)

    def row(self, row: RowChanged) -> None:
        """Trace a row; notify the reporter that an observer has joined or left (M-53)."""
        self._out.row(row)
        if row.table == _OBSERVERS and self._has_list and not self.core.is_deleted:
            self._list_version += 1
            operation = Operation.ADD if row.op is Op.ADD else Operation.REMOVE
            change = ObserversChange((row.val,), operation.value, self._list_version)
            to = f"{self._url}/{_OBSERVERS}"
            event = self._out.request(MessageType.UPDATE, to, write_body(change), self._url)
            self._out.bus.publish(event, frozenset({self._out.runtime}))

    def keep(self, change: Keep) -> None:
        """Have a change of a stored object written."""
        if self.is_stored:
            self._out.gate.keep(self._url, [change])
            if isinstance(change, ObjectForgotten):
                self._out.gate.stored.discard(self._url)
                self.is_resting = False

    def written(self, snapshot: DataObject) -> None:
        """Trace a new version."""
        self._out.trace_version(snapshot)

    def publish(self, change: Change) -> None:
        """Publish a change, and repeat it later."""
        self._objects.repeats.published(self.core.snapshot, change, trio.current_time())
        self.repeat(change)

    def repeat(self, change: Change) -> None:
        """Send a change to all observers."""
        runtimes = frozenset(self.core.runtimes)
        # Also after the last observer has left: the node knows that there are no observers (SC-32).
        if runtimes or self._was_observed:
            body, to = write_body(change), f"{self._url}/{CHANGES}"
            update = self._out.request(MessageType.UPDATE, to, body, self._url)
            self._out.publish(update, runtimes, self._objects.links.direct(self._url))

    def lease(self, observer: str, seconds: int | None) -> None:
        """Begin a lease, or end it."""
        if seconds is None:
            self._objects.leases.end(self._url, observer)
        else:
            self._objects.leases.begin(self._url, observer, seconds, trio.current_time())

    def ask(self, observer: str, patience: float, question: int) -> None:
        """Ask the reporter in a task."""
        request = self._waiting[observer][0]
        self._objects.spawn(partial(self._ask, observer, patience, question, request))

    async def _ask(self, observer: str, patience: float, question: int, waiting: Message) -> None:
        """Ask the reporter as if the observer had asked it itself (M-39)."""
        wrapped = Wrapped(waiting.id, MessageType.SUBSCRIBE, observer, self._url)
        body, to = write_body(Forward(wrapped)), self.core.snapshot.reporter
        # It has its id when it leaves: which of two tasks comes first is chance (I-T7).
        request = self._out.request(MessageType.FORWARD, to, body, self._url, waiting.identity)
        answer = None
        with trio.move_on_after(patience):
            answer = await self._out.bus.request(request)
        if answer is not None and answer.code <= LAST_SUCCESS:
            self.core.accept(observer, question)
        else:
            self.core.refuse(observer, _refusal_in(answer), question)
        self.settle()

    def grant(
        self, observer: str, snapshot: DataObject, lease: int | None, *, is_renewal: bool
    ) -> None:
        """Answer all that an observer asked with the object and its children."""
        self._was_observed = True
        self._objects.repeats.observed(self._url, trio.current_time())
        shown = write_body(self.children.shown_to_observer(snapshot))
        for request in self._waiting.pop(observer, ()):
            extra = _lease(lease)
            if is_renewal and "version" in request.body:
                extra |= {"renewed": True}
            self._out.answer(request, Code.OK, value=shown, **extra)

    def renew(self, observer: str, lease: int | None) -> None:
        """Answer all that an observer asked."""
        for request in self._waiting.pop(observer, ()):
            self._out.answer(request, Code.OK, renewed=True, **_lease(lease))

    def deny(self, observer: str, code: Code, why: str) -> None:
        """Refuse all that an observer asked."""
        for request in self._waiting.pop(observer, ()):
            self._out.refuse(request, code, why)

    def cut_off(self, observer: str, manager: str, *, is_over: bool) -> None:
        """Stop delivery to an observer, without its cooperation (SYN-21).

        The node stops first what goes to its runtime, unless others observe there; then
        the sync manager there is notified, which serves the others on. One whose lease is over
        may be there all the same: it is asked to subscribe again (M-52).
        """
        out, url = self._out, self._url
        runtime = runtime_of(manager) if manager else None
        if runtime != out.runtime:
            path = CutPath((f"{url}/{CHANGES}",), observer, runtime, is_over or None)
            to = subscription_manager(out.domain)
            out.bus.send(out.request(MessageType.UNSUBSCRIBE, to, write_body(path)))
        if manager:
            body = write_body(ObjectBack(url) if is_over else ObserverExpelled(url, observer))
            kind = MessageType.SUBSCRIBE if is_over else MessageType.UNSUBSCRIBE
            out.bus.send(out.request(kind, manager, body, f"{url}/{SUBSCRIPTION}"))

    def end(self, runtimes: tuple[str, ...]) -> None:
        """Notify all observers that the object is gone (M-47)."""
        url = self._url
        self._out.trace_deletion(url, self.core.snapshot.reporter)
        self._objects.invitations.withdraw(url)
        if runtimes:
            sender, to = f"{url}/{SUBSCRIPTION}", f"{url}/{CHANGES}"
            gone = self._out.request(MessageType.DELETE, to, {}, sender)
            self._out.publish(gone, frozenset(runtimes), self._objects.links.direct(url))

    def vacate(self) -> None:
        """Take the object down in a task."""
        self._objects.spawn(partial(self._objects.remove, self))


def _lease(lease: int | None) -> "JsonObject":
    return {} if lease is None else {"lease": lease}


def _refusal_in(answer: Message | None) -> str:
    """Return why a reporter does not admit an observer; None: it has not answered in time."""
    if answer is None or answer.code == Code.TIMEOUT:
        return _SILENCE
    why = reason_in(answer)
    if answer.code == Code.FORBIDDEN:
        return why or "the reporter refuses"
    return f"the reporter did not decide: {answer.code} {why}".rstrip()


@final
class ReportedObjects:
    """The reporter's end of every object created here.

    It is the port of the core of invitations, which are posted, not awaited, so that each
    provisional answer is seen.

    Args:
        out: What the sync manager sends.
        registry: Registry of the runtime.
        allocation: Allocates the addresses of data objects.
        registrar: Registers them in the domain registry.
        spawn: Runs a task of the sync manager.
        progress: Called by tasks when something has changed, and they go on.
        observes: Whether a component of this runtime observes an object.

    Attributes:
        links: The links to their observers.
        repeats: When the last change of each is published again.
        signs: When the digest of the children of each is published.
        leases: The leases of their observers.
        invitations: The open invitations.
    """

    def __init__(
        self,
        out: SyncOutput,
        registry: Registry,
        allocation: AddressAllocation,
        registrar: Registrar,
        spawn: Spawn,
        progress: Callable[[], None],
        observes: Observes,
    ) -> None:
        self.out: Final = out
        self.spawn: Final = spawn
        self.observes: Final = observes
        self._registry = registry
        self._progress = progress
        self._objects: dict[str, Report] = {}
        self._creating: list[str] = []
        self._invited: dict[tuple[str, str], list[tuple[Message, InviteObservers]]] = {}
        self._restores = trio.CapacityLimiter(RESTORES_AT_ONCE)
        self.repeats: Final = RepeatsCore()
        self.signs: Final = RepeatTimes()
        self.leases: Final = LeasesCore()
        self.invitations: Final = InvitationsCore(self)
        self._registrations = ObjectRegistrations(
            out, registry, allocation, registrar, lambda url: self._find(url) is not None
        )
        self.links: Final = ObserverLinks(out, registry, spawn)
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let all objects' addresses lead to `listener`; serve what was stored (SYN-28)."""
        self._listener = listener
        for there in list(self.out.gate.rest.objects.values()):
            self._restore(there)

    def _listen(self, report: Report, created: DataObject) -> None:
        """Let the object's own address, its observers and its children lead to the listener."""
        report.open(self._listener)
        self._registrations.listen(created.url, self._listener)
        report.children.open(created, self._listener)

    # --- the table --------------------------------------------------------------------------

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the reported objects."""
        return tuple(self._objects)

    @property
    def reporters(self) -> set[str]:
        """The hyperties that report something, or are about to; a resting object has none."""
        active = [each for each in self._objects.values() if not each.is_resting]
        return {*self._creating, *(each.core.snapshot.reporter for each in active)}

    def reporter_of(self, url: str) -> str | None:
        """Return the local reporter of an object; None: there is none."""
        report = self._objects.get(url)
        return None if report is None else report.children.reporter

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or one of its parts."""
        part = address.removesuffix(f"/{SUBSCRIPTION}").removesuffix(f"/{_OBSERVERS}")
        url = parent_of(address) or part
        return url if url in self._objects else None

    def _find(self, url: str) -> Report | None:
        """Return an object that is reported here and not deleted."""
        report = self._objects.get(url)
        return None if report is None or report.core.is_deleted else report

    def _is_observed(self, url: str) -> bool:
        report = self._find(url)
        return report is not None and bool(report.core.observers)

    # --- time -------------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return min(
            self.invitations.deadline(),
            self.repeats.deadline(),
            self.signs.deadline(),
            self.leases.deadline(),
        )

    def time_over(self) -> None:
        """Do what is due."""
        now = trio.current_time()
        self.invitations.time_over(now)
        url = self.signs.due(now, self._is_observed)
        if url is not None:
            self._objects[url].children.send_sign()
        for url, observer in self.leases.due(now):
            self._objects[url].core.expire(observer)
            self._objects[url].settle()
        repeated = self.repeats.due(now, self._is_observed)
        if repeated is not None:
            url, change = repeated
            self._objects[url].repeat(change)

    # --- begin ------------------------------------------------------------------------------

    def create(self, request: Message, wanted: CreateObject) -> None:
        """Create an object (M-32).

        Raises:
            BadMessageError: The schema is invalid, or the runtime has no store for it.
        """
        # Before anything is begun: a request for a hyperty's address is refused.
        scheme_for(wanted.schema, request.from_)
        if wanted.store and not self.out.gate.stores:
            raise BadMessageError(NO_STORE)
        self._creating.append(request.from_)
        self.spawn(partial(self._create, request, wanted))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        created = await self._registrations.find(request, wanted)
        self._creating.remove(request.from_)
        if created is None:
            return
        report = Report(self, created, wanted.allow or (), is_public=bool(wanted.public))
        self._objects[created.url] = report
        if wanted.store:
            self.out.gate.stored.add(created.url)
        self._listen(report, created)
        report.core.begin()
        self._progress()
        refusal = await self._registrations.register(created)
        await self._registered(request, created.url, refusal)

    async def _registered(self, request: Message, url: str, refusal: Refused | None) -> None:
        """Answer the reporter; an object that is not registered is taken down (SYN-03)."""
        report = self._find(url)
        if report is None:
            self.out.refuse(request, Code.GONE, "its reporter left meanwhile")
        elif refusal is None:
            await self._registry.show_local(url)
            names: list[Json] = [*child_resources(url)]
            extra: JsonObject = {"childrenResources": names} if names else {}
            self.out.answer(request, Code.OK, resource=url, **extra)
        else:
            self.out.refuse(request, refusal.code, refusal.why)
            report.delete(report.core.snapshot.reporter)

    def renew_paths(self, domain: str, done: Reply[None]) -> None:
        """Claim the objects, and set their paths, that the node has forgotten."""
        is_own = domain == self.out.domain
        self.spawn(partial(self._renew_all, self.urls if is_own else (), done))

    async def _renew_all(self, urls: tuple[str, ...], done: Reply[None]) -> None:
        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(self._registrations.renewals.renew, url)
        done.send(None)

    # --- stored objects -----------------------------------------------------------------------

    def _restore(self, there: ObjectAtRest) -> None:
        """Serve an object that was stored; its reporter is away."""
        url = there.snapshot.url
        allowed = tuple(who for who, may in there.guests.items() if may)
        expelled = tuple(who for who, may in there.guests.items() if not may)
        self.out.gate.stored.add(url)
        report = Report(self, there.snapshot, allowed, expelled, is_public=there.is_public)
        report.is_resting = True
        self._objects[url] = report
        shown = attrs.evolve(there.snapshot, children_objects=there.children)
        self._listen(report, shown)
        report.core.restore(there.observers.values())
        managers = {one.manager for one in there.observers.values()} - {self.out.bus.url}
        self.spawn(partial(self._announce, shown, sorted(managers)))

    async def _announce(self, shown: DataObject, managers: list[str]) -> None:
        """Have a restored object found and observed again; as often as it takes."""
        if not await self._registrations.renewals.renew(shown.url):
            return
        refusal = await self._registrations.register(shown)
        if refusal is not None:
            _log.warning("stored object is not registered", url=shown.url, why=refusal.why)
        await self._registry.show_local(shown.url)
        async with trio.open_nursery() as nursery:
            for manager in managers:
                nursery.start_soon(self._call_back, shown.url, manager)

    async def _call_back(self, url: str, manager: str) -> None:
        """Notify a sync manager that an object is back; it lists its observers."""
        async with self._restores:
            pause, tries = READ_PAUSE, 0
            # An object that is deleted meanwhile has neither observers nor an address.
            while url in self._objects and tries < RESTORE_TRIES:
                tries += 1
                body, sender = write_body(ObjectBack(url)), f"{url}/{SUBSCRIPTION}"
                answer = await self.out.bus.request(
                    self.out.request(MessageType.SUBSCRIBE, manager, body, sender)
                )
                if answer.code <= LAST_SUCCESS:
                    listed = answer.body.get("value")
                    observers = {*map(str, listed if isinstance(listed, list) else ())}
                    self._keep_observers(url, manager, observers)
                    return
                await trio.sleep(pause)
                pause *= 2

    def _keep_observers(self, url: str, manager: str, observers: set[str]) -> None:
        """Let the former observers of a resumed object go."""
        report = self._objects.get(url)
        if report is not None:
            for observer in report.core.observers:
                if observer not in observers:
                    report.core.unsubscribe(observer, manager)
            report.settle()
        self._progress()

    def resume(self, request: Message, body: Resume) -> None:
        """Give a reporter the objects that it had, children included (M-51)."""
        stored = [each.core.snapshot for each in self._objects.values() if each.is_stored]
        found = asked_for(stored, request.from_, body.schema, body.name)
        reports = [self._objects[one.url] for one in found]
        if not found:
            self.out.refuse(request, Code.NOT_FOUND, NOTHING_STORED)
        elif not all(report.is_resting for report in reports):
            self.out.refuse(request, Code.CONFLICT, _TAKEN)
        else:
            for report in reports:
                report.is_resting = False
            shown = [
                write_body(report.children.with_children(report.core.snapshot))
                for report in reports
            ]
            self.out.answer(request, Code.OK, value=[*shown])

    # --- what reporters ask -----------------------------------------------------------------

    def change(self, request: Message, body: ChangeObject) -> None:
        """Change an object on behalf of its reporter, and publish it (M-40)."""
        check_path(body.attribute)
        report = self._usable(request, body.resource)
        if report is not None:
            report.do(request, lambda core: core.change(request.from_, body))

    def delete(self, request: Message, body: EndReport) -> None:
        """Delete an object, or one attribute of it, which is published as a change (M-46)."""
        by, attribute = request.from_, body.attribute
        if attribute is not None:
            check_path(attribute)
        there = self._objects.get(body.resource)
        if attribute is None and body.store and there is not None and there.rest(by):
            self.out.answer(request, Code.OK)
            return
        report = self._usable(request, body.resource)
        if report is not None and attribute is not None:
            report.do(request, lambda core: core.remove(by, attribute))
        elif report is not None:
            report.delete(by, request)

    def invite(self, request: Message, body: InviteObservers) -> None:
        """Invite one observer (M-33)."""
        (observer,) = body.authorise
        report = self._find(body.resource)
        if report is None:
            self.out.refuse(request, Code.NOT_FOUND, _NO_OBJECT)
        elif report.core.snapshot.reporter != request.from_:
            self.out.refuse(request, Code.FORBIDDEN, "only the reporter invites")
        elif not report.is_stuck(request):
            refusal = report.core.authorise(observer)
            report.settle()
            if refusal is None:
                self._invited.setdefault((body.resource, observer), []).append((request, body))
                self.invitations.invite(body.resource, observer, trio.current_time())
            else:
                self.out.refuse(request, refusal.code, refusal.why)

    def allow(self, request: Message, body: AllowObserver) -> None:
        """Let an observer in without a question, on behalf of the reporter."""
        report = self._usable(request, body.resource)
        if report is not None:
            report.do(request, lambda core: core.allow(request.from_, body.observer))

    def expel(self, request: Message, body: ExpelObserver) -> None:
        """Expel an observer, on behalf of the reporter (SYN-21)."""
        report = self._usable(request, body.resource)
        if report is not None:
            report.do(request, lambda core: core.expel(request.from_, body.observer))

    def _usable(self, request: Message, url: str) -> Report | None:
        """Return an object that can be changed; None: the request is refused."""
        report = self._objects.get(url)
        if report is None:
            self.out.refuse(request, Code.NOT_FOUND, _NO_OBJECT)
            return None
        return None if report.is_stuck(request) else report

    # --- what observers ask -----------------------------------------------------------------

    def on_answer(self, url: str, answer: Message) -> None:
        """Take an answer to an invitation (M-34), or to the word that an object is gone."""
        if answer.from_ != f"{url}/{CHANGES}":
            now, why = trio.current_time(), reason_in(answer)
            self.invitations.take_answer(url, answer.from_, answer.code, why, now)
        elif answer.is_final:
            # A runtime speaks for its own observers; a router, which names none, for the others.
            source = answer.body.get("source")
            report = self._objects[url]
            report.core.notified({source} if isinstance(source, str) else None)
            report.settle()

    def on_request(self, url: str, request: Message) -> None:
        """Take a request to one of the objects; to its observers there are no events but ours."""
        report = self._objects[url]
        if request.is_request and report.is_stuck(request):
            return
        if parent_of(request.to) == url:
            report.children.on_message(request)
        elif request.to != f"{url}/{_OBSERVERS}":
            if not self.links.verifies(url, request, self._on_verified):
                report.serve(request)
        elif request.is_request:
            report.read_observers(request)

    def _on_verified(self, url: str, request: Message) -> None:
        """Serve a request that came by a link, and is from its stated sender (I-D1, S3)."""
        report = self._objects.get(url)
        if report is not None:
            report.serve(request)
        elif request.type is MessageType.SUBSCRIBE:
            self.out.refuse(request, Code.NOT_FOUND, _NO_OBJECT)
        else:
            self.out.refuse(request, Code.UNAVAILABLE, "it was here before")

    # --- the port of the invitations --------------------------------------------------------

    def step(self, step: "Step") -> None:
        """Trace a step."""
        self.out.step(step)

    def send_invitation(self, url: str, observer: str) -> None:
        """Pass the invitation on to the observer."""
        request, body = self._invited[url, observer][0]
        invitation = write_body(Invitation(request.from_, body.schema, body.value))
        sender, identity = f"{url}/{SUBSCRIPTION}", request.identity
        self.out.bus.send(
            self.out.request(MessageType.CREATE, observer, invitation, sender, identity)
        )

    def relay(self, url: str, observer: str, code: int, why: str) -> None:
        """Answer all requests to invite the observer."""
        requests = self._invited.get((url, observer), [])
        if code >= FIRST_FINAL:
            self._invited.pop((url, observer), None)
        more = {"description": why} if why else {}
        for request, _ in requests:
            self.out.answer(request, code_in_use(code), source=observer, **more)

    # --- end --------------------------------------------------------------------------------

    def leave(self, reporter: str) -> None:
        """Delete what a reporter reports: it is leaving."""
        for report in list(self._objects.values()):
            core = report.core
            if core.snapshot.reporter != reporter or core.is_deleted:
                continue
            if not report.rest(reporter):
                report.delete(reporter)

    def end_all(self) -> None:
        """End every subscription and invitation without a word: time is over."""
        for url, report in self._objects.items():
            for key in [key for key in self._invited if key[0] == url]:
                del self._invited[key]
            self.invitations.withdraw(url)
            report.core.end_all()

    async def remove(self, report: Report) -> None:
        """Take everything of an object down, at the node, too, and answer its reporter."""
        thing = report.core.snapshot
        url = thing.url
        # Not before: what observers say of the end finds the object where it was.
        await self._registry.hide_local(url)
        report.close(self._listener)
        await self._registrations.leave(url, self._listener)
        del self._objects[url]
        self.links.forget(url)
        self.repeats.forget(url)
        self.out.ids.forget(url, f"{url}/{SUBSCRIPTION}")
        if report.deletion is not None:
            self.out.answer(report.deletion, Code.OK)
