"""A stub for a protocol that protofly does not know: lines over TCP.

    client                  server
    ASK <number> <json>  -> ANSWER <number> <json>

A stub is an actor. The runtime delivers to it the messages for its domain, and the stub posts
the domain's messages on its bus. It runs in a separate process, from memory, and can dial only
the endpoints of its descriptor. `actors.runtime.stubs.stub` describes its obligations: to report
each step of its connection, and to answer requests that it cannot deliver.
"""

import json
from contextlib import suppress
from typing import TypeAlias

from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.stubs.stub import StubConnection, StubContext
from fsm.machines.stub_connection import State, Trigger
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code
from transports.errors import DialError, LinkError
from transports.link import Link
from transports.urls import read_endpoint

MAX_WAITING = 100

Happened: TypeAlias = Delivery | Link | str | DialError | LinkError
"""Input of the stub: messages of the runtime; a new link, a line, the end of its own task."""


def activate(context: StubContext) -> Actor[Delivery]:
    """Make the stub; this is the entry point that the descriptor names."""
    return ShoutStub(context)


class ShoutStub(Actor[Happened]):
    """Connects one runtime by the protocol; dials at the first message."""

    def __init__(self, context: StubContext) -> None:
        self._context = context
        self._connection = StubConnection(context)
        self._link: Link | None = None
        self._is_dialling = False
        self._asked: dict[str, Message] = {}
        self._last = 0

    async def start(self) -> None:
        """Report that the stub exists."""
        await self._connection.step(Trigger.CONSTRUCTED)

    async def handle(self, message: Happened) -> None:
        """Handle one input; inputs are handled sequentially."""
        match message:
            case Delivery():
                await self._deliver(message.message)
            case Link():
                await self._opened(message)
            case str():
                await self._answered(message)
            case DialError() | LinkError():
                await self._lost(str(message))

    # The runtime's side: requests for the domain, and commands for the stub itself.

    async def _deliver(self, message: Message) -> None:
        if not message.is_request:
            return
        if message.to == self._context.url:
            await self._context.bus.post(reply_to(message, Code.OK))
        elif len(self._asked) == MAX_WAITING:
            why = f"{MAX_WAITING} requests wait for their answers"
            await self._context.bus.post(refuse(message, Code.UNAVAILABLE, why))
        else:
            self._last += 1
            self._asked[str(self._last)] = message
            await self._ask(str(self._last), message)

    async def _ask(self, number: str, message: Message) -> None:
        if self._link is None:
            await self._dial()
            return
        line = f"ASK {number} {json.dumps(message.body.get('value'))}\n"
        # The reading task reports a lost link.
        with suppress(LinkError):
            await self._link.send(line.encode())

    async def _dial(self) -> None:
        if self._connection.state is State.CREATED:
            await self._connection.step(Trigger.CONNECT)
        if not self._is_dialling:
            self._is_dialling = True
            self.spawn(self._listen)

    # The side of the protocol.

    async def _listen(self) -> None:
        """Dial, and send the actor each line, until the link is lost."""
        endpoint, rest = read_endpoint(self._context.config.endpoints[0]), b""
        try:
            async with await self._context.network.dial(endpoint.kind, endpoint.address) as link:
                await self.me.tell(link)
                while True:
                    *lines, rest = (rest + await link.receive()).split(b"\n")
                    for line in lines:
                        await self.me.tell(line.decode())
        except (DialError, LinkError) as error:
            await self.me.tell(error)

    async def _opened(self, link: Link) -> None:
        self._link = link
        is_first = self._connection.state is State.IN_PROGRESS
        await self._connection.step(Trigger.ESTABLISHED if is_first else Trigger.REESTABLISHED)
        for number, message in self._asked.items():
            await self._ask(number, message)

    async def _answered(self, line: str) -> None:
        _, number, answer = line.split(" ", 2)
        request = self._asked.pop(number)
        value = {"value": json.loads(answer)}
        await self._context.bus.post(reply_to(request, Code.OK, value))

    async def _lost(self, why: str) -> None:
        """Report the loss of the link, and refuse all open requests."""
        self._link, self._is_dialling = None, False
        if self._connection.state is State.LIVE:
            await self._connection.step(Trigger.CLOSED, why)
        elif self._connection.state is State.IN_PROGRESS:
            await self._connection.step(Trigger.ESTABLISH_FAILED, why)
        asked, self._asked = self._asked, {}
        for request in asked.values():
            await self._context.bus.post(refuse(request, Code.UNAVAILABLE, why))
