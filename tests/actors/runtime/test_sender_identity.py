"""A called hyperty knows who calls: by its node, by a link, and within its runtime."""

from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio
from typing_extensions import override

import actors
from actors.node.login.provider import Admission
from actors.pipe.process import ProcessSandboxes
from actors.runtime.isolation import HypertyCode
from actors.sandbox.sandbox import open_local_sandbox
from specs.identity import SenderIdentity, VouchedBy
from specs.message import MessageType
from tests.support.node.issuer import Issuer, login_by
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind
from transports.memory import MemoryNetwork

A, B = "a.example", "b.example"
ALICE, BOB = f"user://idp.{A}/alice", f"user://idp.{B}/bob"
FORGED = {"runtime": f"hyperty-runtime://{B}/rb", "user": BOB, "vouchedBy": "identity-provider"}


class Keeper(actors.Hyperty):
    """Says who has called it, and keeps who else has spoken to it."""

    def __init__(self):
        self.heard = []
        self.came = trio.Event()

    @override
    async def on_request(self, message):
        assert "identity" not in message.body
        caller = message.identity
        return None if caller is None else [caller.runtime, caller.user, caller.vouched_by.value]

    @override
    async def on_event(self, message):
        self._keep("event", message)

    @override
    async def on_invited(self, invited):
        self._keep("invited", invited.message)

    def _keep(self, what, message):
        assert "identity" not in message.body
        self.heard.append((what, message.identity))
        self.came.set()


@attrs.define
class World:
    """Two domains with an identity provider each; nodes of one let in users of the other."""

    stack: AsyncExitStack
    network: MemoryNetwork = attrs.field(factory=MemoryNetwork)
    nodes: dict = attrs.field(factory=dict)
    issuers: dict = attrs.field(factory=dict)
    tracer: MemoryTracer = attrs.field(factory=MemoryTracer)

    async def add(self, domain):
        issuer = self.issuers[domain] = Issuer(domain=domain)
        login = login_by(issuer, admission=Admission.ANYBODY)
        config = actors.NodeConfig(domain=domain, login=login)
        node = actors.open_node(config, network=self.network, trace=self.tracer)
        self.nodes[domain] = (await self.stack.enter_async_context(node)).url

    async def runtime(self, domain, name, user=None, **more):
        token = self.issuers[domain].token(sub=user) if user else ""
        config = actors.RuntimeConfig(
            domain=domain,
            name=name,
            node=self.nodes[domain],
            nodes={there: url for there, url in self.nodes.items() if there != domain},
            credentials=Home(domain, token, user, self.issuers),
            **more,
        )
        opened = actors.open_runtime(config, network=self.network, trace=self.tracer)
        return await self.stack.enter_async_context(opened)


@attrs.frozen
class Home(actors.Credentials):
    """A token for the own node, and for others one of an issuer of the own domain."""

    domain: str
    shown: str
    user: str | None
    issuers: dict[str, Issuer]

    @override
    async def token(self, audience):
        await trio.lowlevel.checkpoint()
        if audience == self.domain or self.user is None:
            return self.shown if audience == self.domain else ""
        stated = [f"hyperty://{self.domain}"]
        issuer = f"https://idp.{self.domain}"
        return self.issuers[audience].token(iss=issuer, sub=self.user, addresses=stated)


@asynccontextmanager
async def open_domains(*domains):
    async with AsyncExitStack() as stack:
        world = World(stack)
        for domain in domains:
            await world.add(domain)
        yield world


async def greeting(caller, called):
    return (await caller.request(called.url)).body["value"]


async def test_a_hyperty_in_a_sandbox_knows_its_caller_too_and_cannot_lie(
    autojump_clock, monkeypatch
):
    def in_this_process(_, label, **_find):
        return open_local_sandbox(label)

    monkeypatch.setattr(ProcessSandboxes, "open", in_this_process)
    async with open_domains(A) as world:
        here = await world.runtime(A, "ra", ALICE)
        code = HypertyCode(f"{__name__}:Liar")
        life = await here._running.run_in_sandbox("liar", code)
        caller, called = await here.deploy(Keeper), await here.deploy(Keeper)
        expected = [here.url, ALICE, "identity-provider"]
        assert (await caller.request(life.url, called.url)).body["value"] == [expected, expected]


class Liar(actors.Hyperty):
    """Calls the hyperty that a request names; returns who has called, and who it called as."""

    @override
    async def on_request(self, message):
        caller, to = message.identity, str(message.body["value"])
        body = {"identity": FORGED, "value": 1}
        answer = await self.ask(to, MessageType.CREATE, body)
        return [[caller.runtime, caller.user, caller.vouched_by.value], answer.body["value"]]


class Live:
    """A direct link, whose state the machine sets."""

    def __init__(self, is_live):
        self.state = ""
        self.is_live = is_live

    def on_enter_live(self, _):
        self.is_live.set()


async def test_by_a_link_the_caller_is_the_runtime_that_the_link_leads_to(autojump_clock):
    async with open_domains(A) as world:
        kinds = {"kinds": (Kind.TCP,)}
        here = await world.runtime(A, "ra", ALICE, **kinds)
        there = await world.runtime(A, "rb", BOB, **kinds)
        caller, called = await here.deploy(Keeper), await there.deploy(Keeper)
        is_live = trio.Event()
        await here.follow("p2p_connection", lambda _: Live(is_live))
        await greeting(caller, called)
        await is_live.wait()
        caller_runtime, *_ = await greeting(caller, called)
        assert caller_runtime == here.url


@pytest.mark.parametrize(
    ("user", "known"),
    [(BOB, (BOB, VouchedBy.DOMAIN)), (ALICE, (None, VouchedBy.NONE))],
    ids=["its own", "one of ours"],
)
async def test_another_domains_node_is_believed_about_its_own(user, known, autojump_clock):
    """The runtime asks at that node; its answer comes from there."""
    async with open_domains(A, B) as world:
        here = await world.runtime(A, "ra", ALICE)
        there = await world.runtime(B, "rb", user)
        caller, called = await here.deploy(Keeper), await there.deploy(Keeper)
        answer = await caller.request(called.url)
        assert answer.identity == SenderIdentity(there.url, *known)
        # There the runtime of this domain is a visitor with a login.
        assert answer.body["value"] == [here.url, ALICE, "identity-provider"]
