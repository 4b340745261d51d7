"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47).

After a restart the node may have forgotten addresses and the paths of observers. So the sync
manager of each observer is notified that the object is back (SYN-25) and subscribes again. The
object is served meanwhile, and given to its reporter when that resumes it (SYN-28, M-51).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, assert_never, final

import trio

from actors.kit.supervision.actor import ActorRef, Reply
from actors.kit.supervision.delivery import Delivery
from actors.runtime.sync.context import Spawn, SyncContext, observer_of
from actors.runtime.sync.registration import CHANGES, SUBSCRIPTION, ObjectRegistrations, scheme_for
from actors.runtime.sync.reporter.children import ReportedChildren
from actors.runtime.sync.reporter.links import ObserverLinks
from actors.runtime.sync.reporter.pending import (
    OBSERVERS,
    Decision,
    Invitations,
    ObserverLists,
    PendingSubscriptions,
    allowed_observers,
    notification_in,
    trace_allowed,
)
from actors.runtime.sync.reporter.stored import NO_STORE, StoredReports
from fsm.effects import Refused, RowChanged
from fsm.engine import Step
from fsm.registry.changes import LocalGone, LocalLive
from fsm.sync import reporter_io as core
from fsm.sync.leases import LeasesCore, RepeatsCore
from fsm.sync.reporter import ReporterCore
from fsm.sync.value.value import check_path
from specs.bodies.object import AllowObserver, ExpelObserver, Resume
from specs.bodies.sync import (
    Change,
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

__all__ = ["ReportedObjects"]


@final
class ReportedObjects:
    """The reporter's end of every object created here.

    Args:
        context: What the sync manager may use.
        spawn: Runs a task of it.
        progress: Called by tasks when something has changed, and they go on.

    Attributes:
        children: Their children.
    """

    def __init__(self, context: SyncContext, spawn: Spawn, progress: Callable[[], None]) -> None:
        self._context = context
        self._spawn = spawn
        self._progress = progress
        self._objects: dict[str, ReporterCore] = {}
        self._deleting: dict[str, Message | None] = {}
        self._creating: list[str] = []
        self._was_observed: set[str] = set()
        self._repeats, self._leases = RepeatsCore(), LeasesCore()
        self._registrations = ObjectRegistrations(context, lambda url: self._find(url) is not None)
        self._links = ObserverLinks(context, spawn)
        self.children = ReportedChildren(context, self._links.direct)
        self._lists = ObserverLists(context)
        self._pending = PendingSubscriptions(context, spawn, self._on_decision)
        self._invitations = Invitations(context)
        self._stored = StoredReports(context, self._registrations)
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let all objects' addresses lead to `listener`; serve what was stored (SYN-28)."""
        self._listener = listener
        for back in self._stored.restore():
            self._objects[back.shown.url] = back.reported
            self._listen(back.shown)
            self._perform(back.shown.url, None, back.effects)
            self._spawn(partial(self._stored.announce, back, self._keep_observers))

    def _listen(self, thing: DataObject) -> None:
        """Let the object's own address, its observers and its children lead to the listener."""
        self._lists.open(thing, self._listener)
        self._registrations.listen(thing.url, self._listener)
        self.children.open(thing, self._listener)

    # --- the table --------------------------------------------------------------------------

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the reported objects."""
        return tuple(self._objects)

    @property
    def reporters(self) -> set[str]:
        """The hyperties that report something, or are about to; a resting object has none."""
        is_resting = self._stored.is_resting
        active = [each for url, each in self._objects.items() if not is_resting(url)]
        return {*self._creating, *(each.snapshot.reporter for each in active)}

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or one of its parts."""
        part = address.removesuffix(f"/{SUBSCRIPTION}").removesuffix(f"/{OBSERVERS}")
        url = parent_of(address) or part
        return url if url in self._objects else None

    def _find(self, url: str) -> ReporterCore | None:
        """Return an object that is reported here and not deleted."""
        reported = self._objects.get(url)
        return None if reported is None or reported.is_deleted else reported

    def _is_observed(self, url: str) -> bool:
        reported = self._find(url)
        return reported is not None and bool(reported.observers)

    # --- time -------------------------------------------------------------------------------

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        parts = (self._invitations, self._repeats, self.children, self._leases)
        return min(part.deadline() for part in parts)

    def time_over(self) -> None:
        """Do what is due."""
        now = trio.current_time()
        self._invitations.time_over()
        self.children.time_over(self._is_observed)
        for url, observer in self._leases.due(now):
            self._feed(url, core.LeaseOver(observer))
        repeated = self._repeats.due(now, self._is_observed)
        if repeated is not None:
            self._publish(repeated.url, repeated.change)

    # --- begin ------------------------------------------------------------------------------

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
        self._spawn(partial(self._create, request, wanted))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        created = await self._registrations.find(request, wanted)
        self._creating.remove(request.from_)
        if created is None:
            return
        reported = self._objects[created.url] = ReporterCore(created, allowed_observers(wanted))
        if wanted.store:
            self._stored.begin(reported)
        self._listen(created)
        self._context.written(created)
        trace_allowed(self._context, created, reported.guests)
        self._progress()
        refusal = await self._registrations.register(created)
        await self._registered(request, created.url, refusal)

    async def _registered(self, request: Message, url: str, refusal: Refused | None) -> None:
        """Answer the reporter; an object that is not registered is taken down (SYN-03)."""
        reported = self._find(url)
        if reported is None:
            self._context.refuse(request, Code.GONE, "its reporter left meanwhile")
        elif refusal is None:
            await self._context.registry.tell(LocalLive(url))
            names: list[Json] = [*child_resources(url)]
            extra: JsonObject = {"childrenResources": names} if names else {}
            self._context.answer(request, Code.OK, resource=url, **extra)
        else:
            self._context.refuse(request, refusal.code, refusal.why)
            self._delete(url, reported)

    def resume(self, request: Message, body: Resume) -> None:
        """Give a reporter the objects that it had (M-51).

        Args:
            request: The request.
            body: Body of the request.
        """
        self._stored.resume(request, body, self._objects, self.children.with_children)

    def _keep_observers(self, url: str, manager: str, observers: frozenset[str]) -> None:
        """Let the former observers of a resumed object go."""
        reported = self._objects.get(url)
        for observer in () if reported is None else reported.observers:
            if observer not in observers:
                self._feed(url, core.UnsubscribeAsked(observer, manager))
        self._progress()

    def renew_paths(self, domain: str, done: Reply[None]) -> None:
        """Claim the objects, and set their paths, that the node has forgotten."""
        is_own = domain == self._context.domain
        self._spawn(partial(self._renew_all, self.urls if is_own else (), done))

    async def _renew_all(self, urls: tuple[str, ...], done: Reply[None]) -> None:
        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(self._registrations.renewals.renew, url)
        done.send(None)

    # --- what reporters ask -----------------------------------------------------------------

    def change(self, request: Message, body: ChangeObject) -> None:
        """Change an object on behalf of its reporter, and publish it (M-40).

        Args:
            request: The request.
            body: Body of the request.
        """
        check_path(body.attribute)
        self._ask(body.resource, request, core.ChangeAsked(request.from_, body))

    def delete(self, request: Message, body: EndReport) -> None:
        """Delete an object, or one attribute of it, which is published as a change (M-46).

        Args:
            request: The request.
            body: Body of the request.
        """
        url, by = body.resource, request.from_
        if body.attribute is not None:
            check_path(body.attribute)
            self._ask(url, request, core.RemovalAsked(by, body.attribute))
        elif body.store and self._stored.rest(url, by):
            self._context.answer(request, Code.OK)
        else:
            self._ask(url, request, core.DeleteAsked(by))

    def invite(self, request: Message, body: InviteObservers) -> None:
        """Invite one observer (M-33).

        Args:
            request: The request.
            body: Body of the request.
        """
        url, (observer,) = body.resource, body.authorise
        reported = self._find(url)
        if reported is None:
            self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.snapshot.reporter != request.from_:
            self._context.refuse(request, Code.FORBIDDEN, "only the reporter invites")
        elif self._ask(url, request, core.Authorised(observer), (Op.ADD, observer)):
            self._invitations.invite(request, body)

    def allow(self, request: Message, body: AllowObserver) -> None:
        """Let an observer in without a question, on behalf of the reporter.

        Args:
            request: The request.
            body: Body of the request.
        """
        allowing = core.AllowAsked(request.from_, body.observer)
        self._ask(body.resource, request, allowing, (Op.ADD, body.observer))

    def expel(self, request: Message, body: ExpelObserver) -> None:
        """Expel an observer, on behalf of the reporter (SYN-21).

        Args:
            request: The request.
            body: Body of the request.
        """
        expelling = core.ExpelAsked(request.from_, body.observer)
        self._ask(body.resource, request, expelling, (Op.DEL, body.observer))

    def _ask(
        self,
        url: str,
        request: Message,
        asked: core.ReporterInput,
        allowance: tuple[Op, str] | None = None,
    ) -> bool:
        """Do what a reporter wants, and answer it; return whether it is done.

        Args:
            url: Address of the object.
            request: The request.
            asked: What it means for the core.
            allowance: What becomes of the allowance of which observer; it is traced (I-D9).
        """
        reported = self._objects.get(url)
        if reported is None:
            self._context.refuse(request, Code.NOT_FOUND, "no such object")
            return False
        if self._stored.refused(request, url):
            return False
        effects = reported.feed(asked)
        is_done = not any(isinstance(each, Refused) for each in effects)
        if allowance is not None and is_done:
            op, observer = allowance
            self._context.allowed_observer(op, url, observer, request.from_)
        self._perform(url, request, effects)
        return is_done

    # --- what observers ask -----------------------------------------------------------------

    def on_answer(self, url: str, answer: Message) -> None:
        """Take an answer to an invitation (M-34), or to the word that an object is gone.

        Args:
            url: Address of the object.
            answer: The answer.
        """
        if answer.from_ != f"{url}/{CHANGES}":
            self._invitations.take_answer(url, answer)
        elif answer.is_final:
            self._feed(url, notification_in(answer))

    def on_request(self, url: str, request: Message) -> None:
        """Take a request to one of the objects; to its observers there are no events but ours.

        Args:
            url: Address of the object.
            request: The request.
        """
        reported = self._objects[url]
        if request.is_request and self._stored.refused(request, url):
            return
        if parent_of(request.to) == url:
            self.children.on_message(reported, request)
        elif request.to != f"{url}/{OBSERVERS}":
            if not self._links.verifies(url, request, self._on_verified):
                self._serve(url, reported, request)
        elif request.is_request:
            self._lists.on_request(url, reported, request)

    def _on_verified(self, url: str, request: Message) -> None:
        """Serve a request that came by a link, and is from its stated sender (I-D1, S3)."""
        reported = self._objects.get(url)
        if reported is not None:
            self._serve(url, reported, request)
        elif request.type is MessageType.SUBSCRIBE:
            self._context.refuse(request, Code.NOT_FOUND, "no such object")
        else:
            self._context.refuse(request, Code.UNAVAILABLE, "it was here before")

    def _serve(self, url: str, reported: ReporterCore, request: Message) -> None:
        match request.type:
            case MessageType.SUBSCRIBE:
                self._subscribe(url, reported, request)
            case MessageType.UNSUBSCRIBE:
                left = core.UnsubscribeAsked(observer_of(request), request.from_)
                effects = reported.feed(left)
                self._links.on_left(url, left.observer)
                self._perform(url, request, effects)
                self._context.answer(request, Code.OK)
            case MessageType.READ:
                self._read(reported, request)
            case _:
                self._context.refuse(request, Code.MALFORMED, "an object does not do this")

    def _subscribe(self, url: str, reported: ReporterCore, request: Message) -> None:
        observer = observer_of(request)
        if self._stored.is_kept_out(request, observer, reported):
            return
        if self._pending.add(url, observer, request):
            body = read_body(request, Subscription)
            lease = self._context.lease if body.renews else None
            asked = core.SubscribeAsked(observer, request.from_, lease, body.version)
            self._perform(url, request, reported.feed(asked))
        else:
            why = "its requests wait for the reporter already"
            self._context.refuse(request, Code.TOO_LARGE, why)

    def _on_decision(self, url: str, decision: Decision) -> None:
        """Take the reporter's decision about an observer."""
        self._feed(url, decision)

    def _read(self, reported: ReporterCore, request: Message) -> None:
        if reported.is_deleted:
            self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif not reported.may_read(request.from_):
            self._context.refuse(request, Code.UNAUTHENTICATED, "not an observer")
        elif "attribute" in request.body:
            self._read_attribute(reported.snapshot, request)
        else:
            shown = self.children.with_children(reported.snapshot)
            self._context.answer(request, Code.OK, value=write_body(shown))

    def _read_attribute(self, thing: DataObject, request: Message) -> None:
        try:
            path = read_body(request, ReadAttribute).attribute
        except BadMessageError as exc:
            self._context.refuse(request, exc.code, exc.reason)
            return
        found = value_at(thing.data, path)
        if isinstance(found, Absence):
            self._context.refuse(request, Code.NOT_FOUND, f"the object has no {path}")
        else:
            self._context.answer(request, Code.OK, value=found, version=thing.version)

    # --- what is done -----------------------------------------------------------------------

    def _feed(self, url: str, happened: core.ReporterInput) -> None:
        """Let something happen to an object without an answer."""
        reported = self._objects.get(url)
        if reported is not None:
            self._perform(url, None, reported.feed(happened))

    def _perform(
        self, url: str, request: Message | None, effects: list[core.ReporterEffect]
    ) -> None:
        """Do what the core of an object says; `request`, if there is one, is what it answers."""
        reported = self._objects[url]
        self._stored.note(url, reported, effects)
        self._links.settle(url, reported)
        for effect in effects:
            match effect:
                case Step():
                    self._context.step(effect)
                case core.Obeyed() if request is not None:
                    self._context.answer(request, Code.OK)
                case Refused(code, why) if request is not None:
                    self._context.refuse(request, code, why)
                case core.Obeyed() | Refused():
                    pass
                case core.Published(change):
                    self._context.written(reported.snapshot)
                    self._repeats.published(reported.snapshot, change, trio.current_time())
                    self._publish(url, change)
                    if request is not None:
                        self._context.answer(request, Code.OK, version=change.version)
                case core.Deleted(runtimes):
                    self._end(url, request, runtimes)
                case core.Vacated():
                    self._spawn(partial(self._remove, url, self._deleting.pop(url)))
                case _:
                    self._about_observer(url, reported, effect)

    def _about_observer(
        self, url: str, reported: ReporterCore, effect: core.ObserverEffect
    ) -> None:
        match effect:
            case RowChanged():
                self._note_lease(url, effect.val)
                self._context.row(effect)
                if not reported.is_deleted:
                    self._lists.on_row(url, effect)
            case core.ReporterAsked():
                self._pending.ask(reported.snapshot, effect)
            case core.Granted() | core.Denied():
                self._note_lease(url, effect.observer)
                self._repeats.observed(url, trio.current_time())
                if isinstance(effect, core.Granted):
                    self._was_observed.add(url)
                self._pending.answer(url, self.children.whole(effect))
            case core.Renewed():
                self._note_lease(url, effect.observer)
                self._pending.answer(url, effect)
            case core.CutOff() | core.Expired():
                self._lists.cut_off(url, effect)
            case _:
                assert_never(effect)

    def _note_lease(self, url: str, observer: str) -> None:
        """Begin the lease of an observer, or end it with the observer."""
        life = self._objects[url].lease_of(observer)
        if life is None:
            self._leases.end(url, observer)
        else:
            self._leases.begin(url, observer, life, trio.current_time())

    def _publish(self, url: str, change: Change) -> None:
        """Send a change to all observers of an object."""
        runtimes = frozenset(self._objects[url].runtimes)
        # Also after the last observer has left: the node knows that there are no observers (SC-32).
        if runtimes or url in self._was_observed:
            body, to = write_body(change), f"{url}/{CHANGES}"
            update = self._context.request(MessageType.UPDATE, to, body, url)
            self._context.publish(update, runtimes, self._links.direct(url))

    # --- end --------------------------------------------------------------------------------

    def leave(self, reporter: str) -> None:
        """Delete what a reporter reports: it is leaving."""
        for url, reported in list(self._objects.items()):
            if reported.snapshot.reporter != reporter or reported.is_deleted:
                continue
            if not self._stored.rest(url, reporter):
                self._delete(url, reported)

    def end_all(self) -> None:
        """End every subscription and invitation without a word: time is over."""
        for url, reported in self._objects.items():
            self._invitations.end_all(url)
            deleting = core.DeleteAsked(reported.snapshot.reporter)
            for effect in (*reported.feed(deleting), *reported.feed(core.ObserversNotified())):
                if isinstance(effect, Step):
                    self._context.step(effect)

    def _delete(self, url: str, reported: ReporterCore) -> None:
        self._feed(url, core.DeleteAsked(reported.snapshot.reporter))

    def _end(self, url: str, request: Message | None, runtimes: tuple[str, ...]) -> None:
        """Notify all observers of an object that it is gone (M-47)."""
        self._deleting[url] = request
        self._context.deleted(url, self._objects[url].snapshot.reporter)
        self._invitations.withdraw(url)
        if runtimes:
            sender, to = f"{url}/{SUBSCRIPTION}", f"{url}/{CHANGES}"
            gone = self._context.request(MessageType.DELETE, to, {}, sender)
            self._context.publish(gone, frozenset(runtimes), self._links.direct(url))

    async def _remove(self, url: str, request: Message | None) -> None:
        """Take everything of an object down, at the node, too, and answer its reporter."""
        # Not before: what observers say of the end finds the object where it was.
        await self._context.registry.tell(LocalGone(url))
        thing = self._objects[url].snapshot
        self._lists.close(url, self._listener)
        self.children.close(thing, self._listener)
        await self._registrations.leave(url, self._listener)
        del self._objects[url]
        self._links.forget(url)
        self._repeats.forget(url)
        self._was_observed.discard(url)
        self._context.ids.forget(url, f"{url}/{SUBSCRIPTION}")
        if request is not None:
            self._context.answer(request, Code.OK)
