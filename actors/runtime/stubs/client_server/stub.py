"""A stub to a server that is asked by HTTP: each request is answered from one answer (PFY-05).

There is no session: the connection is `live` from the first request on, and each request stands
for itself. A server that cannot be reached is a failed request, not a failed stub.
"""

from abc import abstractmethod
from collections import deque
from typing import Final

import trio
from typing_extensions import override

from actors.kit.back_ends.answers import BackEndError
from actors.kit.http_client import HttpClient, HttpError, HttpUrlError
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.runtime.stubs.client_server.http import http_over
from actors.runtime.stubs.stub import StubConnection, StubContext
from actors.runtime.stubs.wire import StubOptionError, read_options
from fsm.machines.stub_connection import State, Trigger
from specs.bodies.link import Command
from specs.bodies.word import StubMethod
from specs.errors import BadMessageError
from specs.limits.node import (
    BACKEND_ANSWER_BYTES,
    BACKEND_CONNECTIONS,
    BACKEND_QUEUE,
    BACKEND_TIMEOUT,
)
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code, DropReason
from transports.bodies import read_body

__all__ = ["ClientServerStub", "client_of"]

_SLOW: Final = f"the server has not answered within {BACKEND_TIMEOUT:.0f} s"
_BUSY: Final = f"{BACKEND_QUEUE} requests wait for the server already"


def client_of(stub: str, context: StubContext) -> HttpClient:
    """Return a client of the server that a profile names.

    Args:
        stub: Name of the stub, for errors.
        context: Context of the stub.

    Raises:
        StubOptionError: It names none, or the profile has options; these stubs know none.
    """
    read_options(stub, context.config.options, {})
    try:
        return http_over(context.network, context.config.node_url or "", BACKEND_ANSWER_BYTES)
    except HttpUrlError as exc:
        raise StubOptionError(stub, "endpoint", f"its endpoint: {exc}") from exc


class ClientServerStub(Actor[Delivery]):
    """Answers requests to a domain from the answers of a server.

    A subclass asks the server; its errors become 502, and its silence 504.

    Args:
        context: What the stub may use.
    """

    def __init__(self, context: StubContext) -> None:
        self.context: Final = context
        self._connection = StubConnection(context)
        self._permits = trio.CapacityLimiter(BACKEND_CONNECTIONS)
        self._lanes: dict[str, deque[tuple[Message, float]]] = {}
        self._open = 0

    # ---- for subclasses

    @abstractmethod
    async def answer(self, request: Message) -> Message:
        """Return the answer to a request of this runtime.

        Raises:
            HttpError: The server gave no answer.
            BackEndError: Its answer is none.
            BadMessageError: The request asks for nothing that the server has.
        """

    def lane(self, request: Message) -> str:
        """Return what the requests concern that must keep their order; by default their receiver.

        Args:
            request: A request.
        """
        return request.to

    async def farewell(self) -> None:
        """Finish what must not stay undone; bounded by the caller. By default nothing."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections to the server, within bounds."""

    # ---- the actor

    @override
    async def start(self) -> None:
        await self._connection.step(Trigger.CONSTRUCTED)

    @override
    async def stop(self) -> None:
        await self.aclose()

    @override
    async def handle(self, message: Delivery) -> None:
        asked = message.message
        if asked.to == self.context.url:
            await self._command(asked)
        elif not asked.is_request:
            # A server that is asked gets no events, and asks nothing itself.
            self.context.counters.drop(DropReason.NO_TARGET, asked, self.context.url)
        elif self._open >= BACKEND_QUEUE:
            await self.context.bus.post(refuse(asked, Code.UNAVAILABLE, _BUSY))
        else:
            await self._connect()
            self._enqueue(asked)

    async def _connect(self) -> None:
        """Go live with the first request: there is nothing to be connected before."""
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
            await self.farewell()
        if self._connection.state is State.LIVE:
            await self._connection.step(Trigger.CLOSED, "disconnect")
        await self.context.bus.post(reply_to(message, Code.OK))

    def _enqueue(self, request: Message) -> None:
        """Let a request wait behind those that concern the same."""
        self._open += 1
        name, until = self.lane(request), trio.current_time() + BACKEND_TIMEOUT
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
            return await self.answer(request)
        except (HttpError, BackEndError) as exc:
            return refuse(request, Code.BAD_BACKEND, str(exc))
        except BadMessageError as exc:
            return refuse(request, exc.code, exc.reason)
