"""Registrations that components of a runtime follow, and questions of its registry (REG-16).

A component asks `R/registry`: `subscribe` or `unsubscribe`, with one `<url>/registration` in
`resources`. It is answered when the path is set at the node of the record's domain, and from
then on gets what that domain's registry reports of the record (M-30); so does the registry,
which drops its cached record. Each question to others is a task that reports the answer.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, assert_never, final

import attrs
import trio

from actors.kit.ids import IdSource
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from fsm.effects import Answer
from fsm.registry.changes import changes_of, registry_of
from fsm.registry.record_watch import (
    Follow,
    Left,
    NodeForgot,
    RecordWatch,
    RenewWatch,
    SetWatch,
    Unfollow,
    Unwatch,
    UnwatchRecord,
    Watch,
    WatchEffect,
    WatchRemoved,
    WatchSet,
)
from fsm.registry.resolve.resolve import ResolveCore
from fsm.registry.resolve.resolve_io import (
    Connect,
    Disconnect,
    LinkRegistered,
    OwnerRead,
    PathSet,
    RecordRead,
    RecordReported,
    Resume,
    Yield,
)
from specs.addresses.address import domain_of, domain_registry, is_backend, subscription_manager
from specs.bodies.link import Command, Path
from specs.bodies.registry import ReadRecord, Record, RecordChanged
from specs.bodies.word import RecordStatus, StubMethod
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.message import Message, MessageType, refuse
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from transports.bodies import read_body, write_body

__all__ = ["LinkOrder", "RegistrationWatch", "RegistryTalk", "WatchTask", "is_registration"]

LinkOrder: TypeAlias = Connect | Disconnect | Yield | Resume
"""A command of a registry to its own stub."""


@final
class RegistryTalk:
    """The registry's requests (M-03, M-04, M-05, M-08, M-11, M-12, M-25, M-29)."""

    def __init__(self, domain: str, port: CorePort, ids: IdSource) -> None:
        self._paths = subscription_manager(domain)
        self._port = port
        self._ids = ids

    async def read_record(self, entity: str) -> RecordRead:
        """Read an entity's record at the registry of its domain (M-25, I-R10)."""
        to = domain_registry(domain_of(entity))
        answer = await self._ask(MessageType.READ, to, write_body(ReadRecord(entity)))
        record = _record(answer, answer.body.get("value")) if answer.code <= LAST_SUCCESS else None
        is_live = record is not None and record.status == RecordStatus.LIVE
        return RecordRead(entity, record if is_live else None)

    async def read_owner(self, entity: str) -> OwnerRead:
        """Read whose an entity is: its record says so while it is away, too (M-25, I-R10)."""
        to = domain_registry(domain_of(entity))
        answer = await self._ask(MessageType.READ, to, write_body(ReadRecord(entity)))
        value = answer.body.get("value")
        found = _record(answer, value[0] if isinstance(value, list) and value else value)
        record = found if found is not None and found.url == entity else None
        is_answered = found is not None or answer.code in {Code.OK, Code.NOT_FOUND}
        return OwnerRead(entity, record, is_answered)

    async def set_path(self, url: str) -> PathSet:
        """Have the own node deliver a stub's address here (M-03)."""
        answer = await self._ask(MessageType.SUBSCRIBE, self._paths, write_body(Path((url,), url)))
        return PathSet(url, _refusal(answer))

    async def renew_path(self, url: str) -> None:
        """Set a path again that the node has forgotten."""
        await self._ask(MessageType.SUBSCRIBE, self._paths, write_body(Path((url,), url)))

    async def remove_path(self, url: str) -> None:
        """Have the own node forget it (M-04)."""
        await self._ask(MessageType.UNSUBSCRIBE, self._paths, write_body(Path((url,), url)))

    async def register_link(self, link: str, handler: str) -> LinkRegistered:
        """Set the listeners of a handler's link: the bus's, then the MiniBUS's (I-P17).

        Args:
            link: Name of the link.
            handler: Address of the handler stub.
        """
        self._port.follow(link, handler)
        body = write_body(Path((link,), handler))
        answer = await self._ask(MessageType.SUBSCRIBE, handler, body)
        return LinkRegistered(link, _refusal(answer))

    async def order(self, order: LinkOrder) -> bool:
        """Command a P2P stub (M-11, M-12); return whether it obeys.

        A requester whose link has ended for good, or that is stuck, neither connects nor
        resumes.
        """
        stub = order.stub
        match order:
            case Connect(handler=handler):
                command = Command(StubMethod.CONNECT.value, (handler,))
            case Disconnect(remote=remote, link=link):
                command = Command(StubMethod.DISCONNECT.value, (remote,), link)
            case Yield(remote=remote, negotiation=number):
                command = Command(StubMethod.YIELD.value, (remote,), stub, number)
            case Resume(remote=remote, negotiation=number):
                command = Command(StubMethod.RESUME.value, (remote,), stub, number)
            case _:
                assert_never(order)
        answer = await self._ask(MessageType.EXECUTE, stub, write_body(command))
        return answer.code <= LAST_SUCCESS

    async def follow_changes(self, remote: str) -> Message:
        """Subscribe to the entities of another runtime at its registry (M-08)."""
        body = write_body(Path((changes_of(remote),)))
        return await self._ask(MessageType.SUBSCRIBE, registry_of(remote), body)

    async def watch(self, address: str, domain: str) -> Message:
        """Have the node of a domain deliver here the reports of a record (M-29).

        Args:
            address: The address.
            domain: The domain.
        """
        body, to = write_body(Path((address,))), subscription_manager(domain)
        return await self._ask(MessageType.SUBSCRIBE, to, body)

    async def renew_watch(self, address: str, domain: str) -> Message:
        """Do so again; a node that is coming back may have to be asked some times.

        Args:
            address: The address.
            domain: The domain.
        """
        answer, pause = await self.watch(address, domain), READ_PAUSE
        for _ in range(RECONNECT_TRIES - 1):
            if answer.code <= LAST_SUCCESS:
                break
            await trio.sleep(pause)
            pause *= 2
            answer = await self.watch(address, domain)
        return answer

    async def unwatch(self, address: str, domain: str) -> None:
        """Have that node forget it.

        Args:
            address: The address.
            domain: The domain.
        """
        body, to = write_body(Path((address,))), subscription_manager(domain)
        await self._ask(MessageType.UNSUBSCRIBE, to, body)

    async def _ask(self, kind: MessageType, to: str, body: JsonObject) -> Message:
        sender = self._port.url
        return await self._port.request(Message(self._ids.next(sender), kind, sender, to, body))


def _record(answer: Message, value: Json) -> Record | None:
    if not isinstance(value, dict):
        return None
    try:
        return read_body(attrs.evolve(answer, body=value), Record)
    except BadMessageError:
        return None


def _refusal(answer: Message) -> str | None:
    if answer.code <= LAST_SUCCESS:
        return None
    return f"{answer.code} {answer.body.get('description', '')}".rstrip()


_PART = "/registration"

WatchTask: TypeAlias = Callable[[Awaitable[WatchSet | WatchRemoved]], None]
"""Runs what takes time beside the registry's mailbox, and reports the outcome to it."""


def is_registration(address: str) -> bool:
    """Return whether the status of a record is reported at this address."""
    return address.endswith(_PART)


@final
@attrs.define
class RegistrationWatch:
    """Hosts the table of records that are followed; part of the registry's task.

    Attributes:
        routes: The node of a record's domain, and the stub that leads to it.
    """

    routes: ResolveCore
    talk: RegistryTalk
    port: CorePort
    hops: HopTrace
    task: WatchTask
    core: RecordWatch = attrs.field(factory=RecordWatch)

    # ---- asked

    async def asked(self, request: Message) -> None:
        """Follow a record for a component of this runtime, or end that."""
        url = await self._named(request)
        if url is None:
            return
        is_subscribe = request.type is MessageType.SUBSCRIBE
        await self.feed(Watch(request, url) if is_subscribe else Unwatch(request, url))

    async def _named(self, request: Message) -> str | None:
        """Return the record a request is about; one that may not ask is refused."""
        if not self.routes.is_local(request.from_):
            why = "a registry follows records for its own runtime only"
            await self.port.post(refuse(request, Code.FORBIDDEN, why))
            return None
        try:
            return _record_in(read_body(request, Path))
        except BadMessageError as error:
            await self.port.post(refuse(request, error.code, error.reason))
            return None

    # ---- events

    def heard(self, event: Message) -> RecordReported | None:
        """Take a notification (M-30); one that is not the registry's own word is dropped."""
        url = event.to.removesuffix(_PART)
        reason = self._objection(event, url)
        if reason is None:
            try:
                return RecordReported(url, RecordStatus(read_body(event, RecordChanged).value))
            except BadMessageError:
                reason = DropReason.MALFORMED
        self.hops.dropped(event, reason)
        return None

    def _objection(self, event: Message, url: str) -> DropReason | None:
        if url not in self.core:
            return DropReason.UNSUBSCRIBED
        # The bus has seen that it names the right registry, and came from a node; the stub
        # that it came by, the last in `via`, shows from which.
        is_by_node = event.via[-1:] == (self.routes.node_stub(url),)
        return None if is_by_node else DropReason.FORGED_STATUS

    async def node_forgot(self, domain: str) -> tuple[RecordReported, ...]:
        """Set the paths again that a node has lost; what it would have reported is unknown."""
        urls = [url for url in self.core.urls if self.routes.node_of(url) == domain]
        await self.feed(NodeForgot(frozenset(urls)))
        return tuple(RecordReported(url, None) for url in urls)

    # ---- done

    async def feed(
        self, happened: Watch | Unwatch | Left | WatchSet | WatchRemoved | NodeForgot
    ) -> None:
        """Take what happened, and do what follows."""
        for effect in self.core.feed(happened):
            await self._perform(effect)

    async def _perform(self, effect: WatchEffect) -> None:
        match effect:
            case Follow(url, by):
                self.port.follow(f"{url}{_PART}", by or self.port.url)
            case Unfollow(url, by):
                self.port.unfollow(f"{url}{_PART}", by or self.port.url)
            case Answer(message):
                await self.port.post(message)
            case SetWatch() | RenewWatch() | UnwatchRecord():
                self.task(self._path(effect))
            case _:
                assert_never(effect)

    async def _path(self, effect: SetWatch | RenewWatch | UnwatchRecord) -> WatchSet | WatchRemoved:
        url, node = effect.url, self.routes.node_of(effect.url)
        match effect:
            case SetWatch():
                return WatchSet(url, await self.talk.watch(f"{url}{_PART}", node))
            case RenewWatch():
                return WatchSet(url, await self.talk.renew_watch(f"{url}{_PART}", node))
            case UnwatchRecord():
                await self.talk.unwatch(f"{url}{_PART}", node)
                return WatchRemoved(url)
            case _:
                assert_never(effect)


def _record_in(path: Path) -> str:
    """Return the record whose status is asked for.

    Raises:
        BadMessageError: It is none, or there are several.
    """
    named, *others = (*path.resources, "")
    if len(others) != 1 or not is_registration(named) or is_backend(named):
        raise BadMessageError("name one resource: an address with /registration behind it")
    return named.removesuffix(_PART)
