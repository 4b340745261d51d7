"""The front door on real sockets."""

import json

import pytest
import trio

from specs.limits.protocol import MAX_FRAME_BYTES
from specs.reply_code import DropReason, LinkEnd
from tests.support.log import captured_log
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.wire.raw_websocket import handshake, head, text
from transports.errors import DialError, ListenError
from transports.link import Kind
from transports.system import open_system_network


async def test_two_runtimes_talk_over_real_sockets(tmp_path):
    async with (
        open_system_network() as network,
        open_world(network, registry=tmp_path / "r.sqlite") as world,
    ):
        ra, rb = await world.peer(RA), await world.peer(RB)
        (ha,), (hb,) = await ra.allocate(), await rb.allocate()

        sent = [await ra.post("create", ha, hb, value=n) for n in range(200)]

        with trio.fail_after(60):
            assert [await rb.hear() for _ in sent] == sent
        assert (await ra.control("close")).code == 200


async def test_other_paths_are_refused():
    async with open_system_network() as network, open_world(network) as world:
        base = world.node.url.removesuffix("/link")
        for path in ("/ws", "/stub/connect?runtimeURL=x", "/"):
            with pytest.raises(DialError):
                await network.dial(Kind.WEBSOCKET, base + path, None)


async def test_a_place_that_is_taken_is_reported():
    async with open_system_network() as network, open_world(network) as world:
        where = world.node.url.removeprefix("ws://").removesuffix("/link")
        with pytest.raises(ListenError):
            async with open_world(network, listen=where):
                pass


async def test_a_frame_over_the_limit_gets_413_and_ends_that_session_only():
    with captured_log() as log:
        await large_frame()
    warned = [line for line in log if line["event"] == "frame too large"]
    assert [(line["runtime"], line["log_level"]) for line in warned] == [(RA, "warning")]


async def large_frame():
    async with open_system_network() as network, open_world(network) as world:
        rb = await world.peer(RB)
        host, port = world.node.url.removeprefix("ws://").removesuffix("/link").split(":")
        open_ = {
            "id": 1, "type": "execute", "from": f"{RA}/protostub/1",
            "to": "domain://msg-node.a.ex/session",
            "body": {"method": "open", "params": {"runtimeURL": RA}},
        }  # fmt: skip
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(handshake() + text(json.dumps(open_).encode()))
            await stream.send_all(head(1, MAX_FRAME_BYTES + 1))
            heard = b""
            with trio.fail_after(60):
                async for data in stream:
                    heard += data

        assert b'"code":413' in heard
        assert heard.endswith(b"\x88\x0b\x03\xf1too-large")
        assert world.ended() == {LinkEnd.TOO_LARGE: 1}
        assert world.node.counters.drops == {DropReason.MALFORMED: 1}
        assert await world.states() == {RB: "open"}
        assert (await rb.control("ping")).code == 200
