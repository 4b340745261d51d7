"""Between two domains: the first answer through a cold sandbox, warm latency by both topologies.

    python -m bench.two_domains [REQUESTS]

Four processes of our commands and this one, which asks; medians of requests one at a time.
"""

import statistics
import sys
import time
from pathlib import Path

import trio

from actors.hyperties import Caller
from specs.reply_code import Code
from tests.system.test_two_domains import two_domains

_KIB = 1024


async def _asked(caller: Caller, to: str, count: int) -> list[float]:
    seconds = []
    for number in range(count):
        begun = time.perf_counter()
        answer = await caller.request(to, number)
        seconds.append(time.perf_counter() - begun)
        assert answer.code == Code.OK, answer.body  # noqa: S101 - a figure of refusals is none
    return seconds


def _resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    (line,) = [one for one in text.splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) // _KIB


async def _measure(count: int) -> None:
    for topology in ("triangle", "trapezoid"):
        async with two_domains(topology, asks=topology) as cast:
            to = cast.relay(1)
            cold, *warm = await _asked(cast.caller, to, count + 1)
            cuts = statistics.quantiles(warm, n=100)
            told = f"{topology}: first {cold * 1e3:.0f} ms, p50 {cuts[49] * 1e3:.2f} ms"
            print(f"{told}, p99 {cuts[98] * 1e3:.2f} ms")
            for pid in cast.sandboxes(0):
                print(f"sandbox: {_resident(pid)} MiB resident")


if __name__ == "__main__":
    trio.run(_measure, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
