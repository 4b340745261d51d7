"""A door before a node that can hold one message, and with it whatever comes behind it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import attrs
import trio

from specs.message import Message
from transports.codec import decode_frame
from transports.errors import DialError, LinkError
from transports.link import PROTOFLY_V1, Kind, Link, Listener, Network

Choice: TypeAlias = Callable[[Message], bool]


@attrs.define
class HaltingGate:
    """Stands between one runtime and its node.

    Attributes:
        url: Where the runtime dials.
        upstream: Where the node is; may change while the gate stands.
        holds: Set once the chosen message has come; it goes no further until `release`.
    """

    network: Network
    upstream: str
    url: str = ""
    holds: trio.Event = attrs.field(factory=trio.Event)
    _released: trio.Event = attrs.field(factory=trio.Event)
    _choice: Choice | None = None

    def hold(self, choice: Choice) -> None:
        """Hold the first message that is chosen, whichever way it goes."""
        self.holds, self._released, self._choice = trio.Event(), trio.Event(), choice

    def release(self) -> None:
        """Let go of what is held, and hold nothing more."""
        self._choice = None
        self._released.set()

    async def serve(self, listener: Listener) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(self._serve_one, await listener.accept())

    async def _serve_one(self, guest: Link) -> None:
        async with guest:
            with suppress(DialError):
                node = await self.network.dial(Kind.WEBSOCKET, self.upstream)
                async with node, trio.open_nursery() as nursery:
                    nursery.start_soon(self._pass_on, guest, node, nursery.cancel_scope)
                    nursery.start_soon(self._pass_on, node, guest, nursery.cancel_scope)

    async def _pass_on(self, one: Link, other: Link, scope: trio.CancelScope) -> None:
        with suppress(LinkError):
            while True:
                frame = await one.receive()
                await self._halt(frame)
                await other.send(frame)
        scope.cancel()

    async def _halt(self, frame: bytes) -> None:
        choice = self._choice
        if choice is None:
            return
        if any(isinstance(line, Message) and choice(line) for line in decode_frame(frame)):
            self._choice = None
            self.holds.set()
            await self._released.wait()


@asynccontextmanager
async def open_gate(network: Network, upstream: str) -> AsyncIterator[HaltingGate]:
    """Open a gate before a node."""
    gate = HaltingGate(network, upstream)
    doors = {"/link": PROTOFLY_V1}
    async with (
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0", doors) as listener,
        trio.open_nursery() as nursery,
    ):
        gate.url = f"{listener.address}/link"
        nursery.start_soon(gate.serve, listener)
        yield gate
        nursery.cancel_scope.cancel()
