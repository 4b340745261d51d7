"""Whole runtimes at several nodes of one domain: requests, records, data objects."""

import itertools
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.hyperties import Caller, Echo
from fsm.registry.node_rights import Observation
from specs.limits.group import GROUP_LEASE, GROUP_PATIENCE
from specs.limits.sync import REPEAT_LAST
from tests.actors.runtime.objects.test_children import seen, values
from tests.support.node.group_world import TimedTracer, broken, open_group
from tests.support.node.node_peer import DOMAIN
from tests.support.report_world import Open
from tests.support.runtime.apart import Thermometer
from transports.link import Network
from transports.sockets import open_background


@attrs.define
class Balancer(Network):
    """Dials the node that is chosen for a runtime, whatever URL the runtime knows."""

    network: Network
    url: str

    async def dial(self, kind, address, *more):
        return await self.network.dial(kind, self.url, *more)

    def listen(self, *about):
        return self.network.listen(*about)


@attrs.define
class Place:
    """A runtime, and how it gets to its node."""

    runtime: actors.Runtime
    balancer: Balancer

    def go(self, member) -> None:
        """Have it connect to another node, now."""
        self.balancer.url = member.node.url


@asynccontextmanager
async def runtimes(world, count: int = 2, user: str | None = None):
    """Open runtimes, one at each node in turn."""
    tracers = []
    async with AsyncExitStack() as stack:
        places = []
        for number in range(count):
            node = world.nodes[number % len(world.nodes)].node
            balancer, tracer = Balancer(world.network, node.url), TimedTracer(f"r{number}")
            tracers.append(tracer)
            config = actors.RuntimeConfig(
                domain=DOMAIN, name=f"r{number}", node=node.url, user=user
            )
            opened = actors.open_runtime(config, network=balancer, trace=tracer)
            places.append(Place(await stack.enter_async_context(opened), balancer))
        yield places
    for tracer in tracers:
        assert not broken(tracer)


@pytest.fixture
async def group(autojump_clock):
    async with open_group(3, observation=Observation.OWNER) as world:
        yield world


async def test_hyperties_at_different_nodes_talk(group, autojump_clock):
    async with runtimes(group) as (one, two):
        echo = await two.runtime.deploy(Echo)
        caller = await one.runtime.deploy(Caller)
        answer = await caller.request(echo.url, "over there")
        assert (answer.code, answer.body["value"]) == (200, "over there")


async def test_an_object_is_observed_at_another_node(group, autojump_clock):
    async with runtimes(group, 3) as (one, two, three):
        thermometer = await one.runtime.deploy(Thermometer)
        callers = [await place.runtime.deploy(Caller) for place in (two, three)]
        url = (await callers[0].request(thermometer.url)).body["value"]
        async with callers[0].observe(url) as first, callers[1].observe(url) as second:
            for celsius in (22, 23):
                await callers[0].request(thermometer.url)
                for copy in (first, second):
                    with trio.fail_after(30):
                        await copy.wait_for(lambda value, now=celsius: value["celsius"] == now)


async def test_a_hyperty_is_found_at_every_node(group, autojump_clock):
    async with runtimes(group, 3) as (one, two, three):
        echo = await one.runtime.deploy(Echo, "finder")
        for place in (two, three):
            caller = await place.runtime.deploy(Caller)
            (found,) = await caller.discover(name="finder")
            assert (found.url, found.is_live) == (echo.url, True)
        async with caller.watch(name="finder") as watching:
            async for change in watching:
                if change.entry.is_live:
                    await echo.undeploy()
                else:
                    break


async def test_every_search_finds_at_each_node_what_runtimes_of_all_nodes_registered(
    group, autojump_clock
):
    """Three hyperties and an object, by each criterion there is."""
    user = f"user://{DOMAIN}/bob"
    async with runtimes(group, 3, user=user) as places:
        hyperties = {
            (await place.runtime.deploy(Thermometer, resources=["heat"], schemas=["ctxt"])).url
            for place in places
        }
        callers = [await place.runtime.deploy(Caller, "caller") for place in places]
        reporter = min(hyperties)
        url = (await callers[0].request(reporter)).body["value"]
        for caller in callers:

            async def found(caller=caller, **criteria):
                return {one.url async for one in caller.discover(limit=1, **criteria)}

            assert await found(name="Thermometer") == hyperties
            assert await found(resources=["heat"]) == hyperties
            assert await found(schema="ctxt") == hyperties
            assert await found(user=user, name="Thermometer") == hyperties
            assert await found(user=user) == hyperties | {one.url for one in callers}
            assert await found(reporter=reporter, scheme="ctxt") == {url}
            assert await caller.read_record(reporter, "status") == "live"


async def test_a_runtime_whose_node_dies_goes_on_at_another(group, autojump_clock):
    """MN-22: its addresses and its observers stay, and it observes as before."""
    one, two, three = group.nodes
    async with runtimes(group, 3) as (first, second, third):
        thermometer = await first.runtime.deploy(Thermometer)
        echo = await second.runtime.deploy(Echo)
        caller = await third.runtime.deploy(Caller)
        url = (await caller.request(thermometer.url)).body["value"]
        async with caller.observe(url) as copy:
            for dead, place, to in ((one, first, two), (three, third, two)):
                place.go(to)
                await group.kill(dead)
                await group.has(to, place.runtime.url, "open")
                await trio.sleep(GROUP_LEASE + 1)
                celsius = copy.value["celsius"] + 1
                assert (await caller.request(thermometer.url)).code == 200
                assert (await caller.request(echo.url, 1)).body["value"] == 1
                with trio.fail_after(60):
                    await copy.wait_for(lambda value, now=celsius: value["celsius"] == now)


async def test_a_runtime_whose_node_goes_down_moves_without_a_failed_request(group, autojump_clock):
    one, two, _ = group.nodes
    async with runtimes(group) as (first, second):
        echo = await first.runtime.deploy(Echo)
        caller = await second.runtime.deploy(Caller)
        assert (await caller.request(echo.url, 1)).code == 200
        first.go(two)
        one.is_over.set()
        await group.has(two, first.runtime.url, "open")
        for number in range(20):
            assert (await caller.request(echo.url, number)).body["value"] == number


async def test_what_a_lost_runtime_registered_is_reported_away_once(group, autojump_clock):
    """Its node dies, and it comes to no other: one of the rest ends what it had."""
    one, two, _ = group.nodes
    async with runtimes(group, 3) as (first, second, third):
        await first.runtime.deploy(Echo, "finder")
        callers = [await place.runtime.deploy(Caller) for place in (second, third)]
        async with callers[0].watch(name="finder") as watching:
            changes = aiter(watching)
            assert (await anext(changes)).entry.is_live
            await group.kill(one)
            with trio.fail_after(2 * GROUP_PATIENCE):
                assert not (await anext(changes)).entry.is_live
            with trio.move_on_after(GROUP_PATIENCE):
                raise AssertionError(await anext(changes))
        for caller in callers:
            assert not [found for found in await caller.discover(name="finder") if found.is_live]
        first.go(two)
        await group.has(two, first.runtime.url, "open")


async def test_requests_go_on_while_nodes_are_replaced(group, autojump_clock):
    """Each node goes down in order and another one comes; no accepted request fails."""
    async with runtimes(group, 3) as places:
        echoes = [await place.runtime.deploy(Echo) for place in places]
        caller = await places[0].runtime.deploy(Caller)
        failed = []

        async def ask() -> None:
            for number in itertools.count():
                echo = echoes[number % 3]
                answer = await caller.request(echo.url, number)
                if answer.code != 200:
                    failed.append(answer.body)
                await trio.sleep(0.05)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            for place, old in zip(places, group.nodes[:3], strict=True):
                fresh = await group.node()
                place.go(fresh)
                await trio.sleep(1)
                old.is_over.set()
                await group.has(fresh, place.runtime.url, "open")
                await trio.sleep(2)
            nursery.cancel_scope.cancel()
        assert not failed


@pytest.mark.parametrize("had_one", [True, False])
async def test_a_child_that_its_reporter_never_got_goes_with_the_next_read(
    group, monkeypatch, had_one, autojump_clock
):
    """The engine is away, and the node does not know: an observer there has a child, others not."""
    async with runtimes(group, 4) as (creators, reporters, _, others):
        reporter = await reporters.runtime.deploy(Open)
        creator = await creators.runtime.deploy(Open)
        observer = await others.runtime.deploy(Open)
        async with (
            reporter.report("comm", {}) as thing,
            creator.observe(thing.url) as mine,
            observer.observe(thing.url) as copy,
        ):
            first = [(await mine.children.create("first")).value] if had_one else []
            await seen(copy.children, first)
            with monkeypatch.context() as window:
                window.setattr(group.store, "publish", lambda *_: None)
                with pytest.raises(actors.ObjectError) as refused:
                    await mine.children.create("lost")
            assert refused.value.code == 408
            await seen(copy.children, [*first, "lost"])
            assert list(values(mine.children).values()) == first
            assert list(values(thing.children).values()) == first
            await trio.sleep(3 * REPEAT_LAST)
            # Without a sign of its reporter a copy reads the object.
            await seen(copy.children, first)
            await mine.children.create("next")
            await seen(copy.children, [*first, "next"])


@pytest.mark.parametrize(("at", "away"), [(1, 5.0), (0, 40.0)])
async def test_a_child_that_was_lost_on_its_way_comes_later(
    group, monkeypatch, at, away, autojump_clock
):
    """It is sent again, or its reporter has it, and a copy without it reads the object."""
    async with runtimes(group, 5) as places, open_background() as nursery:
        reporter = await places[at].runtime.deploy(Open)
        creator = await places[0].runtime.deploy(Open)
        observers = [await one.runtime.deploy(Open) for one in places[2:4]]
        async with (
            reporter.report("comm", {}) as thing,
            creator.observe(thing.url) as mine,
            observers[0].observe(thing.url) as far,
            observers[1].observe(thing.url) as near,
        ):
            with monkeypatch.context() as window:
                window.setattr(group.store, "publish", lambda *_: None)
                nursery.start_soon(mine.children.create, "late")
                await trio.sleep(away)
                await seen(near.children, ["late"])
                await seen(far.children, [])
            for one in (thing, mine, far, near):
                await seen(one.children, ["late"])
