"""A small HTTP server on a real socket, for back ends that tests write themselves."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs
import h11
import orjson
import trio

NO_CONTENT = 204
_PATIENCE = 15.0


@attrs.frozen
class Call:
    """A request: its path taken apart and unquoted, its body as JSON, text or bytes, or None."""

    method: str
    segments: tuple[str, ...]
    query: dict[str, str]
    body: object
    headers: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Said:
    """An answer; `raw` instead of JSON for what is none."""

    status: int = 200
    body: object = None
    raw: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()


class HangupError(Exception):
    """Close the connection instead of answering."""


Handler = Callable[[Call], Awaitable[Said]]


@attrs.define
class HttpServer:
    """Where it listens, and what it was asked so far; `calls` while they are under way too."""

    url: str
    port: int
    calls: list[Call] = attrs.field(factory=list)
    connections: int = 0
    busy: int = 0
    most_busy: int = 0
    happened: trio.Event = attrs.field(factory=trio.Event)

    def moved(self) -> None:
        """Wake whoever waits for something to be so."""
        self.happened.set()
        self.happened = trio.Event()

    async def until(self, is_it: Callable[[], object]) -> None:
        """Wait until something is so; looked at whenever a request comes or is answered.

        Raises:
            trio.TooSlowError: It is not so within fifteen seconds.
        """
        with trio.fail_after(_PATIENCE):
            while not is_it():
                await self.happened.wait()


@asynccontextmanager
async def open_http_server(
    handler: Handler, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[HttpServer]:
    """Serve on loopback while inside, encrypted or not; leaving breaks every connection."""
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(port, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        scheme = "http" if tls is None else "https"
        server = HttpServer(f"{scheme}://127.0.0.1:{port}", port)
        if tls is not None:
            listener = trio.SSLListener(listener, tls, https_compatible=True)
        serve = partial(_connection, server, handler)
        await nursery.start(partial(trio.serve_listeners, serve, [listener]))
        yield server
        nursery.cancel_scope.cancel()


async def _connection(server: HttpServer, handler: Handler, stream: trio.SocketStream) -> None:
    server.connections += 1
    http = h11.Connection(h11.SERVER)
    try:
        while http.states != {h11.CLIENT: h11.CLOSED, h11.SERVER: h11.CLOSED}:
            call = await _read(http, stream)
            if call is None:
                return
            server.calls.append(call)
            server.moved()
            await _answer(server, handler, call, http, stream)
            if h11.MUST_CLOSE in http.states.values():
                return
            http.start_next_cycle()
    except (HangupError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    finally:
        with trio.move_on_after(1, shield=True):
            await trio.aclose_forcefully(stream)


async def _answer(server, handler, call, http, stream) -> None:
    server.busy += 1
    server.most_busy = max(server.busy, server.most_busy)
    try:
        said = await handler(call)
    finally:
        server.busy -= 1
        server.moved()
    data = orjson.dumps(said.body) if said.raw is None else said.raw
    if said.status == NO_CONTENT:
        data = b""
    headers = [("content-length", str(len(data))), *said.headers]
    out = http.send(h11.Response(status_code=said.status, headers=headers)) or b""
    await stream.send_all(out + http.send(h11.Data(data=data)) + http.send(h11.EndOfMessage()))


async def _read(http: h11.Connection, stream: trio.SocketStream) -> Call | None:
    head, body = None, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return _call(head, body)
        else:
            return None


def _call(head: h11.Request, body: bytes) -> Call:
    parts = urlsplit(head.target.decode())
    segments = tuple(unquote(one) for one in parts.path.split("/")[1:])
    query = dict(parse_qsl(parts.query))
    headers = {name.decode(): value.decode() for name, value in head.headers}
    read = body if "content-encoding" in headers else body.decode()
    if headers.get("content-type") == "application/json":
        read = orjson.loads(body)
    return Call(head.method.decode(), segments, query, read if body else None, headers)
