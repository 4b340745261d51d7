"""Stubs for domains with a plain HTTP server instead of a message node (PFY-05).

There is no session: the connection is `live` from the first request on, and each request is one
HTTP request. If the server cannot be reached, the request fails, not the stub.
"""

from abc import abstractmethod
from collections import deque
from typing import Final
from urllib.parse import quote
from uuid import UUID

import trio
from typing_extensions import override

from actors.kit.back_ends.requests import (
    Asked,
    BackEndError,
    RestRecords,
    answer_body,
    code_of,
    read_request,
    words,
)
from actors.kit.http_client import HttpAnswer, HttpClient, HttpError, HttpUrlError
from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.stubs.http import http_over
from actors.runtime.stubs.stub import StubConnection, StubContext
from actors.runtime.stubs.wire import StubOptionError, read_options
from fsm.machines.stub_connection import State, Trigger
from fsm.registry.records import Answered, Create, Find, Read, Touch
from specs.addresses.address import address_allocation, domain_of, domain_registry, session_manager
from specs.bodies.link import Command
from specs.bodies.registry import Allocate, Allocated
from specs.bodies.session import SessionControl
from specs.bodies.word import SessionMethod, StubMethod
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits import node
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from transports.bodies import read_body, write_body
from transports.codec import encode, read_object

_SLOW: Final = f"the server has not answered within {node.BACKEND_TIMEOUT:.0f} s"
_BUSY: Final = f"{node.BACKEND_QUEUE} requests wait for the server already"


def _client_of(stub: str, context: StubContext) -> HttpClient:
    """Return a client of the server that a profile names.

    Args:
        stub: Name of the stub, for errors.
        context: Context of the stub.

    Raises:
        StubOptionError: It names no server, or has options; these stubs have none.
    """
    read_options(stub, context.config.options, {})
    try:
        return http_over(context.network, context.config.node_url or "", node.BACKEND_ANSWER_BYTES)
    except HttpUrlError as exc:
        raise StubOptionError(stub, "endpoint", f"its endpoint: {exc}") from exc


class ClientServerStub(Actor[Delivery]):
    """Stub that turns messages to a domain into requests to a server.

    A subclass converts requests and answers. Errors of the server become 502, its silence 504.

    Args:
        name: Name of the stub, for errors.
        context: Context of the stub.

    Attributes:
        context: Context of the stub.
        client: Client of the server.

    Raises:
        StubOptionError: The profile names no server, or has options; these stubs have none.
    """

    def __init__(self, name: str, context: StubContext) -> None:
        self.context: Final = context
        self.client: Final = _client_of(name, context)
        self._connection = StubConnection(context)
        self._permits = trio.CapacityLimiter(node.BACKEND_CONNECTIONS)
        self._lanes: dict[str, deque[tuple[Message, float]]] = {}
        self._open = 0

    # ---- for subclasses

    @abstractmethod
    async def answer(self, request: Message) -> Message:
        """Return the answer to a request of this runtime.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: The answer cannot be used.
            BadMessageError: The server does not support the request.
        """

    def lane(self, request: Message) -> str:
        """Return a key; requests with the same key keep their order. By default it is the receiver.

        Args:
            request: A request.
        """
        return request.to

    async def disconnecting(self) -> None:
        """Complete the work before a disconnect, by default none; the caller limits the time."""

    # ---- the actor

    @override
    async def start(self) -> None:
        await self._connection.step(Trigger.CONSTRUCTED)

    @override
    async def stop(self) -> None:
        await self.client.aclose()

    @override
    async def handle(self, message: Delivery) -> None:
        asked = message.message
        if asked.to == self.context.url:
            await self._command(asked)
        elif not asked.is_request:
            # The server takes no events, and sends no requests.
            self.context.counters.drop(DropReason.NO_TARGET, asked, self.context.url)
        elif self._open >= node.BACKEND_QUEUE:
            await self.context.bus.post(refuse(asked, Code.UNAVAILABLE, _BUSY))
        else:
            await self._connect()
            self._enqueue(asked)

    async def _connect(self) -> None:
        """Set the stub's state to `live` at the first request; no connection is needed before."""
        if self._connection.state is State.CREATED:
            await self._connection.step(Trigger.CONNECT)
            await self._connection.step(Trigger.ESTABLISHED)

    async def _command(self, message: Message) -> None:
        if message.is_response:
            return
        try:
            method = read_body(message, Command).method
        except BadMessageError as error:
            await self.context.bus.post(refuse(message, error.code, error.reason))
            return
        if method == StubMethod.CONNECT:
            await self._connect()
            await self.context.bus.post(reply_to(message, Code.ACCEPTED))
            return
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self.disconnecting()
        if self._connection.state is State.LIVE:
            await self._connection.step(Trigger.CLOSED, "disconnect")
        await self.context.bus.post(reply_to(message, Code.OK))

    def _enqueue(self, request: Message) -> None:
        """Queue a request behind the requests with the same key."""
        self._open += 1
        name, until = self.lane(request), trio.current_time() + node.BACKEND_TIMEOUT
        if name in self._lanes:
            self._lanes[name].append((request, until))
        else:
            self._lanes[name] = deque([(request, until)])
            self.spawn(self._work, name)

    async def _work(self, name: str) -> None:
        lane = self._lanes[name]
        while lane:
            request, until = lane.popleft()
            answer = refuse(request, Code.BACKEND_TIMEOUT, _SLOW)
            with trio.move_on_at(until):
                async with self._permits:
                    answer = await self._make_answer(request)
            self._open -= 1
            await self.context.bus.post(answer)
        del self._lanes[name]

    async def _make_answer(self, request: Message) -> Message:
        try:
            answer = await self.answer(request)
        except (HttpError, BackEndError) as exc:
            return refuse(request, Code.BAD_BACKEND, str(exc))
        except BadMessageError as exc:
            return refuse(request, exc.code, exc.reason)
        try:
            read_object(encode(answer))
        except BadMessageError as exc:
            return refuse(request, Code.BAD_BACKEND, f"the server's answer: {exc.reason}")
        return answer


_METHODS: Final = {
    MessageType.READ: "GET",
    MessageType.CREATE: "POST",
    MessageType.UPDATE: "PUT",
    MessageType.DELETE: "DELETE",
    MessageType.EXECUTE: "POST",
}
_FAILURES: Final = {
    500: Code.INTERNAL,
    502: Code.BAD_BACKEND,
    504: Code.BACKEND_TIMEOUT,
}
"""Failures that the server itself reports; they are added to those of all back ends."""

_DOTS: Final = frozenset({".", ".."})


class HttpJsonStub(ClientServerStub):
    """The stub `http-json`: messages to a domain become calls of a plain REST server (PFY-05).

    | message | call |
    |---|---|
    | `read` | `GET` |
    | `create` | `POST`, with `value` |
    | `update` | `PUT`, with `value` |
    | `delete` | `DELETE` |
    | `execute` | `POST` to the method below it, with `params` |

    The path of the call is that of `resource`, if that is an address of the domain, else that of
    the receiver: `item://shop.example/items/3` is `/items/3` below the endpoint. Statuses become
    reply codes; the JSON of an answer becomes its `value`.

    Args:
        context: Context of the stub.

    Raises:
        StubOptionError: The profile names no server, or has options; there are none.
    """

    def __init__(self, context: StubContext) -> None:
        super().__init__("http-json", context)

    @override
    async def answer(self, request: Message) -> Message:
        method = _METHODS.get(request.type)
        if method is None:
            why = f"{self.context.config.domain} has no message node, so nothing can be followed"
            raise BadMessageError(f"{why}; it can be read, created, updated, deleted or executed")
        return _reply(request, await self.client.ask(method, self._path(request), _body(request)))

    def _path(self, request: Message) -> str:
        """Return the path of a call, each segment quoted; it leads nowhere but below the endpoint.

        Raises:
            BadMessageError: A segment would lead upwards.
        """
        resource = request.body.get("resource")
        named = isinstance(resource, str) and domain_of(resource) == self.context.config.domain
        address = str(resource) if named else request.to
        segments = address.partition("://")[2].split("/")[1:]
        if request.type is MessageType.EXECUTE:
            segments = [*segments, str(request.body.get("method", ""))]
        if _DOTS & {*segments}:
            raise BadMessageError("a part of the address is a dot")
        return "".join(f"/{quote(segment, safe='')}" for segment in segments if segment)


def _body(request: Message) -> Json:
    name = "params" if request.type is MessageType.EXECUTE else "value"
    return request.body.get(name)


def _reply(request: Message, answer: HttpAnswer) -> Message:
    code = _FAILURES.get(answer.status) or code_of(answer)
    if code > LAST_SUCCESS:
        return refuse(request, code, words(answer))
    value = answer.json() if answer.body else None
    return reply_to(request, code, {} if value is None else {"value": value})


_UUID_BYTES: Final = 16


class RestRegistryStub(ClientServerStub):
    """The stub `rest-registry`, for a domain with a registry behind REST, and no node (PFY-13).

    Registration, status and search go to the registry, by the calls of a node's REST connector. The
    stub itself allocates random addresses for the hyperties of its runtime. All other requests are
    answered 404: without a node, no messages are carried, no direct links are set up, and no
    changes are reported.

    Args:
        context: Context of the stub.

    Raises:
        StubOptionError: The profile names no server, or has options; there are none.
    """

    def __init__(self, context: StubContext) -> None:
        super().__init__("rest-registry", context)
        config = context.config
        self._records = RestRecords(self.client)
        self._runtime = config.runtime
        self._none = f"{config.domain} has no message node"
        self._answers = {
            domain_registry(config.domain): self._of_registry,
            address_allocation(config.domain): self._of_allocation,
            session_manager(config.domain): self._of_sessions,
        }

    @override
    async def answer(self, request: Message) -> Message:
        answer = self._answers.get(request.to)
        if answer is None:
            why = f"{self._none}, so no message leads to {request.to[:80]}"
            return refuse(request, Code.NOT_FOUND, why)
        return await answer(request)

    @override
    def lane(self, request: Message) -> str:
        value = request.body.get("value")
        url = value.get("url") if isinstance(value, dict) else request.body.get("resource")
        return url if isinstance(url, str) else request.to

    @override
    async def disconnecting(self) -> None:
        for url in self._records.remove_runtime(self._runtime):
            await self._records.disconnect(url)

    async def _of_registry(self, request: Message) -> Message:
        said = await self._ask_registry(Asked(request, self._runtime, self._runtime))
        return reply_to(request, said.code, answer_body(said))

    async def _ask_registry(self, asked: Asked) -> Answered:
        match read_request(asked):
            case Create() as create:
                return (await self._records.create(create))[0]
            case Touch() as touch:
                return (await self._records.touch(touch))[0]
            case Read() | Find() as read:
                return await self._records.read(read)

    async def _of_allocation(self, request: Message) -> Message:
        """Allocate random addresses, which need no node to be unique."""
        if request.type is MessageType.DELETE:
            return reply_to(request, Code.OK)
        if request.type is not MessageType.CREATE:
            raise BadMessageError("addresses can be created and deleted only")
        asked = read_body(request, Allocate)
        place, entropy = f"{asked.scheme}://{self.context.config.domain}", self.context.entropy
        made = tuple(
            f"{place}/{UUID(bytes=entropy(_UUID_BYTES), version=4)}"
            for _ in range(asked.value.number)
        )
        return reply_to(request, Code.OK, {"value": write_body(Allocated(made))})

    async def _of_sessions(self, request: Message) -> Message:
        """Answer pings; refuse all other session controls, as the domain has no node."""
        method = read_body(request, SessionControl).method
        if method == SessionMethod.PING:
            return reply_to(request, Code.OK)
        return refuse(request, Code.NOT_FOUND, f"{self._none}, so there are no sessions")
