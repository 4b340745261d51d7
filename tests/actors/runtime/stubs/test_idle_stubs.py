"""A runtime releases the stub of another domain that it uses no longer (PFY-03, STB-15, STB-16)."""

import trio

from fsm.registry.resolve.topology import Topology
from tests.support.runtime.abroad import DomainOptions, open_two

IDLE = 20.0
BESIDE = DomainOptions(topology=Topology.TRIANGLE, a_knows={}, b_knows={}, stub_idle=IDLE)


async def idle():
    await trio.sleep(2 * IDLE + 1)


async def stubs_of(side):
    return {url.rpartition("/")[2] for url in (await side.runtime.registry.view()).node_stubs}


async def test_an_idle_stub_goes_and_the_next_message_brings_another(autojump_clock):
    async with open_two(BESIDE) as world:
        assert (await world.a.ask(world.b)).code == 200
        used = await stubs_of(world.a)
        assert len(used) == 2
        await idle()
        assert len(await stubs_of(world.a)) == 1
        assert (await world.a.ask(world.b, "again")).body["value"] == "again"
        assert len(await stubs_of(world.a) - used) == 1
        assert [request.body["value"] for request in world.b.hyperty.asked] == ["hello", "again"]


async def test_messages_that_come_at_the_moment_of_the_release_are_answered(autojump_clock):
    async with open_two(BESIDE) as world:
        assert (await world.a.ask(world.b)).code == 200
        for nth in range(10):
            # The release is due at this very moment.
            await trio.sleep(IDLE)
            assert (await world.a.ask(world.b, nth)).body["value"] == nth
        assert [one.body["value"] for one in world.b.hyperty.asked] == ["hello", *range(10)]
