"""Several nodes of one domain in one process, over an engine in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import attrs
import trio

from actors.kit.trace import Tracer
from actors.node.app import open_node
from actors.node.config import NodeConfig
from fsm.judge.trace_line import line_of
from fsm.judge.verdict import judge_processes
from fsm.registry.node_rights import Observation
from specs.trace import BODIES, Fact, Kind, Stamp
from tests.support.node.node_peer import DOMAIN, Peer, World
from transports.engine.memory import MemoryEngine, MemoryStore, open_memory_store
from transports.errors import LinkBrokenError
from transports.link import Network
from transports.memory import MemoryNetwork

PATIENCE = 60.0


class TimedTracer(Tracer):
    """Keeps all records of a process as lines of its trace."""

    hops = True
    bodies = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = []
        self.record("trace", Fact(k=Kind.START, kind=BODIES))

    @property
    def facts(self):
        return list(self.lines)

    def record(self, actor: str, fact: Fact) -> None:
        now = trio.current_time()
        stamp = Stamp(
            run=self.name, node=self.name, ln=len(self.lines) + 1, wall_ns=0, mono_ns=0, t=now,
            actor=actor,
        )  # fmt: skip
        self.lines.append(line_of(stamp, fact))


def broken(tracer: TimedTracer, *, is_ended: bool = True) -> list[str]:
    """Judge the trace of a process; return what it breaks."""
    if is_ended:
        tracer.record("trace", Fact(k=Kind.END))
    (found,) = judge_processes(lambda: tracer.lines, is_sorted=False)
    steps = [str(one) for entity in found.entities for one in entity.violations]
    return [str(one) for one in found.findings] + steps


class Member(World):
    """One node of the group, its handle of the engine, and how it is killed."""

    engine: MemoryEngine
    scope: trio.CancelScope
    is_over: trio.Event
    is_closed: trio.Event
    is_killed = False


@attrs.define
class GroupWorld:
    """The nodes of a domain, by the order in which they were started."""

    store: MemoryStore
    network: Network
    nursery: trio.Nursery
    config: dict
    nodes: list[Member] = attrs.field(factory=list)

    async def node(self, name: str = "", **config: object) -> Member:
        """Start another node."""
        self.nodes.append(await self.nursery.start(self._run, name, config))
        return self.nodes[-1]

    async def _run(self, name: str, config: dict, *, task_status: trio.TaskStatus) -> None:
        tracer = TimedTracer(name or f"node-{len(self.nodes)}")
        held = {}

        @asynccontextmanager
        async def opened() -> AsyncIterator[MemoryEngine]:
            async with self.store.open() as engine:
                held["engine"] = engine
                yield engine

        made = NodeConfig(**{**self.config, **config}, engine=opened, node_name=name)
        with trio.CancelScope() as scope:
            async with open_node(made, self.network, tracer) as node:
                member = Member(node, self.network, tracer)
                member.engine, member.scope = held["engine"], scope
                member.is_over, member.is_closed = trio.Event(), trio.Event()
                task_status.started(member)
                await member.is_over.wait()
            member.is_closed.set()

    async def kill(self, member: Member) -> None:
        """Let a node end without a farewell: it reaches neither engine nor peers any more."""
        member.is_killed = True
        self.store.stop(member.engine)
        for link in member.links:
            await link.aclose()
        member.scope.cancel()

    async def until(self, is_so, seconds: float = PATIENCE, step: float = 0.25) -> None:
        """Wait until something is so."""
        with trio.fail_after(seconds):
            while not await is_so():  # noqa: ASYNC110 - what is awaited is in the node
                await trio.sleep(step)

    async def has(
        self, member: Member, runtime: str, state: str | None, step: float = 0.25
    ) -> None:
        """Wait until the session of a runtime is in a state at a node; None: it has none there."""

        async def is_so() -> bool:
            return (await member.states()).get(runtime) == state

        await self.until(is_so, step=step)


@asynccontextmanager
async def open_group(
    count: int = 2, network: Network | None = None, **config: object
) -> AsyncIterator[GroupWorld]:
    config.setdefault("domain", DOMAIN)
    config.setdefault("observation", Observation.OPEN)
    async with open_memory_store() as store, trio.open_nursery() as nursery:
        world = GroupWorld(store, network or MemoryNetwork(), nursery, config)
        for _ in range(count):
            await world.node()
        yield world
        for member in world.nodes:
            member.is_over.set()
            for link in member.links:
                await link.aclose()
    for member in world.nodes:
        assert not member.node.monitor_violations
        found = broken(member.tracer, is_ended=not member.is_killed)
        assert not found, found


async def resumed(member: Member, runtime: str, token: str) -> Peer:
    """Connect to a node, and come back to the session of a runtime, as stubs do.

    The node that has it may be storing it: then it is that node's still, and the link is cut.
    """
    for _ in range(3):
        peer = await member.outsider(runtime)
        with suppress(LinkBrokenError):
            answer = await peer.control("re-open", runtimeURL=runtime, token=token)
            break
    assert answer.code == 200, answer.body
    peer.token = answer.body["value"]["sessionToken"]
    return peer
