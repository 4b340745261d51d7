"""A whole domain in one process: node and runtimes over a network in memory."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import count
from typing import final

import attrs
import trio
from typing_extensions import override

from actors.node.app import Node, open_node
from actors.node.config import OBJECT_SCHEMES, NodeConfig
from actors.policy.store import PolicyConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.policy import Policy
from actors.runtime.runtime import Runtime
from fsm.judge.replay import Judgement
from fsm.judge.trace_line import read_record
from fsm.judge.verdict import judge
from fsm.p2p.link_policy import WHENEVER_POSSIBLE, LinkPolicy
from specs.jsonvalue import Json
from specs.message import Message, MessageType
from specs.trace import Fact, Kind, Op
from tests.support.trace.awaitable_tracer import AwaitableTracer
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole
from transports.link import Kind as Carrier
from transports.link import Network
from transports.memory import MemoryNetwork
from transports.urls import LOOPBACK

DOMAIN = "a.example"
NODE_PLACE = "ws://127.0.0.1:40000"
"""Where the node listens: the first port a network in memory picks."""

P2P_KINDS = (Carrier.WEBSOCKET, Carrier.TCP, Carrier.UNIX)
"""What candidates are of."""

P2P_PLACES = tuple(f"127.0.0.1:{port}" for port in range(40_001, 40_020))
"""Where candidates listen, in the order they are opened."""


@final
class Echo(Hyperty):
    """Answers a request with its own value, and remembers every value.

    Attributes:
        heard: The values, in the order they came.
    """

    def __init__(self) -> None:
        self.heard: list[Json] = []

    @override
    async def on_request(self, message: Message) -> Json:
        value = message.body.get("value")
        self.heard.append(value)
        return value


@attrs.frozen
class Member:
    """One runtime of the domain, with one hyperty.

    Attributes:
        hyperty: The hyperty, to look into and to send from.
        address: Its address.
    """

    runtime: Runtime
    tracer: AwaitableTracer
    hyperty: Echo
    address: str

    def steps(self, machine: str = "p2p_connection") -> list[tuple[str, str]]:
        """The steps of a machine: role or key, and the state entered."""
        return [
            (_short(fact.key or ""), fact.new or "")
            for fact in self.tracer.facts
            if fact.k is Kind.STATE and fact.op is Op.STEP and fact.machine == machine
        ]

    def facts(self, op: Op, kind: Kind = Kind.MSG) -> list[Fact]:
        return [fact for fact in self.tracer.facts if fact.k is kind and fact.op is op]

    async def status(self, other: "Member") -> str | None:
        """What the registry's table says of the link to another runtime."""
        for entry in await self.runtime.links():
            if entry.remote == other.runtime.url:
                return entry.status.value
        return None

    async def wait_for(self, status: str | None, other: "Member") -> None:
        """Wait, at most a minute of virtual time, until the table says so."""

        async def is_so() -> bool:
            return await self.status(other) == status

        with trio.fail_after(60):
            await self.tracer.until(is_so)

    async def ask(self, other: "Member", value: Json) -> Message:
        return await self.hyperty.request(other.address, value)

    async def post(self, other: "Member", value: Json) -> None:
        """Send a request without waiting for its answer."""
        port, url = self.hyperty._participant.port, self.address
        number = self.hyperty._participant.ids.next(url)
        message = Message(number, MessageType.CREATE, url, other.address, {"value": value})
        await port.post(message)


def _short(key: str) -> str:
    parts = key.split("|")
    return parts[2] if len(parts) == 4 else key


@final
@attrs.frozen
class Domain:
    """A domain that runs."""

    node: Node
    network: MemoryNetwork
    members: Mapping[str, Member]
    node_tracer: MemoryTracer

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    @asynccontextmanager
    async def visitor(self, name: str) -> AsyncIterator[Member]:
        """Let one more runtime come, and leave again."""
        async with AsyncExitStack() as stack:
            who = name, len(self.members) + 1, DomainOptions()
            yield await _join(stack, self.node, self.network, who)

    def cut_links(self, carrier: Carrier) -> None:
        """Break all P2P links of a kind, abruptly."""
        for wire in self.network.open_wires(carrier):
            wire.cut()


@asynccontextmanager
async def in_memory() -> AsyncIterator[MemoryNetwork]:
    await trio.lowlevel.checkpoint()
    yield MemoryNetwork()


@attrs.frozen
class DomainOptions:
    """How the domain is to be."""

    kinds: tuple[Carrier, ...] = (Carrier.TCP,)
    policies: Mapping[str, Policy] = attrs.field(factory=dict)
    links: Mapping[str, LinkPolicy] = attrs.field(factory=dict)
    hosts: Mapping[str, str] = attrs.field(factory=dict)
    object_schemes: frozenset[str] = OBJECT_SCHEMES
    more: Mapping[str, Mapping[str, object]] = attrs.field(factory=dict)
    node: Mapping[str, object] = attrs.field(factory=dict)
    weather: Callable[[MemoryNetwork], None] = lambda network: None
    network: Callable[[], AbstractAsyncContextManager[Network]] = in_memory


@asynccontextmanager
async def open_domain(*names: str, options: DomainOptions | None = None) -> AsyncIterator[Domain]:
    """Run a domain with these runtimes, each with an `Echo`."""
    wanted, tracer = options or DomainOptions(), MemoryTracer()
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(wanted.network())
        wanted.weather(network)
        config = NodeConfig(
            domain=DOMAIN, entropy=counted_bytes(0), object_schemes=wanted.object_schemes
        )
        config = attrs.evolve(config, **wanted.node)
        node = await stack.enter_async_context(open_node(config, network, tracer))
        members = {
            name: await _join(stack, node, network, (name, number, wanted))
            for number, name in enumerate(names, start=1)
        }
        yield Domain(node, network, members, tracer)


async def _join(
    stack: AsyncExitStack, node: Node, network: Network, who: tuple[str, int, DomainOptions]
) -> Member:
    name, number, options = who
    config = RuntimeConfig(
        domain=DOMAIN,
        name=name,
        node=node.url,
        kinds=options.kinds,
        p2p_host=options.hosts.get(name, LOOPBACK),
        policy=options.policies.get(name, PolicyConfig()),
        links=options.links.get(name, WHENEVER_POSSIBLE),
        entropy=counted_bytes(number),
    )
    config = attrs.evolve(config, **options.more.get(name, {}))
    tracer, hyperty = AwaitableTracer(), Echo()
    runtime = await stack.enter_async_context(open_runtime(config, network, tracer))
    address = await runtime.deploy(name, lambda: hyperty)
    return Member(runtime, tracer, hyperty, address)


def counted_bytes(seed: int):
    """Entropy for tests: the same in every run; secrets and nonces never come twice."""
    numbers = count(1)

    def some(size: int) -> bytes:
        number = seed * 10**6 + next(numbers)
        return (number % 256**size).to_bytes(size, "big")

    return some


def judged(member: Member) -> Judgement:
    """What the reference judge says of the machines of a runtime that has ended.

    It is shown their steps only: nothing else is a matter of machines, and most of a trace.
    """
    steps = [fact for fact in member.tracer.facts if fact.k is Kind.STATE]
    return judge(read_record(line) for line in records(whole(steps)))


async def go_live(domain: Domain, one: str = "alice", other: str = "bob") -> None:
    """Let one ask the other, until both ends of their link are live."""
    await domain[one].ask(domain[other], "first")
    await domain[one].wait_for("live", domain[other])
    await domain[other].wait_for("live", domain[one])
