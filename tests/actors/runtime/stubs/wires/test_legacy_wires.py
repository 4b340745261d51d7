"""What stubs for upstream's nodes write, letter by letter, and what they make of what comes.

The other end is no node of ours: it speaks as upstream's do (protocol page 11), and says
nothing that they do not say.
"""

import json
from contextlib import asynccontextmanager

import pytest
import trio

from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.runtime.catalogue import SHIPPED
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.stub_world import UA, R, S, StubForm, StubWorld
from tests.support.trace.memory import MemoryTracer
from transports.errors import LinkError
from transports.link import Kind
from transports.memory import MemoryNetwork

OLD, STUB = "runtime://a.ex/rs", "runtime://a.ex/rs/protostub/1"
SM = "domain://msg-node.a.ex/sm"
BOTH = pytest.mark.parametrize("stub", ["legacy-websocket", "legacy-session"])


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


async def test_the_plain_form_names_its_runtime_and_says_nothing_more(autojump_clock):
    async with opened("legacy-websocket") as (_, node):
        assert node.asked == [{"runtimeURL": OLD}]
        assert node.control == node.heard == []


async def test_a_session_is_opened_with_the_name_and_re_opened_with_the_token(autojump_clock):
    async with opened("legacy-session") as (stub, node):
        await node.links[-1].aclose()
        await stub.seen("disconnected", 0)
        await stub.status("live")
        assert node.control == [
            {"id": 1, "type": "open", "from": OLD, "to": "mn:/session"},
            {"id": 1, "type": "re-open", "from": f"{OLD}/T1", "to": "mn:/session"},
        ]
        assert stub.sessions() == [f"{S}/session/1"] * 2


async def test_a_token_that_is_refused_with_500_is_unknown(autojump_clock):
    """STB-09: a new session, in place of the one that is forgotten."""
    async with opened("legacy-session") as (stub, node):
        node.tokens.clear()
        await node.links[-1].aclose()
        await stub.seen("disconnected", 0)
        await stub.status("live")
        assert [one["type"] for one in node.control] == ["open", "re-open", "open"]
        assert stub.sessions() == [f"{S}/session/1", f"{S}/session/2"]


@BOTH
async def test_messages_are_spelt_as_upstreams_nodes_read_them(autojump_clock, stub):
    """C-07, C-09, C-37: `runtime://`, `via` one address."""
    async with opened(stub) as (world, node):
        await world.send(world.ask(SM, "subscribe", resources=["hyperty://a.ex/h"], source=UA))
        await world.settle()
        assert node.heard == [
            {
                "id": 2, "type": "subscribe", "from": f"{OLD}/ua", "to": SM,
                "body": {"resources": ["hyperty://a.ex/h"], "source": f"{OLD}/ua", "via": STUB},
            }
        ]  # fmt: skip


@BOTH
async def test_ids_and_lists_are_spelt_as_the_profile_says(autojump_clock, stub):
    async with opened(stub, ids="text", paths="subscribe") as (world, node):
        await world.send(world.ask(SM, "subscribe", resources=["hyperty://a.ex/h"]))
        await world.settle()
        assert node.heard[0]["id"] == "2"
        assert node.heard[0]["body"]["subscribe"] == ["hyperty://a.ex/h"]


@BOTH
async def test_received_messages_are_in_normal_form_inside(autojump_clock, stub):
    async with opened(stub) as (world, node):
        body = {"code": 200, "desc": "yes", "auth": False}
        await node.say({"id": "7", "type": "RESPONSE", "from": SM, "to": f"{OLD}/ua", "body": body})
        (came,) = await world.until(1)
        assert (came.id, came.to, came.code) == (7, UA, 200)
        assert came.body["description"] == "yes"


async def test_the_plain_form_says_goodbye_by_its_command(autojump_clock):
    async with opened("legacy-websocket") as (stub, node):
        await stub.command("disconnect")
        await stub.status("disconnected")
        assert node.heard == [{"cmd": "disconnect", "body": {"runtimeURL": OLD, "via": STUB}}]


async def test_a_close_is_answered_by_the_end_of_the_link(autojump_clock):
    async with opened("legacy-session") as (stub, node):
        before = trio.current_time()
        await stub.command("disconnect")
        await stub.status("disconnected")
        closed = {"id": 2, "type": "close", "from": f"{OLD}/T1", "to": "mn:/session"}
        assert node.control[-1] == closed
        assert trio.current_time() == before


@BOTH
async def test_a_node_is_there_as_long_as_its_link_answers(autojump_clock, stub):
    """R8: nothing is sent to ask; and silence is found in time."""
    async with opened(stub) as (world, node):
        await trio.sleep(4 * PING_PERIOD)
        assert world.statuses() == ["created", "in-progress", "live"]
        assert node.heard == []
        before = trio.current_time()
        for link in node.links:
            link.sieve = lambda _: None
        await world.seen("disconnected", 0)
        assert trio.current_time() - before <= PING_PERIOD + PONG_TIMEOUT


@pytest.mark.parametrize(
    "frame",
    [
        b"hello",
        b"[]",
        b'{"id":1,"type":"response","from":"mn:/session","body":{"code":200}}',
        b'{"id":"x","type":"response","from":"mn:/session","body":{}}',
        b'{"from":"mn:/session"}',
        b'{"id":9,"type":"response","from":"mn:/session","body":7}',
    ],
)
@BOTH
async def test_other_frames_are_counted(autojump_clock, stub, frame):
    async with opened(stub) as (world, node):
        await node.links[-1].send(frame)
        await world.settle()
        assert list(world.counters.drops.values()) == [1]
        assert world.statuses()[-1] == "live"
