"""Who observes an object of another domain sets the path at the own node (C-49, SYN-09)."""

from contextlib import asynccontextmanager

import trio

from specs.message import Message, MessageType
from tests.support.node.node_peer import Peer
from tests.support.runtime.abroad import open_two
from transports.codec import encode
from transports.link import Kind


async def come(world, side, name):
    link = await world.network.dial(Kind.WEBSOCKET, side.node.url)
    runtime = f"hyperty-runtime://{side.node.domain}/{name}"
    return await Peer(link, runtime, side.node.domain).open()


async def set_path(observer, resource, kind="subscribe"):
    own, manager = f"{observer.runtime}/sm", f"{observer.node}/sm"
    return await observer.ask(kind, own, manager, resources=[resource], source=observer.runtime)


@asynccontextmanager
async def observed(options=None):
    """Two domains, a reporter with an object in b.ex, and two who would observe it from a.ex."""
    async with open_two(options) as world:
        reporter = await come(world, world.b, "reporter")
        (url,) = await reporter.allocate("comm")
        answer = await set_path(reporter, f"{url}/subscription")
        assert answer.code == 200
        observers = [await come(world, world.a, name) for name in ("one", "two")]
        yield world, url, reporter, observers
        for one in (reporter, *observers):
            await one.link.aclose()


async def follow(observer, reporter, url):
    assert (await set_path(observer, f"{url}/changes")).code == 200
    await observer.post("subscribe", f"{observer.runtime}/sm", f"{url}/subscription")
    asked = await reporter.hear()
    answer = {"code": 200, "value": {}}
    await reporter.link.send(answer_line(asked, answer))
    assert (await observer.hear()).code == 200


def answer_line(asked, body):
    return encode(Message(asked.id, MessageType.RESPONSE, asked.to, asked.from_, body))


async def change(reporter, url, version):
    await reporter.post("update", url, f"{url}/changes", version=version)


async def test_an_observer_without_consent_receives_nothing_of_its_neighbours_object(
    autojump_clock,
):
    async with observed() as (_, url, reporter, observers):
        await follow(observers[0], reporter, url)
        assert (await set_path(observers[1], f"{url}/changes")).code == 200
        await change(reporter, url, 2)
        assert (await observers[0].hear()).body["version"] == 2
        assert await observers[1].silence()


async def test_paths_survive_a_crash_of_the_sandbox(autojump_clock):
    async with observed() as (world, url, reporter, observers):
        await follow(observers[0], reporter, url)
        await world.a.sandboxes.kill()
        await trio.sleep(1)
        await change(reporter, url, 3)
        assert (await observers[0].hear()).body["version"] == 3
