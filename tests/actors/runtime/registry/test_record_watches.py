"""The records that a runtime watches: one subscription for all who want to hear of one (REG-16)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import ChildSpec
from actors.runtime.registry.watch import RecordWatches, RegistryClient
from specs.addresses.address import subscription_manager
from specs.limits.protocol import READ_PAUSE
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from specs.trace import Op
from tests.support.runtime.runtime_parts import BusWorld, R, open_bus
from tests.support.wire.wire import A, B

HB = "hyperty://b.ex/hb"
STATUS = f"{HB}/registration"
REGISTRY = f"{R}/registry"
NODE = subscription_manager("b.ex")
SUBSCRIBE, UNSUBSCRIBE = MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE


class Routes:
    """All components are local, and all records are at one node."""

    def is_local(self, _):
        return True

    def node_of(self, _):
        return "b.ex"


class Registry(Actor[Delivery]):
    """Hands requests to the watches, as the registry does."""

    def __init__(self, port, hops):
        talk = RegistryClient("a.ex", port, IdSource())
        self.watches = RecordWatches(Routes(), talk, port, hops, self.spawn, most=2)

    @override
    async def handle(self, message):
        self.watches.request(message.message)


@attrs.define
class World:
    """The watches, and the node, which is the test itself."""

    bus: BusWorld
    watches: RecordWatches
    node: list[Delivery]
    nursery: trio.Nursery
    ids: IdSource = attrs.field(factory=IdSource)
    codes: list[tuple[str, int]] = attrs.field(factory=list)

    async def ask(self, kind, by=A, url=HB):
        """Have a component ask; its answer comes to `codes`."""
        self.nursery.start_soon(self._ask, kind, by, url)
        await self.bus.settle()

    async def _ask(self, kind, by, url):
        body = {"resources": [f"{url}/registration"]}
        request = Message(self.ids.next(by), kind, by, REGISTRY, body)
        answer = await self.bus.port(by).request(request)
        self.codes.append((by, answer.code))

    async def answer(self, code=Code.OK):
        """Answer the last request at the node."""
        request = self.node[-1].message
        why = "the node will not"
        answer = reply_to(request, code) if code == Code.OK else refuse(request, code, why)
        await self.bus.port(NODE).post(answer)
        await self.bus.settle()

    def asked(self):
        """What the node was asked."""
        return [one.message.type for one in self.node]

    def listeners(self):
        """Who gets the status of the record now."""
        rows = {}
        for fact in self.bus.tracer.facts:
            if fact.table == "listeners" and fact.key == STATUS:
                rows[fact.val] = fact.op is Op.ADD
        return {name for name, is_there in rows.items() if is_there}


@asynccontextmanager
async def open_watches():
    async with open_bus() as bus, trio.open_nursery() as nursery:
        for url in (A, B):
            await bus.component(url)
        registry = Registry(bus.port(REGISTRY), bus.hops("registry"))
        ref = await bus.supervisor.start_child(ChildSpec("watcher", lambda: registry))
        await bus.port(REGISTRY).add_listener(REGISTRY, ref)
        yield World(bus, registry.watches, await bus.component(NODE), nursery)
        nursery.cancel_scope.cancel()


@pytest.fixture
async def world():
    async with open_watches() as opened:
        yield opened


@pytest.fixture
async def watched(world):
    """A watches the record."""
    await world.ask(SUBSCRIBE)
    await world.answer()
    return world


async def test_who_gives_up_leaves_the_others_that_wait(world):
    for by in (A, B):
        await world.ask(SUBSCRIBE, by)
    await world.ask(UNSUBSCRIBE, A)
    await world.answer()
    assert sorted(world.codes) == [(A, Code.OK), (A, Code.GONE), (B, Code.OK)]


async def test_a_node_that_does_not_answer_is_not_waited_for_without_end(autojump_clock):
    async with open_watches() as world:
        await world.ask(SUBSCRIBE)
        await trio.sleep(60)
        assert world.codes == [(A, Code.TIMEOUT)]
        assert world.watches.urls == ()


async def test_what_a_node_has_forgotten_is_subscribed_again_for_the_same_watchers(watched):
    for _ in range(2):
        assert watched.watches.node_forgot("b.ex") == (HB,)
    await watched.bus.settle()
    watched.watches.node_forgot("b.ex")  # while it is asked
    for _ in range(2):
        await watched.answer()
        assert watched.asked() == [SUBSCRIBE] * 3
    assert watched.codes == [(A, 200)]
    assert watched.watches.node_forgot("c.ex") == ()


async def test_a_node_that_comes_back_is_asked_some_times(autojump_clock):
    async with open_watches() as world:
        await world.ask(SUBSCRIBE)
        await world.answer()
        world.watches.node_forgot("b.ex")
        await world.bus.settle()
        await world.answer(Code.UNAVAILABLE)
        await trio.sleep(READ_PAUSE + 1)
        assert world.asked() == [SUBSCRIBE] * 3


async def test_a_runtime_watches_only_so_many(watched):
    for number in (1, 2):
        await watched.ask(SUBSCRIBE, url=f"hyperty://b.ex/{number}")
    await watched.ask(SUBSCRIBE, B)
    assert watched.codes[1:] == [(A, Code.TOO_LARGE), (B, 200)]
