"""Registrations of this runtime in domain registries (M-21..24), and its own status (REG-12)."""

import math
from collections.abc import AsyncIterator
from typing import Never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import BackgroundTasks, Reply
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.bus.ports import CorePort
from specs.addresses.address import domain_of, domain_registry, status_of, subscription_manager
from specs.bodies.link import Path
from specs.bodies.registry import Record, Register, UpdateRecord
from specs.bodies.session import Status
from specs.bodies.word import RecordAttribute, RecordStatus, StatusValue
from specs.errors import ProtoflyError
from specs.limits.protocol import KEEP_ALIVE_SHARE, RETRY_COOL_DOWN
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body


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


@attrs.define(slots=True)
class _Registration:
    """A record that is refreshed before it expires, and the time of the next refresh."""

    record: Record
    due: float


class Registrar:
    """Registers records at domain registries, and keeps them alive while `keep_alive` runs.

    Its methods raise ActorStoppedError if the runtime has closed.
    """

    def __init__(self, port: MiniBusPort, ids: IdSource, tasks: BackgroundTasks) -> None:
        self._port = port
        self._ids = ids
        self._tasks = tasks
        self._registrations: dict[str, _Registration] = {}
        self._attempts: dict[str, Record] = {}
        self._handler: str | None = None
        self._requester: str | None = None
        self._due_changed = trio.Event()

    def accept_links(self, handler: str, requester: str) -> None:
        """Name the stubs for direct links to this runtime in records from now on (C-71).

        Args:
            handler: Address of the handler stub.
            requester: Catalogue address of the stub that others load to reach it.
        """
        self._handler, self._requester = handler, requester

    async def register(self, record: Record) -> None:
        """Register a record and keep it alive.

        If cancelled, the record is registered all the same, unless it is unregistered.

        Raises:
            RegistrationError: The registry refuses it, or it was unregistered meanwhile.
        """
        attempt = attrs.evolve(record, p2p_handler=self._handler, p2p_requester=self._requester)
        self._attempts[record.url] = attempt
        await self._tasks.ask(self._register, attempt)

    async def unregister(self, url: str) -> None:
        """Set a record to disconnected, and stop to keep it alive. Idempotent.

        If cancelled, the record may be live until it expires.
        """
        self._attempts.pop(url, None)
        if self._registrations.pop(url, None) is not None:
            await self._disconnect(url)

    async def register_all_again(self) -> None:
        """Claim all addresses and register all records at a node that has forgotten them (C-44).

        If cancelled, the records are registered all the same.
        """
        records = [registration.record for registration in self._registrations.values()]
        await self._tasks.ask(self._register_records_again, records)

    async def keep_alive(self) -> Never:
        """Refresh each record before it expires."""
        while True:
            due = min((each.due for each in self._registrations.values()), default=math.inf)
            with trio.move_on_at(due):
                await self._due_changed.wait()
            self._due_changed = trio.Event()
            now = trio.current_time()
            for url, registration in self._registrations.items():
                if registration.due <= now:
                    registration.due = now + registration.record.expires / KEEP_ALIVE_SHARE
                    self._tasks.spawn(self._refresh, url, MessageType.UPDATE, UpdateRecord(url))

    async def _register(self, reply: Reply[None], record: Record) -> None:
        url, body = record.url, Register(record)
        answer = await self._ask(MessageType.CREATE, url, body)
        if answer.code == Code.FORBIDDEN and self._attempts.get(url) is record:
            # The node may have forgotten the address since it has allocated it.
            claimed = await self._claim(record)
            if claimed.code <= LAST_SUCCESS and self._attempts.get(url) is record:
                answer = await self._ask(MessageType.CREATE, url, body)
        latest = self._attempts.get(url)
        if latest is record:
            del self._attempts[url]
        if answer.code > LAST_SUCCESS:
            reply.fail(RegistrationError(url, answer.code, reason_in(answer)))
        elif latest is record:
            due = trio.current_time() + record.expires / KEEP_ALIVE_SHARE
            self._registrations[url] = _Registration(record, due)
            self._due_changed.set()
            reply.send(None)
        else:
            # The record was unregistered meanwhile, and perhaps registered again.
            reply.fail(RegistrationError(url, Code.GONE, "it is not wanted any more"))
            if latest is None and url not in self._registrations:
                await self._disconnect(url)

    async def _register_records_again(self, reply: Reply[None], records: list[Record]) -> None:
        async with trio.open_nursery() as nursery:
            for record in records:
                nursery.start_soon(self._register_again, record)
        reply.send(None)

    async def _register_again(self, record: Record) -> None:
        if self._is_kept(record):
            await self._claim(record)
        if self._is_kept(record):
            await self._refresh(record.url, MessageType.CREATE, Register(record))

    def _is_kept(self, record: Record) -> bool:
        """Return whether a record is neither unregistered nor replaced."""
        registration = self._registrations.get(record.url)
        return registration is not None and registration.record is record

    async def _refresh(self, url: str, kind: MessageType, body: UpdateRecord | Register) -> None:
        """Refresh a record; if the registry has forgotten the record, register again (C-53)."""
        answer = await self._ask(kind, url, body)
        registration = self._registrations.get(url)
        if registration is None or answer.code <= LAST_SUCCESS:
            return
        if answer.code == Code.NOT_FOUND:
            self._tasks.spawn(self._register_again, registration.record)
        else:
            soon = trio.current_time() + RETRY_COOL_DOWN
            registration.due = min(registration.due, soon)
            self._due_changed.set()

    async def _disconnect(self, url: str) -> None:
        update = UpdateRecord(url, RecordStatus.DISCONNECTED.value, RecordAttribute.STATUS.value)
        await self._ask(MessageType.UPDATE, url, update)

    async def _claim(self, record: Record) -> Message:
        """Claim an address at a node that has forgotten its owner (C-44)."""
        to = subscription_manager(domain_of(record.url))
        return await self._request(MessageType.SUBSCRIBE, to, Path((record.url,), record.runtime))

    async def _ask(self, kind: MessageType, url: str, body: Register | UpdateRecord) -> Message:
        return await self._request(kind, domain_registry(domain_of(url)), body)

    async def _request(
        self, kind: MessageType, to: str, body: Register | UpdateRecord | Path
    ) -> Message:
        sender = self._port.url
        number = self._ids.next(sender)
        return await self._port.request(Message(number, kind, sender, to, write_body(body)))


# The status of a runtime: whether it reaches the node of its domain (REG-12). The application reads
# and follows it. If the configuration says so, the runtime also publishes it at `R/status`, to the
# runtimes that subscribe there: `live` and, when it leaves in order, `disconnected`. When its
# connection is lost, its node publishes `disconnected` in its place.


class RuntimeStatus:
    """The status of one runtime; its registry writes it.

    Args:
        runtime: Address of the runtime.
        port: Port of the registry.
        ids: Message ids.
        is_published: Whether the runtime publishes its status.

    Attributes:
        value: `created` before the first session with the node, then `live` or `disconnected`; at
            last `failed` if the node has ended the session for good.
        end: Why the session has ended for good; None: it has not.
        has_changed: Is set at the next change.
        is_published: Whether subscribers at the node are notified.
    """

    def __init__(self, runtime: str, port: CorePort, ids: IdSource, *, is_published: bool) -> None:
        self.value = StatusValue.CREATED
        self.end: str | None = None
        self._runtime = runtime
        self._port = port
        self._ids = ids
        self.is_published = is_published
        self.has_changed = trio.Event()

    async def begin(self) -> None:
        """Permit the registry to publish the status, if it is published.

        If cancelled, the registry may be allowed to send as the runtime.
        """
        if self.is_published:
            self._port.grant(self._runtime, self._port.url)

    def set_connection(self, stub: str, *, is_live: bool, end: str | None = None) -> None:
        """Set the state of the connection to the own node.

        Args:
            stub: Address of the stub of the node.
            is_live: Whether the connection is live.
            end: Why it has ended for good; None: it has not.
        """
        address = status_of(self._runtime)
        if is_live:
            self._set(StatusValue.LIVE)
            if self.is_published:
                self._port.follow(address, stub)
        elif end is not None:
            self.end = end
            self._set(StatusValue.FAILED)
        else:
            self._set(StatusValue.DISCONNECTED)
            if self.is_published:
                # A status that cannot be sent now would be outdated later.
                self._port.unfollow(address, stub)

    async def leave(self) -> None:
        """Publish that the runtime leaves, while the node can still be reached.

        If cancelled, the status may not be published.
        """
        if self.value is StatusValue.LIVE:
            self._set(StatusValue.DISCONNECTED)
            if self.is_published:
                await self.publish()

    def changes(self) -> "StatusChanges":
        """Return an iterator over the present status, and each newer one."""
        return StatusChanges(self)

    def _set(self, value: StatusValue) -> None:
        if value is not self.value:
            self.value = value
            self.has_changed.set()
            self.has_changed = trio.Event()

    async def publish(self) -> None:
        """Notify the subscribers of the present status.

        If cancelled, they may not be notified.
        """
        sender = self._runtime
        body, number = write_body(Status(self.value.value)), self._ids.next(sender)
        event = Message(number, MessageType.UPDATE, sender, status_of(sender), body)
        await self._port.post(event)


class StatusChanges(AsyncIterator[StatusValue]):
    """The present status of a runtime, and each newer one; a slow reader gets the newest.

    Args:
        status: The status.
    """

    def __init__(self, status: RuntimeStatus) -> None:
        self._status = status
        self._shown: StatusValue | None = None

    @override
    async def __anext__(self) -> StatusValue:
        """Wait for a status other than the one that was returned last.

        If cancelled, nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        while self._status.value is self._shown:
            await self._status.has_changed.wait()
        self._shown = self._status.value
        return self._shown
