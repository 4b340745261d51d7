"""What the node of another domain tells a runtime in the triangle (SEC-08, MN-18).

That node is a few lines of its own: it answers all requests, and says what its operator wants.
"""

import json

import pytest
import trio

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.registry.resolve.topology import Topology
from tests.support.runtime.abroad import Shy
from tests.support.runtime.domain import counted_bytes
from tests.support.trace.memory import MemoryTracer
from transports.errors import LinkError
from transports.link import Kind
from transports.memory import MemoryNetwork

A, B = "a.ex", "b.ex"
OWN = f"hyperty://{B}/own"


class LyingNode:
    """Attributes:
    answers: What runtimes answered to it.
    """

    def __init__(self, listener, nursery):
        self.answers = []
        self._listener = listener
        self._nursery = nursery
        self._link = None

    async def run(self):
        while True:
            self._link = await self._listener.accept()
            self._nursery.start_soon(self._serve, self._link)

    async def _serve(self, link):
        try:
            while True:
                for line in (await link.receive()).split(b"\n"):
                    await self._take(json.loads(line))
        except LinkError:
            return

    async def _take(self, message):
        if message["type"] == "response":
            self.answers.append(message)
            return
        body = {"code": 200, "value": {"sessionToken": "t1"}}
        await self.send(message["id"], "response", message["to"], message["from"], body)

    async def send(self, id_, type_, from_, to, body):
        message = {"id": id_, "type": type_, "from": from_, "to": to, "body": body}
        await self._link.send(json.dumps(message).encode())


@pytest.mark.parametrize(
    ("from_", "is_heard"),
    [
        ("hyperty://a.ex/victim", False),
        ("hyperty-runtime://a.ex/victim/sm", False),
        ("domain://registry.a.ex", False),
        ("hyperty://c.ex/third", False),
        (OWN, True),
    ],
)
async def test_a_node_speaks_for_its_own_domain_only(from_, is_heard, autojump_clock):
    """Whatever its operator lets somebody say there."""
    network = MemoryNetwork()
    async with (
        open_node(NodeConfig(domain=A, entropy=counted_bytes(0)), network, MemoryTracer()) as home,
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener,
        trio.open_nursery() as nursery,
    ):
        node = LyingNode(listener, nursery)
        nursery.start_soon(node.run)
        config = RuntimeConfig(
            domain=A,
            name="ra",
            node=home.url,
            nodes={B: f"{listener.address}/link"},
            topology=Topology.TRIANGLE,
            entropy=counted_bytes(1),
        )
        hyperty = Shy()
        async with open_runtime(config, network, MemoryTracer()) as runtime:
            address = await runtime.deploy("echo", lambda: hyperty)
            assert (await hyperty.request(OWN, "hello")).code == 200
            await node.send(1, "create", from_, address, {"value": "forged"})
            await trio.sleep(1)
            assert [one.from_ for one in hyperty.asked] == [from_] * is_heard
            assert [one["body"]["code"] for one in node.answers] == [200 if is_heard else 401]
        nursery.cancel_scope.cancel()
