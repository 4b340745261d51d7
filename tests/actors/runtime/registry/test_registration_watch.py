"""Registrations of others are followed, by whoever asks the registry (REG-16, M-29, M-30)."""

from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from typing_extensions import override

from actors.runtime.bus.messages import Origin
from actors.runtime.hyperty.hyperty import Hyperty
from fsm.judge.trace_line import Verdict
from specs.addresses.address import domain_registry
from specs.bodies.word import RecordStatus
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.trace import Op
from tests.support.runtime.domain import DOMAIN, DomainOptions, judged, open_domain

LIVE, AWAY = RecordStatus.LIVE.value, RecordStatus.DISCONNECTED.value
REGISTRY = domain_registry(DOMAIN)


class Watcher(Hyperty):
    """Keeps what it is notified of registrations."""

    def __init__(self):
        self.reported = []

    @override
    async def on_event(self, message):
        self.reported.append((message.to, message.body["value"]))

    async def follow(self, registry, url, kind=MessageType.SUBSCRIBE):
        return await self.ask(registry, kind, {"resources": [f"{url}/registration"]})


@asynccontextmanager
async def watching(kinds=()):
    """Alice's watcher follows Bob's hyperty."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=kinds)) as domain:
        alice, bob, watcher = domain["alice"], domain["bob"], Watcher()
        place = await alice.runtime.deploy("watcher", lambda: watcher)
        registry = f"{alice.runtime.url}/registry"
        assert (await watcher.follow(registry, bob.address)).code == Code.OK
        yield domain, watcher, place
    assert judged(alice).verdict is Verdict.CONFORMANT


async def watched(runtime):
    return (await runtime.registry.view()).watched


async def test_others_cannot_have_a_registry_follow_for_them(autojump_clock):
    async with watching() as (domain, _, _):
        alice, bob = domain["alice"], domain["bob"]
        body = {"resources": [f"{alice.address}/registration"]}
        registry = f"{alice.runtime.url}/registry"
        answer = await bob.hyperty.ask(registry, MessageType.SUBSCRIBE, body)
        assert answer.code == Code.FORBIDDEN
        assert await watched(alice.runtime) == (bob.address,)


# ---- who may tell


def reported(url, from_=REGISTRY, via=(), body=None):
    """What a registry says that a record is away, or somebody in its name."""
    said = {"attribute": "status", "value": AWAY} if body is None else body
    return Message(77, MessageType.UPDATE, from_, f"{url}/registration", {**said, "via": [*via]})


async def post(runtime, by, message):
    """Have somebody hand a message to a runtime's bus."""
    bus = runtime.agent
    await type(bus)(by, runtime.bus).post(message, by)
    await wait_all_tasks_blocked()


async def stub_of(runtime):
    (stub,) = (await runtime.registry.view()).node_stubs
    return stub


@pytest.mark.parametrize("forger", ["hyperty://a.example/mallory", domain_registry("b.example")])
async def test_only_the_registry_of_its_domain_reports_the_status_of_a_record(
    forger, autojump_clock
):
    async with watching() as (domain, watcher, _):
        alice, bob = domain["alice"].runtime, domain["bob"]
        stub = await stub_of(alice)
        await post(alice, stub, reported(bob.address, forger, [stub]))
        assert watcher.reported == []
        assert alice.counters.drops == {DropReason.FORGED_STATUS: 1}


async def test_the_node_of_another_domain_is_not_believed(autojump_clock):
    async with watching() as (domain, _, _):
        alice, bob = domain["alice"].runtime, domain["bob"]
        other = f"{alice.url}/protostub/9"
        alice.agent.admit(other, Origin.NODE_STUB, alice.registry)
        await post(alice, other, reported(bob.address, via=[other]))
        assert alice.counters.drops == {DropReason.FORGED_STATUS: 1}


async def test_an_invalid_report_of_a_registry_is_dropped(autojump_clock):
    async with watching() as (domain, _, _):
        alice, bob = domain["alice"].runtime, domain["bob"]
        stub = await stub_of(alice)
        await post(alice, stub, reported(bob.address, via=[stub], body={"value": "asleep"}))
        assert alice.counters.drops == {DropReason.MALFORMED: 1}


# ---- a node that comes back


async def test_a_runtimes_report_on_its_own_record_is_not_returned_to_it(autojump_clock):
    """REG-16: its registry says it once, and makes nothing of hearing of it."""
    async with open_domain("alice", options=DomainOptions(kinds=())) as domain:
        alice, watcher = domain["alice"], Watcher()
        await alice.runtime.deploy("watcher", lambda: watcher)
        registry = f"{alice.runtime.url}/registry"
        assert (await watcher.follow(registry, alice.address)).code == Code.OK
        await alice.runtime.undeploy(alice.address)
        await trio.sleep(60)
        said = [
            fact
            for fact in alice.facts(Op.SUBMIT)
            if (fact.type, fact.from_, fact.to) == ("update", registry, REGISTRY)
        ]
        assert len(said) == 1
        assert watcher.reported == [(f"{alice.address}/registration", AWAY)]
