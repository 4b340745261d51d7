"""A plain peer of a message node: it speaks protofly.v1 and remembers what it heard."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio
import trio.testing

from actors.kit.counters import Tally
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from fsm.registry.node_rights import Observation
from specs.jsonvalue import JsonObject
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType
from tests.support.trace.memory import MemoryTracer
from transports.codec import decode_frame, encode
from transports.errors import LinkError
from transports.link import Kind, Link, Network
from transports.memory import MemoryNetwork
from transports.sockets import open_background

DOMAIN = "a.ex"
MN = f"domain://msg-node.{DOMAIN}"
DR = f"domain://registry.{DOMAIN}"
RA = f"hyperty-runtime://{DOMAIN}/ra"
RB = f"hyperty-runtime://{DOMAIN}/rb"
RX = "hyperty-runtime://b.ex/rx"
SESSION, SM, ALLOCATION = f"{MN}/session", f"{MN}/sm", f"{MN}/address-allocation"


class Peer:
    """One runtime's end of a link to a node."""

    def __init__(self, link: Link, runtime: str, domain: str = DOMAIN) -> None:
        self.link = link
        self.node = f"domain://msg-node.{domain}"
        self.runtime = runtime
        self.stub = f"{runtime}/protostub/1"
        self.token = ""
        self.heard: list[Message] = []
        self._id = 0

    async def raw(self, frame: bytes) -> None:
        await self.link.send(frame)

    async def post(self, type_: str, from_: str, to: str, **body: object) -> Message:
        self._id += 1
        message = Message(self._id, MessageType(type_), from_, to, body)
        await self.link.send(encode(message))
        return message

    async def post_answer(self, request: Message, code: int, **body: object) -> None:
        """Answer a request, whoever was asked."""
        reported = {"code": code, **body}
        answer = Message(request.id, MessageType.RESPONSE, request.to, request.from_, reported)
        await self.link.send(encode(answer))

    async def hear(self) -> Message:
        """Return the next message, pings answered and left out."""
        while not self.heard:
            self.heard += list(decode_frame(await self.link.receive()))
            await self._answer_pings()
        return self.heard.pop(0)

    async def read_on(self) -> None:
        """Read until there is nothing to read any more."""
        while True:
            await self.link.receive()

    async def _answer_pings(self) -> None:
        pings = [one for one in self.heard if one.body.get("method") == "ping"]
        self.heard = [one for one in self.heard if one not in pings]
        for ping in pings:
            pong = Message(ping.id, MessageType.RESPONSE, ping.to, ping.from_, {"code": 200})
            await self.link.send(encode(pong))

    async def ask(self, type_: str, from_: str, to: str, **body: object) -> Message:
        """Return the answer to a request; what else is heard meanwhile is kept."""
        request = await self.post(type_, from_, to, **body)
        kept: list[Message] = []
        with trio.fail_after(REPLY_TIMEOUT):
            while True:
                message = await self.hear()
                if message.is_response and (message.id, message.to) == (request.id, from_):
                    self.heard = kept + self.heard
                    return message
                kept.append(message)

    async def control(self, method: str, **params: object) -> Message:
        return await self.ask(
            "execute", self.stub, f"{self.node}/session", method=method, params=params
        )

    async def open(self) -> "Peer":
        answer = await self.control("open", runtimeURL=self.runtime)
        assert answer.code == 200, answer.body
        self.token = answer.body["value"]["sessionToken"]
        return self

    async def allocate(self, scheme: str = "hyperty", number: int = 1) -> list[str]:
        answer = await self.ask(
            "create", f"{self.runtime}/address-allocation", f"{self.node}/address-allocation",
            scheme=scheme, value={"number": number},
        )  # fmt: skip
        assert answer.code == 200, answer.body
        return answer.body["value"]["allocated"]

    async def silence(self, seconds: float = 0.5) -> bool:
        """Say whether nothing is heard for a while."""
        with trio.move_on_after(seconds):
            # Hearing makes the list anew: it is looked up afterwards.
            heard = await self.hear()
            self.heard.append(heard)
        return not self.heard


class World:
    """A node and whoever connects to it."""

    def __init__(self, node: Node, network: Network, tracer: MemoryTracer) -> None:
        self.node = node
        self.network = network
        self.tracer = tracer
        self.links: list[Link] = []

    async def link(self) -> Link:
        self.links.append(await self.network.dial(Kind.WEBSOCKET, self.node.url))
        return self.links[-1]

    async def outsider(self, runtime: str = RA) -> Peer:
        """Connect without a session."""
        return Peer(await self.link(), runtime, self.node.domain)

    async def peer(self, runtime: str = RA) -> Peer:
        """Connect and open a session."""
        return await (await self.outsider(runtime)).open()

    async def states(self) -> dict[str, str]:
        return {view.runtime: view.state for view in await self.node.sessions()}

    def ended(self) -> dict[str, int]:
        """Return how many links of the node ended, by reason."""
        return {str(why): n for (why,), n in self.node.counters.tallies[Tally.LINKS_CLOSED].items()}

    def steps(self, machine: str) -> list[tuple[str, str | None, str | None]]:
        """Return key, old and new state of every step of a machine."""
        facts = [fact for fact in self.tracer.facts if fact.machine == machine]
        return [(str(fact.key), fact.old, fact.new) for fact in facts]

    def ops(self, **wanted: object) -> list[str]:
        """Return what happened to messages, as the tracer says it."""
        return self.tracer.ops(**wanted)


def plain(message: Message) -> JsonObject:
    """Return a message as JSON, as the golden scenarios write it."""
    return json.loads(encode(message))


@asynccontextmanager
async def open_world(network: Network | None = None, **config: object) -> AsyncIterator[World]:
    tracer = MemoryTracer()
    network = network or MemoryNetwork()
    config.setdefault("domain", DOMAIN)
    # Most tests are about something else: their owners would have to be asked otherwise.
    config.setdefault("observation", Observation.OPEN)
    async with (
        open_background() as nursery,
        open_node(NodeConfig(**config), network, tracer) as node,
    ):
        world = World(node, network, tracer)
        yield world
        for link in world.links:
            nursery.start_soon(hang_up, link)
    for link in world.links:
        await link.aclose()


async def hang_up(link: Link) -> None:
    """Read until the node says goodbye, and answer that, as runtimes do; a test may do that."""
    await trio.testing.wait_all_tasks_blocked()
    with suppress(trio.BusyResourceError):
        with suppress(LinkError):
            while True:
                await link.receive()
        await link.aclose()
