"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47)."""

from functools import partial
from typing import assert_never, final

import trio

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync_answers import decision_in, silence, told_by
from actors.runtime.sync_invitations import Invitations
from actors.runtime.sync_place import CHANGES, SUBSCRIPTION, ObjectPlaces
from actors.runtime.sync_terms import (
    Decided,
    ObjectReady,
    ObjectRemoved,
    Spawn,
    SyncContext,
    Tell,
    observer_of,
)
from fsm.cores import data_object_terms as core
from fsm.cores.data_object import ReporterCore
from fsm.cores.effects import RowChanged
from fsm.engine import Step
from specs.body_object import Forward, Wrapped
from specs.body_sync import (
    Change,
    ChangeObject,
    CreateObject,
    InviteObservers,
    ObjectName,
)
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body, write_body

__all__ = ["ReportedObjects"]


@final
class ReportedObjects:
    """The reporter's end of every object created here."""

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._cores: dict[str, ReporterCore] = {}
        self._subscribing: dict[tuple[str, str], list[Message]] = {}
        self._creating: list[str] = []
        self._deleting: dict[str, Message | None] = {}
        self._invitations = Invitations(context)
        self._places = ObjectPlaces(context)
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let all objects' addresses lead to `listener`."""
        self._listener = listener

    @property
    def is_empty(self) -> bool:
        """Whether nothing is reported here, nor will be of what was asked for."""
        return not self._cores and not self._creating

    @property
    def reporters(self) -> set[str]:
        """Who reports something, or is about to."""
        return {*self._creating, *(each.snapshot.reporter for each in self._cores.values())}

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return self._invitations.deadline()

    async def time_over(self) -> None:
        """Do what is due."""
        await self._invitations.silence_ended()

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or its subscription address."""
        url = address.removesuffix(f"/{SUBSCRIPTION}")
        return url if url in self._cores else None

    # --- create and invite --------------------------------------------------------------

    def create(self, request: Message) -> None:
        """Create an object (M-32)."""
        wanted = read_body(request, CreateObject)
        self._creating.append(request.from_)
        self._spawn(partial(self._create, request, wanted))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        created = await self._places.find(request, wanted)
        await self._tell(ObjectReady(request, created))

    def renew_paths(self, domain: str) -> None:
        """Claim the objects, and set their paths, that the node has forgotten."""
        if domain == self._context.domain:
            for url in self._cores:
                self._spawn(partial(self._places.renew, url))

    async def ready(self, done: ObjectReady) -> None:
        """Take a new object in and answer its reporter."""
        self._creating.remove(done.request.from_)
        if done.created is None:
            return
        url = done.created.url
        self._cores[url] = ReporterCore(done.created)
        await self._places.listen(url, self._listener)
        self._context.written(done.created)
        await self._context.answer(done.request, Code.OK, resource=url)

    async def invite(self, request: Message) -> None:
        """Invite one observer (M-33)."""
        body = read_body(request, InviteObservers)
        reported = self._cores.get(body.resource)
        if reported is None or reported.is_deleted:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.snapshot.reporter != request.from_:
            await self._context.refuse(request, Code.FORBIDDEN, "only the reporter invites")
        else:
            invited = core.Authorised(body.authorise[0])
            await self._perform(body.resource, request, reported.feed(invited))
            await self._invitations.send(request, body)

    async def answered(self, url: str, answer: Message) -> None:
        """Take an answer to an invitation (M-34), or to the word that an object is gone."""
        if answer.from_ != f"{url}/{CHANGES}":
            await self._invitations.answered(url, answer)
        elif answer.is_final:
            await self._perform(url, None, self._cores[url].feed(told_by(answer)))

    # --- observers ----------------------------------------------------------------------

    async def asked(self, url: str, request: Message) -> None:
        """Take a request to one of the objects."""
        reported = self._cores[url]
        match request.type:
            case MessageType.SUBSCRIBE:
                observer = observer_of(request)
                self._subscribing.setdefault((url, observer), []).append(request)
                asked = core.SubscribeAsked(observer, request.from_)
                await self._perform(url, request, reported.feed(asked))
            case MessageType.UNSUBSCRIBE:
                left = core.UnsubscribeAsked(observer_of(request), request.from_)
                await self._perform(url, request, reported.feed(left))
                await self._context.answer(request, Code.OK)
            case MessageType.READ:
                await self._read(reported, request)
            case _:
                await self._context.refuse(request, Code.MALFORMED, "an object does not do this")

    async def _read(self, reported: ReporterCore, request: Message) -> None:
        if reported.is_deleted:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.may_read(request.from_):
            await self._context.answer(request, Code.OK, value=write_body(reported.snapshot))
        else:
            await self._context.refuse(request, Code.UNAUTHENTICATED, "not an observer")

    async def decided(self, done: Decided) -> None:
        """Take the reporter's decision about an observer."""
        reported = self._cores.get(done.url)
        if reported is not None:
            await self._perform(done.url, None, reported.feed(done.decision))

    def _question(self, url: str, observer: str) -> Message:
        """Write what the reporter is asked, as if the observer had asked it itself (M-39)."""
        asked, reporter = self._subscribing[url, observer][0], self._cores[url].snapshot.reporter
        body = Forward(Wrapped(asked.id, MessageType.SUBSCRIBE, observer, url))
        return self._context.request(MessageType.FORWARD, reporter, write_body(body), url)

    async def _ask_reporter(self, url: str, asked: core.ReporterAsked, asking: Message) -> None:
        observer = asked.observer
        decision = silence(observer)
        with trio.move_on_after(asked.patience):
            decision = decision_in(observer, await self._context.bus.request(asking))
        await self._tell(Decided(url, decision))

    # --- changes and the end --------------------------------------------------------------

    async def change(self, request: Message) -> None:
        """Change an object on behalf of its reporter, and publish it (M-40)."""
        body = read_body(request, ChangeObject)
        await self._feed(body.resource, request, core.ChangeAsked(request.from_, body))

    async def delete(self, request: Message) -> None:
        """Delete an object (M-46)."""
        url = read_body(request, ObjectName).resource
        await self._feed(url, request, core.DeleteAsked(request.from_))

    async def _feed(self, url: str, request: Message, happened: core.ReporterInput) -> None:
        reported = self._cores.get(url)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        else:
            await self._perform(url, request, reported.feed(happened))

    async def _perform(
        self, url: str, request: Message | None, effects: list[core.ReporterEffect]
    ) -> None:
        for effect in effects:
            match effect:
                case Step():
                    self._context.step(effect)
                case RowChanged():
                    self._context.row(effect)
                case core.Granted() | core.Denied():
                    await self._answer_subscription(url, effect)
                case core.ReporterAsked():
                    asking = self._question(url, effect.observer)
                    self._spawn(partial(self._ask_reporter, url, effect, asking))
                case core.Published() | core.Refused():
                    await self._answer_reporter(url, request, effect)
                case core.Deleted() | core.Vacated():
                    await self._end(url, request, effect)
                case _:
                    assert_never(effect)

    async def _answer_subscription(self, url: str, effect: core.Granted | core.Denied) -> None:
        for request in self._subscribing.pop((url, effect.observer), ()):
            match effect:
                case core.Granted():
                    await self._context.answer(request, Code.OK, value=write_body(effect.snapshot))
                case core.Denied():
                    await self._context.refuse(request, effect.code, effect.why)
                case _:
                    assert_never(effect)

    async def _answer_reporter(
        self, url: str, request: Message | None, effect: core.Published | core.Refused
    ) -> None:
        match effect:
            case core.Published(change):
                self._context.written(self._cores[url].snapshot)
                await self._publish(url, change)
                if request is not None:
                    await self._context.answer(request, Code.OK, version=change.version)
            case core.Refused(code, why):
                if request is not None:
                    await self._context.refuse(request, code, why)
            case _:
                assert_never(effect)

    async def _publish(self, url: str, change: Change) -> None:
        runtimes = frozenset(self._cores[url].runtimes)
        if runtimes:
            body, to = write_body(change), f"{url}/{CHANGES}"
            update = self._context.request(MessageType.UPDATE, to, body, url)
            await self._context.bus.publish(update, runtimes)

    # --- the end ------------------------------------------------------------------------

    async def _end(
        self, url: str, request: Message | None, effect: core.Deleted | core.Vacated
    ) -> None:
        match effect:
            case core.Deleted(runtimes):
                self._deleting[url] = request
                await self._invitations.object_gone(url)
                if runtimes:
                    sender = f"{url}/{SUBSCRIPTION}"
                    gone = self._context.request(MessageType.DELETE, f"{url}/{CHANGES}", {}, sender)
                    await self._context.bus.publish(gone, frozenset(runtimes))
            case core.Vacated():
                self._spawn(partial(self._remove, url, self._deleting.pop(url)))
            case _:
                assert_never(effect)

    async def _remove(self, url: str, request: Message | None) -> None:
        await self._places.leave(url, self._listener)
        await self._tell(ObjectRemoved(url, request))

    async def removed(self, done: ObjectRemoved) -> None:
        """Forget an object, and say so to its reporter."""
        self._cores.pop(done.url, None)
        if done.request is not None:
            await self._context.answer(done.request, Code.OK)

    async def leave(self, reporter: str) -> None:
        """Delete what a reporter reports: it is leaving."""
        for url, reported in list(self._cores.items()):
            if reported.snapshot.reporter == reporter and not reported.is_deleted:
                await self._perform(url, None, reported.feed(core.DeleteAsked(reporter)))

    def let_go(self) -> None:
        """End every subscription and invitation without a word: time is over."""
        for url, reported in self._cores.items():
            self._invitations.let_go(url)
            deleting = core.DeleteAsked(reported.snapshot.reporter)
            for effect in (*reported.feed(deleting), *reported.feed(core.ObserversTold())):
                if isinstance(effect, Step):
                    self._context.step(effect)
