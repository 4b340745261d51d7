"""Requests of a runtime's registry, and the remote records that components watch (REG-16).

A component sends `subscribe` or `unsubscribe` to `R/registry`, with one `<url>/registration` in
`resources`. It is answered when the node of the record's domain has the subscription, and from
then on gets what the registry of that domain reports of the record (M-30); so does the runtime's
registry, which drops its cached record.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import trio

from actors.kit.ids import IdSource
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from fsm.registry.changes import changes_of, registry_of
from fsm.registry.resolve.resolve import ResolveCore
from specs.addresses.address import domain_of, domain_registry, is_backend, subscription_manager
from specs.bodies.link import Command, Path
from specs.bodies.registry import ReadRecord, Record, RecordChanged
from specs.bodies.word import RecordStatus
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.protocol import READ_PAUSE, RECONNECT_TRIES
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from transports.bodies import read_body, write_body


class RegistryClient:
    """Sends the requests of a registry (M-03, M-04, M-05, M-08, M-11, M-12, M-25, M-29)."""

    def __init__(self, domain: str, port: CorePort, ids: IdSource) -> None:
        self._paths = subscription_manager(domain)
        self._port = port
        self._ids = ids

    async def read_record(self, entity: str) -> Record | None:
        """Read an entity's live record at the registry of its domain (M-25, I-R10)."""
        answer = await self._read(entity)
        record = _record(answer, answer.body.get("value")) if answer.code <= LAST_SUCCESS else None
        return record if record is not None and record.status == RecordStatus.LIVE else None

    async def read_owner(self, entity: str) -> tuple[Record | None, bool]:
        """Read an entity's record, live or away (M-25, I-R10); and whether a registry answers."""
        answer = await self._read(entity)
        value = answer.body.get("value")
        read = _record(answer, value[0] if isinstance(value, list) and value else value)
        record = read if read is not None and read.url == entity else None
        return record, read is not None or answer.code in {Code.OK, Code.NOT_FOUND}

    async def _read(self, entity: str) -> Message:
        to = domain_registry(domain_of(entity))
        return await self._ask(MessageType.READ, to, ReadRecord(entity))

    async def set_path(self, url: str) -> str | None:
        """Add a route to a stub at the own node (M-03); return the refusal, or None."""
        return _refusal(await self._ask(MessageType.SUBSCRIBE, self._paths, Path((url,), url)))

    async def remove_path(self, url: str) -> None:
        """Remove the route to a stub at the own node (M-04)."""
        await self._ask(MessageType.UNSUBSCRIBE, self._paths, Path((url,), url))

    async def register_link(self, link: str, handler: str) -> str | None:
        """Set the listeners of a handler's link: the bus's, then the MiniBUS's (I-P17).

        Returns:
            Why the handler refuses; None: it accepts.
        """
        self._port.follow(link, handler)
        return _refusal(await self._ask(MessageType.SUBSCRIBE, handler, Path((link,), handler)))

    async def order(self, stub: str, command: Command) -> bool:
        """Send a command to a P2P stub (M-11, M-12); return whether the stub accepts.

        A requester whose link has ended for good, or that is stuck, neither connects nor
        resumes.
        """
        answer = await self._ask(MessageType.EXECUTE, stub, command)
        return answer.code <= LAST_SUCCESS

    async def follow_changes(self, remote: str) -> Message:
        """Subscribe to the list of entities of another runtime at its registry (M-08)."""
        path = Path((changes_of(remote),))
        return await self._ask(MessageType.SUBSCRIBE, registry_of(remote), path)

    async def watch(self, address: str, domain: str) -> Message:
        """Subscribe to the reports of a record at the node of a domain (M-29).

        Args:
            address: The address.
            domain: The domain.
        """
        to = subscription_manager(domain)
        return await self._ask(MessageType.SUBSCRIBE, to, Path((address,)))

    async def renew_watch(self, address: str, domain: str) -> Message:
        """Subscribe like `watch`, with repetitions, as a node may be coming back.

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
        """End the subscription of `watch`.

        Args:
            address: The address.
            domain: The domain.
        """
        await self._ask(MessageType.UNSUBSCRIBE, subscription_manager(domain), Path((address,)))

    async def _ask(self, kind: MessageType, to: str, body: attrs.AttrsInstance) -> Message:
        sender = self._port.url
        number = self._ids.next(sender)
        return await self._port.request(Message(number, kind, sender, to, write_body(body)))


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


_PART: Final = "/registration"

_CAPACITY: Final = 4096
"""Maximum number of records that one runtime watches; each node has a limit of its own."""

_CODES: Final = frozenset(Code)


def is_registration(address: str) -> bool:
    """Return whether status events of a record are sent to an address."""
    return address.endswith(_PART)


@attrs.define(eq=False)
class _WatchedRecord:
    """A record whose status components of this runtime watch.

    Attributes:
        watchers: Addresses of these components.
        waiting: Their requests that wait for the subscription at the node.
        is_subscribed: Whether the node of the record's domain reports its status here.
        is_forgotten: Whether that node has lost the subscription.
        has_changed: Set when the task of the record must check it again.
    """

    watchers: dict[str, None] = attrs.field(factory=dict)
    waiting: list[Message] = attrs.field(factory=list)
    is_subscribed: bool = False
    is_forgotten: bool = False
    has_changed: trio.Event = attrs.field(factory=trio.Event)


@attrs.define
class RecordWatches:
    """Watches the status of remote records for components of this runtime (REG-16, M-29, M-30).

    One subscription at the node of a record's domain serves all of them. A task for each record
    sets and removes the subscription as watchers come and go.

    Attributes:
        routes: The node of a record's domain, and the stub that leads to it.
        spawn: Runs the task of a record.
        most: How many records may be watched.
    """

    routes: ResolveCore
    client: RegistryClient
    port: CorePort
    hops: HopTrace
    spawn: Callable[[Callable[[str, _WatchedRecord], Awaitable[None]], str, _WatchedRecord], None]
    most: int = _CAPACITY
    _records: dict[str, _WatchedRecord] = attrs.field(factory=dict, init=False)

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of all watched records."""
        return tuple(self._records)

    # ---- requests of components

    def request(self, request: Message) -> None:
        """Handle a `subscribe` or `unsubscribe`: each is answered, now or later."""
        try:
            url = self._record_in(request)
        except BadMessageError as error:
            self.port.send(refuse(request, error.code, error.reason))
            return
        if request.type is MessageType.UNSUBSCRIBE:
            self._remove_watcher(url, request.from_)
            self.port.send(reply_to(request, Code.OK))
        elif url not in self._records and len(self._records) >= self.most:
            why = f"a runtime follows at most {self.most} registrations"
            self.port.send(refuse(request, Code.TOO_LARGE, why))
        else:
            self._add_watcher(url, request)

    def _record_in(self, request: Message) -> str:
        """Return the address of the record in a request, or raise BadMessageError."""
        if not self.routes.is_local(request.from_):
            why = "a registry follows records for its own runtime only"
            raise BadMessageError(why, Code.FORBIDDEN)
        named, *others = (*read_body(request, Path).resources, "")
        if len(others) != 1 or not is_registration(named) or is_backend(named):
            raise BadMessageError("name one resource: an address with /registration behind it")
        return named.removesuffix(_PART)

    def _add_watcher(self, url: str, request: Message) -> None:
        record = self._records.get(url)
        if record is None:
            record = self._records[url] = _WatchedRecord()
            self.port.follow(url + _PART, self.port.url)
            self.spawn(self._keep_subscribed, url, record)
        if request.from_ not in record.watchers:
            record.watchers[request.from_] = None
            self.port.follow(url + _PART, request.from_)
        if record.is_subscribed:
            self.port.send(reply_to(request, Code.OK))
        else:
            record.waiting.append(request)
            record.has_changed.set()

    def _remove_watcher(self, url: str, watcher: str) -> None:
        record = self._records.get(url)
        if record is None or watcher not in record.watchers:
            return
        del record.watchers[watcher]
        self.port.unfollow(url + _PART, watcher)
        waiting, record.waiting = record.waiting, []
        for request in waiting:
            if request.from_ == watcher:
                why = "its requester no longer wants it"
                self.port.send(refuse(request, Code.GONE, why))
            else:
                record.waiting.append(request)
        record.has_changed.set()

    def component_left(self, address: str) -> None:
        """Remove a component from all records."""
        for url in self.urls:
            self._remove_watcher(url, address)

    # ---- the subscription at the node

    async def _keep_subscribed(self, url: str, record: _WatchedRecord) -> None:
        """Keep the subscription of one record until nobody watches it any more."""
        while record.watchers or record.is_subscribed:
            # Before the requests, so that a change during a request is seen afterwards.
            record.has_changed = trio.Event()
            if not record.watchers:
                # New watchers wait for a new subscription.
                record.is_subscribed = False
                await self.client.unwatch(url + _PART, self.routes.node_of(url))
                continue
            if not record.is_subscribed:
                await self._subscribe(url, record)
            if record.watchers:
                await record.has_changed.wait()
        del self._records[url]
        self.port.unfollow(url + _PART, self.port.url)

    async def _subscribe(self, url: str, record: _WatchedRecord) -> None:
        """Try to subscribe, and answer the waiting requests."""
        subscribe = self.client.renew_watch if record.is_forgotten else self.client.watch
        record.is_forgotten = False
        answer = await subscribe(url + _PART, self.routes.node_of(url))
        if record.is_forgotten:
            # The node may have answered before it lost its state: subscribe again.
            return
        record.is_subscribed = answer.code <= LAST_SUCCESS
        waiting, record.waiting = record.waiting, []
        if record.is_subscribed:
            for request in waiting:
                self.port.send(reply_to(request, Code.OK))
            return
        # A watcher of an earlier subscription stays, until the node comes back again.
        why = str(answer.body.get("description") or "the node did not take the path")
        code = Code(answer.code) if answer.code in _CODES else Code.INTERNAL
        for request in waiting:
            record.watchers.pop(request.from_, None)
            self.port.unfollow(url + _PART, request.from_)
            self.port.send(refuse(request, code, why))

    def node_forgot(self, domain: str) -> tuple[str, ...]:
        """Subscribe again at a node that has lost its state; return its records."""
        urls = tuple(url for url in self._records if self.routes.node_of(url) == domain)
        for url in urls:
            record = self._records[url]
            record.is_subscribed, record.is_forgotten = False, True
            record.has_changed.set()
        return urls

    # ---- events

    def read_event(self, event: Message) -> tuple[str, RecordStatus] | None:
        """Read a report (M-30); drop one that the registry of the domain has not sent."""
        url = event.to.removesuffix(_PART)
        if url not in self._records:
            reason = DropReason.UNSUBSCRIBED
        # The bus has checked that its sender is the right registry, and that a node has sent it;
        # the stub, the last in `via`, shows which node.
        elif event.via[-1:] != (self.routes.node_stub(url),):
            reason = DropReason.FORGED_STATUS
        else:
            try:
                return url, RecordStatus(read_body(event, RecordChanged).value)
            except BadMessageError:
                reason = DropReason.MALFORMED
        self.hops.record_drop(event, reason)
        return None
