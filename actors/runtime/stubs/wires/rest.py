"""Sessions over HTTP: `protofly.v1` in requests (CON-06).

Messages are spelt as over a link of our own; only control of the session has a path of its
own. What is sent is posted in order, one post after the other, whatever waits together. What
comes is asked for, by long polls or as server-sent events.

A stub reaches the world by its `Network` alone, whatever it speaks: so its requests go over
links of kind `STREAM`, and a network in memory, under any clock or weather, carries them.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum, unique
from functools import partial
from typing import Final, final

import httpcore
from typing_extensions import override

from actors.kit.http_client import HttpClient, HttpUrlError, ServerUrl
from actors.runtime.stubs.options import StubOptionError, read_options
from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wires.protofly import OwnWire
from actors.runtime.stubs.wires.rest_link import EventLink, PollLink, RestLink, RestPast
from specs.bodies.word import SessionMethod
from specs.limits.protocol import HTTP_REQUEST_TIMEOUT, MAX_FRAME_BYTES
from transports.codec import frames
from transports.errors import CloseReason, DialError, LinkBrokenError, LinkError
from transports.link import Kind, Link, Network
from transports.urls import join_host_port

__all__ = ["Receive", "RestWire", "http_over", "receive_of"]

_STUB: Final = "rest"
_KEEP_ALIVE: Final = HTTP_REQUEST_TIMEOUT / 2
"""Seconds an idle connection is kept: the node hangs it up only later."""


@final
@unique
class Receive(StrEnum):
    """How what comes is asked for; words of a profile."""

    LONG_POLL = "long-poll"
    SSE = "sse"


def receive_of(context: StubContext) -> Receive:
    """Read from a profile how messages are to come.

    Raises:
        StubOptionError: The profile says what the stub does not know.
    """
    known = {"receive": tuple(one.value for one in Receive)}
    chosen = read_options(_STUB, context.config.options, known)
    url = context.config.node_url or ""
    why = f"its endpoint {url!r} is none such as http://host:port/rest"
    try:
        server = ServerUrl.read(url)
    except HttpUrlError as exc:
        raise StubOptionError(_STUB, "endpoint", why) from exc
    if server.scheme != "http":
        raise StubOptionError(_STUB, "endpoint", why)
    return Receive(chosen["receive"])


@final
class RestWire(OwnWire):
    """Our own form over requests.

    Args:
        context: Of the stub that speaks.
        receive: How what comes is asked for.
        past: Of the links that the stub had before.
    """

    def __init__(self, context: StubContext, receive: Receive, past: RestPast) -> None:
        super().__init__(context)
        self._receive = receive
        self._past = past
        self._apart: set[bytes] = set()

    @override
    async def dial(self) -> RestLink:
        http = http_over(self._network, self._config.node_url or "")
        make = PollLink if self._receive is Receive.LONG_POLL else EventLink
        return make(http, self._apart, self._past)

    @override
    def ask(self, method: SessionMethod, token: str | None) -> bytes:
        line = super().ask(method, token)
        if method is not SessionMethod.PING:
            self._apart.add(line)
        return line

    @override
    def frames(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        together: list[bytes] = []
        for line in lines:
            if line in self._apart:
                yield from frames(together)
                together = []
                yield line
            else:
                together.append(line)
        yield from frames(together)


def http_over(network: Network, url: str) -> HttpClient:
    """Return a client that reaches a node over the links of a network.

    Args:
        network: Carries the requests.
        url: Of the node, such as http://127.0.0.1:8080/rest.
    """
    server, dial = ServerUrl.read(url), partial(_dial, network)
    return HttpClient(server, MAX_FRAME_BYTES, dial, keep_alive=_KEEP_ALIVE)


async def _dial(network: Network, host: str, port: int) -> httpcore.AsyncNetworkStream:
    try:
        return _Stream(await network.dial(Kind.STREAM, join_host_port(host, port)))
    except DialError as exc:
        raise httpcore.ConnectError(str(exc)) from exc


@final
class _Stream(httpcore.AsyncNetworkStream):
    """A link of bytes as httpcore wants one."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._unread = b""

    @override
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._unread or await self._link.receive()
        except LinkBrokenError as exc:
            if exc.close_reason is CloseReason.DONE:
                return b""
            raise httpcore.ReadError(str(exc)) from exc
        except LinkError as exc:
            raise httpcore.ReadError(str(exc)) from exc
        self._unread = data[max_bytes:]
        return data[:max_bytes]

    @override
    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            if buffer:
                await self._link.send(buffer)
        except LinkError as exc:
            raise httpcore.WriteError(str(exc)) from exc

    @override
    async def aclose(self) -> None:
        await self._link.aclose()

    @override
    def get_extra_info(self, info: str) -> None:
        """Tell nothing: that an idle connection was hung up is seen when it is used."""
