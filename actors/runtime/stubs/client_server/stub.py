"""The base of stubs that answer requests from a plain HTTP server (PFY-05).

There is no session: the connection is `live` from the first request on, and each request is one
HTTP request. If the server cannot be reached, the request fails, not the stub.
"""

from abc import abstractmethod
from collections import deque
from typing import Final

import trio
from typing_extensions import override

from actors.kit.back_ends.requests import BackEndError
from actors.kit.http_client import HttpClient, HttpError, HttpUrlError
from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.stubs.client_server.http import http_over
from actors.runtime.stubs.stub import StubConnection, StubContext
from actors.runtime.stubs.wire import StubOptionError, read_options
from fsm.machines.stub_connection import State, Trigger
from specs.bodies.link import Command
from specs.bodies.word import StubMethod
from specs.errors import BadMessageError
from specs.limits import node
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code, DropReason
from transports.bodies import read_body
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
    """Answers requests to a domain by requests to a server.

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
        """Return a key; requests of one key keep their order. By default it is the receiver.

        Args:
            request: A request.
        """
        return request.to

    async def disconnecting(self) -> None:
        """Complete the work before a disconnect, by default nothing. The caller bounds the time."""

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
        """Step to `live` at the first request; there is no connection to establish before."""
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
                    answer = await self._answered(request)
            self._open -= 1
            await self.context.bus.post(answer)
        del self._lanes[name]

    async def _answered(self, request: Message) -> Message:
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
