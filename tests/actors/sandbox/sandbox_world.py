"""A bus, a loader and whatever is kept in a sandbox beside them."""

from contextlib import asynccontextmanager
from functools import partial

import attrs
import trio

from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec, Intensity, Monitor, open_supervisor
from actors.pipe.code import code_of
from actors.pipe.process import open_process_sandbox
from actors.runtime.bus.messages import Origin
from actors.runtime.hyperty.hyperty import Lifecycle
from actors.runtime.isolation import HypertyCode, SandboxProcesses
from actors.runtime.own_parts import RefusingPart
from actors.runtime.stubs.catalogue import StubKind
from actors.runtime.stubs.loader import Loader
from actors.runtime.stubs.sandbox import Component, Sandboxes
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.addresses.address import catalogue_stub
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Kind
from tests.support.packages import OneStub
from tests.support.runtime.runtime_parts import BusWorld, Listener, LoaderRegistry, R, open_bus
from tests.support.trace.growing import Growing
from transports.memory import MemoryNetwork

CHAT = "chat.ex"
S = f"{R}/protostub/1"
H = "hyperty://a.ex/h"


@attrs.frozen
class SandboxWorld:
    """What is around one sandbox.

    Attributes:
        reported: What the registry was notified.
        sandboxes: Where components run.
    """

    bus: BusWorld
    reported: Growing
    loader: Loader
    sandboxes: Sandboxes
    network: MemoryNetwork
    ids: IdSource = attrs.field(factory=IdSource)

    async def load(self, url=S):
        """Deploy the stub; return why that is impossible, or None."""
        config = StubConfig(R, CHAT)
        return await self.loader.deploy(url, catalogue_stub(CHAT), config, StubKind.NODE)

    async def host(self, where, spawn, intensity=None):
        """Run a hyperty in a sandbox; return its sandbox."""
        processes = SandboxProcesses(
            HypertyCode(where), spawn, R, self.ids, self.bus.counters, Lifecycle()
        )
        component = Component(H, Origin.LOCAL, processes.begin, intensity or Intensity())
        return await self.sandboxes.open(component)

    async def ask(self, value=None, to=S):
        """Have another part of the runtime ask; return the answer."""
        agent = self.bus.agent
        number = self.ids.next(agent.url)
        with trio.fail_after(25):
            request = Message(number, MessageType.CREATE, agent.url, to, {"value": value})
            return await agent.request(request)

    async def gone(self):
        """Wait until the registry knows that the stub is no more."""
        with trio.fail_after(25):
            await self.reported.until(lambda reported: ("gone", S) in reported)

    def steps(self, machine):
        facts = [one for one in self.bus.tracer.facts if one.k is Kind.STATE]
        return [one.new for one in facts if one.machine == machine]

    def statuses(self):
        """What the stub's status was said to be, on the bus."""
        messages = [one.message for one in self.reported if hasattr(one, "message")]
        return [one.body["value"] for one in messages if one.to == f"{S}/status"]


def _supervised(bus):
    """Supervise sandboxes as a runtime does."""
    return open_supervisor("sandboxes", monitor=Monitor(bus.tracer, bus.counters))


@asynccontextmanager
async def open_sandbox_world(code, endpoints=(), spawn=open_process_sandbox):
    """Run a bus and a loader that knows one stub."""
    async with open_bus() as bus, _supervised(bus) as supervisor:
        network, ids = MemoryNetwork(), IdSource()
        sandboxes = Sandboxes(supervisor, bus.bus, bus.agent, bus.tracer, bus.counters)

        def context(url, port, config):
            return StubContext(
                url, port, config, network, bus.tracer, ids, bytes, counters=bus.counters
            )

        catalogue = OneStub(CHAT, code, endpoints, spawn)
        loader = Loader(
            bus.agent, sandboxes, catalogue, bus.tasks, bus.hops("loader"), ids, context
        )
        reported = Growing()
        events = await bus.supervisor.start_child(
            ChildSpec("reported", partial(Listener, reported))
        )
        loader.registry = LoaderRegistry(events, reported)
        part = partial(RefusingPart, bus.agent, "nothing is answered", Code.NOT_FOUND)
        await bus.supervisor.start_child(ChildSpec("loader", part))
        yield SandboxWorld(bus, reported, loader, sandboxes, network)


def sandboxes_of(module):
    """Sandbox processes for the hyperties of a module."""
    return partial(open_process_sandbox, find=partial(code_of, module))
