"""Asking over HTTP as anybody does: h11 on a stream, none of the node's own code."""

from urllib.parse import urlsplit

import attrs
import h11
import orjson
import trio

from transports.link import Kind, Link


@attrs.frozen
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return orjson.loads(self.body)

    @property
    def text(self):
        return self.body.decode()


async def exchange(stream, http, request, body=b""):
    """Send one request and read its answer."""
    sent = http.send(request) + (http.send(h11.Data(data=body)) if body else b"")
    await stream.send_all(sent + http.send(h11.EndOfMessage()))
    head, read = None, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await stream.receive_some(65_536))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            read += bytes(event.data)
        else:
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Answer(head.status_code, headers, read)


async def get(url, method="GET", **headers):
    """Ask once, over a connection of its own."""
    parts = urlsplit(url)
    named = {"host": parts.netloc, **{name.replace("_", "-"): v for name, v in headers.items()}}
    request = h11.Request(method=method, target=parts.path or "/", headers=list(named.items()))
    async with await trio.open_tcp_stream(parts.hostname, parts.port) as stream:
        return await exchange(stream, h11.Connection(h11.CLIENT), request)


@attrs.frozen
class Stream:
    """A link as the bytes that `exchange` needs."""

    link: Link

    async def send_all(self, data):
        await self.link.send(data)

    async def receive_some(self, _):
        return await self.link.receive()


async def ask(network, url, path):
    """Ask once, over any network."""
    place = urlsplit(url).netloc
    request = h11.Request(method="GET", target=path, headers=[("host", place)])
    async with await network.dial(Kind.STREAM, place) as link:
        return await exchange(Stream(link), h11.Connection(h11.CLIENT), request)
