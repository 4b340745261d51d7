"""Deploying and removing stubs (STB-10, STB-14, STB-16, I-S7)."""

from contextlib import asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
import trio.testing
from typing_extensions import override

from actors.keys.runtime_key import make_runtime_key
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.bus.messages import Origin
from actors.runtime.hop_trace import HopTrace
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.own_parts import RefusingPart
from actors.runtime.stubs.catalogue import BuiltInCatalogue, Catalogue, Descriptor, StubKind
from actors.runtime.stubs.credentials import NO_CREDENTIALS, GivenToken
from actors.runtime.stubs.loader import Loader
from actors.runtime.stubs.sandbox import Sandboxes
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.effects import Intent
from specs.addresses.address import catalogue_stub
from specs.identity import SenderIdentity, VouchedBy
from specs.limits.protocol import DEPLOY_TIMEOUT
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Kind
from tests.support.runtime.runtime_parts import Listener, LoaderRegistry, R, open_bus
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
async def open_loader(make=Stub, catalogue=None, identity=None):
    async with open_bus() as world:
        hops = HopTrace(world.tracer, "loader", world.counters)
        sandboxes = Sandboxes(
            world.supervisor, world.bus, world.agent, world.tracer, world.counters
        )
        network, ids = MemoryNetwork(), IdSource()

        def context(url, port, config):
            return StubContext(
                url, port, config, network, world.tracer, ids, bytes, identity=identity
            )

        if catalogue is None:
            catalogue = BuiltInCatalogue({StubKind.NODE: make}, {"a.ex": "ws://node/link"})
        loader = Loader(world.agent, sandboxes, catalogue, world.tasks, hops, ids, context)
        reported: list[object] = []
        events = await world.supervisor.start_child(
            ChildSpec("reported", partial(Listener, reported))
        )
        loader.registry = LoaderRegistry(events, reported)
        part = partial(RefusingPart, world.agent, "nothing is answered", Code.NOT_FOUND)
        await world.supervisor.start_child(ChildSpec("loader", part))
        yield world, loader, reported


def states(world):
    return [fact.new for fact in world.tracer.facts if fact.k is Kind.STATE]


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
        loader.load(S, descriptor, CONFIG)
        await trio.sleep(DEPLOY_TIMEOUT * 2)
        (failed,) = [each for each in reported if each[0] == "failed"]
        assert failed[1] == S
        assert failed[2].startswith(why)
        assert states(world) == ["deploying", "deployment-failed"]
        rows = [fact.op for fact in world.tracer.facts if fact.key == S and fact.table]
        assert rows.count("add") == rows.count("del")


async def test_a_crashed_stub_is_reported_and_cleared_away(autojump_clock):
    async with open_loader() as (world, loader, reported):
        loader.load(S, HERE, CONFIG)
        await world.settle()
        request = Message(9, MessageType.READ, world.agent.url, S)
        with trio.move_on_after(1):
            await world.agent.request(request)
        assert reported[-1] == ("gone", S)
        again = Message(10, MessageType.READ, world.agent.url, S)
        assert (await world.agent.request(again)).code == Code.NOT_FOUND


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
        loader.load(S, HERE, config)
        await world.settle()
    assert (seen[0].node_url, seen[0].options) == ("ws://mine/link", {"a": 1, "b": 2})


# ---- what a stub learns of the user (REG-15)


class One(Catalogue):
    """Describes one stub, which keeps the context and the messages that it is given."""

    def __init__(self, *, takes_identity: bool) -> None:
        self.takes_identity = takes_identity
        self.contexts: list[StubContext] = []
        self.heard: list[Delivery] = []

    @override
    async def find(self, address):
        await trio.lowlevel.checkpoint()
        return Descriptor(
            address, StubKind.NODE, self.activate, "ws://b/link", takes_identity=self.takes_identity
        )

    def activate(self, context):
        self.contexts.append(context)
        return Keeper(context, self.heard)


class Keeper(Actor[Delivery]):
    """Keeps what it is to send, and brings nothing."""

    def __init__(self, context, heard) -> None:
        self._context, self._heard = context, heard

    @override
    async def start(self) -> None:
        await self._context.bus.add_listener(self._context.url, self.me)

    @override
    async def handle(self, message: Delivery) -> None:
        self._heard.append(message.message)


FAR = "hyperty://b.ex/1"
ALICE = SenderIdentity(R, "user://idp.ex/alice", VouchedBy.IDENTITY_PROVIDER)


async def test_the_address_of_a_stub_that_has_gone_is_not_remembered(autojump_clock):
    """REG-15: a later stub of the address would learn as much as its own descriptor says."""
    async with open_loader(catalogue=One(takes_identity=False)) as (world, loader, _):
        loader.load(S, HERE, CONFIG)
        await world.settle()
        await loader.remove(S)
        heard = await world.component(S, Origin.NODE_STUB)
        world.bus.take_route(FAR, Intent.REACH, S, float("inf"))
        await world.agent.post(Message(1, MessageType.CREATE, f"{R}/ua", FAR, {}, ALICE))
        await world.settle()
        assert [delivery.message.identity for delivery in heard] == [ALICE]


@pytest.mark.parametrize("takes", [True, False])
async def test_an_interworking_stub_learns_nothing_of_the_user(takes, autojump_clock):
    """REG-15: no credentials, no token of a session, no key, and no sender of a message."""
    catalogue = One(takes_identity=takes)
    config = attrs.evolve(CONFIG, domain="b.ex", credentials=GivenToken("t"), session="s")
    identity = OwnIdentity(make_runtime_key())
    async with open_loader(catalogue=catalogue, identity=identity) as (world, loader, _):
        loader.load(S, HERE, config)
        await world.settle()
        world.bus.take_route(FAR, Intent.REACH, S, float("inf"))
        request = Message(1, MessageType.CREATE, f"{R}/ua", FAR, {}, ALICE)
        await world.agent.post(request)
        await world.settle()
        (context,) = catalogue.contexts
        assert (context.config.credentials is NO_CREDENTIALS) is not takes
        assert (context.config.session, context.identity) == (
            ("s", identity) if takes else (None, None)
        )
        assert [message.identity for message in catalogue.heard] == [ALICE if takes else None]
