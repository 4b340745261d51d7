"""Node stubs that ship, each between a bus that keeps everything and a real message node."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs
import trio
import trio.testing
from typing_extensions import override

from actors.http.config import HttpConfig
from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import ActorRef, Delivery
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.node.app import Node
from actors.runtime.catalogue import SHIPPED
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType
from tests.support.node.node_peer import RB, Peer, World, open_world
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.link import (
    DEFAULT_PATHS,
    EVERYBODY,
    PROTOFLY_V1,
    Gate,
    Kind,
    Link,
    Listener,
    Network,
    ServedPaths,
)
from transports.memory import MemoryNetwork, Wire

R = "hyperty-runtime://a.ex/rs"
S = f"{R}/protostub/1"
UA = f"{R}/ua"
THERE = f"{RB}/ua"
"""A part of the runtime that is there to be talked to."""


class RenewingPort(KeepingPort):
    """Says of each session that everything is had again, as a runtime does."""

    stub: ActorRef[Delivery] | None = None

    @override
    async def post(self, message: Message, by: str | None = None) -> None:
        if message.is_response and message.to == UA and message.from_ == S:
            return
        await super().post(message, by)
        link = message.body.get("link")
        if self.stub is not None and message.from_ == S and link is not None:
            body: JsonObject = {"method": "renewed", "link": link}
            await self.stub.tell(Delivery(Message(1, MessageType.EXECUTE, UA, S, body), S))


@attrs.frozen
class StubForm:
    """A stub as a profile may ask for it.

    Attributes:
        stub: Its name.
        options: What the profile says beyond that.
        url: Where it dials.
        has_token: Whether it comes back to its session by a token.
    """

    stub: str
    url: Callable[[Node], str]
    options: JsonObject = attrs.field(factory=dict)
    has_token: bool = True


FORMS = {
    "websocket": StubForm("websocket", lambda node: node.url),
    "legacy-websocket": StubForm(
        "legacy-websocket", lambda node: node.legacy_url or "", has_token=False
    ),
    "legacy-session": StubForm("legacy-session", lambda node: node.session_url or ""),
    "rest-long-poll": StubForm("rest", lambda node: node.rest_url or ""),
    "rest-sse": StubForm("rest", lambda node: node.rest_url or "", {"receive": "sse"}),
}
HTTP = HttpConfig("127.0.0.1:0", rest=True)


class DialledNetwork(Network):
    """A network that knows when one party dialled, and can be ordered to let it dial nowhere."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.dialled: list[float] = []
        self.links: list[Link] = []

    @override
    async def dial(
        self,
        kind: Kind,
        address: str,
        subprotocol: str | None = PROTOFLY_V1,
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        self.dialled.append(trio.current_time())
        self.links.append(await self._network.dial(kind, address, subprotocol, tls))
        return self.links[-1]

    @override
    def listen(
        self, kind: Kind, where: str, paths: ServedPaths = DEFAULT_PATHS, gate: Gate = EVERYBODY
    ) -> AbstractAsyncContextManager[Listener]:
        return self._network.listen(kind, where, paths, gate)


class StubWorld:
    """One stub, its node, and a runtime at the same node to talk to."""

    def __init__(
        self, world: World, form: StubForm, ref: ActorRef[Delivery], context: StubContext
    ) -> None:
        self.world = world
        self.form = form
        self.ref = ref
        self.context = context
        self.port: KeepingPort = context.bus
        self.network: DialledNetwork = context.network
        self.counters = context.counters
        self.tracer: MemoryTracer = context.tracer
        self.peer: Peer | None = None
        self._id = 0

    # ---- what goes

    def ask(self, to: str, type_: str = "create", /, **body: object) -> Message:
        self._id += 1
        return Message(self._id, MessageType(type_), UA, to, body)

    async def send(self, *messages: Message) -> None:
        for message in messages:
            await self.ref.tell(Delivery(message, S))

    async def command(self, method: str) -> None:
        body = {"method": method, "params": []}
        self._id += 1
        await self.send(Message(self._id, MessageType.EXECUTE, UA, S, body))

    async def live(self) -> "StubWorld":
        await self.command("connect")
        await self.status("live")
        return self

    # ---- what came

    def statuses(self) -> list[str]:
        return [m.body["value"] for m in self.port.posted if m.to == f"{S}/status"]

    def sessions(self) -> list[str]:
        """The sessions it was live in, in order."""
        lives = [m for m in self.port.posted if m.body.get("value") == "live"]
        return [m.body["link"] for m in lives]

    def came(self) -> list[Message]:
        """What it posted that is no status of its own, and no answer to a command."""
        return [m for m in self.port.posted if m.from_ != S]

    def refused(self) -> list[tuple[int, int]]:
        """Ids and codes of what it answered itself."""
        return [(m.id, m.code) for m in self.port.posted if m.is_response and not m.via]

    async def status(self, value: str) -> None:
        """Wait until this is its state."""
        await self._until(lambda: self.statuses()[-1:] == [value])

    async def seen(self, value: str, after: int) -> None:
        """Wait until this was its state, after so many others."""
        await self._until(lambda: value in self.statuses()[after:])

    async def until(self, count: int) -> list[Message]:
        """Wait until so much came."""
        await self._until(lambda: len(self.came()) >= count)
        return self.came()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        with trio.fail_after(700):
            while not is_so():
                await self.port.wait_for(len(self.port.posted) + 1)

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    # ---- the weather

    @property
    def memory(self) -> MemoryNetwork:
        network = self.world.network
        assert isinstance(network, MemoryNetwork)
        return network

    def wires(self) -> list[Wire]:
        """The stub's wires that are open."""
        return [w for w in self.memory.wires if w.is_open and w.dialler in self.network.links]

    def cut(self) -> None:
        for wire in self.wires():
            wire.cut()

    def refuse(self) -> None:
        """Let the stub reach its node no more."""
        self.memory.refuse(self._place)
        self.cut()

    async def lose(self) -> None:
        """Let it lose its link, whatever that is made of."""
        self.refuse()
        await self.status("disconnected")
        self.allow()

    def allow(self) -> None:
        self.memory.allow(self._place)

    @property
    def _place(self) -> str:
        place = "/".join(self.form.url(self.world.node).split("/")[:3])
        return place.removeprefix("http://")

    def garble(self, old: bytes, new: bytes) -> None:
        """Let something of what the node sends come otherwise."""
        for wire in self.wires():
            wire.acceptor.sieve = lambda frame: frame.replace(old, new)

    def silence(self) -> None:
        """Let nothing come through any more, by no wire, and nobody is notified."""
        self.memory.disturb(self._place, lambda *_: (), lambda *_: ())
        for wire in self.wires():
            wire.acceptor.sieve = wire.dialler.sieve = lambda _: None


@asynccontextmanager
async def open_stub(
    name: str, network: Network | None = None, jitter: bytes = b"\x00\x00"
) -> AsyncIterator[StubWorld]:
    """Run a node and a stub of this form, not connected yet, and a peer to talk to."""
    form = FORMS[name]
    async with open_world(network, allow_legacy=True, http=HTTP) as world:
        port = RenewingPort(S)
        config = StubConfig(R, "a.ex", node_url=form.url(world.node), options=form.options)
        context = StubContext(
            S, port, config, DialledNetwork(world.network), MemoryTracer(), IdSource(),
            lambda _: jitter, Counters(),
        )  # fmt: skip
        async with open_supervisor("test") as supervisor:
            spec = ChildSpec(S, lambda: SHIPPED[form.stub](context))
            ref = port.stub = await supervisor.start_child(spec)
            stub = StubWorld(world, form, ref, context)
            stub.peer = await world.peer(RB)
            yield stub
