"""A runtime reaches a domain by nothing but what that domain publishes (PFY-01, PFY-03, CAT-03)."""

from contextlib import asynccontextmanager

import attrs
import pytest

from actors.catalogue.client import CatalogueAccess
from actors.catalogue.memory import FolderStore
from actors.hyperties import Caller
from actors.keys.runtime_key import make_runtime_key
from actors.keys.signing import make_key
from actors.kit.counters import Counters, Tally
from actors.kit.guarded_network import GuardedNetwork
from actors.kit.ids import IdSource
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.catalogue import Evidence, FetchingCatalogue, StubMakers
from actors.runtime.config import RuntimeConfig
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.stubs.catalogue import BuiltInCatalogue, NotInCatalogueError
from actors.runtime.stubs.credentials import GivenToken
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.catalogue.descriptor import Reach
from specs.addresses.address import CatalogueType
from specs.limits.protocol import RETRY_COOL_DOWN
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.catalogues import STUB_B, B, Publishing, Wall
from tests.support.runtime.domain import Echo, counted_bytes
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

A = "a.ex"
NODE_B = "ws://127.0.0.1:40001/link"


@attrs.frozen
class World:
    """Nodes of two domains, and a hyperty at the second."""

    network: MemoryNetwork
    node: str
    echo: str

    @asynccontextmanager
    async def visitor(self, access, *, insecure=False, **more):
        """Run a runtime of the first domain, which knows nothing of the second."""
        config = RuntimeConfig(
            domain=A,
            name="ra",
            node=self.node,
            catalogues=access,
            insecure=insecure,
            entropy=counted_bytes(2),
            **more,
        )
        caller, tracer = Caller(), MemoryTracer()
        async with open_runtime(config, self.network, tracer) as runtime:
            await runtime.deploy("caller", lambda: caller)
            yield Visitor(self, caller, tracer, runtime)


@attrs.frozen
class Visitor:
    world: World
    caller: Caller
    tracer: MemoryTracer
    runtime: object

    async def ask(self):
        return await self.caller.request(self.world.echo, "hello")

    def judged(self):
        return [
            (fact.op, fact.reason or fact.result)
            for fact in self.tracer.facts
            if fact.k is Kind.DESCRIPTOR
        ]


@asynccontextmanager
async def open_world(listen_b="127.0.0.1:0"):
    network = MemoryNetwork()
    node_a = NodeConfig(domain=A, entropy=counted_bytes(0))
    node_b = NodeConfig(domain=B, listen=listen_b, entropy=counted_bytes(1))
    async with (
        open_node(node_a, network, MemoryTracer()) as a,
        open_node(node_b, network, MemoryTracer()) as b,
        open_runtime(RuntimeConfig(domain=B, name="rb", node=b.url), network, MemoryTracer()) as rb,
    ):
        yield World(network, a.url, await rb.deploy("echo", Echo))


@pytest.fixture
def publishing():
    made = Publishing()
    made.offers(endpoint=NODE_B)
    return made


def access(publishing, path=None, reach=Reach.ANYWHERE):
    offset = Wall(publishing).offset
    trust = publishing.trust(reach)
    if path is None:
        return CatalogueAccess(publishing.places, trust, clock_offset=offset)
    shelf = FolderStore(path)
    return CatalogueAccess(publishing.places, trust, shelf, clock_offset=offset)


async def test_a_domain_is_reached_by_its_descriptor_alone(publishing, autojump_clock):
    """PFY-01, PFY-08: who calls loads the stub of who is called, and asks at its node."""
    async with open_world() as world, world.visitor(access(publishing)) as visitor:
        answer = await visitor.ask()

    assert (answer.code, answer.body["value"]) == (Code.OK, "hello")
    assert visitor.judged() == [(Op.ADMIT, "profile")]
    assert [fact.stub for fact in visitor.tracer.facts if fact.op is Op.XMIT]


async def test_the_sender_to_a_refused_domain_is_notified_of_the_reason(publishing, autojump_clock):
    """STB-14, SC-06: 503 with the sentence; it is in trace and counters, too."""
    publishing.serves_raw("{}")
    async with open_world() as world, world.visitor(access(publishing)) as visitor:
        answer = await visitor.ask()
        counted = visitor.runtime.counters.tallies[Tally.DESCRIPTORS]

    assert answer.code == Code.UNAVAILABLE
    assert answer.body["retryAfter"] == RETRY_COOL_DOWN
    assert "the protocolstub 'default' of b.ex is refused: it is not signed" in str(answer.body)
    assert visitor.judged() == [(Op.REFUSED, "unsigned")]
    assert [(str(label[0]), count) for label, count in counted.items()] == [("unsigned", 1)]


# ---- what a fetched stub is given


def context_of():
    reported = StubConfig(f"hyperty-runtime://{A}/ra", B, credentials=GivenToken("secret"))
    return StubContext("stub", None, reported, MemoryNetwork(), MemoryTracer(), IdSource(), bytes)


def evidence_for(identity=None):
    return Evidence(MemoryTracer(), Counters(), identity or OwnIdentity(make_runtime_key()))


async def given(publishing, reach):
    """Return what the stub that a descriptor leads to is given."""
    seen = []
    offset = Wall(publishing).offset
    asked = CatalogueAccess(publishing.places, publishing.trust(reach), clock_offset=offset)
    evidence = evidence_for()
    makers = StubMakers({"websocket": seen.append})
    catalogue = FetchingCatalogue(BuiltInCatalogue({}, {}), asked, makers, evidence)
    descriptor = await catalogue.find(STUB_B.address)
    descriptor.activate(context_of())
    return descriptor, seen[0]


@pytest.mark.parametrize(
    ("said", "takes"),
    [
        ({}, True),
        ({"interworking": True}, False),
        ({"interworking": True, "mutualAuthentication": True}, True),
        ({"mutualAuthentication": True}, True),
    ],
)
async def test_an_interworking_stub_takes_an_identity_only_if_it_declares_that(
    said, takes, publishing, autojump_clock
):
    """REG-15, STB-19."""
    publishing.offers(**said)
    descriptor, _ = await given(publishing, Reach.ANYWHERE)
    assert descriptor.takes_identity is takes


async def test_a_fetched_stub_dials_public_places_only(autojump_clock):
    """S15: also if a name that looked public stands for something else when it is dialled."""
    made = Publishing()
    made.offers()
    _, context = await given(made, Reach.PUBLIC)
    assert isinstance(context.network, GuardedNetwork)


async def test_an_address_outside_catalogues_is_not_looked_up(publishing, autojump_clock):
    makers, evidence = StubMakers({}), evidence_for()
    catalogue = FetchingCatalogue(BuiltInCatalogue({}, {}), access(publishing), makers, evidence)
    with pytest.raises(NotInCatalogueError):
        await catalogue.find("http://b.ex/stub")


# ---- the keys of the domain


async def learnt(domain_keys, identity):
    """Fetch a descriptor with these keys; return what a runtime then knows of the domain."""
    made = Publishing()
    made.offers(domainKeys=domain_keys)
    offset = Wall(made).offset
    asked = CatalogueAccess(made.places, made.trust(Reach.ANYWHERE), clock_offset=offset)
    makers = StubMakers({"websocket": print})
    catalogue = FetchingCatalogue(BuiltInCatalogue({}, {}), asked, makers, evidence_for(identity))
    assert (await catalogue.find(STUB_B.address)).node_url
    return {domain: set(keys) for domain, keys in identity.foreign_keys.items()}


async def test_the_keys_of_a_domain_are_those_of_its_signed_descriptor(autojump_clock):
    """What a node shows, maybe over a link that somebody listens to, does not replace them."""
    identity = OwnIdentity(make_runtime_key())
    keys = {"keys": [make_key("EdDSA", "signed").public()]}
    identity.learn(B, {"shown": None}, is_signed=False)
    assert await learnt(keys, identity) == {B: {"signed"}}
    identity.learn(B, {"shown": None}, is_signed=False)
    assert set(identity.foreign_keys[B]) == {"signed"}


@pytest.mark.parametrize("domain_keys", [{}, {"keys": []}, {"keys": [{"kty": "oct", "k": "x"}]}])
async def test_keys_that_cannot_be_used_are_let_be(domain_keys, autojump_clock):
    assert await learnt(domain_keys, OwnIdentity(make_runtime_key())) == {}


# ---- constraints


async def test_a_stub_whose_constraints_are_met_is_deployed(publishing, autojump_clock):
    """STB-12, CAT-03."""
    needs = {"python": "3.11", "memory": 64, "stubs": ["websocket"], "transports": ["websocket"]}
    publishing.offers(endpoint=NODE_B, constraints=needs)
    async with open_world() as world, world.visitor(access(publishing)) as visitor:
        assert (await visitor.ask()).code == Code.OK


async def test_a_runtime_has_no_capability_that_its_descriptor_denies(publishing, autojump_clock):
    """CAT-04: what it can do, and its descriptor does not deny."""
    denied = {"memory": 32}
    own = publishing.describes(CatalogueType.RUNTIME, "pc", protocolCapabilities=denied)
    publishing.offers(endpoint=NODE_B, constraints={"memory": 64})
    async with open_world() as world:
        described = {"descriptor": own}
        async with world.visitor(access(publishing), **described) as visitor:
            answer = await visitor.ask()

    assert answer.code == Code.UNAVAILABLE
    assert "it needs memory 64, and this runtime has 32" in str(answer.body)


async def test_options_of_the_profile_come_before_the_configuration(autojump_clock):
    """STB-13: of both the later wins."""
    made = Publishing()
    profile = {"stub": "websocket", "endpoint": NODE_B, "options": {"a": 1, "b": 1}}
    made.serves(made.draft(profile=profile, configuration={"b": 2, "c": 2}))
    descriptor, _ = await given(made, Reach.ANYWHERE)
    assert descriptor.options == {"a": 1, "b": 2, "c": 2}
