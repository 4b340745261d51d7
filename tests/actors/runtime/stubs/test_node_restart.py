"""A node that comes back without memory: runtimes claim what was theirs (STB-09, C-44)."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import trio

from actors.kit.ids import IdSource
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.login.provider import Login
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from tests.support.runtime.domain import Echo, Member, counted_bytes
from tests.support.trace.awaitable_tracer import AwaitableTracer
from transports.link import Kind as Carrier
from transports.memory import MemoryNetwork

NODE = "ws://127.0.0.1:4000/link"


@attrs.define
class Place:
    """A node that can be stopped and started, and two runtimes."""

    login: Login | None = None
    credentials: Credentials = NO_CREDENTIALS
    network: MemoryNetwork = attrs.field(factory=MemoryNetwork)
    nursery: trio.Nursery | None = None
    node: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    tracer: AwaitableTracer = attrs.field(factory=AwaitableTracer)
    members: list[Member] = attrs.field(factory=list)

    async def start_node(self) -> None:
        self.node, self.tracer = trio.CancelScope(), AwaitableTracer()
        await self.nursery.start(self._run_node)

    async def _run_node(self, task_status) -> None:
        ids = IdSource(int(trio.current_time() * 1000))
        config = NodeConfig(domain="a.ex", listen="127.0.0.1:4000", ids=ids, login=self.login)
        with self.node:
            async with open_node(config, self.network, self.tracer):
                task_status.started()
                await trio.sleep_forever()

    async def restart_node(self, pause: float) -> None:
        self.node.cancel()
        await trio.sleep(pause)
        await self.start_node()

    async def join(self, stack: AsyncExitStack, name: str, kinds: tuple[Carrier, ...]) -> None:
        tracer, hyperty = AwaitableTracer(), Echo()
        entropy = counted_bytes(1 + len(self.members))
        config = RuntimeConfig(
            domain="a.ex", name=name, node=NODE, kinds=kinds, entropy=entropy,
            credentials=self.credentials,
        )  # fmt: skip
        runtime = await stack.enter_async_context(open_runtime(config, self.network, tracer))
        address = await runtime.deploy(name, lambda: hyperty)
        self.members.append(Member(runtime, tracer, hyperty, address))


@asynccontextmanager
async def open_place(*kinds, **more):
    place = Place(**more)
    async with trio.open_nursery() as place.nursery:
        await place.start_node()
        async with AsyncExitStack() as stack:
            await place.join(stack, "ra", kinds)
            await place.join(stack, "rb", kinds)
            yield place
        place.node.cancel()
