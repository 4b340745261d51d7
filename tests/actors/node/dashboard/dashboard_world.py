"""A node with a dashboard, asked as its page asks it."""

from contextlib import asynccontextmanager

import h11
import orjson
import trio

from actors.http.config import HttpConfig
from tests.support.node.node_peer import open_world
from tests.support.node.web import exchange
from transports.system import open_system_network

TOKEN = "canary-token-of-the-dashboard"  # noqa: S105 - a token of tests
KNOWN = {"authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def watched_world(token=TOKEN, place="127.0.0.1:0", catalogue=None, **config):
    http = HttpConfig(place, None if token is None else token.encode(), catalogue=catalogue)
    async with open_system_network() as network, open_world(network, http=http, **config) as world:
        yield world


async def ask(world, path, query="", **headers):
    url = world.node.http_url
    place = url.removeprefix("http://")
    named = {"host": place, **KNOWN, **headers}
    target = f"/dashboard/{path}{query and f'?{query}'}"
    host, port = place.split(":")
    request = h11.Request(method="GET", target=target, headers=list(named.items()))
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        return await exchange(stream, h11.Connection(h11.CLIENT), request)


class Watching:
    """A page's stream, read by hand."""

    def __init__(self, stream, http):
        self.stream = stream
        self.http = http
        self.status = 0
        self.rest = b""

    async def event(self):
        """Return name and content of the next event."""
        while b"\n\n" not in self.rest:
            event = self.http.next_event()
            if event is h11.NEED_DATA:
                self.http.receive_data(await self.stream.receive_some(65_536))
            elif isinstance(event, h11.Response):
                self.status = event.status_code
            elif isinstance(event, h11.Data):
                self.rest += bytes(event.data)
            else:
                return "over", None
        text, _, self.rest = self.rest.partition(b"\n\n")
        fields = dict(line.split(": ", 1) for line in text.decode().splitlines())
        name = fields["event"]
        return name, orjson.loads(fields["data"]) if name in {"whole", "news"} else fields["data"]

    async def until(self, is_it):
        """Return the first event that is wanted."""
        while True:
            name, content = await self.event()
            if name == "over" or is_it(content):
                return content


@asynccontextmanager
async def watching(world, **headers):
    host, port = world.node.http_url.removeprefix("http://").split(":")
    http = h11.Connection(h11.CLIENT)
    named = {"host": f"{host}:{port}", **KNOWN, **headers}
    request = h11.Request(method="GET", target="/dashboard/events", headers=list(named.items()))
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all(http.send(request) + http.send(h11.EndOfMessage()))
        yield Watching(stream, http)
