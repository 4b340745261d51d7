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
from specs.trace import Kind, Op
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.runtime.domain import DOMAIN, DomainOptions, judged, open_domain
from transports.link import Kind as Carrier

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


async def tell(runtime, url, status):
    """Have a record's status set, as its own registry does (M-23)."""
    body = {"resource": url, "attribute": "status", "value": status}
    answer = await runtime.order("registry", MessageType.UPDATE, domain_registry(DOMAIN), body)
    assert answer.code == Code.OK
    await wait_all_tasks_blocked()


async def watched(runtime):
    return (await runtime.registry.view()).watched


def paths(domain, op):
    """The rows of the node's table about registrations."""
    return [
        fact.key
        for fact in domain.node_tracer.facts
        if fact.k is Kind.TABLE
        and fact.table == "subs"
        and fact.op is op
        and fact.key.endswith("/registration")
    ]


async def test_a_watcher_is_notified_that_a_record_goes_and_comes_back(autojump_clock):
    async with watching() as (domain, watcher, _):
        bob = domain["bob"]
        await tell(bob.runtime, bob.address, AWAY)
        await tell(bob.runtime, bob.address, LIVE)
        where = f"{bob.address}/registration"
        assert watcher.reported == [(where, AWAY), (where, LIVE)]


async def test_an_absent_hyperty_is_not_linked_to_until_it_returns(autojump_clock):
    async with watching((Carrier.TCP,)) as (domain, _, _):
        alice, bob = domain["alice"], domain["bob"]
        await tell(bob.runtime, bob.address, AWAY)
        await alice.ask(bob, 1)
        await trio.sleep(1)
        assert await alice.status(bob) is None
        await tell(bob.runtime, bob.address, LIVE)
        assert (await alice.ask(bob, 2)).code == Code.OK
        await alice.wait_for("live", bob)


async def test_a_watcher_is_notified_that_a_hyperty_is_undeployed(autojump_clock):
    async with watching() as (domain, watcher, _):
        bob = domain["bob"]
        await bob.runtime.undeploy(bob.address)
        await wait_all_tasks_blocked()
        assert watcher.reported == [(f"{bob.address}/registration", AWAY)]


async def test_after_the_last_follower_no_event_is_sent_and_the_path_is_removed(autojump_clock):
    async with watching() as (domain, watcher, _):
        alice, bob = domain["alice"], domain["bob"]
        registry = f"{alice.runtime.url}/registry"
        for _ in range(2):
            ended = await watcher.follow(registry, bob.address, MessageType.UNSUBSCRIBE)
            assert ended.code == Code.OK
        await wait_all_tasks_blocked()
        await tell(bob.runtime, bob.address, AWAY)
        assert watcher.reported == []
        assert paths(domain, Op.DEL) == [f"{bob.address}/registration"]
        assert await watched(alice.runtime) == ()


async def test_a_watcher_that_is_undeployed_follows_nothing(autojump_clock):
    async with watching() as (domain, _, place):
        alice, bob = domain["alice"], domain["bob"]
        await alice.runtime.undeploy(place)
        await trio.sleep(1)
        assert paths(domain, Op.DEL) == [f"{bob.address}/registration"]
        assert await watched(alice.runtime) == ()


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param(["hyperty://a.example/x"], id="no registration"),
        pytest.param(["domain://registry.a.example/registration"], id="a part of a node"),
        pytest.param([f"hyperty://a.example/{n}/registration" for n in "xy"], id="two"),
        pytest.param([], id="none"),
        pytest.param("x", id="no list"),
    ],
)
async def test_an_unfollowable_address_is_refused(resources, autojump_clock):
    async with watching() as (domain, watcher, _):
        registry = f"{domain['alice'].runtime.url}/registry"
        answer = await watcher.ask(registry, MessageType.SUBSCRIBE, {"resources": resources})
        assert answer.code == Code.MALFORMED


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


async def test_a_peer_cannot_speak_in_a_registrys_name(autojump_clock):
    async with watching() as (domain, watcher, _):
        alice, bob = domain["alice"].runtime, domain["bob"]
        peer = f"{alice.url}/p2prequester/9"
        alice.agent.admit(peer, Origin.P2P_STUB, alice.registry)
        await post(alice, peer, reported(bob.address, via=[peer]))
        assert watcher.reported == []
        assert alice.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}


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


async def test_status_events_of_unfollowed_records_are_ignored(autojump_clock):
    async with watching() as (domain, _, _):
        alice = domain["alice"].runtime
        stub = await stub_of(alice)
        await post(alice, stub, reported("hyperty://a.example/nobody", via=[stub]))
        assert alice.counters.drops == {DropReason.NO_TARGET: 1}


# ---- a node that comes back


async def test_after_a_restart_of_the_node_its_records_are_followed_still(autojump_clock):
    async with open_place() as place:
        one, other = place.members
        watcher = Watcher()
        await one.runtime.deploy("watcher", lambda: watcher)
        registry = f"{one.runtime.url}/registry"
        assert (await watcher.follow(registry, other.address)).code == Code.OK
        await place.restart_node(1)
        await trio.sleep(10)
        watcher.reported.clear()
        await other.runtime.undeploy(other.address)
        await trio.sleep(1)
        assert watcher.reported == [(f"{other.address}/registration", AWAY)]
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}


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
