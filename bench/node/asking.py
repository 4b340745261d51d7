"""Two sessions of a node that exchange requests, and note how long each takes.

A process of its own: what else the bench does must not delay it. It asks until its standard input
ends, then it writes a list of pairs: when (`time.perf_counter`) a request was sent, and the seconds
until its answer had come.
"""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import orjson
import trio

from bench.node.crowd import CrowdError, Peer

_PAUSE: Final = 0.001
"""Seconds between an answer and the next request."""

Asking = list[tuple[float, float]]
"""When each request was sent, and the seconds that it took."""


@asynccontextmanager
async def open_asking(place: tuple[str, int], taken: Asking) -> AsyncIterator[None]:
    """Run two sessions that exchange requests; `taken` has them all when the context is left.

    Raises:
        CrowdError: They did not come to ask.
    """
    command = [sys.executable, "-m", "bench.node.asking", place[0], str(place[1])]
    process = await trio.lowlevel.open_process(command, stdin=-1, stdout=-1)
    try:
        if process.stdout is None or process.stdin is None:
            raise CrowdError("the asking process says nothing")
        await process.stdout.receive_some(1)
        yield
        await process.stdin.aclose()
        said = b"".join([bytes(piece) async for piece in process.stdout])
        taken += [(sent, took) for sent, took in orjson.loads(said)]
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def _ask(place: tuple[str, int]) -> Asking:
    asker, asked = Peer("asker"), Peer("asked")
    for peer in (asker, asked):
        await peer.be_ours(place)
    ends = f"{asker.runtime}/a", f"{asked.runtime}/a"
    request = orjson.dumps({"id": 1, "type": "execute", "from": ends[0], "to": ends[1], "body": {}})
    answer = orjson.dumps(
        {"id": 1, "type": "response", "from": ends[1], "to": ends[0], "body": {"code": 200}}
    )
    taken: Asking = []

    async def ask_on() -> None:
        while True:
            sent = time.perf_counter()
            await asker.send(request)
            await asked.receive()
            await asked.send(answer)
            await asker.receive()
            taken.append((sent, time.perf_counter() - sent))
            await trio.sleep(_PAUSE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_on)
        print("-", end="", flush=True)
        await trio.lowlevel.wait_readable(sys.stdin)
        nursery.cancel_scope.cancel()
    return taken


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(trio.run(_ask, (sys.argv[1], int(sys.argv[2])))))
