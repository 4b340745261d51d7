"""HTTP over the links of a stub's network, encrypted or not.

A stub reaches the world by its `Network` alone, for any protocol: so its requests go over links of
kind `STREAM`, and the network decides which places can be dialled.
"""

import ssl
from functools import partial
from typing import Final

import httpcore
import trio
from typing_extensions import override

from actors.kit.http_client import HttpClient, ServerUrl
from specs.limits.protocol import DIAL_TIMEOUT, HTTP_REQUEST_TIMEOUT, MAX_FRAME_BYTES
from transports.errors import CloseReason, DialError, LinkBrokenError, LinkError
from transports.link import Kind, Link, Network
from transports.urls import join_host_port

_KEEP_ALIVE: Final = HTTP_REQUEST_TIMEOUT / 2
"""Seconds that an idle connection is kept, fewer than the server keeps it."""


def http_over(network: Network, url: str, limit: int = MAX_FRAME_BYTES) -> HttpClient:
    """Return a client that reaches a server over the links of a network.

    The certificate of an `https:` server is checked here, by the authorities of the operating
    system: the network carries bytes.

    Args:
        network: Carries the requests.
        url: Of the server, such as http://127.0.0.1:8080/rest.
        limit: Bytes that an answer may have.

    Raises:
        HttpUrlError: It names no server.
    """
    server, dial = ServerUrl.read(url), partial(_dial, network)
    return HttpClient(server, limit, dial, keep_alive=_KEEP_ALIVE)


async def _dial(network: Network, host: str, port: int) -> httpcore.AsyncNetworkStream:
    try:
        return _Stream(_Bytes(await network.dial(Kind.STREAM, join_host_port(host, port))))
    except DialError as exc:
        raise httpcore.ConnectError(str(exc)) from exc


class _Bytes(trio.abc.Stream):
    """Adapter from a link of bytes to a Trio stream."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._unread = b""

    @override
    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._link.send(bytes(data))
        except LinkError as exc:
            raise trio.BrokenResourceError(str(exc)) from exc

    @override
    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    @override
    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            data = self._unread or await self._link.receive()
        except LinkBrokenError as exc:
            if exc.close_reason is CloseReason.DONE:
                return b""
            raise trio.BrokenResourceError(str(exc)) from exc
        except LinkError as exc:
            raise trio.BrokenResourceError(str(exc)) from exc
        end = len(data) if max_bytes is None else max_bytes
        self._unread = data[end:]
        return data[:end]

    @override
    async def aclose(self) -> None:
        await self._link.aclose()


class _Stream(httpcore.AsyncNetworkStream):
    """Adapter from a link to a network stream of httpcore, with or without TLS."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    @override
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return bytes(await self._stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise httpcore.ReadError(str(exc)) from exc

    @override
    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            if buffer:
                await self._stream.send_all(buffer)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise httpcore.WriteError(str(exc)) from exc

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()

    @override
    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = trio.SSLStream(
            self._stream, ssl_context, server_hostname=server_hostname, https_compatible=True
        )
        is_done = False
        try:
            with trio.fail_after(DIAL_TIMEOUT):
                await stream.do_handshake()
            is_done = True
        except (trio.BrokenResourceError, trio.TooSlowError) as exc:
            raise httpcore.ConnectError(str(exc.__cause__ or exc)) from (exc.__cause__ or exc)
        finally:
            if not is_done:
                with trio.CancelScope(shield=True):
                    await self._stream.aclose()
        return _Stream(stream)

    @override
    def get_extra_info(self, info: str) -> None:
        """Report nothing: a write shows that an idle connection was closed."""
