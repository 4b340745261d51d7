"""The objects that this runtime reports (M-32..M-35, M-38..M-41, M-43, M-46, M-47)."""

from functools import partial
from typing import Final, assert_never, final

import attrs

from actors.kit.actor import ActorRef
from actors.kit.delivery import Delivery
from actors.runtime.sync_terms import (
    Decided,
    ObjectReady,
    Spawn,
    SyncContext,
    Tell,
    observer_of,
)
from fsm.cores import data_object as core
from specs.address import last_segment, subscription_manager
from specs.body import Path
from specs.body_sync import (
    Change,
    ChangeObject,
    CreateObject,
    DataObject,
    Invitation,
    InviteObservers,
    ObjectName,
)
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from specs.trace import Fact, Kind, Op
from transports.bodies import read_body, write_body

__all__ = ["ReportedObjects"]

_SUBSCRIPTION: Final = "subscription"
_CHANGES: Final = "changes"
_SCHEMES: Final = {"communication": "comm", "context": "ctxt"}
"""Schemes that are not the schema's own name (ADR-02)."""

_ACTOR: Final = "sm"


def scheme_for(schema: str) -> str:
    """Return the address scheme of objects of a data schema (C-48)."""
    name = last_segment(schema).lower()
    return _SCHEMES.get(name, name)


@final
class ReportedObjects:
    """The reporter's end of every object created here."""

    def __init__(self, context: SyncContext, spawn: Spawn, tell: Tell) -> None:
        self._context = context
        self._spawn = spawn
        self._tell = tell
        self._cores: dict[str, core.ReporterCore] = {}
        self._subscribing: dict[tuple[str, str], list[Message]] = {}
        self._listener: ActorRef[Delivery]

    def start(self, listener: ActorRef[Delivery]) -> None:
        """Let all objects' addresses lead to `listener`."""
        self._listener = listener

    def owner_of(self, address: str) -> str | None:
        """Return the object an address belongs to: itself or its subscription address."""
        url = address.removesuffix(f"/{_SUBSCRIPTION}")
        return url if url in self._cores else None

    # --- create and invite --------------------------------------------------------------

    def create(self, request: Message) -> None:
        """Create an object (M-32)."""
        self._spawn(partial(self._create, request, read_body(request, CreateObject)))

    async def _create(self, request: Message, wanted: CreateObject) -> None:
        context = self._context
        url = await context.addresses.allocate(scheme_for(wanted.schema))
        if url is None:
            await context.refuse(request, Code.UNAVAILABLE, "no address for the object")
            return
        answer = await context.bus.request(self._path(MessageType.SUBSCRIBE, url))
        if answer.code > LAST_SUCCESS:
            await context.addresses.free(url)
            await context.refuse(request, Code.UNAVAILABLE, "no path to the object")
            return
        created = attrs.evolve(
            wanted.value,
            reporter=request.from_,
            runtime=context.runtime,
            url=url,
            version=1,
            schema=wanted.schema,
        )
        await self._tell(ObjectReady(request, created))

    def _path(self, kind: MessageType, url: str) -> Message:
        body = Path((url, f"{url}/{_SUBSCRIPTION}"), self._context.runtime)
        to = subscription_manager(self._context.domain)
        return self._context.request(kind, to, write_body(body))

    def renew_paths(self, domain: str) -> None:
        """Claim the objects, and set their paths, that the node has forgotten (C-44)."""
        if domain == self._context.domain:
            for url in self._cores:
                self._spawn(partial(self._renew_path, url))

    async def _renew_path(self, url: str) -> None:
        claim = write_body(Path((url,), self._context.runtime))
        to = subscription_manager(self._context.domain)
        await self._context.bus.request(self._context.request(MessageType.SUBSCRIBE, to, claim))
        await self._context.bus.request(self._path(MessageType.SUBSCRIBE, url))

    async def ready(self, done: ObjectReady) -> None:
        """Take a new object in and answer its reporter."""
        url = done.created.url or ""
        self._cores[url] = core.ReporterCore(done.created)
        for address in (url, f"{url}/{_SUBSCRIPTION}"):
            await self._context.bus.add_listener(address, self._listener)
        self._trace(done.created)
        await self._context.answer(done.request, Code.OK, resource=url)

    async def invite(self, request: Message) -> None:
        """Invite one observer (M-33)."""
        body = read_body(request, InviteObservers)
        reported = self._cores.get(body.resource)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.snapshot.reporter != request.from_:
            await self._context.refuse(request, Code.FORBIDDEN, "only the reporter invites")
        elif len(body.authorise) != 1:
            await self._context.refuse(request, Code.MALFORMED, "one observer per invitation")
        else:
            reported.feed(core.Authorised(body.authorise[0]))
            self._spawn(partial(self._invite, request, body))

    async def _invite(self, request: Message, body: InviteObservers) -> None:
        (observer,) = body.authorise
        invitation = self._context.request(
            MessageType.CREATE,
            observer,
            write_body(Invitation(request.from_, body.schema, body.value)),
            f"{body.resource}/{_SUBSCRIPTION}",
        )
        answer = await self._context.bus.request(invitation)
        why = answer.body.get("description")
        told = {"description": why} if isinstance(why, str) else {}
        await self._context.answer(request, answer.code, source=observer, **told)

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
                reported.feed(core.UnsubscribeAsked(observer_of(request), request.from_))
                await self._context.answer(request, Code.OK)
            case MessageType.READ:
                await self._read(reported, request)
            case _:
                await self._context.refuse(request, Code.MALFORMED, "an object does not do this")

    async def _read(self, reported: core.ReporterCore, request: Message) -> None:
        snapshot = reported.snapshot
        if request.from_ in {snapshot.reporter, *reported.observers}:
            await self._context.answer(request, Code.OK, value=write_body(snapshot))
        else:
            await self._context.refuse(request, Code.UNAUTHENTICATED, "not an observer")

    async def decided(self, done: Decided) -> None:
        """Take the reporter's decision about an observer."""
        reported = self._cores.get(done.url)
        if reported is not None:
            await self._perform(done.url, None, reported.feed(done.decision))

    async def _ask_reporter(self, url: str, observer: str, reporter: str) -> None:
        asking = self._context.request(
            MessageType.FORWARD,
            reporter,
            {"message": {"type": "subscribe", "from": observer, "to": url}},
            url,
        )
        answer = await self._context.bus.request(asking)
        if answer.code <= LAST_SUCCESS:
            await self._tell(Decided(url, core.ReporterAccepted(observer)))
        else:
            refused = core.ReporterRefused(observer, "the reporter refuses")
            await self._tell(Decided(url, refused))

    # --- changes and the end --------------------------------------------------------------

    async def change(self, request: Message) -> None:
        """Change an object on behalf of its reporter, and publish it (M-40)."""
        body = read_body(request, ChangeObject)
        change = Change(
            attribute=body.attribute,
            value=body.value,
            attribute_type=body.attribute_type,
            operation=body.operation,
        )
        await self._feed(body.resource, request, core.ChangeAsked(request.from_, change))

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
                case core.Granted() | core.Denied():
                    await self._answer_subscription(url, effect)
                case core.ReporterAsked(observer):
                    reporter = self._cores[url].snapshot.reporter
                    self._spawn(partial(self._ask_reporter, url, observer, reporter))
                case core.Published() | core.Refused() | core.Deleted() if request is not None:
                    await self._on_reporter(url, request, effect)
                case _:
                    pass

    async def _answer_subscription(self, url: str, effect: core.Granted | core.Denied) -> None:
        for request in self._subscribing.pop((url, effect.observer), ()):
            match effect:
                case core.Granted():
                    await self._context.answer(request, Code.OK, value=write_body(effect.snapshot))
                case core.Denied():
                    await self._context.refuse(request, effect.code, effect.why)
                case _:
                    assert_never(effect)

    async def _on_reporter(
        self, url: str, request: Message, effect: core.Published | core.Refused | core.Deleted
    ) -> None:
        match effect:
            case core.Published(change):
                self._trace(self._cores[url].snapshot)
                await self._publish(url, change)
                await self._context.answer(request, Code.OK, version=change.version)
            case core.Refused(code, why):
                await self._context.refuse(request, code, why)
            case core.Deleted(managers):
                await self._refuse_waiting(url)
                self._spawn(partial(self._remove, url, request, bool(managers)))
            case _:
                assert_never(effect)

    async def _refuse_waiting(self, url: str) -> None:
        """Answer who waits for the reporter's decision, as long as the object can."""
        for key in [key for key in self._subscribing if key[0] == url]:
            for request in self._subscribing.pop(key):
                await self._context.refuse(request, Code.NOT_FOUND, "the object is deleted")

    async def _publish(self, url: str, change: Change) -> None:
        if self._cores[url].observers:
            body = write_body(change)
            to = f"{url}/{_CHANGES}"
            await self._context.bus.post(self._context.request(MessageType.UPDATE, to, body, url))

    async def _remove(self, url: str, request: Message, is_observed: bool) -> None:  # noqa: FBT001 - a fact, not a mode
        context, subscription = self._context, f"{url}/{_SUBSCRIPTION}"
        if is_observed:
            gone = context.request(MessageType.DELETE, f"{url}/{_CHANGES}", {}, subscription)
            await context.bus.request(gone)
        await context.bus.request(self._path(MessageType.UNSUBSCRIBE, url))
        for address in (subscription, url):
            await context.bus.remove_listener(address, self._listener)
        await context.addresses.free(url)
        self._cores.pop(url, None)
        await context.answer(request, Code.OK)

    def _trace(self, written: DataObject) -> None:
        fact = Fact(
            k=Kind.OBJ,
            op=Op.WRITE,
            key=written.url,
            version=written.version,
            by=written.reporter,
        )
        self._context.tracer.record(_ACTOR, fact)
