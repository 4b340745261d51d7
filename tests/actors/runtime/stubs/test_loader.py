"""Deploying and removing stubs (STB-10, STB-14, STB-16, I-S7)."""

from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.hop_trace import HopTrace
from actors.runtime.stubs.catalogue import (
    BuiltInCatalogue,
    Catalogue,
    Descriptor,
    NotInCatalogueError,
    StubKind,
)
from actors.runtime.stubs.loader import Load, Loader, LoaderTools, RegistryIs, Unload
from actors.runtime.stubs.sandbox import Sandboxes
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.machine_list import MACHINES
from fsm.registry.resolve.resolve_io import Deployed, DeployFailed, StubGone
from specs.addresses.address import catalogue_stub
from specs.limits import protocol as limits
from specs.limits.protocol import DEPLOY_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Kind
from tests.support.runtime.runtime_parts import Listener, R, open_bus
from transports.memory import MemoryNetwork

S = f"{R}/protostub/1"
HERE = catalogue_stub("a.ex")
CONFIG = StubConfig(R, "a.ex")


class Stub(Actor[Delivery]):
    """Says that it was created, obeys `disconnect`, crashes on any other request."""

    def __init__(self, context: StubContext) -> None:
        self._context = context

    @override
    async def start(self) -> None:
        await self.on_start()
        to = f"{self._context.url}/status"
        body = {"value": "created"}
        await self._context.bus.post(Message(1, MessageType.UPDATE, self._context.url, to, body))

    async def on_start(self) -> None:
        assert self._context.config.node_url == "ws://node/link"

    @override
    async def handle(self, message: Delivery) -> None:
        if message.message.body.get("method") != "disconnect":
            raise ZeroDivisionError
        await self._context.bus.post(reply_to(message.message, Code.OK))


class BrokenStub(Stub):
    @override
    async def on_start(self) -> None:
        raise ZeroDivisionError("cannot be built")


class SlowStub(Stub):
    @override
    async def on_start(self) -> None:
        await trio.sleep(DEPLOY_TIMEOUT * 2)


@asynccontextmanager
async def open_loader(make=Stub, catalogue=None):
    async with open_bus() as world:
        hops = HopTrace(world.tracer, "loader", world.counters)
        sandboxes = Sandboxes(
            world.supervisor, world.bus, world.agent, world.tracer, world.counters
        )
        network, ids = MemoryNetwork(), IdSource()

        def context(url, port, config):
            return StubContext(url, port, config, network, world.tracer, ids, bytes)

        if catalogue is None:
            catalogue = BuiltInCatalogue({StubKind.NODE: make}, {"a.ex": "ws://node/link"})
        tools = LoaderTools(hops, ids, context)
        loader = await world.supervisor.start_child(
            ChildSpec("loader", partial(Loader, world.agent, sandboxes, catalogue, tools))
        )
        reported: list[object] = []
        registry = await world.supervisor.start_child(
            ChildSpec("reported", partial(Listener, reported))
        )
        await loader.ask(partial(RegistryIs, registry))
        yield world, loader, reported


def states(world):
    return [fact.new for fact in world.tracer.facts if fact.k is Kind.STATE]


async def test_the_status_listener_is_there_before_the_stub(autojump_clock):
    async with open_loader() as (world, loader, reported):
        await loader.tell(Load(S, HERE, CONFIG))
        await world.settle()
        kinds = [type(each) for each in reported]
        assert kinds == [Delivery, Deployed]
        assert reported[0].message.body == {"value": "created"}
        assert states(world) == ["deploying", "deployed"]


@pytest.mark.parametrize(
    ("make", "descriptor", "why"),
    [
        (BrokenStub, HERE, "cannot be built"),
        (SlowStub, HERE, "it took too long"),
        (Stub, catalogue_stub("b.ex"), "no stub is described at"),
    ],
    ids=["broken", "slow", "unknown"],
)
async def test_a_stub_that_cannot_be_deployed_leaves_nothing(make, descriptor, why, autojump_clock):
    async with open_loader(make) as (world, loader, reported):
        await loader.tell(Load(S, descriptor, CONFIG))
        await trio.sleep(DEPLOY_TIMEOUT * 2)
        (failed,) = [each for each in reported if isinstance(each, DeployFailed)]
        assert failed.url == S
        assert failed.why.startswith(why)
        assert states(world) == ["deploying", "deployment-failed"]
        rows = [fact.op for fact in world.tracer.facts if fact.key == S and fact.table]
        assert rows.count("add") == rows.count("del")


async def test_how_long_a_deployment_may_take_is_said_in_its_table(autojump_clock, monkeypatch):
    monkeypatch.setattr(limits, MACHINES["stub_deployment"].deadline("deploying").limit, 0.25)
    async with open_loader(SlowStub) as (_, loader, _):
        assert await loader.ask(partial(Load, S, HERE, CONFIG)) == "it took too long"
        # What does not come to its mailbox is given a moment, then ended by force.
        assert trio.current_time() == 0.25 + limits.GOODBYE_TIMEOUT


async def test_a_loader_that_stops_ends_what_it_deploys(autojump_clock):
    async with open_loader(SlowStub) as (world, loader, _):
        await loader.tell(Load(S, HERE, CONFIG))
        await world.settle()
        assert states(world) == ["deploying"]
    assert states(world) == ["deploying", "deployment-failed"]


async def test_a_loader_that_crashes_ends_what_it_deploys(autojump_clock):
    async with open_loader(SlowStub) as (world, loader, _):
        await loader.tell(Load(S, HERE, CONFIG))
        await loader.tell("nonsense")
        await world.settle()
        assert states(world) == ["deploying", "deployment-failed"]


async def test_a_crashed_stub_is_reported_and_cleared_away(autojump_clock):
    async with open_loader() as (world, loader, reported):
        await loader.tell(Load(S, HERE, CONFIG))
        await world.settle()
        request = Message(9, MessageType.READ, world.agent.url, S)
        with trio.move_on_after(1):
            await world.agent.request(request)
        assert reported[-1] == StubGone(S)
        again = Message(10, MessageType.READ, world.agent.url, S)
        assert (await world.agent.request(again)).code == Code.NOT_FOUND


async def test_removal_disconnects_first_and_may_be_repeated(autojump_clock):
    async with open_loader() as (world, loader, reported):
        await loader.tell(Load(S, HERE, CONFIG))
        await world.settle()
        for _ in range(2):
            await loader.ask(partial(Unload, S, None))
        await world.settle()
        assert not [each for each in reported if isinstance(each, StubGone)]
        assert [f.code for f in world.tracer.facts if f.code] == [200, 200, 200]


async def test_the_catalogue_knows_what_ships_and_nothing_else():
    catalogue = BuiltInCatalogue({StubKind.NODE: Stub}, {"a.ex": "ws://node/link"})
    assert (await catalogue.find(HERE)).node_url == "ws://node/link"
    with pytest.raises(NotInCatalogueError):
        await catalogue.find(f"{HERE}x")


async def test_of_descriptor_and_deployer_the_last_word_is_the_deployers(autojump_clock):
    """STB-13."""
    seen = []

    class ConfiguredStub(Stub):
        async def on_start(self):
            seen.append(self._context.config)

    class One(Catalogue):
        async def find(self, address):
            await trio.lowlevel.checkpoint()
            return Descriptor(
                address, StubKind.NODE, ConfiguredStub, "ws://b/link", {"a": 1, "b": 1}
            )

    async with open_loader(catalogue=One()) as (world, loader, _):
        config = StubConfig(R, "a.ex", node_url="ws://mine/link", options={"b": 2})
        await loader.tell(Load(S, HERE, config))
        await world.settle()
    assert (seen[0].node_url, seen[0].options) == ("ws://mine/link", {"a": 1, "b": 2})
