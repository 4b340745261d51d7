"""A runtime reports whether it reaches its node: REG-12."""

from contextlib import asynccontextmanager

import trio

from actors.embedding import Runtime
from actors.kit.ids import IdSource
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.bus.messages import Origin
from actors.runtime.config import RuntimeConfig
from actors.runtime.registry.registrations import RuntimeStatus
from tests.support.node.node_peer import Peer
from tests.support.runtime.domain import counted_bytes
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind
from transports.memory import MemoryNetwork

D = "a.ex"
RA, RB = (f"hyperty-runtime://{D}/{name}" for name in ("ra", "rb"))
STATUS = f"{RA}/status"
SM = f"domain://msg-node.{D}/sm"


@asynccontextmanager
async def domain():
    """A network with a node on it."""
    network, config = MemoryNetwork(), NodeConfig(domain=D, entropy=counted_bytes(0))
    async with open_node(config, network, MemoryTracer()) as node:
        yield network, node


@asynccontextmanager
async def peer_on(network, node, runtime=RB):
    """Another runtime."""
    link = await network.dial(Kind.WEBSOCKET, node.url)
    yield await Peer(link, runtime).open()
    await link.aclose()


async def subscribe(peer, resource=STATUS):
    """The code of the answer to a subscription."""
    source = f"{peer.runtime}/ua"
    return (await peer.ask("subscribe", source, SM, resources=[resource], source=source)).code


def runtime_on(network, node, **more):
    config = RuntimeConfig(domain=D, name="ra", node=node.url, entropy=counted_bytes(1), **more)
    return open_runtime(config, network, MemoryTracer())


async def test_the_status_of_a_runtime_follows_its_session(autojump_clock):
    """REG-12, PFY-02: the stub of its domain is there from the login on."""
    seen = []

    async def follow(runtime, task_status):
        async for status in Runtime(runtime).status_changes():
            seen.append(status.value)
            task_status.started() if len(seen) == 1 else None

    async with domain() as (network, node), trio.open_nursery() as nursery:
        async with runtime_on(network, node) as runtime:
            assert Runtime(runtime).status == "created"
            await nursery.start(follow, runtime)
            await runtime.enter()
            await trio.testing.wait_all_tasks_blocked()
            assert Runtime(runtime).status == "live"
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert seen == ["created", "live", "disconnected"]


async def test_a_stub_without_a_session_is_sent_no_status(world):
    registry, stub = f"{RA}/registry", f"{RA}/protostub/1"
    await world.component(registry)
    got = await world.component(stub, Origin.NODE_STUB)
    status = RuntimeStatus(RA, world.port(registry), IdSource(), is_published=True)
    await status.begin()
    for is_live in (True, False):
        status.set_connection(stub, is_live=is_live)
        await status.publish()
    await world.settle()
    assert [message.body["value"] for message in world.heard_by(got)] == ["live"]
    status.set_connection(stub, is_live=False, end="closed by the node")
    assert (status.value, status.end) == ("failed", "closed by the node")


async def test_subscribers_at_the_node_are_notified(autojump_clock):
    async with domain() as (network, node), peer_on(network, node) as peer:
        async with runtime_on(network, node, publish_status=True) as runtime:
            await runtime.enter()
            await trio.testing.wait_all_tasks_blocked()
            assert await subscribe(peer) == 200
            await runtime.status.publish()
            up = await peer.hear()
        down = await peer.hear()
    assert [(one.from_, one.to, one.type) for one in (up, down)] == [(RA, STATUS, "update")] * 2
    assert [one.body["value"] for one in (up, down)] == ["live", "disconnected"]


async def live_peer(network, node):
    """A runtime that publishes that it is live, the write end of its link, and a subscriber."""
    link = await network.dial(Kind.WEBSOCKET, node.url)
    peer = await Peer(link, RA).open()
    assert await subscribe(peer) == 200
    follower = await Peer(await network.dial(Kind.WEBSOCKET, node.url), RB).open()
    assert await subscribe(follower) == 200
    await peer.post("update", RA, STATUS, value="live")
    assert (await follower.hear()).body["value"] == "live"
    return peer, link, follower


async def test_the_node_reports_a_runtime_when_it_is_lost(autojump_clock):
    """REG-12: once, at the loss and not at the return, which the runtime reports itself."""
    async with domain() as (network, node):
        peer, link, follower = await live_peer(network, node)
        start = trio.current_time()
        await link.aclose()
        lost = await follower.hear()
        assert (lost.type, lost.from_, lost.to) == ("update", RA, STATUS)
        assert lost.body["value"] == "disconnected"
        assert trio.current_time() - start < 1
        assert await follower.silence()
        again = Peer(await network.dial(Kind.WEBSOCKET, node.url), RA)
        answer = await again.control("re-open", runtimeURL=RA, token=peer.token)
        assert answer.code == 200
        assert await follower.silence()
        await again.post("update", RA, STATUS, value="live")
        assert (await follower.hear()).body["value"] == "live"
