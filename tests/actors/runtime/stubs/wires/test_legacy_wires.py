"""What stubs for upstream's nodes write, letter by letter, and what they make of what comes.

The other end is no node of ours: it speaks as upstream's do (protocol page 11), and says
nothing that they do not say.
"""

import json
from contextlib import asynccontextmanager

import trio

from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.runtime.catalogue import SHIPPED
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.message import Message, MessageType
from tests.actors.runtime.stubs.stub_world import R, S, StubForm, StubWorld
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.errors import LinkError
from transports.link import Kind
from transports.memory import MemoryNetwork


class Upstream:
    """Takes every frame as JSON; of `mn:/session` it answers what upstream's node does."""

    def __init__(self):
        self.asked = []
        self.control = []
        self.heard = []
        self.links = []
        self.tokens = {"T1"}

    async def serve(self, link):
        self.links.append(link)
        self.asked.append(dict(link.upgrade.query))
        try:
            while True:
                message = json.loads(await link.receive())
                if message.get("to") == "mn:/session":
                    await self._session(link, message)
                else:
                    self.heard.append(message)
        except LinkError:
            return

    async def _session(self, link, message):
        self.control.append(message)
        if message["type"] == "close":
            await link.aclose()
            return
        body = {"code": 200, "runtimeToken": "T1"}
        if message["type"] == "re-open":
            known = message["from"].rpartition("/")[2] in self.tokens
            body = {"code": 200} if known else {"code": 500, "desc": "Incorrect runtime token!"}
        answer = {"id": message["id"], "type": "response", "from": "mn:/session",
                  "to": message["from"], "body": body}  # fmt: skip
        await link.send(json.dumps(answer).encode())

    async def say(self, message):
        await self.links[-1].send(json.dumps(message).encode())


@asynccontextmanager
async def opened(stub, **options):
    """Run such a stub, live, and such a node."""
    network, node, port = MemoryNetwork(), Upstream(), KeepingPort(S)
    doors = {"/stub/connect": None, "/ws": None}
    async with (
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0", doors) as listener,
        trio.open_nursery() as nursery,
        open_supervisor("test") as supervisor,
    ):

        async def accept():
            while True:
                nursery.start_soon(node.serve, await listener.accept())

        nursery.start_soon(accept)
        path = "/stub/connect" if stub == "legacy-websocket" else "/ws"
        config = StubConfig(R, "a.ex", node_url=listener.address + path, options=options)
        context = StubContext(S, port, config, network, MemoryTracer(), IdSource(), bytes)
        ref = await supervisor.start_child(ChildSpec(S, lambda: SHIPPED[stub](context)))
        world = StubWorld(None, StubForm(stub, lambda _: listener.address), ref, context)
        yield await world.live(), node
        nursery.cancel_scope.cancel()


async def test_a_token_that_is_refused_with_500_is_unknown(autojump_clock):
    """STB-09: a new session, in place of the one that is forgotten."""
    async with opened("legacy-session") as (stub, node):
        node.tokens.clear()
        await node.links[-1].aclose()
        await stub.seen("disconnected", 0)
        await stub.status("live")
        assert [one["type"] for one in node.control] == ["open", "re-open", "open"]
        assert stub.sessions() == [f"{S}/session/1", f"{S}/session/2"]


async def test_nodes_of_upstream_are_not_told_that_a_request_is_given_up(autojump_clock):
    for form in ("legacy-websocket", "legacy-session"):
        async with opened(form) as (stub, node):
            for number, body in enumerate(({"givenUp": 1}, {"value": 1}), start=2):
                ends = "hyperty://a.ex/1", "hyperty://a.ex/2/events"
                await stub.send(Message(number, MessageType.CREATE, *ends, body))
            await trio.sleep(1)
            assert [one["body"].get("value") for one in node.heard] == [1]
