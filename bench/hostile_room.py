"""A foreign stub that floods, or spins: what the others of its node notice (RELIABILITY R11, S17).

    python -m bench.hostile_room [REQUESTS]

A node with a real sandbox process, in which something else runs than a stub of ours, and
two peers that go on asking each other over sockets. By turns without and with it.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import orjson
import trio

from actors.kit.log import Level, configure_log
from actors.kit.tracer import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.foreign.plan import Endpoint, ForeignPlan
from actors.node.limits import UNLIMITED
from actors.pipe.said import Said, Word, write_said
from tests.support.node_peer import Peer
from transports.errors import LinkError
from transports.link import Kind, Link, Upgrade
from transports.stream_link import StreamLink
from transports.system import open_system_network

REACH = 2.0
"""p99 of the others with the hostile room, in p99s without."""

_DOMAIN, _AWAY = "a.example", "b.example"
_STUB = f"domain://msg-node.{_DOMAIN}/protostub/{_AWAY}"
_ROUNDS = 3
_PATIENCE = 60.0
_STARTING = 2.0
"""Seconds until the room surely runs; it is ended some seconds later, if it spins."""


def _link(end: socket.socket) -> StreamLink:
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(end))
    return StreamLink((Kind.UNIX, "room", Upgrade()), stream)


@asynccontextmanager
async def _room(how: str, _label: str) -> AsyncIterator[Link]:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "bench.hostile_room", how]
    process = subprocess.Popen(command, stdin=theirs.fileno())  # noqa: ASYNC220, S603
    theirs.close()
    try:
        yield _link(ours)
    finally:
        process.kill()
        process.wait()


async def _misbehave(how: str) -> None:
    link = _link(socket.socket(fileno=os.dup(0)))
    await link.receive()
    await link.send(write_said(Said(Word.READY)))
    message = {"type": "create", "from": f"hyperty://{_AWAY}/x", "to": f"hyperty://{_DOMAIN}/x"}
    number = 0
    try:
        while True:
            number += how == "flood"
            body = {"value": "x" * 200, "via": [_STUB]}
            line = orjson.dumps({**message, "id": number, "body": body})
            if how == "flood":
                await link.send_many([write_said(Said(Word.POST, rest=line))] * 50)
    except LinkError:
        # The keeper had enough.
        return


async def _asked(first: Peer, second: Peer, count: int) -> float:
    """Have one ask the other so often; return the p99 in milliseconds."""
    taken = []
    to, from_ = f"{second.runtime}/x", f"{first.runtime}/x"
    for _ in range(count):
        begun = time.perf_counter()
        await first.post("create", from_, to, value=1)
        await second.post_answer(await second.hear(), 200)
        await first.hear()
        taken.append(time.perf_counter() - begun)
        await trio.sleep(0.001)
    return sorted(taken)[int(len(taken) * 0.99)] * 1e3


async def _measure(how: str, count: int) -> float:
    plan = ForeignPlan({_AWAY: Endpoint("ws://127.0.0.1:1/link")}, partial(_room, how))
    config = NodeConfig(domain=_DOMAIN, listen="127.0.0.1:0", foreign=plan, limits=UNLIMITED)
    async with open_system_network() as network, open_node(config, network, NULL_TRACER) as node:
        peers = []
        for name in ("ra", "rb"):
            link = await network.dial(Kind.WEBSOCKET, node.url)
            peers.append(await Peer(link, f"hyperty-runtime://{_DOMAIN}/{name}", _DOMAIN).open())
        first, second = peers
        quiet = await _asked(first, second, count)
        await second.post("update", f"{second.runtime}/x", f"hyperty://{_AWAY}/x", value=1)
        await trio.sleep(_STARTING)
        before = node.counters.admitted
        loud = await _asked(first, second, count)
        said = node.counters.admitted - before - 2 * count
        print(f"{how}: p99 {quiet:.2f} ms, with it {loud:.2f} ms, it said {said}", flush=True)
        for one in peers:
            await one.link.aclose()
    return loud / quiet


async def _in_time(how: str, count: int) -> float:
    with trio.fail_after(_PATIENCE):
        return await _measure(how, count)


def main(count: int) -> int:
    """Print the ratios; return 1 if one of them is over what may be."""
    configure_log(Level.ERROR)
    worst = 0.0
    for how in ("flood", "spin"):
        ratios = sorted(trio.run(_in_time, how, count) for _ in range(_ROUNDS))
        worst = max(worst, ratios[_ROUNDS // 2])
        print(f"{how}: {ratios[_ROUNDS // 2]:.2f} times the p99 of others (median)")
    return int(worst > REACH)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in {"flood", "spin"}:
        trio.run(_misbehave, sys.argv[1])
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
