"""Servers are dialled, encrypted and convinced; those that cannot be used are named."""

import pytest
import trio

from transports.nats.connection import ServerUrl, Terms, dial_server
from transports.nats.wire import NatsError

# --- servers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\n", b"INFO []\r\n", b"INFO {\r\n", b"x", b""])
async def test_another_server_is_none_of_nats(said):
    async def serve(stream):
        async with stream:
            await stream.send_all(said)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        terms = Terms((ServerUrl.read(f"nats://127.0.0.1:{port}"),))
        with pytest.raises(NatsError, match="no NATS server"):
            await dial_server(terms, terms.servers[0])
        nursery.cancel_scope.cancel()
