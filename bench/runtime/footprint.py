"""What does a runtime need to start, for each hyperty, to find one, and after many requests?

Ordinary case: a process that imports the package and opens a runtime at a node, beside one that
imports Trio alone; hyperties that are deployed by the hundred and found by others; and memory that
a runtime has more after each thousand requests, which should be nothing.
"""

import gc
import os
import statistics
import sys
import time
from functools import partial
from typing import Final

import actors
from actors.hyperties import Echo
from bench.report import Row, interleaved, program
from bench.servers import DOMAIN, memory_of, open_node_process, open_process, processor_time
from transports.memory import MemoryNetwork

_START: Final = 0.3
"""Target: seconds from the start of a process until its runtime is open."""

_OPEN: Final = f"""
import os, trio, actors
async def main():
    async with actors.open_runtime({DOMAIN!r}, f"r{{os.getpid()}}", node="NODE"):
        print("{{}}", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""
_BARE: Final = "import trio; print('{}', flush=True); trio.run(trio.sleep_forever)"
_SEARCHES: Final = 100


async def _started(program: str) -> tuple[float, float, float]:
    """Start a process; return seconds until it is ready, seconds of CPU, and MiB of memory."""
    began = time.perf_counter()
    async with open_process((sys.executable, "-c", program)) as (process, _):
        took = time.perf_counter() - began
        return took, processor_time(process.pid), memory_of(process.pid) / 2**20


async def _starts(rounds: int) -> list[Row]:
    programs = {"a runtime": _OPEN, "a process with Trio alone": _BARE}
    async with open_node_process() as node:
        url = node.ready["url"]
        works = {
            what: partial(_started, code.replace("NODE", url)) for what, code in programs.items()
        }
        taken = await interleaved(rounds, works)
    rows = []
    for what, figures in taken.items():
        seconds, cpu, mib = map(statistics.median, zip(*figures, strict=True))
        reach = _START if what == "a runtime" else None
        rows += [
            Row(f"{what} starts", seconds, "s", reach=reach),
            Row(f"{what} starts", cpu, "s of CPU"),
            Row(f"{what} has", mib, "MiB"),
        ]
    return rows


async def _hyperties(count: int, requests: int) -> list[Row]:
    """Measure hyperties, searches and requests, with the node in this process."""
    network = MemoryNetwork()
    async with (
        actors.open_node(DOMAIN, network=network) as node,
        actors.open_runtime(DOMAIN, "a", node=node.url, network=network) as here,
        actors.open_runtime(DOMAIN, "b", node=node.url, network=network) as peer,
    ):
        far = await peer.deploy(Echo, "far", resources=["chat"])
        caller = await here.deploy(Echo, "caller")
        gc.collect()
        before, began = memory_of(os.getpid()), time.process_time()
        for number in range(count):
            await here.deploy(Echo, f"echo{number}", resources=["video"])
        spent = (time.process_time() - began) / count
        gc.collect()
        grown = (memory_of(os.getpid()) - before) / count / 1024

        began = time.process_time()
        for _ in range(_SEARCHES):
            await peer.discover(name=f"echo{count // 2}")
        searched = (time.process_time() - began) / _SEARCHES

        sizes = []
        for _ in range(3):  # the first part fills what is kept of each kind
            for number in range(requests):
                await caller.request(far.url, number)
            gc.collect()
            sizes.append(memory_of(os.getpid()))
    kept = (sizes[-1] - sizes[0]) / (2 * requests) * 1000 / 1024
    return [
        Row(f"one of {count} hyperties, with its record at the node", grown, "KiB"),
        Row("a hyperty is deployed", spent * 1e3, "ms of CPU"),
        Row(f"one of {count + 2} hyperties is found", searched * 1e3, "ms of CPU"),
        Row("memory that 1,000 requests leave behind", kept, "KiB"),
    ]


async def measure(rounds: int, hyperties: int, requests: int) -> list[Row]:
    """Measure the start of processes, then the cost of hyperties."""
    return [*await _starts(rounds), *await _hyperties(hyperties, requests)]


main = program(measure, {"rounds": (5, 1), "hyperties": (300, 5), "requests": (2000, 20)})

if __name__ == "__main__":
    main()
