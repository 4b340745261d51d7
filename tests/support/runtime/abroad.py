"""Two domains in one process: a node and a runtime each, and sandboxes beside them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import trio
import trio.testing

from actors.catalogue.client import CatalogueAccess
from actors.node.app import Node, open_node
from actors.node.config import Endpoint, ForeignPlan, NodeConfig
from actors.pipe.plan import Spawn, TokenSource, nothing
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.runtime import Runtime
from actors.sandbox.sandbox import open_local_sandbox
from fsm.registry.resolve.topology import Topology
from specs.jsonvalue import Json
from specs.limits.protocol import STUB_IDLE
from specs.message import Message
from specs.trace import Kind
from tests.support.runtime.domain import counted_bytes
from tests.support.trace.memory import MemoryTracer
from transports.link import Link
from transports.memory import MemoryNetwork

A, B = "a.ex", "b.ex"
PLACES = {A: "ws://127.0.0.1:40000", B: "ws://127.0.0.1:40001"}


class OpenedSandboxes:
    """Opens sandboxes in this process, and lets a test in.

    Attributes:
        links: The host's ends of all sandboxes that were opened, oldest first.
        gate: A sandbox opens only while it is set.
    """

    def __init__(self, make: Spawn = open_local_sandbox) -> None:
        self.links: list[Link] = []
        self.gate = trio.Event()
        self.gate.set()
        self._make = make

    @asynccontextmanager
    async def spawn(self, label: str) -> AsyncIterator[Link]:
        await self.gate.wait()
        async with self._make(label) as link:
            self.links.append(link)
            yield link

    def close(self) -> None:
        """Let no sandbox open until `open_after`."""
        self.gate = trio.Event()

    async def open_after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self.gate.set()

    async def kill(self) -> None:
        """Let the newest sandbox vanish, as a process does that is killed."""
        self.links[-1].drop()
        await trio.testing.wait_all_tasks_blocked()


class Shy(Hyperty):
    """Answers a request with its own value, or not at all while it is silent.

    Attributes:
        asked: The requests, in the order they came.
    """

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.silent = False

    async def on_request(self, message: Message) -> Json:
        self.asked.append(message)
        if self.silent:
            await trio.sleep_forever()
        return message.body.get("value")


@attrs.frozen
class Side:
    """One domain.

    Attributes:
        address: Of its hyperty.
    """

    node: Node
    tracer: MemoryTracer
    sandboxes: OpenedSandboxes
    runtime: Runtime
    hyperty: Shy
    address: str

    async def ask(self, other: "Side | str", value: object = "hello") -> Message:
        to = other if isinstance(other, str) else other.address
        return await self.hyperty.request(to, value)

    def steps(self, machine: str) -> list[tuple[str, str, str]]:
        """Key, old and new state of every step of a machine at the node."""
        return [
            (str(fact.key), str(fact.old), str(fact.new))
            for fact in self.tracer.facts
            if fact.k is Kind.STATE and fact.machine == machine
        ]

    def ops(self, **wanted: object) -> list[str]:
        return self.tracer.ops(**wanted)


@attrs.frozen
class World:
    network: MemoryNetwork
    a: Side
    b: Side


@attrs.frozen
class DomainOptions:
    """How the two domains are to be: by default each knows the way to the other.

    Attributes:
        shows: Returns what each node shows the other.
        node: Changes the configuration of each node.
        catalogues: Where nodes fetch the stubs of domains that they do not know.
        stub_idle: After how many seconds runtimes and nodes release an idle stub of the other
            domain.
    """

    spawn: Spawn = open_local_sandbox
    topology: Topology = Topology.TRAPEZOID
    a_knows: dict[str, str] = attrs.field(factory=lambda: {B: f"{PLACES[B]}/link"})
    b_knows: dict[str, str] = attrs.field(factory=lambda: {A: f"{PLACES[A]}/link"})
    shows: TokenSource = nothing
    node: Callable[[NodeConfig], NodeConfig] = lambda config: config
    catalogues: CatalogueAccess | None = None
    stub_idle: float = STUB_IDLE


@asynccontextmanager
async def open_two(options: DomainOptions | None = None) -> AsyncIterator[World]:
    wanted, network = options or DomainOptions(), MemoryNetwork()
    async with AsyncExitStack() as stack:
        knows = {A: wanted.a_knows, B: wanted.b_knows}
        nodes = {
            domain: await _node(stack, network, domain, (knows[domain], wanted))
            for domain in (A, B)
        }
        sides = [await _side(stack, network, domain, (nodes, wanted)) for domain in (A, B)]
        yield World(network, *sides)


async def _node(stack, network, domain, how):
    knows, wanted = how
    sandboxes, tracer = OpenedSandboxes(wanted.spawn), MemoryTracer()
    plan = ForeignPlan(
        {name: Endpoint(url, wanted.shows) for name, url in knows.items()},
        sandboxes.spawn,
        wanted.catalogues,
        idle=wanted.stub_idle,
    )
    config = wanted.node(NodeConfig(domain=domain, entropy=counted_bytes(0), foreign=plan))
    node = await stack.enter_async_context(open_node(config, network, tracer))
    return node, tracer, sandboxes


async def _side(stack, network, domain, how):
    nodes, wanted = how
    node, tracer, sandboxes = nodes[domain]
    config = RuntimeConfig(
        domain=domain,
        name=f"r{domain[0]}",
        node=node.url,
        nodes={name: one[0].url for name, one in nodes.items()},
        topology=wanted.topology,
        entropy=counted_bytes(len(domain)),
        stub_idle=wanted.stub_idle,
    )
    hyperty = Shy()
    runtime = await stack.enter_async_context(open_runtime(config, network, MemoryTracer()))
    address = await runtime.deploy("echo", lambda: hyperty)
    return Side(node, tracer, sandboxes, runtime, hyperty, address)
