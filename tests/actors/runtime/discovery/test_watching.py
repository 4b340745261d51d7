"""A search is followed: what appears, changes and vanishes (M-26, M-29, M-30, REG-16)."""

import gc
from contextlib import AsyncExitStack

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import SearchError
from fsm.registry.discovery import Change
from specs.addresses.address import domain_registry
from specs.limits.discovery import WATCH_PERIOD
from specs.message import MessageType
from tests.actors.runtime.registry.test_registration_watch import watched
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.runtime.domain import DOMAIN, Echo, open_domain
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork


async def following(watching, many):
    """The next changes: what, and the status of whom."""
    changes = [await anext(watching) for _ in range(many)]
    return [(one.change, one.entry.url, one.entry.status) for one in changes]


@pytest.mark.parametrize("who", ["a hyperty", "a runtime"])
async def test_entries_appear_change_and_vanish(who, autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"].runtime
        by = alice.hyperty if who == "a hyperty" else alice.runtime.discoverer
        first = await bob.deploy("clock", Echo)
        async with by.watch(name="clock") as watching:
            assert await following(watching, 1) == [(Change.APPEARED, first, "live")]
            second = await bob.deploy("clock", Echo)
            with trio.fail_after(WATCH_PERIOD + 1):
                assert await following(watching, 1) == [(Change.APPEARED, second, "live")]
            await bob.undeploy(first)
            with trio.fail_after(WATCH_PERIOD / 10):
                gone = await following(watching, 1)
            assert gone == [(Change.CHANGED, first, "disconnected")]
            renamed = {"resource": second, "attribute": "name", "value": "timer"}
            await bob.order("registry", MessageType.UPDATE, domain_registry(DOMAIN), renamed)
            with trio.fail_after(WATCH_PERIOD + 1):
                assert await following(watching, 1) == [(Change.VANISHED, second, "live")]
            assert not watching.is_partial
        await wait_all_tasks_blocked()
        assert await watched(alice.runtime) == ()


async def test_two_watchers_of_one_hyperty_share_its_subscriptions(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        one, other = alice.hyperty.watch(name="bob"), alice.hyperty.watch(name="bob")
        await following(one, 1)
        await following(other, 1)
        await one.aclose()
        await one.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(one)
        await bob.runtime.undeploy(bob.address)
        away = (Change.CHANGED, bob.address, "disconnected")
        assert await following(other, 1) == [away]
        assert await watched(alice.runtime) == (bob.address,)


@pytest.mark.parametrize("ending", ["a report", "another search"])
async def test_the_subscriptions_of_an_abandoned_watcher_end(ending, autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        async for _ in alice.hyperty.watch(name="bob"):
            break
        gc.collect()
        await wait_all_tasks_blocked()
        assert await watched(alice.runtime) == (bob.address,)
        if ending == "a report":
            await bob.runtime.undeploy(bob.address)
        else:
            with trio.move_on_after(1):
                await anext(alice.hyperty.watch(name="none"))
        await wait_all_tasks_blocked()
        assert await watched(alice.runtime) == ()


async def test_a_watcher_outlives_a_restart_of_the_node(autojump_clock):
    async with open_place() as place:
        one, other = place.members
        watching = one.hyperty.watch(name=other.runtime.url.rpartition("/")[2])
        assert await following(watching, 1) == [(Change.APPEARED, other.address, "live")]
        await place.restart_node(30)
        with trio.move_on_after(60):
            await following(watching, 99)
        await other.runtime.undeploy(other.address)
        with trio.fail_after(1):
            gone = await following(watching, 1)
        assert gone == [(Change.CHANGED, other.address, "disconnected")]


@pytest.mark.parametrize(("searched", "code"), [("b.ex", 503), ("nowhere.ex", 404)])
async def test_a_search_without_a_registry_is_an_error(searched, code, autojump_clock):
    """M-26, RES-14: a domain that is away, or does not exist, is not one without such a record."""
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain="a.ex"), network, MemoryTracer()) as node:
        away = {"b.ex": "ws://nobody.listens.here/link"}
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, nodes=away)
        async with open_runtime(config, network, MemoryTracer()) as runtime:
            for _ in range(2):
                with pytest.raises(SearchError) as caught:
                    await runtime.discoverer.discover(name="bob", domain=searched)
                assert caught.value.code == code
                with pytest.raises(SearchError) as caught:
                    await anext(runtime.discoverer.watch(name="bob", domain=searched))
                assert caught.value.code == code


async def test_a_cancelled_wait_loses_no_change(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        watching = alice.hyperty.watch(name="bob")
        for checkpoints in range(60):
            async with trio.open_nursery() as nursery:
                seen = []

                async def wait(seen=seen):
                    seen.append(await anext(watching))

                nursery.start_soon(wait)
                for _ in range(checkpoints):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            if seen:
                break
        assert [one.entry.url for one in seen] == [bob.address]


@pytest.mark.parametrize(
    ("criteria", "error"),
    [({}, TypeError), ({"name": 7}, TypeError), ({"name": "x", "domain": 7}, TypeError)],
)
async def test_a_wrong_criterion_is_an_error_at_the_call(criteria, error, autojump_clock):
    async with open_domain("alice") as domain:
        for by in (domain["alice"].hyperty, domain["alice"].runtime.discoverer):
            with pytest.raises(error):
                by.discover(**criteria)
            with pytest.raises(error):
                by.watch(**criteria)


async def test_entries_of_another_domain_are_followed_there(autojump_clock):
    network = MemoryNetwork()
    async with AsyncExitStack() as stack:
        nodes = {
            domain: await stack.enter_async_context(
                open_node(NodeConfig(domain=domain), network, MemoryTracer())
            )
            for domain in ("a.ex", "b.ex")
        }
        here, there = [
            await stack.enter_async_context(
                open_runtime(
                    RuntimeConfig(
                        domain=domain,
                        name="ra",
                        node=nodes[domain].url,
                        nodes={"b.ex": nodes["b.ex"].url},
                    ),
                    network,
                    MemoryTracer(),
                )
            )
            for domain in nodes
        ]
        clock = await there.deploy("clock", Echo)
        watching = here.discoverer.watch(name="clock", domain="b.ex")
        assert await following(watching, 1) == [(Change.APPEARED, clock, "live")]
        await wait_all_tasks_blocked()
        await there.undeploy(clock)
        with trio.fail_after(WATCH_PERIOD / 10):
            gone = await following(watching, 1)
        assert gone == [(Change.CHANGED, clock, "disconnected")]
