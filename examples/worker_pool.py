"""A pool of workers: jobs go to whoever is free, and a job whose worker fails goes to another one.

The workers are found in the registry by the resource that they offer, so more of them may come, in
any runtime of the domain, without a change of this program.
"""

from collections.abc import Sequence
from functools import partial

import trio

import actors

JOBS = 12
PAUSE = 0.005


class Worker(actors.Hyperty):
    """Squares a number, unless the number is one that it does not like."""

    def __init__(self, dislikes: int) -> None:
        self._dislikes = dislikes

    @actors.handles("create", path="/jobs")
    async def work(self, number: int) -> int:
        await trio.sleep(0.01)
        if number % 4 == self._dislikes:
            raise actors.Refused(actors.Code.UNAVAILABLE, f"not {number}")
        return number * number


class Pool(actors.Hyperty):
    """Gives each job to a free worker, and a refused one to the next."""

    async def run(self, numbers: Sequence[int]) -> dict[int, int]:
        found = await self.discover(resources=("squares",))
        urls = [entry.url for entry in found]
        free, workers = trio.open_memory_channel[str](len(urls))
        for url in urls:
            free.send_nowait(url)
        results: dict[int, int] = {}

        async def do(number: int) -> None:
            refused: set[str] = set()
            while len(refused) < len(urls):
                worker = await workers.receive()
                if worker in refused:
                    # Another job may take it.
                    free.send_nowait(worker)
                    await trio.sleep(PAUSE)
                    continue
                answer = await self.request(worker, number, path="/jobs", answer_within=5)
                free.send_nowait(worker)
                if answer.ok:
                    results[number] = actors.read_as(answer.value, int)
                    return
                refused.add(worker)
                print(f"job {number}: {answer.body['description']}")
            print(f"job {number}: given up")

        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(do, number)
        return results


async def main() -> None:
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "one", node=node.url) as one,
        actors.open_runtime("a.example", "two", node=node.url) as two,
    ):
        for runtime, dislikes in ((one, 1), (two, 2), (two, 3)):
            await runtime.deploy(partial(Worker, dislikes), "worker", resources=["squares"])
        pool = Pool()
        await one.deploy(lambda: pool)
        results = await pool.run(range(JOBS))
        print("done:", sorted(results.values()))


if __name__ == "__main__":
    trio.run(main)
