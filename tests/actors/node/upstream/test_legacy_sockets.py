"""Upstream's stubs on real sockets."""

import json

import trio

from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.node.legacy_peer import OLD
from tests.support.node.node_peer import open_world
from tests.support.wire.raw_websocket import handshake, head, text
from transports.system import open_system_network


async def test_a_frame_over_the_limit_gets_413_in_the_wire_form_of_the_listener():
    async with open_system_network() as network, open_world(network, allow_legacy=True) as world:
        host, port = world.node.url.removeprefix("ws://").removesuffix("/link").split(":")
        open_ = {"id": 1, "type": "open", "from": OLD, "to": "mn:/session"}
        heard = b""
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(handshake("/ws", None) + text(json.dumps(open_).encode()))
            await stream.send_all(head(1, MAX_FRAME_BYTES + 1))
            with trio.fail_after(60):
                async for data in stream:
                    heard += data

        assert b'"from":"mn:/session","to":"runtime://a.ex/old","body":{"code":413' in heard
