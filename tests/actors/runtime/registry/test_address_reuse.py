"""Hyperties that have an earlier address again, with a real node in memory (ALC-02, SC-10)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.hyperties import Echo
from actors.kit.ids import IdSource
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty, Profile
from actors.runtime.registry.allocation import NotKeptError
from specs.limits.protocol import MAX_LIST
from specs.trace import Op
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

CATALOGUE = "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty"
ECHO = Profile("echo", descriptor=f"{CATALOGUE}/Echo")
OTHER = Profile("other", descriptor=f"{CATALOGUE}/Other")
REGISTRY = "domain://registry.a.ex"
ALLOCATION = "domain://msg-node.a.ex/address-allocation"


def config(name, url):
    return RuntimeConfig(domain="a.ex", name=name, node=url)


@asynccontextmanager
async def open_one():
    network, tracer = MemoryNetwork(), MemoryTracer()
    async with (
        open_node(NodeConfig(domain="a.ex"), network, tracer) as node,
        open_runtime(config("ra", node.url), network, MemoryTracer()) as runtime,
    ):
        yield network, node, runtime, tracer


def asked(tracer):
    """How often the node was asked for addresses."""
    facts = [one for one in tracer.facts if one.op is Op.DELIVER and one.listener == ALLOCATION]
    return len(facts)


async def test_a_hyperty_like_one_that_rests_has_its_address_again(autojump_clock):
    async with open_one() as (network, node, runtime, tracer):
        first = await runtime.deploy(ECHO, Echo)
        await runtime.rest(first)
        await runtime.rest(first)
        before = asked(tracer)
        again = await runtime.deploy(ECHO, Echo)
        assert (again, asked(tracer)) == (first, before)
        async with open_runtime(config("rb", node.url), network, MemoryTracer()) as there:
            caller = Hyperty()
            await there.deploy("caller", lambda: caller)
            answer = await caller.request(again, 7)
            assert (answer.code, answer.body["value"]) == (200, 7)


async def test_a_resting_hyperty_does_not_answer(autojump_clock):
    async with open_one() as (network, node, runtime, _):
        resting = await runtime.deploy(ECHO, Echo)
        await runtime.rest(resting)
        async with open_runtime(config("rb", node.url), network, MemoryTracer()) as there:
            caller = Hyperty()
            await there.deploy("caller", lambda: caller)
            assert (await caller.request(resting, 7)).code == 404


async def test_another_hyperty_gets_a_new_address(autojump_clock):
    async with open_one() as (_, _, runtime, _):
        resting = await runtime.deploy(ECHO, Echo)
        await runtime.rest(resting)
        assert await runtime.deploy(OTHER, Echo) != resting
        assert await runtime.deploy("without a descriptor", Echo) != resting
        assert (await runtime._addresses.give(ECHO)).is_new is False


async def test_an_address_that_is_not_kept_is_an_error_and_the_node_is_not_asked(autojump_clock):
    async with open_one() as (_, _, runtime, tracer):
        unknown = Profile("echo", ECHO.descriptor, address="hyperty://a.ex/unknown")
        before = asked(tracer)
        with pytest.raises(NotKeptError, match="not found"):
            await runtime.deploy(unknown, Echo)
        assert asked(tracer) == before


async def test_the_address_of_an_undeployed_hyperty_is_not_reused(autojump_clock):
    async with open_one() as (_, _, runtime, _):
        first = await runtime.deploy(ECHO, Echo)
        await runtime.undeploy(first)
        assert (await runtime._addresses.give(ECHO)).is_new


@pytest.mark.parametrize("checkpoints", range(0, 30, 3))
async def test_a_cancelled_deployment_leaves_a_kept_address_kept(checkpoints, autojump_clock):
    async with open_one() as (_, _, runtime, _):
        first = await runtime.deploy(ECHO, Echo)
        await runtime.rest(first)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.deploy, ECHO, Echo)
            for _ in range(checkpoints):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await runtime.rest(first)
        assert await runtime.deploy(ECHO, Echo) == first


async def test_an_address_that_rests_is_claimed_at_a_node_that_was_started_again(autojump_clock):
    """It has forgotten what rests; the runtime claims that, too."""
    network, stop = MemoryNetwork(), trio.CancelScope()
    place = NodeConfig(domain="a.ex", listen="127.0.0.1:4000")

    async def run(scope, task_status=trio.TASK_STATUS_IGNORED):
        with scope:
            async with open_node(place, network, MemoryTracer()) as node:
                task_status.started(node.url)
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        url = await nursery.start(run, stop)
        async with open_runtime(config("ra", url), network, MemoryTracer()) as runtime:
            resting = await runtime.deploy(ECHO, Echo)
            await runtime.rest(resting)
            stop.cancel()
            await trio.sleep(1)
            await nursery.start(run, trio.CancelScope())
            await trio.sleep(60)
            given = await runtime._addresses.give(ECHO)
            assert not given.is_new
            assert given.address == resting
        nursery.cancel_scope.cancel()


# ---- after a restart, without a store


ALICE = "user://idp.ex/alice"


@asynccontextmanager
async def open_again(network, url, **more):
    """One process of the runtime after the other."""
    # As by the clock: later processes have higher ids.
    ids = IdSource(int(trio.current_time() * 1000) + 1)
    async with open_runtime(
        attrs.evolve(config("ra", url), ids=ids, **more), network, MemoryTracer()
    ) as runtime:
        yield runtime


@pytest.mark.parametrize("profile", ["echo", ECHO], ids=["by its name", "by its descriptor"])
async def test_after_a_restart_a_hyperty_has_its_address_again(profile, autojump_clock):
    """ALC-02: the registry has the record still."""
    async with open_one() as (network, node, other, _):
        async with open_again(network, node.url, name="rx") as runtime:
            first = await runtime.deploy(profile, Echo)
            second = await runtime.deploy(profile, Echo)
            unlike = await runtime.deploy("unlike", Echo)
        await trio.sleep(1)
        async with open_again(network, node.url, name="rx") as runtime:
            assert await runtime.deploy("new", Echo) not in {first, second, unlike}
            again = {await runtime.deploy(profile, Echo) for _ in range(2)}
            assert again == {first, second}
            assert await runtime.deploy(profile, Echo) not in again
            caller = Hyperty()
            await other.deploy("caller", lambda: caller)
            assert (await caller.request(first, 7)).body["value"] == 7


@pytest.mark.parametrize("more", [{"name": "ry"}, {"user": ALICE}], ids=["runtime", "user"])
async def test_another_runtime_or_user_gets_a_new_address(more, autojump_clock):
    async with open_one() as (network, node, _, _):
        async with open_again(network, node.url, name="rx") as runtime:
            first = await runtime.deploy("echo", Echo)
        await trio.sleep(1)
        async with open_again(network, node.url, **{"name": "rx", **more}) as runtime:
            assert await runtime.deploy("echo", Echo) != first


async def test_a_restart_asks_the_registry_once(autojump_clock):
    async with open_one() as (_, _, runtime, tracer):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(runtime.deploy, "echo", Echo)
        reads = [
            one
            for one in tracer.facts
            if one.op is Op.DELIVER and one.listener == REGISTRY and one.type == "read"
        ]
        assert len(reads) == 1


async def test_more_addresses_than_one_message_lists_are_given_back(autojump_clock):
    async with open_one() as (_, _, runtime, tracer):
        allocation = runtime.allocation
        urls = await allocation.allocate("hyperty", MAX_LIST)
        more = await allocation.allocate("hyperty", 1)
        await allocation.free((*urls, *more))
        freed = [one.key for one in tracer.facts if one.op is Op.DEL and one.table == "alloc"]
        assert sorted(freed) == sorted((*urls, *more))
