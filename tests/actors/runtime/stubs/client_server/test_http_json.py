"""A domain that is a plain REST server, reached by a stub of its catalogue (PFY-05, PFY-01)."""

import ssl
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trustme

from actors.catalogue.archive import pack
from actors.catalogue.client import CatalogueAccess
from actors.hyperties import Caller
from actors.kit.counters import Counters
from actors.kit.http_client import HttpError
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.kit.trace import NULL_TRACER
from actors.policy.store import PolicyConfig
from actors.runtime.app import open_runtime
from actors.runtime.catalogue import SHIPPED
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.stubs.client_server import ClientServerStub
from actors.runtime.stubs.stub import StubConfig, StubContext
from actors.runtime.stubs.wire import StubOptionError
from fsm.catalogue.descriptor import Reach
from specs.limits.node import BACKEND_QUEUE, BACKEND_TIMEOUT
from specs.message import Message, MessageType, reply_to
from tests.actors.node.connectors.rest_registry import RestRegistryFake
from tests.support.catalogues import Publishing, Wall, sources
from tests.support.node.http_server import HangupError, Said, open_http_server
from tests.support.runtime.p2p_bus import KeepingPort
from transports.memory import MemoryNetwork
from transports.system import open_system_network

R = "hyperty-runtime://a.ex/ra"
S = f"{R}/protostub/1"
ITEM = "hyperty://b.ex/items/3"

CALLER = Profile(
    name="caller",
    descriptor="hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Caller",
    resources=("chat",),
    data_schemes=("comm",),
)

HTTP_STUB = """
import json

from actors.kit.supervision.actor import Actor
from actors.runtime.stubs.stub import StubConnection
from fsm.machines.stub_connection import Trigger
from specs.message import refuse, reply_to
from transports.errors import DialError, LinkError
from transports.urls import read_endpoint


def activate(context):
    return Asker(context)


class Asker(Actor):
    def __init__(self, context):
        self.context = context
        self.connection = StubConnection(context)

    async def start(self):
        await self.connection.step(Trigger.CONSTRUCTED)
        await self.connection.step(Trigger.CONNECT)
        await self.connection.step(Trigger.ESTABLISHED)

    async def handle(self, delivery):
        message = delivery.message
        if message.to == self.context.url:
            await self.connection.step(Trigger.CLOSED, "disconnect")
            await self.context.bus.post(reply_to(message, 200))
        elif message.is_request:
            await self.context.bus.post(await self.answer(message))

    async def answer(self, message):
        where = message.body.get("value") or self.context.config.endpoints[0]
        try:
            endpoint = read_endpoint(where)
            link = await self.context.network.dial(endpoint.kind, endpoint.address)
            await link.send(request_of(message))
            text = b""
            while b"}" not in text:
                text += await link.receive()
        except (DialError, LinkError) as exc:
            return refuse(message, 503, str(exc))
        value = json.loads(text.partition(b"\\r\\n\\r\\n")[2])
        return reply_to(message, 200, {"value": value})
"""


class Shop:
    """A REST server with items.

    Attributes:
        mood: What to do instead; None: answer.
    """

    def __init__(self):
        self.items = {"3": {"name": "chair"}}
        self.mood = None

    async def __call__(self, call):
        return self.mood(call) if self.mood is not None else self.answer(call)

    def answer(self, call):
        match (call.method, *call.segments):
            case ("GET", "items", number) if number in self.items:
                return Said(200, self.items[number])
            case ("POST", "items"):
                self.items["4"] = call.body
                return Said(201, {"id": 4})
            case ("PUT", "items", number):
                self.items[number] = call.body
                return Said(204)
            case ("DELETE", "items", number):
                return Said(204 if self.items.pop(number, None) else 404)
            case ("POST", "items", number, "sell"):
                return Said(200, {"sold": number, "for": call.body[0]})
            case _:
                return Said(404, {"message": "no such item"})


@attrs.frozen
class World:
    shop: Shop
    caller: Caller
    url: str

    async def ask(self, kind=MessageType.READ, to=ITEM, body=None):
        return await self.caller.ask(to, kind, body or {})


@asynccontextmanager
async def open_world(publish, tls=None):
    """A runtime of a domain without a node, and a domain that is just a REST server."""
    shop, publishing = Shop(), Publishing()
    async with (
        open_http_server(RestRegistryFake()) as registry,
        open_http_server(shop, tls=tls) as server,
        open_system_network() as network,
    ):
        publish(publishing, server)
        trust = publishing.trust(Reach.ANYWHERE, publishers=("acme",))
        access = CatalogueAccess(publishing.places, trust, clock_offset=Wall(publishing).offset)
        config = RuntimeConfig(
            domain="a.ex",
            name="ra",
            registry=registry.url,
            user="user://a.ex/bob",
            catalogues=access,
            policy=PolicyConfig(),
        )
        caller = Caller()
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            await runtime.deploy(CALLER, lambda: caller)
            yield World(shop, caller, server.url)


def profile(publishing, server):
    said = {"stub": "http-json", "endpoint": server.url}
    publishing.serves(publishing.draft(profile=said))


async def test_messages_become_calls_of_a_rest_server_and_its_answers_their_answers():
    async with open_world(profile) as world:
        read = await world.ask()
        assert (read.code, read.body["value"], read.from_) == (200, {"name": "chair"}, ITEM)
        made = await world.ask(
            MessageType.CREATE, "hyperty://b.ex/items", {"value": {"name": "desk"}}
        )
        assert made.body["value"] == {"id": 4}
        body = {"resource": "hyperty://b.ex/items/4", "value": {"name": "table"}}
        assert (await world.ask(MessageType.UPDATE, "hyperty://b.ex/items", body)).code == 200
        assert world.shop.items["4"] == {"name": "table"}
        sold = await world.ask(MessageType.EXECUTE, ITEM, {"method": "sell", "params": [7]})
        assert sold.body["value"] == {"sold": "3", "for": 7}
        assert (await world.ask(MessageType.DELETE)).code == 200
        assert (await world.ask()).code == 404
        assert (await world.ask(to="hyperty://b.ex/../secret")).code == 400
        assert (await world.ask(MessageType.SUBSCRIBE, body={"resources": [ITEM]})).code == 400


async def test_a_server_that_hangs_up_gets_502_and_is_asked_again():
    def hang_up(_):
        raise HangupError

    async with open_world(profile) as world:
        world.shop.mood = hang_up
        assert (await world.ask()).code == 502
        world.shop.mood = None
        assert (await world.ask()).code == 200


@pytest.mark.parametrize(("is_trusted", "code"), [(True, 200), (False, 502)])
async def test_the_certificate_of_an_https_server_is_checked(
    tmp_path, monkeypatch, is_trusted, code
):
    authority, tls = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    trusted = authority if is_trusted else trustme.CA()
    trusted.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    async with open_world(profile, tls) as world:
        assert world.url.startswith("https:")
        codes = [(await world.ask()).code for _ in range(2)]
        assert codes == [code] * 2


ASKING_STUB = """
from specs.message import Message, MessageType


class Asker(Asker):
    async def answer(self, message):
        context, codes = self.context, {}
        for part in message.body["value"]:
            number = context.ids.next(context.url)
            to = f"{context.config.runtime}/{part}"
            asked = Message(number, MessageType.READ, context.url, to, {})
            self.spawn(self.ask, asked, part, codes)
        while len(codes) < len(message.body["value"]):
            await self.trio.sleep(0.01)
        return reply_to(message, 200, {"value": codes})

    async def ask(self, asked, part, codes):
        codes[part] = (await self.context.bus.request(asked)).code

    import trio
"""


async def test_code_of_a_domain_asks_nothing_of_the_parts_of_a_runtime(tmp_path):
    """SEC-36: from its own address, which is below that of the runtime."""

    def package(publishing, server):
        archive = pack(sources(tmp_path / "code", {"stub.py": HTTP_STUB + ASKING_STUB}))
        publishing.serves({**publishing.code(archive), "endpoints": ["stream://127.0.0.1:9"]})

    parts = ["pep", "idm", "subscriptions", "discovery", "identity-gui", "registry", "sm"]
    async with open_world(package) as world:
        with trio.fail_after(60):
            answer = await world.ask(body={"value": parts})
        assert answer.body.get("value") == dict.fromkeys(parts, 403), answer.body


# ---- the stub alone


class Slow(ClientServerStub):
    """Answers when it is let, one receiver after the other."""

    def __init__(self, context):
        super().__init__("slow", context)
        self.gates, self.asked = {}, []

    async def answer(self, request):
        self.asked.append((request.to, request.id))
        if request.to not in self.gates:
            raise HttpError("b.ex", "it is gone")
        await self.gates[request.to].wait()
        return reply_to(request, 200)


@asynccontextmanager
async def open_slow():
    port, made = KeepingPort(S), []
    config = StubConfig(R, "b.ex", node_url="http://b.ex:80")
    context = StubContext(
        S, port, config, MemoryNetwork(), NULL_TRACER, IdSource(), bytes, Counters()
    )

    def make():
        made.append(Slow(context))
        return made[-1]

    async with open_supervisor("test") as supervisor:
        ref = await supervisor.start_child(ChildSpec("stub", make))
        yield ref, made[0], port


def request(number, to):
    return Delivery(Message(number, MessageType.READ, f"{R}/ua", to, {}), S)


def answers(port):
    return [(one.id, one.code) for one in port.posted if one.is_response]


async def test_no_more_requests_wait_than_are_bounded(autojump_clock):
    async with open_slow() as (ref, stub, port):
        stub.gates = {"x://b.ex/1": trio.Event()}
        for number in range(1, BACKEND_QUEUE + 3):
            await ref.tell(request(number, "x://b.ex/1"))
        await trio.sleep(1)
        assert answers(port) == [(BACKEND_QUEUE + 1, 503), (BACKEND_QUEUE + 2, 503)]
        await trio.sleep(BACKEND_TIMEOUT)
        assert len(answers(port)) == BACKEND_QUEUE + 2


@pytest.mark.parametrize("stub", ["http-json", "rest-registry"])
@pytest.mark.parametrize(
    ("url", "options"), [(None, {}), ("ws://b.ex/link", {}), ("http://b.ex", {"fast": True})]
)
def test_a_profile_that_names_no_server_is_refused(stub, url, options):
    config = StubConfig(R, "b.ex", node_url=url, options=options)
    context = StubContext(
        S, KeepingPort(S), config, MemoryNetwork(), NULL_TRACER, IdSource(), bytes, Counters()
    )
    with pytest.raises(StubOptionError, match=f"the stub {stub} cannot be configured"):
        SHIPPED[stub](context)
