"""The objects that this runtime reports (M-18, M-32..M-35, M-38..M-41, M-43, M-46, M-47).

After a restart the node may have forgotten addresses and the paths of observers. So the sync
manager of each observer is notified that the object is back (SYN-25) and subscribes again. The
object is served meanwhile, and given to its reporter when the reporter resumes it (SYN-28, M-51).

The runtime of the reporter sets up and removes address, paths, listeners and record of an object
(M-18, M-35, M-21, M-23). If a node has forgotten them, and is busy, full or silent, the request is
repeated after longer and longer pauses: without its paths the object cannot be found (C-44).
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import ActorRef, Delivery, Reply
from actors.kit.trace import value_digest
from actors.runtime.registry.allocation import AddressAllocation, AllocationError
from actors.runtime.registry.registrations import Registrar, RegistrationError
from actors.runtime.sync import output
from actors.runtime.sync.children import ReportedChildren
from actors.runtime.sync.schemas import scheme_for
from fsm.bus.sending_order import Elsewhere
from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.limits.timers import Alarms
from fsm.sync import stored
from fsm.sync.leases import RepeatsCore, RepeatTimes
from fsm.sync.reporter import ReportedObject
from fsm.sync.routes import ReportRoutes
from fsm.sync.value.value import check_path
from specs import child
from specs.addresses import address
from specs.bodies import object as bodies
from specs.bodies.link import Path
from specs.bodies.registry import Record
from specs.bodies.word import Operation
from specs.errors import BadMessageError
from specs.jsonvalue import Absence, Json, JsonObject, value_at
from specs.limits import sync as limits
from specs.limits.protocol import READ_PAUSE
from specs.message import Message, MessageType, reason_in, refuse
from specs.reply_code import LAST_SUCCESS, Code
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

_log = get_logger("actors.runtime")

_OBSERVERS: Final = "observers"
_NO_OBJECT: Final = "no such object"
_CLOSED: Final = "the runtime has closed"
_BROKEN: Final = "the store cannot be written now; nothing was changed"
_LOST: Final = frozenset({Code.FORBIDDEN, Code.CONFLICT})
"""Codes of a node that mean that the address has another owner now."""

_VERIFIED: Final = {MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE, MessageType.READ}


class Renewal:
    """Claims one object at a node again, and sets its routes, until the node has accepted all.

    Args:
        url: Address of the object.
        ask: Claims the object at the node, and sets its paths; returns the last answer.
        permits: Limits the objects that do so at a time: in a long queue at the node, requests
            would time out.
    """

    def __init__(
        self, url: str, ask: Callable[[], Awaitable[Message]], permits: trio.CapacityLimiter
    ) -> None:
        self._url, self._ask, self._permits = url, ask, permits
        self._is_running = self._is_ended = False
        self._again = trio.Event()  # set if the node has forgotten the object again

    async def run(self) -> bool:
        """Repeat the requests until the node has accepted all; return whether this call did it.

        It did not if the address has another owner, the object is deleted, or another run is
        under way, which then starts again.
        """
        if self._is_running:
            self._again.set()
            return False
        self._is_running, pause = True, READ_PAUSE
        while not self._is_ended:
            answer = await self._ask_in_turn()
            is_known = answer is not None and answer.code <= LAST_SUCCESS
            is_lost = answer is not None and answer.code in _LOST
            if (is_known or is_lost) and not self._again.is_set():
                self._is_running = False
                if answer is not None and is_lost:
                    why = reason_in(answer)
                    _log.error("object has lost its address", url=self._url, why=why)
                return is_known
            with trio.move_on_after(pause):
                await self._again.wait()
            pause = READ_PAUSE if self._again.is_set() else min(2 * pause, limits.REPEAT_LAST)
        return False

    def end(self) -> None:
        """End the run, as the object is deleted."""
        self._is_ended = True
        self._again.set()

    async def _ask_in_turn(self) -> Message | None:
        """Claim the object once, when a permit is free; None: the object is deleted."""
        async with self._permits:
            if self._is_ended:
                return None
            self._again = trio.Event()
            return await self._ask()


class Report:
    """One object that this runtime reports: port of its core, and requests about it.

    Args:
        objects: All objects that are reported here.
        created: The object.
        allowed: Observers that are allowed from the beginning.
        expelled: Observers that are not allowed although the object is public.
        is_public: Whether all other observers are allowed.

    Attributes:
        core: The core of the object, which decides on requests.
        routes: The links to its observers.
        children: Its children.
        renewal: Claims the object again at a node that has forgotten it.
        is_resting: Whether the object is stored, and its reporter is away.
    """

    def __init__(
        self,
        objects: "ReportedObjects",
        created: bodies.DataObject,
        allowed: tuple[str, ...] = (),
        expelled: tuple[str, ...] = (),
        *,
        is_public: bool = False,
    ) -> None:
        self.core: Final = ReportedObject(created, self, allowed, expelled, is_public=is_public)
        self.is_resting = False
        self._url, self._objects, self._out = created.url, objects, objects.out
        self._bus = objects.out.bus
        self.routes: Final = ReportRoutes(self, objects.out.runtime)
        self._by_link: Final = set[str]()  # runtimes whose links are watched
        self._unverified: dict[str, Message] = {}  # unverified subscriptions, by observer
        self.children: Final = ReportedChildren(
            objects.out, self.core, self.routes, objects.signs, objects.alarms
        )
        self.renewal: Final = Renewal(self._url, self._claim, objects.permits)
        self._deletion: Message | None = None  # the unanswered request to delete it
        self._was_observed = False
        # The reporter sees its observers, unless it is a part of a runtime.
        self._has_list = address.scheme_of(created.reporter) != address.RUNTIME_SCHEME
        self._list_version = 0

    @property
    def is_stored(self) -> bool:
        """Whether the object is stored."""
        return self._url in self._out.gate.stored

    @property
    def reporter(self) -> str:
        """Address of the reporter."""
        return self.core.snapshot.reporter

    def open(self, snapshot: bodies.DataObject) -> None:
        """Deliver messages to the object and its parts to the sync manager.

        Messages to `O/observers` stay in the runtime.
        """
        url, bus, listener = self._url, self._bus, self._objects.listener
        if self._has_list:
            bus.open_address(f"{url}/{_OBSERVERS}", listener)
            bus.follow(f"{url}/{_OBSERVERS}", self.reporter)
        for each in (url, f"{url}/{child.SUBSCRIPTION}"):
            bus.open_address(each, listener)
        bus.listen(address.status_of(url), self._out.registry.listener)
        self.children.open(snapshot, listener)

    async def register(self, created: bodies.DataObject) -> Refused | None:
        """Register the object in the domain registry (SYN-03); return the refusal, or None.

        The object of a part of the runtime, such as the description of a P2P link, is not
        registered, as it is observed by invitation only.
        """
        if not self._has_list:
            return None
        record = Record(
            created.url,
            created.runtime,
            reporter=created.reporter,
            schema=created.schema,
            name=created.name,
            resources=created.resources,
            data_schemes=(address.scheme_of(created.url),),
        )
        try:
            await self._objects.registrar.register(record)
        except RegistrationError as error:
            return Refused(output.code_in_use(error.code), str(error))
        except ActorStoppedError:
            return Refused(Code.GONE, _CLOSED)
        return None

    async def _claim(self) -> Message:
        """Claim the object, and set its paths; return the first refusal, or the last answer."""
        claimed = await self._objects.set_paths(MessageType.SUBSCRIBE, (self._url,))
        if claimed.code > LAST_SUCCESS or self.core.is_deleted:
            return claimed
        return await self._objects.set_paths(MessageType.SUBSCRIBE, _paths_of(self._url))

    async def remove(self) -> None:
        """Remove the object, also at the node, and answer the request of its reporter (SYN-22)."""
        url, objects, bus = self._url, self._objects, self._bus
        # Only now: the answers of observers to the deletion still had to find the object.
        await self._out.registry.hide_local(url)
        if self._has_list:
            bus.close_address(f"{url}/{_OBSERVERS}", objects.listener)
            bus.unfollow_all(f"{url}/{_OBSERVERS}")
        self.children.close(objects.listener)
        await objects.set_paths(MessageType.UNSUBSCRIBE, _paths_of(url))
        # Otherwise the node updates the record at the end of the session (REG-09).
        with suppress(ActorStoppedError):
            await objects.registrar.unregister(url)
        bus.unlisten(address.status_of(url), self._out.registry.listener)
        for each in (f"{url}/{child.SUBSCRIPTION}", url):
            bus.close_address(each, objects.listener)
        await objects.free(url)
        del objects.reports[url]
        self.routes.forget()
        objects.unwatch()
        objects.alarms.set(url, math.inf)
        self._out.ids.forget(url, f"{url}/{child.SUBSCRIPTION}")
        if self._deletion is not None:
            self._out.answer(self._deletion, Code.OK)

    def rest(self, by: str) -> bool:
        """Record that a reporter is away; return whether its object is stored, and so continues."""
        if not self.is_stored or self.reporter != by:
            return False
        self.is_resting = True
        return True

    def is_meant(self, by: str, body: bodies.Resume) -> bool:
        """Return whether a request to resume names this object of the reporter.

        Without a schema, the request is for all objects; with one, for that of the same name.
        """
        about = self.core.snapshot
        is_named = body.schema is None or (about.schema, about.name) == (body.schema, body.name)
        return self.is_stored and self.reporter == by and is_named

    def settle(self) -> None:
        """Set the timer, and update the routes to the observing runtimes (I-D12)."""
        self._objects.alarms.set(self._url, self.core.deadline())
        if self.routes.is_used:
            active = self.core.runtimes
            self.routes.left(active, self.core.asking)
            for runtime in active:
                self.routes.counts(runtime)
            self.routes.reach(active)
            if gone := self._by_link - self.routes.asked.keys():
                self._by_link.difference_update(gone)
                self._objects.unwatch()

    # --- requests -----------------------------------------------------------------------------

    def is_stuck(self, request: Message) -> bool:
        """Refuse a request whose change cannot be stored now; return whether it was refused."""
        is_stuck = self.is_stored and self._out.gate.is_broken
        if is_stuck and request.is_request:
            # Without the gate, as a refusal need not wait for the disk.
            self._bus.send(refuse(request, Code.UNAVAILABLE, _BROKEN))
        return is_stuck

    def answer(self, request: Message, refusal: Refused | None, before: int) -> None:
        """Answer a request of the reporter.

        Args:
            request: The request.
            refusal: The refusal of the core; None: it was accepted.
            before: Version of the object before the request.
        """
        version = self.core.snapshot.version
        if version != before:
            self._out.answer(request, Code.OK, version=version)
            return
        self.settle()
        if refusal is None:
            self._out.answer(request, Code.OK)
        else:
            self._out.refuse(request, refusal.code, refusal.why)

    def delete(self, by: str, request: Message | None = None) -> None:
        """Delete the object; the request is answered after the removal."""
        refusal = self.core.delete(by)
        self.settle()
        if refusal is None:
            self._deletion = request
        elif request is not None:
            self._out.refuse(request, refusal.code, refusal.why)

    def receive(self, request: Message) -> None:
        """Handle a request to the object, after the verification of its sender (MN-03, P2P-30).

        The link that has brought a subscription then serves all observers in the remote runtime
        (SYN-27, I-D12).
        """
        link, is_subscribe = output.link_of(request), request.type is MessageType.SUBSCRIBE
        if request.type not in _VERIFIED:
            self._serve(request)
            return
        observer = (
            request.from_ if request.type is MessageType.READ else output.observer_of(request)
        )
        verifying = self._objects.verifying
        if link is None:
            if is_subscribe:
                self.routes.ask(address.runtime_of(request.from_), None)
            self._serve(request)
        elif verifying[is_subscribe] >= limits.MAX_WITNESSED:
            self._out.refuse(request, Code.UNAVAILABLE, "too many ask at once")
        else:
            if is_subscribe:
                self._unverified[observer] = request
            verifying[is_subscribe] += 1
            self._out.spawn(partial(self._verify, observer, request, link))

    async def _verify(self, observer: str, request: Message, link: str) -> None:
        objects, is_subscribe = self._objects, request.type is MessageType.SUBSCRIBE
        try:
            is_permitted = await objects.watches.speaks_for(link, request.from_, observer)
        finally:
            objects.verifying[is_subscribe] -= 1
        if is_subscribe and self._unverified.get(observer) is not request:
            self._out.refuse(request, Code.GONE, "the observer left meanwhile")
            return
        if is_subscribe:
            del self._unverified[observer]
        if not is_permitted:
            why = "where the observer lives is not known here; ask by the node"
            self._out.refuse(request, Code.UNAUTHENTICATED, why)
            return
        if objects.reports.get(self._url) is not self:
            code, why = Code.UNAVAILABLE, "it was here before"
            if is_subscribe:
                code, why = Code.NOT_FOUND, _NO_OBJECT
            self._out.refuse(request, code, why)
            return
        if is_subscribe:
            runtime = address.runtime_of(request.from_)
            self.routes.ask(runtime, link)
            self._by_link.add(runtime)
            objects.watches.watch(runtime, link)
        self._serve(request)

    def _serve(self, request: Message) -> None:
        """Handle a request to the object from a verified sender."""
        match request.type:
            case MessageType.SUBSCRIBE:
                self._subscribe(request)
            case MessageType.UNSUBSCRIBE:
                observer = output.observer_of(request)
                self._unverified.pop(observer, None)
                self.core.unsubscribe(observer, request.from_)
                self.settle()
                self._out.answer(request, Code.OK)
            case MessageType.READ:
                self._read(request)
            case _:
                self._out.refuse(request, Code.MALFORMED, "an object does not do this")

    def _subscribe(self, request: Message) -> None:
        observer = output.observer_of(request)
        if self.is_resting and not self.core.may_read(observer):
            self._out.refuse(request, Code.UNAVAILABLE, "its reporter is away")
            return
        body = read_body(request, bodies.Subscription)
        lease = self._out.config.lease if body.renews else None
        self.core.subscribe(request, observer, lease, body.version, trio.current_time())
        self.settle()

    def _read(self, request: Message) -> None:
        core = self.core
        if core.is_deleted:
            self._out.refuse(request, Code.NOT_FOUND, _NO_OBJECT)
        elif not core.may_read(request.from_):
            self._out.refuse(request, Code.UNAUTHENTICATED, "not an observer")
        elif "attribute" in request.body:
            self._read_attribute(request)
        elif "childrenAfter" in request.body:
            self._read_children(request)
        else:
            self._out.answer(request, Code.OK, value=self.shown())

    def shown(self) -> JsonObject:
        """Return the whole object with its children, as observers get it."""
        return write_body(self.children.with_children(self.core.snapshot))

    def _read_attribute(self, request: Message) -> None:
        snapshot = self.core.snapshot
        try:
            path = read_body(request, bodies.ReadAttribute).attribute
        except BadMessageError as exc:
            self._out.refuse(request, exc.code, exc.reason)
            return
        value = value_at(snapshot.data, path)
        if isinstance(value, Absence):
            self._out.refuse(request, Code.NOT_FOUND, f"the object has no {path}")
        else:
            self._out.answer(request, Code.OK, value=value, version=snapshot.version)

    def _read_children(self, request: Message) -> None:
        try:
            after = read_body(request, bodies.ReadChildren).after
        except BadMessageError as exc:
            self._out.refuse(request, exc.code, exc.reason)
            return
        page = self.children.page(after)
        value: JsonObject = self.shown() if page is None else {"childrenObjects": page}
        self._out.answer(request, Code.OK, value=value)

    def read_observers(self, request: Message) -> None:
        """Return the observers, to the reporter only."""
        if request.type is not MessageType.READ:
            self._out.refuse(request, Code.MALFORMED, "observers are read, and no more")
        elif request.from_ != self.reporter:
            self._out.refuse(request, Code.UNAUTHENTICATED, "only the reporter may")
        else:
            listed = bodies.ObserverList(self._list_version, self.core.observers)
            self._out.answer(request, Code.OK, value=write_body(listed))

    # --- the port of the routes ---------------------------------------------------------------

    def add_link(self, link: str) -> None:
        """Publish changes of the object also by a link."""
        for each in child.published_addresses(self._url):
            self._bus.add_link(each, link)

    def remove_link(self, link: str) -> None:
        """Stop to publish the object by a link."""
        for each in child.published_addresses(self._url):
            self._bus.remove_link(each, link)

    def set_reached(self, *, is_all: bool) -> None:
        """Note whether links reach all observers; if not, changes of children go to the node."""
        for each in child.children_addresses(self._url):
            self._bus.set_child_path(each, Elsewhere.NOWHERE if is_all else Elsewhere.BY_NODE)

    # --- the port of the core -----------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Trace a transition of a state machine of the object."""
        self._out.tracer.step(output.MANAGER, step)

    def row(self, row: RowChanged) -> None:
        """Trace a change of the observers, and notify the reporter of it (M-53)."""
        self._out.row(row)
        if row.table == _OBSERVERS and self._has_list and not self.core.is_deleted:
            self._list_version += 1
            operation = Operation.ADD if row.op is Op.ADD else Operation.REMOVE
            change = bodies.ObserversChange((row.val,), operation.value, self._list_version)
            to = f"{self._url}/{_OBSERVERS}"
            event = self._out.request(MessageType.UPDATE, to, write_body(change), self._url)
            self._bus.publish(event, frozenset({self._out.runtime}))

    def keep(self, change: stored.Keep) -> None:
        """Store a change, if the object is stored."""
        if self.is_stored:
            self._out.gate.keep(self._url, change)
            if isinstance(change, stored.Forgotten) and change.kind is stored.ObjectKept:
                self._out.gate.stored.discard(self._url)
                self.is_resting = False

    def written(self, snapshot: bodies.DataObject) -> None:
        """Trace a new version of the object, for a stored object once it is on disk."""
        digest = value_digest(snapshot.data) if self._out.tracer.hops else None
        self._trace(Op.WRITE, snapshot.version, digest)

    def _trace(self, op: Op, version: int | None = None, digest: str | None = None) -> None:
        """Trace an event of the object, after the earlier changes are on disk (I-D8)."""
        key, by = self._url, self.reporter
        fact = Fact(k=Kind.OBJ, op=op, key=key, version=version, by=by, digest=digest)
        self._out.when_stored(self._url, partial(self._out.trace, fact))

    def publish(self, change: bodies.Change) -> None:
        """Publish a change, and schedule its repetition."""
        self._objects.repeats.published(self.core.snapshot, change, trio.current_time())
        self.repeat(change)

    def repeat(self, change: bodies.Change) -> None:
        """Send a change to all observers again."""
        runtimes = frozenset(self.core.runtimes)
        # Also after the last observer has left: the node then knows that none is left (SC-32).
        if runtimes or self._was_observed:
            self._spread(MessageType.UPDATE, write_body(change), self._url, runtimes)

    def _spread(
        self, kind: MessageType, body: JsonObject, sender: str, runtimes: frozenset[str]
    ) -> None:
        message = self._out.request(kind, f"{self._url}/{child.CHANGES}", body, sender)
        self._out.publish(message, runtimes, self.routes.direct)

    def ask(self, request: Message, observer: str, question: int) -> None:
        """Ask the reporter about an observer in a task."""
        self._out.spawn(partial(self._ask, request, observer, question))

    async def _ask(self, waiting: Message, observer: str, question: int) -> None:
        """Forward an observer's subscription to the reporter, and apply its decision (M-39)."""
        wrapped = bodies.Wrapped(waiting.id, MessageType.SUBSCRIBE, observer, self._url)
        body = write_body(bodies.Forward(wrapped))
        # The id is made when the request is sent, as the order of tasks is random (I-T7).
        request = self._out.request(
            MessageType.FORWARD, self.reporter, body, self._url, waiting.identity
        )
        answer = await self._bus.request(request)
        if answer.code <= LAST_SUCCESS:
            self.core.accept(observer, question, trio.current_time())
        else:
            self.core.refuse(observer, _refusal_in(answer), question)
        self.settle()

    def grant(
        self, requests: Sequence[Message], terms: JsonObject, *, is_whole: bool = True
    ) -> None:
        """Grant subscriptions; the answers contain the whole object, unless the observer has it."""
        if is_whole:
            now, self._was_observed = trio.current_time(), True
            self._objects.repeats.observed(self._url, now)
            self._objects.signs.observed(self._url, now)
            terms = {"value": self.shown(), **terms}
        for request in requests:
            self._out.answer(request, Code.OK, **terms)

    def deny(self, requests: Sequence[Message], code: Code, why: str) -> None:
        """Refuse subscriptions of observers."""
        for request in requests:
            self._out.refuse(request, code, why)

    def invite(self, request: Message, observer: str) -> None:
        """Pass the invitation on to the observer."""
        body = read_body(request, bodies.InviteObservers)
        invitation = write_body(bodies.Invitation(request.from_, body.schema, body.value))
        sender, identity = f"{self._url}/{child.SUBSCRIPTION}", request.identity
        self._bus.send(
            self._out.request(MessageType.CREATE, observer, invitation, sender, identity)
        )

    def relay(self, requests: Sequence[Message], observer: str, code: int, why: str) -> None:
        """Answer all requests to invite an observer with its answer."""
        more = {"description": why} if why else {}
        for request in requests:
            self._out.answer(request, output.code_in_use(code), source=observer, **more)

    def cut_off(self, observer: str, manager: str, *, is_over: bool) -> None:
        """Stop delivery to an observer, without its cooperation (SYN-21).

        First the node stops delivery to its runtime, unless others observe there; then the sync
        manager there is notified, which still serves the others. An observer whose lease is over
        may still exist: it is asked to subscribe again (M-52).
        """
        out, url = self._out, self._url
        runtime = address.runtime_of(manager) if manager else None
        if runtime != out.runtime:
            path = bodies.CutPath((f"{url}/{child.CHANGES}",), observer, runtime, is_over or None)
            to = address.subscription_manager(out.domain)
            out.bus.send(out.request(MessageType.UNSUBSCRIBE, to, write_body(path)))
        if manager:
            back, expelled = bodies.ObjectBack(url), bodies.ObserverExpelled(url, observer)
            body = write_body(back if is_over else expelled)
            kind = MessageType.SUBSCRIBE if is_over else MessageType.UNSUBSCRIBE
            out.bus.send(out.request(kind, manager, body, f"{url}/{child.SUBSCRIPTION}"))

    def end(self, runtimes: tuple[str, ...]) -> None:
        """Notify all observers that the object is gone (M-47)."""
        self._trace(Op.DEL)
        self.renewal.end()
        self._objects.repeats.forget(self._url)
        self._objects.signs.forget(self._url)
        if runtimes:
            sender = f"{self._url}/{child.SUBSCRIPTION}"
            self._spread(MessageType.DELETE, {}, sender, frozenset(runtimes))

    def vacate(self) -> None:
        """Remove the object in a task, as its address belongs to another owner."""
        self._out.spawn(self.remove)


def _paths_of(url: str) -> tuple[str, ...]:
    """Return the addresses of an object that its node routes: itself, subscription, children."""
    return (url, f"{url}/{child.SUBSCRIPTION}", *child.children_addresses(url))


def _refusal_in(answer: Message) -> str:
    """Return why a reporter does not admit an observer."""
    if answer.code == Code.TIMEOUT:
        return "the reporter did not answer"
    why = reason_in(answer)
    if answer.code == Code.FORBIDDEN:
        return why or "the reporter refuses"
    return f"the reporter did not decide: {answer.code} {why}".rstrip()


class ReportedObjects:
    """All objects that components of this runtime report.

    Invitations are posted, not awaited, so that each provisional answer is seen.

    Args:
        out: The output of the sync manager.
        allocation: Allocates the addresses of data objects.
        registrar: Registers them in the domain registry.
        progress: Called by tasks that have changed the tables and continue.

    Attributes:
        reports: The objects, by their addresses.
        watches: The links to their observers.
        verifying: Numbers of requests that are being verified: True for subscriptions.
        repeats: When the last change of each object is published again.
        signs: When the digest of the children of each object is published.
        alarms: When the timer of each object is due; at an address of children: when some of them
            leave, or their removal is reported.
        permits: Limits the objects that are claimed at a node at a time.
        listener: Receiver of the messages to the objects.
    """

    def __init__(
        self,
        out: output.SyncOutput,
        allocation: AddressAllocation,
        registrar: Registrar,
        progress: Callable[[], None],
    ) -> None:
        self.out, self.registrar = out, registrar
        self.reports: Final[dict[str, Report]] = {}
        self.repeats, self.signs = RepeatsCore(), RepeatTimes()
        self.alarms: Final[Alarms[str]] = Alarms()
        self.watches: Final = output.LinkWatches(out, self._on_link)
        self.verifying = {True: 0, False: 0}
        self.permits: Final = trio.CapacityLimiter(limits.RENEWED_AT_ONCE)
        self.listener: ActorRef[Delivery]
        self._allocation = allocation
        self._progress = progress
        self._creating: list[str] = []
        self._restores = trio.CapacityLimiter(limits.RESTORES_AT_ONCE)

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Set the receiver of messages to the objects, and serve the stored ones (SYN-28)."""
        self.listener = listener
        for kept in self.out.gate.rest.rows(stored.ObjectKept):
            self._restore(kept)

    # --- the table --------------------------------------------------------------------------

    @property
    def reporters(self) -> set[str]:
        """The hyperties that report an object, or are about to; resting objects do not count."""
        active = [each for each in self.reports.values() if not each.is_resting]
        return {*self._creating, *(each.reporter for each in active)}

    def reporter_of(self, url: str) -> str | None:
        """Return the local reporter of an object; None: there is none."""
        report = self.reports.get(url)
        return None if report is None else report.children.reporter

    def find(self, to: str) -> Report | None:
        """Return the object of an address, or of the address of a part; None: there is none."""
        part = to.removesuffix(f"/{child.SUBSCRIPTION}").removesuffix(f"/{_OBSERVERS}")
        return self.reports.get(child.parent_of(to) or part)

    def _is_observed(self, url: str) -> bool:
        return bool(self.reports[url].core.observers)

    def _on_link(self, runtime: str, link: str | None) -> None:
        """Record the new link to a runtime, or that there is none; its observers ask again."""
        for url in sorted(self.reports):
            self.reports[url].routes.link_is(runtime, link)
        self.unwatch()

    def unwatch(self) -> None:
        """Stop to watch links that no observer has used."""
        if self.watches.watched:
            asked = {runtime for each in self.reports.values() for runtime in each.routes.asked}
            for runtime in set(self.watches.watched) - asked:
                self.watches.unwatch(runtime)

    # --- time -------------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return min(self.alarms.deadline(), self.repeats.deadline(), self.signs.deadline())

    def time_over(self) -> None:
        """Handle the timers of objects, digests and repetitions that are due."""
        now = trio.current_time()
        for key in self.alarms.due(now):
            if (report := self.reports.get(key)) is not None:
                report.core.time_over(now)
                report.settle()
            else:
                self.reports[child.object_of(key)].children.time_over()
        signed = self.signs.due(now, self._is_observed)
        if signed is not None:
            self.reports[signed].children.send_sign()
        repeated = self.repeats.due_change(now, self._is_observed)
        if repeated is not None:
            url, change = repeated
            self.reports[url].repeat(change)

    # --- begin ------------------------------------------------------------------------------

    def create(self, request: Message, wanted: bodies.CreateObject) -> None:
        """Create an object (M-32).

        Raises:
            BadMessageError: The schema is invalid, or the runtime has no store for it.
        """
        # First, as this refuses addresses of hyperties.
        scheme = scheme_for(wanted.schema, request.from_)
        if wanted.store and not self.out.gate.stores:
            raise BadMessageError(output.NO_STORE)
        self._creating.append(request.from_)
        self.out.spawn(partial(self._create, request, wanted, scheme))

    async def _create(self, request: Message, wanted: bodies.CreateObject, scheme: str) -> None:
        url = await self._allocate(scheme)
        self._creating.remove(request.from_)
        if isinstance(url, Refused):
            self.out.refuse(request, url.code, url.why)
            return
        value, now = wanted.value, trio.current_time() + self.out.config.clock_offset
        time = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
        created = bodies.DataObject(
            request.from_,
            self.out.runtime,
            value.data,
            url,
            name=value.name,
            schema=wanted.schema,
            resources=value.resources or (),
            created=time.replace("+00:00", "Z"),
            children_window=value.children_window,
        )
        report = Report(self, created, wanted.allow or (), is_public=bool(wanted.public))
        self.reports[url] = report
        if wanted.store:
            self.out.gate.stored.add(url)
        report.open(created)
        report.core.begin()
        self._progress()
        refusal = await report.register(created)
        if report.core.is_deleted:
            self.out.refuse(request, Code.GONE, "its reporter left meanwhile")
        elif refusal is None:
            await self.out.registry.show_local(url)
            names: list[Json] = [*child.child_resources(url)]
            extra: JsonObject = {"childrenResources": names} if names else {}
            self.out.answer(request, Code.OK, resource=url, **extra)
        else:
            # An object that is not registered is removed (SYN-03).
            self.out.refuse(request, refusal.code, refusal.why)
            report.delete(report.reporter)

    async def _allocate(self, scheme: str) -> str | Refused:
        """Return a new address for an object, after setting its routes at the node (SYN-02)."""
        try:
            (url,) = await self._allocation.allocate(scheme, 1)
        except AllocationError as error:
            return Refused(output.code_in_use(error.code), str(error))
        except BadMessageError as error:
            return Refused(Code.BAD_BACKEND, f"no address: {error.reason}")
        except ActorStoppedError:
            return Refused(Code.GONE, _CLOSED)
        answer = await self.set_paths(MessageType.SUBSCRIBE, _paths_of(url))
        if answer.code <= LAST_SUCCESS:
            return url
        await self.free(url)
        return Refused(
            output.code_in_use(answer.code), f"no path to the object: {reason_in(answer)}"
        )

    async def set_paths(self, kind: MessageType, paths: tuple[str, ...]) -> Message:
        """Set or remove the routes to objects at the node; return its answer."""
        body = write_body(Path(paths, self.out.runtime))
        to = address.subscription_manager(self.out.domain)
        return await self.out.bus.request(self.out.request(kind, to, body))

    async def free(self, url: str) -> None:
        """Give an address back."""
        # Otherwise the node frees it at the end of the session (I-A7).
        with suppress(AllocationError, ActorStoppedError):
            await self._allocation.free((url,))

    def renew_paths(self, domain: str, done: Reply[None]) -> None:
        """Claim the objects again, and set their routes, at a node that has lost its state."""
        reports = [*self.reports.values()] if domain == self.out.domain else []
        self.out.spawn(partial(self._renew_all, reports, done))

    async def _renew_all(self, reports: list[Report], done: Reply[None]) -> None:
        async with trio.open_nursery() as nursery:
            for report in reports:
                nursery.start_soon(report.renewal.run)
        done.send(None)

    # --- stored objects -----------------------------------------------------------------------

    def _restore(self, kept: stored.ObjectKept) -> None:
        """Answer requests to a stored object while its reporter is away."""
        url, rest = kept.url, self.out.gate.rest
        guests, observers = rest.rows(stored.GuestKept, url), rest.rows(stored.ObserverKept, url)
        allowed = tuple(each.guest for each in guests if each.may)
        expelled = tuple(each.guest for each in guests if not each.may)
        self.out.gate.stored.add(url)
        report = Report(self, kept.value, allowed, expelled, is_public=kept.is_public)
        report.is_resting = True
        self.reports[url] = report
        children = rest.find(stored.ChildrenKept, url)
        snapshot = attrs.evolve(
            kept.value, children_objects=None if children is None else children.value
        )
        report.open(snapshot)
        report.core.restore(observers, trio.current_time())
        report.settle()
        managers = {each.manager for each in observers} - {self.out.bus.url}
        self.out.spawn(partial(self._announce, report, snapshot, sorted(managers)))

    async def _announce(
        self, report: Report, snapshot: bodies.DataObject, managers: list[str]
    ) -> None:
        """Claim and register a restored object, with repetitions, and notify its observers."""
        if not await report.renewal.run():
            return
        refusal = await report.register(snapshot)
        if refusal is not None:
            _log.warning("stored object is not registered", url=snapshot.url, why=refusal.why)
        if report.core.is_deleted:
            return
        await self.out.registry.show_local(snapshot.url)
        async with trio.open_nursery() as nursery:
            for manager in managers:
                nursery.start_soon(self._call_back, snapshot.url, manager)

    async def _call_back(self, url: str, manager: str) -> None:
        """Notify a sync manager that an object is back; remove observers that it does not list."""
        async with self._restores:
            for tries in range(limits.RESTORE_TRIES):
                if url not in self.reports:
                    # The object was deleted meanwhile.
                    return
                body, sender = write_body(bodies.ObjectBack(url)), f"{url}/{child.SUBSCRIPTION}"
                answer = await self.out.bus.request(
                    self.out.request(MessageType.SUBSCRIBE, manager, body, sender)
                )
                if answer.code <= LAST_SUCCESS:
                    break
                await trio.sleep(READ_PAUSE * 2**tries)
            else:
                return
        listed, report = answer.body.get("value"), self.reports.get(url)
        present = {*map(str, listed if isinstance(listed, list) else ())}
        if report is not None:
            for observer in report.core.observers:
                if observer not in present:
                    report.core.unsubscribe(observer, manager)
            report.settle()
        self._progress()

    def resume(self, request: Message, body: bodies.Resume) -> None:
        """Return its stored objects to a reporter, children included (M-51)."""
        reports = [each for each in self.reports.values() if each.is_meant(request.from_, body)]
        if not reports:
            self.out.refuse(request, Code.NOT_FOUND, output.NOTHING_STORED)
        elif not all(report.is_resting for report in reports):
            self.out.refuse(request, Code.CONFLICT, "it is reported already")
        else:
            for report in reports:
                report.is_resting = False
            self.out.answer(request, Code.OK, value=[report.shown() for report in reports])

    # --- requests of reporters -----------------------------------------------------------------

    def delete(self, request: Message, body: bodies.EndReport) -> None:
        """Delete an object, or one attribute of it, which is published as a change (M-46)."""
        by, url, attribute = request.from_, body.resource, body.attribute
        if attribute is not None:
            check_path(attribute)
            self.act(request, url, lambda core: core.remove(by, attribute))
        elif body.child is not None:
            self._delete_child(request, url, body.child)
        elif body.store and url in self.reports and self.reports[url].rest(by):
            self.out.answer(request, Code.OK)
        elif (report := self._find_writable(request, url)) is not None:
            report.delete(by, request)

    def _delete_child(self, request: Message, url: str, name: str) -> None:
        report = self._find_writable(request, url)
        if report is None:
            return
        if report.reporter == request.from_:
            refusal = report.children.end(name)
        else:
            refusal = Refused(Code.FORBIDDEN, "only the reporter deletes the children of others")
        if refusal is None:
            self.out.answer(request, Code.OK)
        else:
            self.out.refuse(request, refusal.code, refusal.why)

    def act(
        self, request: Message, url: str, act: Callable[[ReportedObject], Refused | None]
    ) -> None:
        """Call a method of an object's core for its reporter, and answer the request."""
        report = self._find_writable(request, url)
        if report is not None:
            before = report.core.snapshot.version
            report.answer(request, act(report.core), before)

    def invite(self, request: Message, body: bodies.InviteObservers) -> None:
        """Invite one observer (M-33), whose answers are passed on as answers to the request."""
        (observer,) = body.authorise
        report = self._find_writable(request, body.resource)
        if report is not None:
            refusal = report.core.invite(request, observer, trio.current_time())
            report.settle()
            if refusal is not None:
                self.out.refuse(request, refusal.code, refusal.why)

    def _find_writable(self, request: Message, url: str) -> Report | None:
        """Return the object of a request; refuse the request if the object cannot be changed."""
        report = self.reports.get(url)
        if report is None:
            self.out.refuse(request, Code.NOT_FOUND, _NO_OBJECT)
        return None if report is None or report.is_stuck(request) else report

    # --- messages of observers -----------------------------------------------------------------

    def on_answer(self, answer: Message) -> None:
        """Handle an answer to an invitation (M-34), or to the notice that an object is gone.

        Answers to other requests go to the tasks that have sent them.
        """
        report = self.find(answer.to)
        if report is None:
            return
        url = report.core.snapshot.url
        if answer.from_ != f"{url}/{child.CHANGES}":
            now, why = trio.current_time(), reason_in(answer)
            report.core.take_answer(answer.from_, answer.code, why, now)
            report.settle()
        elif answer.is_final:
            # A runtime answers for its own observers; a router, which names none, for the others.
            source = answer.body.get("source")
            report.core.notified({source} if isinstance(source, str) else None)
            report.settle()

    def on_request(self, report: Report, request: Message) -> None:
        """Handle a message to one of the objects; ignore events to its list of observers."""
        url = report.core.snapshot.url
        if request.is_request and report.is_stuck(request):
            return
        if child.parent_of(request.to) == url:
            report.children.on_message(request)
        elif request.to != f"{url}/{_OBSERVERS}":
            report.receive(request)
        elif request.is_request:
            report.read_observers(request)

    # --- end --------------------------------------------------------------------------------

    def leave(self, reporter: str) -> None:
        """Delete the objects of a reporter that leaves, except stored ones."""
        for report in list(self.reports.values()):
            is_own = report.reporter == reporter and not report.core.is_deleted
            if is_own and not report.rest(reporter):
                report.delete(reporter)

    def end_all(self) -> None:
        """End all subscriptions and invitations without sending messages."""
        for report in self.reports.values():
            report.core.end_all()
