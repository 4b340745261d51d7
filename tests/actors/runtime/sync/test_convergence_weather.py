"""Whatever the network did: when it is calm, each copy is what the reporter has (I-D3, I-D4).

Links are lossy, cut, and held up in black holes; beside that, messages that links brought
are thrown away. Every reader applies the changes that it is ordered to the value it began with.
"""

from contextlib import asynccontextmanager
from random import Random

import attrs
import pytest
import trio

import actors
from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import Delay, Loss, Timeout
from specs.limits.sync import QUIET
from tests.support.report_world import Closed, Open
from transports.memory import MemoryNetwork

OBSERVERS = ("rb", "rc")


@attrs.frozen
class Weather:
    """A reporter, two observers, and a network in which things go wrong."""

    chaos: ChaosNetwork
    random: Random
    fog: "Fog"
    sensor: actors.Deployed
    watchers: tuple[actors.Deployed, ...]

    async def storm(self):
        """Let three things go wrong after another, each between the node and somebody."""
        for _ in range(3):
            await self.trouble(self.random.choice(("ra", *OBSERVERS)))

    async def trouble(self, who):
        seconds = self.random.uniform(1, 25)
        match self.random.randrange(4):
            case 0:
                with self.chaos.toxic(Loss(0.2), between=(who, "node")):
                    await trio.sleep(seconds)
            case 1:
                with self.chaos.toxic(Timeout(seconds / 2), between=(who, "node")):
                    await trio.sleep(seconds)
            case 2:
                with self.chaos.toxic(Delay(0.5, 2.0), between=(who, "node")):
                    await trio.sleep(seconds)
            case _:
                self.chaos.reset(who, "node")
                await trio.sleep(seconds)


class Fog(actors.Interceptor):
    """Loses changes on their last steps, without a trace, while it lasts."""

    name = "fog"

    def __init__(self, random):
        self.random = random
        self.chance = 0.1

    def intercept(self, message, by):
        is_change = message.is_event and message.to.endswith("/changes")
        if is_change and self.random.random() < self.chance:
            return actors.Objection("lost in the fog")
        return message


@asynccontextmanager
async def weather(seed):
    random = Random(seed)  # noqa: S311 - chance, no secret
    chaos = ChaosNetwork(MemoryNetwork(), random)

    fog = Fog(random)

    def runtime(name):
        config = actors.RuntimeConfig(
            domain="a.ex", name=name, node=node.url, interceptors=(fog,) if name != "ra" else ()
        )
        return actors.open_runtime(config, network=chaos.end(name))

    async with (
        actors.open_node("a.ex", network=chaos.end("node")) as node,
        runtime("ra") as here,
        runtime("rb") as one,
        runtime("rc") as other,
    ):
        watchers = (await one.deploy(Closed), await other.deploy(Closed))
        yield Weather(chaos, random, fog, await here.deploy(Open), watchers)


async def write(thing, random, enough):
    while not enough.is_set():
        await write_some(thing, random, random.randrange(1, 9))
        await trio.sleep(random.uniform(0, 2))


async def write_some(thing, random, times):
    for number in range(times):
        path = random.choice(("a", "b.c", "b.d"))
        match random.randrange(4):
            case 0:
                await thing.set(path, number)
            case 1:
                await thing.remove(path)
            case 2:
                await thing.add("all", number)
            case _:
                await thing.discard("all", number)


async def follow(copy, kept, *, task_status):
    """Keep the value that the changes make, and their versions."""
    value, changes = dict(copy.value), copy.changes()
    task_status.started()
    async for change in changes:
        value = change.apply_to(value)
        kept["value"] = value
        kept["versions"].append(change.version)


@pytest.mark.parametrize("seed", range(6))
async def test_all_copies_are_what_the_reporter_has_when_it_is_calm(seed, autojump_clock):
    async with (
        weather(seed) as w,
        w.sensor.report("ctxt", {"a": 0, "all": []}) as thing,
        w.watchers[0].observe(thing.url) as one,
        w.watchers[1].observe(thing.url) as other,
        trio.open_nursery() as nursery,
    ):
        kept = [{"value": {}, "versions": []} for _ in OBSERVERS]
        for copy, place in zip((one, other), kept, strict=True):
            await nursery.start(follow, copy, place)
        enough = trio.Event()
        nursery.start_soon(write, thing, w.random, enough)
        await w.storm()
        enough.set()
        w.fog.chance = 1.0
        await write_some(thing, w.random, 3)
        await trio.sleep(1)
        w.fog.chance = 0.0
        await trio.sleep(QUIET + 60)
        assert thing.version > 20
        for copy, place in zip((one, other), kept, strict=True):
            assert not copy.is_gone
            assert (copy.version, dict(copy.value)) == (thing.version, dict(thing.value))
            assert place["value"] == copy.value
            assert place["versions"] == sorted(place["versions"])
        nursery.cancel_scope.cancel()
