"""A message node reduced to its wire: it opens sessions as ordered and keeps what it hears."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import ActorRef, Delivery
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.codec import decode_frame, encode
from transports.errors import LinkError
from transports.link import Kind, Link
from transports.memory import MemoryNetwork

R = "hyperty-runtime://a.ex/ra"
S = f"{R}/protostub/1"
SESSION = "domain://msg-node.a.ex/session"


class FakeNode:
    """Speaks protofly.v1.

    Attributes:
        url: Where it is dialled.
        heard: Messages other than session control, with the number of their link.
        controls: Methods of session control, in order.
        refusals: Codes to answer the next opens and re-opens with.
        is_mute: Whether it answers nothing at all.
    """

    def __init__(self, network: MemoryNetwork, url: str) -> None:
        self.network = network
        self.url = url
        self.heard: list[Message] = []
        self.frames: list[bytes] = []
        self.controls: list[str] = []
        self.tokens: list[object] = []
        self.refusals: list[Code] = []
        self.is_mute = False
        self._links: list[Link] = []

    async def serve(self, link: Link) -> None:
        self._links.append(link)
        try:
            while True:
                frame = await link.receive()
                self.frames.append(frame)
                for message in decode_frame(frame):
                    await self._take(link, message)
        except LinkError:
            return

    async def _take(self, link: Link, message: Message) -> None:
        if message.to != SESSION or message.is_response:
            self.heard.append(message)
            return
        method = message.body["method"]
        self.controls.append(method)
        self.tokens.append(message.body["params"].get("token"))
        if self.is_mute:
            return
        if method.endswith("open") and self.refusals:
            answer = refuse(message, self.refusals.pop(0), "ordered to refuse")
        else:
            answer = reply_to(message, Code.OK, {"value": {"sessionToken": "t1"}})
        await link.send(encode(answer))

    async def send(self, *messages: Message) -> None:
        """Send all in one frame."""
        await self._links[-1].send(b"\n".join(encode(message) for message in messages))

    async def ping(self) -> None:
        await self.send(Message(1, MessageType.EXECUTE, SESSION, S, {"method": "ping"}))

    def cut(self) -> None:
        for wire in self.network.open_wires(Kind.WEBSOCKET):
            wire.cut()


class StubWorld:
    """A node stub between a bus that keeps everything and a fake node."""

    def __init__(self, node: FakeNode, ref: ActorRef[Delivery], port: KeepingPort) -> None:
        self.node = node
        self.ref = ref
        self.port = port
        self.tracer = MemoryTracer()
        self.counters = Counters()

    async def send(self, *messages: Message) -> None:
        for message in messages:
            await self.ref.tell(Delivery(message, S))

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    async def command(self, method: str) -> None:
        body = {"method": method, "params": []}
        sender = f"{R}/ua"
        await self.send(Message(1, MessageType.EXECUTE, sender, S, body))

    def statuses(self) -> list[str]:
        """The values of the status events, in order."""
        return [m.body["value"] for m in self.port.posted if m.to == f"{S}/status"]

    def delivered(self) -> list[Message]:
        """What it posted besides."""
        return [m for m in self.port.posted if m.to != f"{S}/status"]


@asynccontextmanager
async def open_node_stub(*refusals: Code) -> AsyncIterator[StubWorld]:
    """Run a node stub, and a node that refuses so many opens first."""
    network = MemoryNetwork()
    async with network.listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener:
        node = FakeNode(network, f"{listener.address}/link")
        node.refusals += refusals
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_accept, listener, node, nursery)
            async with open_supervisor("test") as supervisor:
                port = KeepingPort(S)
                world = StubWorld(node, None, port)
                config = StubConfig(R, "a.ex", node_url=node.url)
                context = StubContext(
                    S, port, config, network, world.tracer, IdSource(), bytes, world.counters
                )
                world.ref = await supervisor.start_child(
                    ChildSpec(S, lambda: node_stub.activate(context))
                )
                yield world
            nursery.cancel_scope.cancel()


async def _accept(listener, node: FakeNode, nursery: trio.Nursery) -> None:
    while True:
        nursery.start_soon(node.serve, await listener.accept())
