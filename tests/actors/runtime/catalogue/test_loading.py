"""Hyperties that come from signed descriptors, in real sandbox processes (HYP-01, CAT-02)."""

from contextlib import asynccontextmanager
from hashlib import sha256

import attrs
import pytest
import trio

from actors.catalogue.client import CatalogueAccess
from actors.catalogue.publishing import describe_package
from actors.catalogue.source import package_path
from actors.hyperties import Caller
from actors.keys.signing import make_key
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.isolation import HypertyLoadError, LoadStep
from fsm.catalogue.descriptor import Reach
from specs.addresses.address import CatalogueType, Entry, domain_registry
from specs.descriptor import Revoked
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.catalogues import B, Publishing, Wall, archive_of
from tests.support.runtime.domain import counted_bytes
from tests.support.runtime.runtime_parts import Refusing
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

CHAT = Entry(B, CatalogueType.SCHEMA, "chat")

A = "a.ex"
GREETER = Entry(B, CatalogueType.HYPERTY, "greeter")
SOURCES = {
    "greeter.py": """
from actors import Hyperty
from words import COMMA


class Greeter(Hyperty):
    async def on_request(self, message):
        return self.configuration["greeting"] + COMMA + message.body["value"]
""",
    "words.py": "COMMA = ', '\n",
}
BROKEN = {"greeter.py": "raise RuntimeError('not today')\n"}


@attrs.define
class Supply:
    """A domain that publishes a hyperty of acme's."""

    publishing: Publishing
    archive: bytes

    def offers(self, publisher="acme", key=None, **more):
        by = key or self.publishing.acme
        said = describe_package(GREETER, self.archive, "greeter:Greeter", publisher, by)
        self.serve(self.archive)
        return self.publishing.describes(CatalogueType.HYPERTY, "greeter", **{**said, **more})

    def serve(self, content):
        digest = sha256(self.archive).hexdigest()
        self.publishing.files[package_path(digest)] = content


@pytest.fixture
def supply(tmp_path):
    made = Supply(Publishing(), archive_of(tmp_path, SOURCES))
    made.offers(configuration={"greeting": "hello"})
    return made


@attrs.frozen
class World:
    runtime: object
    caller: Caller
    policy: Refusing
    tracer: MemoryTracer
    node_tracer: MemoryTracer

    async def record(self, url):
        return await self.caller.ask(domain_registry(A), MessageType.READ, {"resource": url})

    async def is_undone(self):
        """Wait until nothing is left: on busy cores a sandbox ends after the call that failed."""
        with trio.move_on_after(10 * GOODBYE_TIMEOUT):
            while self.left():
                await trio.lowlevel.checkpoint()
        return self.left() == set()

    def left(self):
        """What there is of other hyperties than the caller, in the runtime and at its node."""
        rows, addresses = set(), {}
        for fact in self.tracer.facts:
            if fact.k is Kind.TABLE and fact.op in {Op.ADD, Op.DEL}:
                (rows.add if fact.op is Op.ADD else rows.discard)((fact.table, fact.key))
        for fact in self.node_tracer.facts:
            if fact.machine == "address" and fact.key.startswith("hyperty:"):
                addresses[fact.key] = fact.new
        held = {url for url, state in addresses.items() if state != "released"}
        seen = {key for _, key in rows if key.startswith("hyperty:")}
        return {url for url in held | seen if not url.startswith(self.caller.url)}


@asynccontextmanager
async def open_world(supply, *, catalogues=True, publishers=("acme",)):
    network, tracer, node_tracer = MemoryNetwork(), MemoryTracer(), MemoryTracer()
    publishing, policy, caller = supply.publishing, Refusing(), Caller()
    access = CatalogueAccess(
        publishing.places,
        publishing.trust(Reach.PUBLIC, publishers),
        clock_offset=Wall(publishing).offset,
    )
    node = NodeConfig(domain=A, entropy=counted_bytes(0))
    async with open_node(node, network, node_tracer) as opened:
        config = RuntimeConfig(
            domain=A,
            name="ra",
            node=opened.url,
            catalogues=access if catalogues else None,
            policy=policy,
            entropy=counted_bytes(1),
        )
        async with open_runtime(config, network, tracer) as runtime:
            await runtime.deploy("caller", lambda: caller)
            yield World(runtime, caller, policy, tracer, node_tracer)


# ---- what is not loaded


def tampered(supply):
    supply.serve(supply.archive[:-1] + b"\1")


def signed_by_another_publisher(supply):
    supply.offers(key=make_key("EdDSA", "acme-1"))


def of_an_unknown_publisher(supply):
    supply.offers(publisher="nobody")


def expired(supply):
    supply.offers(expires=supply.publishing.now - 1)


def revoked(supply):
    supply.publishing.revokes(Revoked(cguid=GREETER.address))


def package_revoked(supply):
    supply.publishing.revokes(Revoked(sha256=sha256(supply.archive).hexdigest()))


def signed_by_another_domain(supply):
    stranger = Supply(Publishing(acme=supply.publishing.acme), supply.archive)
    stranger.offers()
    supply.publishing.files[GREETER.path] = stranger.publishing.files[GREETER.path]


def of_another_kind(supply):
    stub = Entry(B, CatalogueType.STUB, "greeter")
    profile = {"stub": "websocket", "endpoint": "wss://node.b.ex/link"}
    supply.publishing.describes(CatalogueType.STUB, "greeter", profile=profile)
    supply.publishing.files[GREETER.path] = supply.publishing.files[stub.path]


def without_code(supply):
    supply.publishing.describes(CatalogueType.HYPERTY, "greeter", counter=2)


def not_there(supply):
    del supply.publishing.files[GREETER.path]


def needs_files(supply):
    supply.offers(constraints={"files": True})


def needs_the_unknown(supply):
    supply.offers(constraints={"telepathy": True})


def in_another_language(supply):
    supply.offers(language="javascript")


@pytest.mark.parametrize(
    ("spoil", "step", "why"),
    [
        (tampered, LoadStep.TRUST, "not the one whose hash was signed"),
        (signed_by_another_publisher, LoadStep.TRUST, "did not sign its package"),
        (of_an_unknown_publisher, LoadStep.TRUST, "is not allowed"),
        (expired, LoadStep.TRUST, "it expired"),
        (revoked, LoadStep.TRUST, "it is revoked"),
        (package_revoked, LoadStep.TRUST, "its package is revoked"),
        (signed_by_another_domain, LoadStep.TRUST, "signature"),
        (of_another_kind, LoadStep.DESCRIPTOR, "describes a protocolstub and not a hyperty"),
        (without_code, LoadStep.DESCRIPTOR, "it has no package"),
        (not_there, LoadStep.DESCRIPTOR, "greeter"),
        (in_another_language, LoadStep.DESCRIPTOR, "javascript"),
        (needs_files, LoadStep.CONSTRAINTS, "it needs files, and this runtime has none"),
        (needs_the_unknown, LoadStep.CONSTRAINTS, "'telepathy' is unknown"),
    ],
)
async def test_a_hyperty_that_is_refused_leaves_nothing(supply, spoil, step, why):
    """HYP-01, CAT-02, CAT-07, CAT-08, STB-12: no code of it runs, and nothing is allocated."""
    spoil(supply)
    async with open_world(supply) as world:
        with pytest.raises(HypertyLoadError, match=why) as caught:
            await world.runtime.load(GREETER.address)
        assert await world.is_undone()

    assert (caught.value.step, caught.value.address) == (step, GREETER.address)


@pytest.mark.parametrize(
    ("to", "files", "step"),
    [
        (f"domain://msg-node.{A}/address-allocation", SOURCES, LoadStep.ADDRESS),
        ("", BROKEN, LoadStep.SANDBOX),
        (domain_registry(A), SOURCES, LoadStep.REGISTRATION),
    ],
)
async def test_a_step_that_fails_undoes_those_before_it(supply, tmp_path, to, files, step):
    """HYP-01: listeners, sandbox and address are given back."""
    supply.archive = archive_of(tmp_path / "again", files)
    supply.offers(configuration={"greeting": "hello"})
    async with open_world(supply) as world:
        world.policy.to = to
        with pytest.raises(HypertyLoadError) as caught:
            await world.runtime.load(GREETER.address)
        assert await world.is_undone()
        world.policy.to = ""
        if files is SOURCES:
            life = await world.runtime.load(GREETER.address)
            assert (await world.caller.request(life.url, "Bob")).code == Code.OK

    assert caught.value.step is step


async def test_a_hyperty_is_loaded_by_its_descriptor_alone(supply):
    """HYP-01, CAT-02: with its configuration, its types and the schemes of its data objects."""
    schema = {"type": "object"}
    about = supply.publishing.describes(
        CatalogueType.SCHEMA, CHAT.name, schema=schema, scheme="comm"
    )
    supply.offers(
        configuration={"greeting": "good day"},
        hypertyType=["chat"],
        dataObjects=[about, "connection"],
        constraints={"dataObjects": True, "memory": 64},
    )
    async with open_world(supply) as world:
        life = await world.runtime.load(GREETER.address)
        answer = await world.caller.request(life.url, "Bob")
        record = (await world.record(life.url)).body["value"]
        await world.runtime.undeploy(life.url)
        gone = await world.caller.request(life.url, "Bob")

    assert (answer.code, answer.body["value"]) == (Code.OK, "good day, Bob")
    assert (record["descriptor"], record["resources"]) == (GREETER.address, ["chat"])
    assert record["dataSchemes"] == ["comm", "connection"]
    assert gone.code == Code.NOT_FOUND
