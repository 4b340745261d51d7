"""Registrations of hyperties and data objects of this runtime in domain registries (M-21..24)."""

import math
from typing import TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Reply
from actors.runtime.bus.mini_bus import MiniBusPort
from specs.addresses.address import domain_of, domain_registry, subscription_manager
from specs.bodies.link import Path
from specs.bodies.registry import Record, Register, UpdateRecord
from specs.bodies.word import RecordAttribute, RecordStatus
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import KEEP_ALIVE_SHARE, RETRY_COOL_DOWN
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

__all__ = [
    "ForgetWanted",
    "LinksTaken",
    "RegisterWanted",
    "Registrar",
    "RegistrarMessage",
    "RegistrationError",
    "ReplayWanted",
    "UnregisterWanted",
]


@final
class RegistrationError(ProtoflyError, public=True):
    """The domain registry did not take a record.

    Attributes:
        url: Address that is not registered.
        code: Reply code of the registry; or of this runtime, such as 503 if it cannot be reached.
    """

    def __init__(self, url: str, code: int, why: str) -> None:
        super().__init__(f"{url} is not registered: the answer was {code} {why}".rstrip())
        self.url = url
        self.code = code


@final
@attrs.frozen(slots=True)
class RegisterWanted:
    """Register a record and keep it alive; fails with `RegistrationError`.

    How the runtime is reached by P2P links is added to it, once it takes any.
    """

    record: Record
    reply: Reply[None]


@final
@attrs.frozen(slots=True)
class UnregisterWanted:
    """Set a record to disconnected and let it be; one that is not ours is fine."""

    url: str
    reply: Reply[None]


@final
@attrs.frozen(slots=True)
class ForgetWanted:
    """Let a record be as it is, which another runtime keeps alive now."""

    url: str
    reply: Reply[None]


@final
@attrs.frozen(slots=True)
class LinksTaken:
    """This runtime takes direct links: its records say so from now on (C-71).

    Attributes:
        handler: Address of its handler stub.
        requester: Catalogue address of the stub that others load to reach it.
    """

    handler: str
    requester: str


@final
@attrs.frozen(slots=True)
class ReplayWanted:
    """The node has forgotten us: claim all addresses and register all records again.

    Attributes:
        reply: Set when each of them was answered.
    """

    reply: Reply[None]


@final
@attrs.frozen(slots=True)
class _Refreshed:
    """A keep-alive, or a registration made again, is answered."""

    url: str
    code: int


@final
@attrs.frozen(slots=True)
class _Registered:
    """A record is registered, and to be kept alive from now on."""

    wanted: RegisterWanted


RegistrarMessage: TypeAlias = (
    _Registered
    | RegisterWanted
    | UnregisterWanted
    | ForgetWanted
    | ReplayWanted
    | LinksTaken
    | _Refreshed
)


@attrs.define(slots=True)
class _Kept:
    """A record that is kept alive, and when that is due."""

    record: Record
    due: float


@final
class Registrar(Actor[RegistrarMessage]):
    """Speaks for the runtime's registry to the domain registry."""

    def __init__(self, port: MiniBusPort, ids: IdSource) -> None:
        self._port = port
        self._ids = ids
        self._kept: dict[str, _Kept] = {}
        self._registering: dict[str, RegisterWanted] = {}
        self._links: LinksTaken | None = None

    @override
    def deadline(self) -> float:
        return min((kept.due for kept in self._kept.values()), default=math.inf)

    @override
    async def timed_out(self) -> None:
        now = trio.current_time()
        for url, kept in self._kept.items():
            if kept.due <= now:
                kept.due = now + kept.record.expires / KEEP_ALIVE_SHARE
                self.spawn(self._refresh, url, UpdateRecord(url), MessageType.UPDATE)

    @override
    async def handle(self, message: RegistrarMessage) -> None:
        match message:
            case RegisterWanted(record):
                wanted = attrs.evolve(message, record=self._reachable(record))
                self._registering[record.url] = wanted
                self.spawn(self._register, wanted)
            case LinksTaken():
                self._links = message
            case _Registered(wanted):
                self._registered(wanted)
            case UnregisterWanted() | ForgetWanted():
                self._end(message)
            case ReplayWanted(reply):
                self.spawn(self._replay, [kept.record for kept in self._kept.values()], reply)
            case _Refreshed(url, code):
                self._refreshed(url, code)
            case _:
                assert_never(message)

    def _end(self, message: UnregisterWanted | ForgetWanted) -> None:
        match message:
            case UnregisterWanted(url):
                self._registering.pop(url, None)
                self.spawn(self._unregister, message)
            case ForgetWanted(url, reply):
                self._kept.pop(url, None)
                reply.send(None)
            case _:
                assert_never(message)

    def _reachable(self, record: Record) -> Record:
        """Add by what P2P links reach this runtime, if it takes them (C-71)."""
        links = self._links
        if links is None:
            return record
        return attrs.evolve(record, p2p_handler=links.handler, p2p_requester=links.requester)

    async def _register(self, wanted: RegisterWanted) -> None:
        record = wanted.record
        body = write_body(Register(record))
        answer = await self._ask(MessageType.CREATE, record.url, body)
        if answer.code == Code.FORBIDDEN:
            # The node may have forgotten the address since it has allocated it.
            claimed = await self._claim(record)
            if claimed.code <= LAST_SUCCESS:
                answer = await self._ask(MessageType.CREATE, record.url, body)
        if answer.code > LAST_SUCCESS:
            why = reason_in(answer)
            if self._registering.get(record.url) is wanted:
                del self._registering[record.url]
            wanted.reply.fail(RegistrationError(record.url, answer.code, why))
            return
        await self.me.tell(_Registered(wanted))

    def _registered(self, wanted: RegisterWanted) -> None:
        record = wanted.record
        latest = self._registering.get(record.url)
        if latest is not wanted:
            # It was unregistered before the registry had answered, and perhaps registered anew.
            if latest is None and record.url not in self._kept:
                self.spawn(self._disconnect, record.url)
            wanted.reply.fail(RegistrationError(record.url, Code.GONE, "it is not wanted any more"))
            return
        del self._registering[record.url]
        due = trio.current_time() + record.expires / KEEP_ALIVE_SHARE
        self._kept[record.url] = _Kept(record, due)
        wanted.reply.send(None)

    async def _unregister(self, wanted: UnregisterWanted) -> None:
        if self._kept.pop(wanted.url, None) is not None:
            await self._disconnect(wanted.url)
        wanted.reply.send(None)

    async def _disconnect(self, url: str) -> None:
        update = UpdateRecord(url, RecordStatus.DISCONNECTED.value, RecordAttribute.STATUS.value)
        await self._ask(MessageType.UPDATE, url, write_body(update))

    async def _refresh(self, url: str, body: UpdateRecord | Register, kind: MessageType) -> None:
        answer = await self._ask(kind, url, write_body(body))
        await self.me.tell(_Refreshed(url, answer.code))

    def _refreshed(self, url: str, code: int) -> None:
        """Register anew what the registry has forgotten; try the rest again soon (C-53)."""
        kept = self._kept.get(url)
        if kept is None or code <= LAST_SUCCESS:
            return
        if code == Code.NOT_FOUND:
            self.spawn(self._register_again, kept.record)
        else:
            kept.due = min(kept.due, trio.current_time() + RETRY_COOL_DOWN)

    async def _replay(self, records: list[Record], reply: Reply[None]) -> None:
        async with trio.open_nursery() as nursery:
            for record in records:
                nursery.start_soon(self._register_again, record)
        reply.send(None)

    async def _register_again(self, record: Record) -> None:
        await self._claim(record)
        if record.url in self._kept:
            await self._refresh(record.url, Register(record), MessageType.CREATE)

    async def _claim(self, record: Record) -> Message:
        """Claim an address that a node which forgot us does not know as ours (C-44)."""
        claim = write_body(Path((record.url,), record.runtime))
        to = subscription_manager(domain_of(record.url))
        return await self._request(MessageType.SUBSCRIBE, to, claim)

    async def _ask(self, kind: MessageType, url: str, body: JsonObject) -> Message:
        return await self._request(kind, domain_registry(domain_of(url)), body)

    async def _request(self, kind: MessageType, to: str, body: JsonObject) -> Message:
        sender = self._port.url
        return await self._port.request(Message(self._ids.next(sender), kind, sender, to, body))
