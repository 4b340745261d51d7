"""What a runtime shows to nodes, and keeps of what they say about its key."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.http.config import HttpConfig
from actors.keys.runtime_key import make_runtime_key
from actors.keys.signing import make_key
from actors.keys.token import read_statement
from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.session import control
from actors.runtime.app import own_identity
from actors.runtime.config import RuntimeConfig
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.credentials import NO_CREDENTIALS, GivenToken
from actors.runtime.stubs.node_stub import NodeStub
from actors.runtime.stubs.rest_wire import LINKS, RestPast, RestWire
from actors.runtime.stubs.stub import StubConfig, StubContext
from specs.limits.node import DOMAINS_KEPT
from specs.message import Message, MessageType
from tests.support.node.issuer import ALICE, Issuer, login_by
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind
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


def bound_token(issuer, identity, **claims):
    return issuer.token(cnf={"jkt": identity.key.thumbprint}, **claims)


@pytest.mark.parametrize("form", ["websocket", "long-poll", "sse"])
async def test_a_runtime_proves_its_key_and_keeps_what_is_stated(form, autojump_clock):
    issuer = Issuer()
    async with open_place(form, login=login_by(issuer)) as place:
        identity = place.identity
        token = bound_token(issuer, identity)
        async with place.stub(GivenToken(token)) as port:
            await wait_live(port)
        said = read_statement(identity.statement, "a.ex", identity.domain_keys, 0.0)
        assert (said.runtime, said.user) == (R, ALICE)
        assert said.thumbprint == identity.key.thumbprint
        assert identity.assertion == token
        assert token not in repr(identity)
        assert identity.statement not in repr(identity)


async def test_a_bearer_token_is_no_assertion(autojump_clock):
    issuer = Issuer()
    async with open_place(login=login_by(issuer)) as place:
        async with place.stub(GivenToken(issuer.token())) as port:
            await wait_live(port)
        assert place.identity.assertion is None
        assert place.identity.statement is not None


async def test_a_token_for_the_key_of_another_opens_nothing(autojump_clock):
    issuer = Issuer()
    async with open_place(login=login_by(issuer)) as place:
        stolen = issuer.token(cnf={"jkt": make_runtime_key().thumbprint})
        async with place.stub(GivenToken(stolen)) as port:
            await wait_live(port, value="failed")
        assert (place.identity.assertion, place.identity.statement) == (None, None)


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


async def test_a_link_that_is_cut_is_proven_again(autojump_clock):
    async with open_place() as place, place.stub() as port:
        await wait_live(port)
        first = place.identity.statement
        for wire in place.network.open_wires(Kind.WEBSOCKET):
            wire.cut()
        await wait_live(port, 2)
        assert read_statement(place.identity.statement, "a.ex", place.identity.domain_keys, 1.0)
        assert first is not None


async def test_a_statement_is_renewed_before_it_is_over(autojump_clock, monkeypatch):
    monkeypatch.setattr(control, "STATEMENT_LIFE", life := 600.0)
    async with open_place() as place, place.stub() as port:
        await wait_live(port)
        await trio.sleep(3 * life)
        now, identity = trio.current_time(), place.identity
        said = read_statement(identity.statement, "a.ex", identity.domain_keys, now)
        assert life / 2 - 1 <= said.until - now <= life


async def test_another_domain_states_nothing_and_shows_its_keys(autojump_clock):
    key = make_key("EdDSA", "of b.ex")
    async with open_place(domain="b.ex", domain_keys=(key,)) as place:
        async with place.stub() as port:
            await wait_live(port)
        identity = place.identity
        assert (identity.statement, dict(identity.domain_keys)) == (None, {})
        assert identity.foreign_keys["b.ex"].keys() == {"of b.ex"}


def test_the_keys_of_many_domains_are_bounded():
    identity = OwnIdentity(make_runtime_key())
    for number in range(2 * DOMAINS_KEPT):
        identity.learn(f"{number}.ex", {}, is_signed=number % 2 == 0)
    assert len(identity.foreign_keys) == DOMAINS_KEPT
    assert f"{2 * DOMAINS_KEPT - 1}.ex" in identity.foreign_keys


def test_a_stored_session_has_its_key_beside_it(tmp_path):
    config = RuntimeConfig(domain="a.ex", name="ra", node="ws://x/link", store=tmp_path / "store")
    first, again = own_identity(config), own_identity(config)
    assert (tmp_path / "store-identity").exists()
    assert first.key.thumbprint == again.key.thumbprint
    named = attrs.evolve(config, identity=tmp_path / "key")
    assert own_identity(named).key.thumbprint != first.key.thumbprint
    bare = attrs.evolve(config, store=None)
    assert own_identity(bare).key.thumbprint != own_identity(bare).key.thumbprint


def test_stubs_over_http_are_those_of_the_shipped_kinds():
    assert {*LINKS} == {"long-poll", "sse"}
