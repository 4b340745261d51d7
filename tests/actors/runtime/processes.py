"""A domain whose processes end one by one, in any order, and not always orderly."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs
import trio

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.judge.replay import Judgement
from fsm.judge.trace_line import read_record
from fsm.judge.verdict import judge
from specs.trace import Fact, Kind
from tests.support.runtime.domain import DOMAIN, NODE_PLACE, P2P_PLACES, Echo, Member, counted_bytes
from tests.support.trace.awaitable_tracer import AwaitableTracer
from tests.support.trace.trace_files import records, whole
from transports.engine.memory import MemoryStore, open_memory_store
from transports.link import Kind as Carrier
from transports.memory import MemoryNetwork


@attrs.define
class Process:
    """One that runs in a task of its own.

    Attributes:
        member: What there is of a runtime; None: it is the node.
        last: What was reported until it crashed; None: it did not.
    """

    tracer: AwaitableTracer = attrs.field(factory=AwaitableTracer)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    ended: trio.Event = attrs.field(factory=trio.Event)
    member: Member | None = None
    last: list[Fact] | None = None

    async def stop(self) -> None:
        """End it orderly."""
        self.scope.cancel()
        await self.ended.wait()

    def judged(self) -> Judgement:
        facts = whole(self.tracer.facts)
        if self.last is not None:
            facts = whole(self.last)[:-1]
        return judge(read_record(line) for line in records(facts))

    @property
    def machines(self) -> set[str]:
        """The machines whose entities moved here."""
        return {fact.machine for fact in self.tracer.facts if fact.k is Kind.STATE}


@attrs.define
class Processes:
    """A node and its runtimes."""

    nursery: trio.Nursery
    store: MemoryStore
    network: MemoryNetwork = attrs.field(factory=MemoryNetwork)
    by_name: dict[str, Process] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> Process:
        return self.by_name[name]

    async def start_node(self) -> None:
        config = NodeConfig(domain=DOMAIN, entropy=counted_bytes(0), engine=self.store.open)
        process = self.by_name["node"] = Process()
        await self.nursery.start(_run, process, open_node(config, self.network, process.tracer))

    async def start(self, name: str) -> None:
        process, hyperty = Process(), Echo()
        config = RuntimeConfig(
            domain=DOMAIN,
            name=name,
            node=f"{NODE_PLACE}/link",
            kinds=(Carrier.TCP,),
            entropy=counted_bytes(len(self.by_name)),
        )
        opened = open_runtime(config, self.network, process.tracer)
        runtime = await self.nursery.start(_run, process, opened)
        address = await runtime.deploy(name, lambda: hyperty)
        process.member = Member(runtime, process.tracer, hyperty, address)
        self.by_name[name] = process

    def crash(self, name: str) -> None:
        """Let nobody hear of a runtime again, without a word; nor can others connect anew."""
        self[name].last = list(self[name].tracer.facts)
        for place in (NODE_PLACE, *P2P_PLACES):
            self.network.refuse(place)
        number = list(self.by_name).index(name) - 1
        self.network.open_wires(Carrier.WEBSOCKET)[number].cut()
        for wire in self.network.open_wires(Carrier.TCP):
            wire.cut()


async def _run(process, opened: AbstractAsyncContextManager, task_status) -> None:
    with process.scope:
        async with opened as made:
            task_status.started(made)
            await trio.sleep_forever()
    process.ended.set()


@asynccontextmanager
async def open_processes(*names: str) -> AsyncIterator[Processes]:
    """Run a node, of a group of one, and these runtimes."""
    async with open_memory_store() as store, trio.open_nursery() as nursery:
        processes = Processes(nursery, store)
        await processes.start_node()
        for name in names:
            await processes.start(name)
        yield processes
        nursery.cancel_scope.cancel()
