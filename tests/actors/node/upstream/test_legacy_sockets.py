"""Upstream's stubs on real sockets."""

import json

import trio

from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.node.legacy_peer import OLD, OLD_INSIDE, plain_peer, session_peer
from tests.support.node.node_peer import RA, open_world
from tests.support.wire.raw_websocket import handshake, head, text
from transports.system import open_system_network


async def test_three_kinds_of_stubs_talk_over_real_sockets():
    async with (
        open_system_network() as network,
        open_world(network, allow_legacy=True) as world,
    ):
        plain, new = await plain_peer(world), await world.peer(RA)
        session = await session_peer(world, "runtime://a.ex/other")

        with trio.fail_after(60):
            for _ in range(50):
                await new.post("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", value=1)
            heard = [await plain.hear() for _ in range(50)]
            await plain.say(id="1", type="create", from_=f"{OLD}/ua",
                            to="runtime://a.ex/other/ua", body={"value": 2})  # fmt: skip
            other = await session.hear()

        assert {one["to"] for one in heard} == {f"{OLD}/ua"}
        assert (other["id"], other["from"], other["body"]) == (1, f"{OLD}/ua", {"value": 2})


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
