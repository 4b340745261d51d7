"""A frame over the limit ends its link with the close code that says so, and nothing else."""

from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import trio
import trio_websocket

import actors
from specs.limits.protocol import MAX_FRAME_BYTES
from specs.reply_code import DropReason
from tests.support.log import captured_log
from transports.errors import LinkError
from transports.link import Kind
from transports.system import open_system_network

DOMAIN = "a.example"
TOO_LARGE = (1009, "too-large")


class Echo(actors.Hyperty):
    def __init__(self):
        self.heard = []

    async def on_request(self, message):
        self.heard.append(message.value)
        return message.value


class Between:
    """Stands between a runtime and its node, and passes frames on.

    Attributes:
        links: Links of the runtime, in order.
        ends: How the runtime has closed them.
    """

    def __init__(self, network, node):
        self._network = network
        self._node = node
        self.url = ""
        self.links = []
        self.ends = []
        self.is_dialled_again = trio.Event()

    async def serve(self, request):
        link = await request.accept(subprotocol=request.proposed_subprotocols[0])
        self.links.append(link)
        if len(self.links) == 2:
            self.is_dialled_again.set()
        async with (
            await self._network.dial(Kind.WEBSOCKET, self._node) as further,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._back, further, link)
            try:
                while True:
                    await further.send((await link.get_message()).encode())
            except trio_websocket.ConnectionClosed as closed:
                self.ends.append((closed.reason.code, closed.reason.reason))
            nursery.cancel_scope.cancel()

    async def _back(self, further, link):
        with suppress(LinkError, trio_websocket.ConnectionClosed):
            while True:
                await link.send_message((await further.receive()).decode())


@asynccontextmanager
async def between(node):
    async with (
        open_system_network() as network,
        trio.open_nursery() as links,
        trio.open_nursery() as nursery,
    ):
        made = Between(network, node)
        serve = partial(trio_websocket.serve_websocket, handler_nursery=links)
        server = await nursery.start(serve, made.serve, "127.0.0.1", 0, None)
        made.url = f"ws://127.0.0.1:{server.port}/link"
        yield made
        nursery.cancel_scope.cancel()


async def from_the_node(link):
    await link.send_message("x" * (MAX_FRAME_BYTES + 1))


async def by_the_runtime(link):
    """As a node closes, that takes less than this one."""
    await link.aclose(*TOO_LARGE)


@pytest.mark.parametrize("offence", [from_the_node, by_the_runtime])
async def test_the_runtime_opens_again_and_says_nothing_twice(offence):
    with captured_log() as log:
        async with (
            actors.open_node(DOMAIN) as node,
            between(node.url) as way,
            actors.open_runtime(DOMAIN, "rb", node=node.url) as rb,
            actors.open_runtime(DOMAIN, "ra", node=way.url) as ra,
        ):
            echo, asking = Echo(), actors.Hyperty()
            there = (await rb.deploy(lambda: echo, name="echo")).url
            await ra.deploy(lambda: asking, name="asking")
            assert (await asking.request(there, 1)).value == 1
            with trio.fail_after(30):
                await offence(way.links[0])
                await way.is_dialled_again.wait()
                assert (await asking.request(there, 2)).value == 2
            drops = dict(ra.drops().counts)
        assert echo.heard == [1, 2]
        assert len(way.links) == 2
    if offence is from_the_node:
        assert way.ends[0] == TOO_LARGE
        assert drops == {DropReason.MALFORMED: 1}
        assert [line["domain"] for line in log if line["event"] == "frame too large"] == [DOMAIN]
