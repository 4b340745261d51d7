"""Components of a runtime that answer read requests of its own components (ADR-03).

| part | answer to a read |
|---|---|
| `R/discovery` | what a domain registry finds (M-31) |
| `R/idm` | the logged-in user, who vouches for it, and the key of the runtime; never a token |
| `R/subscriptions` | the data objects reported and observed here, and the records followed |
| `R/graph-connector` | the global record of a user, by GUID or user address (M-56) |

Other verbs are answered 400, requests of other runtimes 403. `R/identity-gui`, which
asks the user, stands in `actors.runtime.discovery.identity_gui`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.runtime.bus.ports import CorePort
from actors.runtime.discovery.identity_gui_part import IdentityGuiPart
from actors.runtime.discovery.search import Discoverer
from actors.runtime.runtime import Runtime
from specs.addresses.address import GLOBAL_REGISTRY, domain_of, runtime_of, scheme_of
from specs.bodies.link import Nothing
from specs.bodies.object import ObjectName
from specs.bodies.registry import Discover, ReadRecord
from specs.bodies.session import IDENTITY_GUI
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.limits.discovery import PART_REQUESTS, SUBSCRIPTIONS_SHOWN
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body

Answer: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Function that answers a read request of a component of the own runtime.

Raises:
    BadMessageError: The request has no valid body; the error becomes the refusal.
"""


def discoverer_of(port: CorePort, ids: IdSource) -> Discoverer:
    """Return a search client that sends its requests as a part of the runtime.

    Args:
        port: Port of the part.
        ids: Source of message ids.
    """
    runtime = runtime_of(port.url)

    def message(to: str, kind: MessageType, body: JsonObject) -> Message:
        return Message(ids.next(port.url), kind, port.url, to, body)

    async def ask(to: str, kind: MessageType, body: JsonObject) -> Message:
        return await port.request(message(to, kind, body))

    async def post(to: str, kind: MessageType, body: JsonObject) -> None:
        await port.post(message(to, kind, body))

    return Discoverer(domain_of(runtime), f"{runtime}/registry", ask, post)


class ReadablePart(Actor[Delivery]):
    """A component that answers reads of its own runtime, at most `PART_REQUESTS` at a time.

    Args:
        port: Its port.
        answer: Answers a read.
        on_event: Handles the events that are sent to the part; None: events are ignored.
    """

    def __init__(
        self,
        port: CorePort,
        answer: Answer,
        on_event: Callable[[Message], Awaitable[bool]] | None = None,
    ) -> None:
        self._port: Final = port
        self._answer: Final = answer
        self._on_event: Final = on_event
        self._free_reads = trio.Semaphore(PART_REQUESTS)

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)

    @override
    async def handle(self, message: Delivery) -> None:
        request = message.message
        if request.is_event and self._on_event is not None:
            await self._on_event(request)
        if not request.is_request:
            return
        if message.is_foreign:
            why = f"{self._port.url} answers the components of its own runtime only"
            await self._port.post(refuse(request, Code.FORBIDDEN, why))
        elif request.type is not MessageType.READ:
            why = f"{self._port.url} can only be read"
            await self._port.post(refuse(request, Code.MALFORMED, why))
        else:
            # Further requests wait in the mailbox, which is bounded.
            await self._free_reads.acquire()
            self.spawn(self._read, request)

    async def _read(self, request: Message) -> None:
        try:
            try:
                answer = await self._answer(request)
            except BadMessageError as error:
                answer = refuse(request, error.code, error.reason)
            await self._port.post(answer)
        finally:
            self._free_reads.release()


class RefusingPart(Actor[Delivery]):
    """A component that sends requests, and refuses all requests that are sent to its address.

    Args:
        port: The port of the part.
        why: The reason of the refusals.
        code: The reply code of the refusals.
    """

    def __init__(self, port: CorePort, why: str, code: Code = Code.MALFORMED) -> None:
        self._port: Final = port
        self._why: Final = why
        self._code: Final = code

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)

    @override
    async def handle(self, message: Delivery) -> None:
        if message.message.is_request:
            await self._port.post(refuse(message.message, self._code, self._why))


DISCOVERY: Final = "discovery"
_GRAPH: Final = "graph-connector"

_DOMAIN: Final = "domain"
_FORWARDED: Final = ("value", "next", "description")
"""Entries of a registry's answer that are forwarded to the requester."""


async def _discovery(runtime: Runtime, request: Message) -> Message:
    """Search the registry of the domain in the criterion `domain`, else the own one (M-31)."""
    body = read_body(request, Discover)
    criteria = dict(body.criteria or {})
    domain = criteria.pop(_DOMAIN, None)
    if domain is not None and not isinstance(domain, str):
        raise BadMessageError("the criterion domain is no text")
    try:
        registry = runtime.discoverer.reader(domain)
    except BadUrlError as error:
        raise BadMessageError(str(error)) from error
    read = ReadRecord(body.resource, criteria or None, body.limit, body.after, body.attribute)
    return _forward_answer(request, await registry.read(write_body(read)))


def _forward_answer(request: Message, answer: Message) -> Message:
    body: JsonObject = {key: answer.body[key] for key in _FORWARDED if key in answer.body}
    return reply_to(request, answer.code, body)


async def _idm(runtime: Runtime, request: Message) -> Message:
    """Return the logged-in user, its provider, and the key of the runtime; never a token."""
    await trio.lowlevel.checkpoint()
    read_body(request, Nothing)
    own = runtime.own
    value: JsonObject = {
        "user": own.identity.user,
        "vouchedBy": own.identity.vouched_by.value,
        "identityProvider": own.issuer,
        "expires": own.until,
        "key": runtime.identity.key.thumbprint,
    }
    return reply_to(request, Code.OK, {"value": value})


async def _subscriptions(runtime: Runtime, request: Message) -> Message:
    """Return the reported, observed and followed addresses, each list up to a limit."""
    read_body(request, Nothing)
    reported, observed = await runtime.sync.urls()
    watched = (await runtime.registry.view()).watched
    value: JsonObject = {
        "reported": _first(reported),
        "observed": _first(observed),
        "followed": _first(watched),
        "total": len(reported) + len(observed) + len(watched),
    }
    return reply_to(request, Code.OK, {"value": value})


def _first(urls: Sequence[str]) -> Json:
    return [*sorted(urls)[:SUBSCRIPTIONS_SHOWN]]


async def _graph_connector(runtime: Runtime, request: Message) -> Message:
    """Read the global record of a user; the GUID of a user is in the own domain's registry."""
    resource = read_body(request, ObjectName).resource
    guid = resource if scheme_of(resource) == "user-guid" else None
    if scheme_of(resource) == "user":
        guid = await _guid_of(runtime, resource)
        if guid is None:
            raise BadMessageError(f"no GUID of {resource} is registered here", Code.NOT_FOUND)
    if guid is None:
        raise BadMessageError("resource is no user-guid:// or user:// address")
    body = write_body(ObjectName(guid))
    answer = await runtime.order(_GRAPH, MessageType.READ, GLOBAL_REGISTRY, body)
    return _forward_answer(request, answer)


async def _guid_of(runtime: Runtime, user: str) -> str | None:
    registry = discoverer_of(runtime.port(_GRAPH), runtime.ids).reader(None)
    answer = await registry.read(write_body(ReadRecord(user)))
    value = answer.body.get("value")
    records = value if isinstance(value, list) else []
    guids = (record.get("guid") for record in records if isinstance(record, dict))
    return next((guid for guid in guids if isinstance(guid, str)), None)


_PARTS: Final[Mapping[str, Callable[[Runtime, Message], Awaitable[Message]]]] = {
    DISCOVERY: _discovery,
    "idm": _idm,
    "subscriptions": _subscriptions,
    _GRAPH: _graph_connector,
}
"""Functions that answer reads, by the name of the component below the runtime."""


async def start_parts(runtime: Runtime, core: Supervisor) -> None:
    """Start the components of a runtime that answer reads.

    If cancelled, some of them have started.
    """
    for name, answer in _PARTS.items():
        on_event = runtime.discoverer.take_report if name == DISCOVERY else None
        part = partial(ReadablePart, runtime.port(name), partial(answer, runtime), on_event)
        await core.start_child(ChildSpec(name, part))
    gui = partial(IdentityGuiPart, runtime.port(IDENTITY_GUI), runtime.config.identity_gui)
    await core.start_child(ChildSpec(IDENTITY_GUI, gui))
