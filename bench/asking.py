"""Measure requests between two sessions of a node, and the opening of sessions, during an attack.

The measurement runs in a process of its own, so that the other tasks of a bench do not delay it.
"""

import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import attrs
import orjson
import trio

from bench.peers import Peer, message
from bench.report import BenchError, percentile

_PAUSE: Final = 0.001
_COMING: Final = 0.1
_HOSTS: Final = 250
_WARM: Final = 0.3


@attrs.define
class Asked:
    """Measured times in milliseconds.

    Attributes:
        is_over: Whether the measurement has ended, so that the figures are set.
        p99: Time that 99 % of the requests in one second do not exceed: the median of all seconds,
            so that short disturbances of the machine do not count.
        coming: Time that 99 % of the attempts to open a session do not exceed.
        refused: Number of sessions that could not be opened.
    """

    is_over: bool = False
    p99: float = 0.0
    coming: float = 0.0
    refused: int = 0


@asynccontextmanager
async def open_asking(place: tuple[str, int], seconds: float) -> AsyncIterator[Asked]:
    """Run the measurement for `seconds`; the context ends after that."""
    asked = Asked()
    command = [sys.executable, "-m", "bench.asking", place[0], str(place[1]), str(seconds)]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)

    async def read() -> None:
        if process.stdout is None:
            return
        text = b"".join([bytes(piece) async for piece in process.stdout])
        if not text:
            raise BenchError("others could not ask")
        asked.p99, asked.coming, asked.refused = orjson.loads(text)
        asked.is_over = True

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            yield asked
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def _ask(place: tuple[str, int], seconds: float) -> tuple[float, float, int]:
    asker, asked = Peer(f"asker{time.monotonic_ns()}"), Peer(f"asked{time.monotonic_ns()}")
    for peer in (asker, asked):
        await peer.be_ours(place)
    ends = f"{asker.runtime}/a", f"{asked.runtime}/a"
    request = message(1, "create", *ends, {"value": 1})
    answer = message(1, "response", ends[1], ends[0], {"code": 200})
    taken: defaultdict[int, list[float]] = defaultdict(list)
    coming, refused = list[float](), 0
    began = time.perf_counter() + _WARM

    async def come() -> None:
        nonlocal refused
        while True:
            source = f"127.1.1.{1 + len(coming) % _HOSTS}"
            peer = Peer(f"honest{time.monotonic_ns()}", source)
            begun = time.perf_counter()
            try:
                await peer.be_ours(place)
            except (BenchError, OSError):
                refused += 1
            coming.append(time.perf_counter() - begun)
            peer.close()
            await trio.sleep(_COMING)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come)
        while (sent := time.perf_counter() - began) < seconds:
            await asker.send(request)
            await asked.receive()
            await asked.send(answer)
            await asker.receive()
            if sent > 0:
                taken[int(sent)].append(time.perf_counter() - began - sent)
            await trio.sleep(_PAUSE)
        nursery.cancel_scope.cancel()
    usual = statistics.median(percentile(second, 99) for second in taken.values())
    return usual * 1e3, percentile(coming, 99) * 1e3, refused


if __name__ == "__main__":
    _place = sys.argv[1], int(sys.argv[2])
    sys.stdout.buffer.write(orjson.dumps(trio.run(_ask, _place, float(sys.argv[3]))))
