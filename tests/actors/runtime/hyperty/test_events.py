"""Events from hyperty to hyperty: in a runtime, by the node, by a link, to other domains."""

import trio

from tests.actors.runtime.hyperty.listener_apart import Ear


async def until(holds):
    with trio.fail_after(20):
        while not holds():  # noqa: ASYNC110 - as a program would
            await trio.sleep(0.01)


async def test_events_conform(protofly_domain, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        ear = Ear()
        one, two = await domain["ra"].deploy(Ear), await domain["rb"].deploy(lambda: ear, "ear")
        await one.send(two.url, 1)
        await until(lambda: ear.heard)
    protofly_trace.assert_conformant()
