"""How a deployment ends: undeployed, cancelled half way, or while it works on requests."""

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

import actors
from specs.limits.bus import CONCURRENT
from specs.trace import Op
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork


class Caller(actors.Hyperty):
    """Asks only."""


class Busy(actors.Hyperty):
    """Works on each request for ever."""

    async def on_request(self, message):
        await trio.sleep_forever()


class Place:
    """A node and two runtimes."""

    def __init__(self, here, there, tracer):
        self.here, self.there, self.tracer = here, there, tracer

    def addresses(self):
        """The last state of each hyperty address at the node."""
        steps = [f for f in self.tracer.facts if f.op is Op.STEP and f.machine == "address"]
        last = {step.key: step.new for step in steps}
        return {key: state for key, state in last.items() if key.startswith("hyperty://")}


@asynccontextmanager
async def open_place(**wanted):
    network, tracer = MemoryNetwork(), MemoryTracer()
    async with actors.open_node("a.example", network=network, trace=tracer) as node:
        bob = actors.RuntimeConfig(domain="a.example", name="bob", node=node.url, **wanted)
        async with (
            actors.open_runtime("a.example", "alice", node=node.url, network=network) as here,
            actors.open_runtime(bob, network=network) as there,
        ):
            await here.enter()
            await there.enter()
            yield Place(here, there, tracer)


async def cancelled_after(steps, work):
    """Cancel work after it has been given the processor a number of times; tell whether it was."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def run():
                await work()
                nursery.cancel_scope.cancel()

            nursery.start_soon(run)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
    return scope.cancelled_caught


# ---- undeploy is cancelled


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13, 21, 34])
async def test_a_cancelled_undeploy_is_completed_by_the_runtime(steps, autojump_clock):
    async with open_place() as place:
        busy, caller = await place.there.deploy(Busy), await place.here.deploy(Caller)
        await cancelled_after(steps, busy.undeploy)
        with trio.fail_after(5):
            assert await busy.failed() is None
        await trio.sleep(1)
        assert busy.state is actors.HypertyState.UNDEPLOYED
        assert (await caller.request(busy.url)).code == 404


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13, 21, 34])
async def test_a_second_undeploy_waits_for_the_end_of_the_first(steps, autojump_clock):
    async with open_place() as place:
        busy, caller = await place.there.deploy(Busy), await place.here.deploy(Caller)
        await cancelled_after(steps, busy.undeploy)
        await busy.undeploy()
        assert busy.state is actors.HypertyState.UNDEPLOYED
        assert (await caller.request(busy.url)).code == 404
        assert place.addresses()[busy.url] == "released"


# ---- undeploy while requests are handled


async def test_an_undeployed_hyperty_answers_what_it_works_on_at_once(autojump_clock):
    async with open_place() as place:
        busy, caller = await place.there.deploy(Busy), await place.here.deploy(Caller)
        codes = []

        async def ask():
            codes.append((await caller.request(busy.url)).code)

        with trio.fail_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                await busy.undeploy()
        assert codes == [503]


async def test_requests_that_wait_in_its_mailbox_are_answered_as_well(autojump_clock):
    async with open_place() as place:
        busy, caller = await place.there.deploy(Busy), await place.there.deploy(Caller)
        codes = []

        async def ask():
            codes.append((await caller.request(busy.url)).code)

        with trio.fail_after(3):
            async with trio.open_nursery() as nursery:
                for _ in range(CONCURRENT + 10):
                    nursery.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
                await busy.undeploy()
        assert codes == [503] * (CONCURRENT + 10)


async def test_a_peer_whose_requests_do_not_end_keeps_no_other_waiting(autojump_clock):
    """SEC-37: such as requests whose handlers ask the sender, who does not answer."""

    class Slow(actors.Hyperty):
        async def on_request(self, message):
            if message.value == "slow":
                await trio.sleep(10)

    async with open_place() as place:
        slow, caller = await place.there.deploy(Slow), await place.there.deploy(Caller)
        bad, codes = await place.here.deploy(Caller), []

        async def ask():
            codes.append((await bad.request(slow.url, "slow")).code)

        async with trio.open_nursery() as nursery:
            for _ in range(CONCURRENT + 10):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(1):
                assert (await caller.request(slow.url)).code == 200
            assert codes == []
        assert set(codes) == {200, 408}


async def test_a_hyperty_may_undeploy_itself_in_a_handler(autojump_clock):
    handles = []

    class Leaver(actors.Hyperty):
        async def on_request(self, message):
            await handles[0].undeploy()

    async with open_place() as place:
        handles.append(await place.there.deploy(Leaver))
        caller = await place.here.deploy(Caller)
        with trio.fail_after(5):
            assert (await caller.request(handles[0].url)).code == 503
            assert await handles[0].failed() is None


# ---- deploy is cancelled


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
async def test_a_cancelled_deploy_gives_its_address_back(steps, autojump_clock):
    async with open_place() as place:
        if not await cancelled_after(steps, lambda: place.there.deploy(Busy)):
            return
        await trio.sleep(1)
        assert set(place.addresses().values()) <= {"released"}
        busy, caller = await place.there.deploy(Caller), await place.here.deploy(Caller)
        assert (await caller.request(busy.url)).code == 400
