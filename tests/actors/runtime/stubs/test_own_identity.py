"""What a runtime shows to nodes, and keeps of what they say about its key."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.http.config import HttpConfig
from actors.keys.runtime_key import make_runtime_key
from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.credentials import NO_CREDENTIALS
from actors.runtime.stubs.node_stub import NodeStub
from actors.runtime.stubs.rest_wire import LINKS, RestPast, RestWire
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.limits.node import DOMAINS_KEPT
from specs.message import Message, MessageType
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

R, S = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/ra/protostub/1"
NODE = "127.0.0.1:4000"


@attrs.define
class Place:
    """A node, and stubs of one runtime."""

    network: MemoryNetwork
    identity: OwnIdentity
    counters: Counters
    rest_url: str | None
    form: str = "websocket"
    domain: str = "a.ex"
    kept: list[str] = attrs.field(factory=list)

    @asynccontextmanager
    async def stub(self, credentials=NO_CREDENTIALS, session=None):
        port = KeepingPort(S)
        config = StubConfig(
            R, self.domain, credentials=credentials, session=session,
            node_url=f"ws://{NODE}/link" if self.form == "websocket" else self.rest_url,
        )  # fmt: skip
        context = StubContext(
            S, port, config, self.network, MemoryTracer(), IdSource(), bytes,
            keep=lambda token, _: self.kept.append(token), identity=self.identity,
        )  # fmt: skip
        async with open_supervisor("test") as supervisor:
            ref = await supervisor.start_child(ChildSpec(S, lambda: self._made(context)))
            body = {"method": "connect", "params": []}
            await ref.tell(
                node_stub.Delivery(Message(1, MessageType.EXECUTE, f"{R}/ua", S, body), S)
            )
            yield port

    def _made(self, context):
        if self.form == "websocket":
            return node_stub.activate(context)
        link, past = LINKS[self.form], RestPast()
        return NodeStub(context, lambda: RestWire(context, link, past))


@asynccontextmanager
async def open_place(form="websocket", domain="a.ex", **config):
    network = MemoryNetwork()
    more = {"http": HttpConfig("127.0.0.1:0", rest=True)} if form != "websocket" else {}
    config = NodeConfig(domain=domain, listen=NODE, **more, **config)
    async with open_node(config, network, MemoryTracer()) as node:
        yield Place(
            network, OwnIdentity(make_runtime_key()), node.counters, node.rest_url, form, domain
        )


async def wait_live(port, times=1, value="live"):
    with trio.fail_after(30):
        while [one.body.get("value") for one in port.posted].count(value) < times:
            await port.wait_for(len(port.posted) + 1)


@pytest.mark.parametrize("form", ["websocket", "long-poll"])
async def test_a_session_of_an_earlier_process_is_resumed_with_its_key(form, autojump_clock):
    async with open_place(form) as place:
        async with place.stub() as port:
            await wait_live(port)
            token = place.kept[-1]
        place.identity.statement = None
        async with place.stub(session=token) as port:
            await wait_live(port)
        assert place.identity.statement is not None


def test_the_keys_of_many_domains_are_bounded():
    identity = OwnIdentity(make_runtime_key())
    for number in range(2 * DOMAINS_KEPT):
        identity.learn(f"{number}.ex", {}, is_signed=number % 2 == 0)
    assert len(identity.foreign_keys) == DOMAINS_KEPT
    assert f"{2 * DOMAINS_KEPT - 1}.ex" in identity.foreign_keys


def test_stubs_over_http_are_those_of_the_shipped_kinds():
    assert {*LINKS} == {"long-poll", "sse"}
