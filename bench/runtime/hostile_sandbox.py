"""A foreign stub that floods, spins or crashes: what the others of its node notice (R11, S17).

A node with a real sandbox process, confined as all are, in which something else runs than a
stub of ours, and two peers that go on asking each other over sockets. In each round first
without it, then from when it surely misbehaves.
"""

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import final

import click
import orjson
import trio

from actors.kit.log import Level, configure_log
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import Endpoint, ForeignPlan, NodeConfig
from actors.node.limits import UNLIMITED
from actors.pipe.plan import PipeMessage, Word, write_message
from actors.sandbox.confine import confine
from bench.runtime.beside import Pair, judged, p99, taken
from tests.support.node.node_peer import Peer
from transports.errors import LinkError
from transports.link import Kind, Link, Upgrade
from transports.socket_link import StreamLink
from transports.sockets import open_background
from transports.system import open_system_network

_DOMAIN, _AWAY = "a.example", "b.example"
_STUB = f"domain://msg-node.{_DOMAIN}/protostub/{_AWAY}"
_HOW = ("flood", "spin", "crash")
_PATIENCE = 60.0


def _link(end: socket.socket) -> StreamLink:
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(end))
    return StreamLink((Kind.UNIX, "sandbox", Upgrade()), stream)


@final
class _Sandboxes:
    """The sandboxes of one node.

    Attributes:
        begun: How many have begun to misbehave.
        first: Set when one has.
    """

    def __init__(self, how: str) -> None:
        self._how = how
        self.begun = 0
        self.first = trio.Event()

    @asynccontextmanager
    async def open(self, _label: str) -> AsyncIterator[Link]:
        ours, theirs = socket.socketpair()
        begun, begins = os.pipe()
        command = [
            sys.executable,
            "-m",
            "bench.runtime.hostile_sandbox",
            self._how,
            str(os.getpid()),
        ]
        process = subprocess.Popen(  # noqa: ASYNC220, S603
            command, stdin=theirs.fileno(), stdout=begins, start_new_session=True
        )
        theirs.close()
        os.close(begins)
        try:
            async with open_background() as background:
                background.start_soon(self._watch, begun)
                yield _link(ours)
        finally:
            process.kill()
            process.wait()

    async def _watch(self, begun: int) -> None:
        async with trio.lowlevel.FdStream(begun) as stream:
            self.begun += bool(await stream.receive_some(1))
            self.first.set()


async def _misbehave(how: str) -> None:
    link = _link(socket.socket(fileno=os.dup(0)))
    await link.receive()
    await link.send(write_message(PipeMessage(Word.READY)))
    os.write(1, b"!")
    message = {"type": "create", "from": f"hyperty://{_AWAY}/x", "to": f"hyperty://{_DOMAIN}/x"}
    number = 0
    try:
        while how != "crash":
            number += how == "flood"
            body = {"value": "x" * 200, "via": [_STUB]}
            line = orjson.dumps({**message, "id": number, "body": body})
            if how == "flood":
                await link.send_many([write_message(PipeMessage(Word.POST, rest=line))] * 50)
    except LinkError:
        # The sandbox host has ended it.
        return


async def _ask(first: Peer, second: Peer) -> None:
    await first.post("create", f"{first.runtime}/x", f"{second.runtime}/x", value=1)
    await second.post_answer(await second.hear(), 200)
    await first.hear()


async def _provoke(peer: Peer) -> None:
    """Have the sandbox opened, and again when it was ended."""
    while True:
        await peer.post("update", f"{peer.runtime}/x", f"hyperty://{_AWAY}/x", value=1)
        await trio.sleep(0.1)


async def _measure(how: str) -> Pair:
    sandboxes = _Sandboxes(how)
    plan = ForeignPlan({_AWAY: Endpoint("ws://127.0.0.1:1/link")}, sandboxes.open)
    config = NodeConfig(domain=_DOMAIN, listen="127.0.0.1:0", foreign=plan, limits=UNLIMITED)
    async with open_system_network() as network, open_node(config, network, NULL_TRACER) as node:
        peers = []
        for name in ("ra", "rb", "rc"):
            link = await network.dial(Kind.WEBSOCKET, node.url)
            peers.append(await Peer(link, f"hyperty-runtime://{_DOMAIN}/{name}", _DOMAIN).open())
        first, second, third = peers
        ask = partial(_ask, first, second)
        quiet = await p99(ask)
        async with open_background() as background:
            # The sender that caused the sandbox is answered when it is ended.
            background.start_soon(_provoke, third)
            await sandboxes.first.wait()
            loud = await p99(ask)
        for one in peers:
            await one.link.aclose()
    return Pair(quiet, loud, sandboxes.begun)


async def _round(how: str) -> Pair:
    with trio.fail_after(_PATIENCE):
        return await _measure(how)


@click.command("bench.runtime.hostile_sandbox")
@click.option("--rounds", default=3, show_default=True, help="Rounds the medians are over.")
@click.option("--how", "hows", type=click.Choice(_HOW), multiple=True, help="All if not given.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(rounds: int, hows: tuple[str, ...], *, as_json: bool) -> None:
    """Measure what others notice of it; exit with 1 if that is too much."""
    configure_log(Level.ERROR)
    pairs = taken(rounds, hows or _HOW, lambda how: trio.run(_round, how))
    judged("hostile_sandbox", pairs).tell(as_json=as_json)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in _HOW:
        confine(int(sys.argv[2]))
        trio.run(_misbehave, sys.argv[1])
    else:
        main()
