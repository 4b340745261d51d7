"""Runtimes of one process: they ask each other, change data objects and observe those of others.

It is told what to do line by line on standard input, and answers each line on standard output.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import attrs
import trio

import actors
from actors.dev.environment import LocalLogin
from actors.keys.signing import read_key
from specs.errors import ProtoflyError
from transports.link import Link, Network
from transports.system import open_system_network

_AGAIN: Final = 0.5
"""Seconds until what has failed is tried again."""


@attrs.frozen
class Part:
    """What one process does.

    Attributes:
        names: Names of its runtimes.
        domain: Their domain.
        nodes: URLs of all nodes.
        key: The key that signs their logins, as a file.
        trace: Directory of its traces.
        rate: Requests that each runtime sends in a second.
        durable: Share of them that are durable.
        open: Requests of a runtime that wait for their answers, at most.
        objects: Data objects that each runtime reports.
        changes: Changes of each object in a second.
        seed: Chance of the run.
    """

    names: Sequence[str]
    domain: str
    nodes: Sequence[str]
    key: str
    trace: str
    rate: float
    durable: float
    open: int
    objects: int
    changes: float
    seed: int


@attrs.define
class _Balancer(Network):
    """Dials the nodes in turn, as a load balancer that does not look at them."""

    network: Network
    urls: "cycle[str]"

    async def dial(self, kind, address, *more) -> Link:
        return await self.network.dial(kind, next(self.urls), *more)

    def listen(self, *about):
        return self.network.listen(*about)


class _Member(actors.Hyperty):
    """Counts what it is asked, and lets everybody observe."""

    def __init__(self) -> None:
        self.asked = Counter[str]()

    async def on_request(self, message):
        self.asked[message.value] += 1
        return message.value

    async def on_subscribe(self, url, observer):
        pass


class _Runtime:
    """A runtime, its hyperty, and what became of its requests."""

    def __init__(self, name: str, part: Part) -> None:
        self.member = _Member()
        self.codes: dict[str, int] = {}
        self.took: list[int] = []
        self.things: list[actors.ReportedObject] = []
        self.copies: dict[str, actors.ObservedObject | None] = {}
        self._name = name
        self._part = part
        self._dice = Random(f"{part.seed}/{name}")  # noqa: S311 - chance, no secret
        self._handle: actors.Deployed | None = None
        self._sent = 0

    async def open(self, stack: AsyncExitStack, network: Network) -> None:
        part = self._part
        signer = read_key(Path(part.key))
        urls = [*part.nodes]
        self._dice.shuffle(urls)
        config = actors.RuntimeConfig(
            domain=part.domain,
            name=self._name,
            node=urls[0],
            credentials=LocalLogin(signer, f"user://{part.domain}/{self._name}", part.domain),
        )
        balancer = _Balancer(network, cycle(urls))
        opened = actors.open_runtime(config, network=balancer, trace=part.trace)
        runtime = await stack.enter_async_context(opened)
        self._handle = await runtime.deploy(lambda: self.member)
        for _ in range(part.objects):
            thing = self._handle.report("ctxt", {"changes": 0})
            self.things.append(await stack.enter_async_context(thing))

    @property
    def url(self) -> str:
        return self._handle.url

    async def act(self, nursery: trio.Nursery, urls: Sequence[str], stop: trio.Event) -> None:
        """Ask others until it is to stop; each request is waited for."""
        others = [url for url in urls if url != self.url]
        limit = trio.CapacityLimiter(self._part.open)
        due = trio.current_time()
        while not stop.is_set():
            due += self._dice.expovariate(self._part.rate)
            await trio.sleep_until(due)
            self._sent += 1
            is_durable = self._dice.random() < self._part.durable
            kind = "d" if is_durable else "b"
            number, url = f"{kind}/{self._name}/{self._sent}", self._dice.choice(others)
            await limit.acquire_on_behalf_of(number)
            ask = partial(self._ask, is_durable=is_durable)
            nursery.start_soon(ask, url, number, limit)

    async def _ask(
        self, url: str, number: str, limit: trio.CapacityLimiter, *, is_durable: bool
    ) -> None:
        self.codes[number] = 0
        began = trio.current_time()
        answer = await self._handle.request(url, number, durable=is_durable)
        self.took.append(round(1000 * (trio.current_time() - began)))
        self.codes[number] = int(answer.code)
        limit.release_on_behalf_of(number)

    async def change(self, thing: actors.ReportedObject, stop: trio.Event) -> None:
        """Change an object until it is to stop."""
        while not stop.is_set():
            await trio.sleep(self._dice.expovariate(self._part.changes))
            with suppress(ProtoflyError):
                await thing.set("changes", thing.value["changes"] + 1)

    async def observe(self, url: str) -> None:
        """Observe an object, again whenever that ends."""
        self.copies[url] = None
        while True:
            with suppress(ProtoflyError):
                async with self._handle.observe(url) as copy:
                    self.copies[url] = copy
                    await copy.wait_for(lambda _: False)
            await trio.sleep(_AGAIN)

    def report(self) -> dict[str, object]:
        """Return what it has seen so far."""
        copies = {
            url: None if one is None else one.value["changes"] for url, one in self.copies.items()
        }
        return {
            "codes": self.codes,
            "took": self.took,
            "asked": self.member.asked,
            "things": {one.url: one.value["changes"] for one in self.things},
            "copies": {self._name: copies},
        }


async def main(part: Part) -> None:
    """Do as standard input says, until it ends."""
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(open_system_network())
        runtimes = [_Runtime(name, part) for name in part.names]
        for one in runtimes:
            await one.open(stack, network)
        stop = trio.Event()
        things = [thing.url for one in runtimes for thing in one.things]
        _say({"urls": [one.url for one in runtimes], "things": things})
        async with trio.open_nursery() as observing:
            async with trio.open_nursery() as asking:
                async for line in trio.wrap_file(sys.stdin):
                    order = json.loads(line)
                    match order["do"]:
                        case "go":
                            _go(runtimes, order, stop, asking, observing)
                        case "stop":
                            stop.set()
                        case "report":
                            seen = [one.report() for one in runtimes]
                            _say({"open": len(asking.child_tasks), "seen": seen})
                        case "end":
                            asking.cancel_scope.cancel()
                            break
            observing.cancel_scope.cancel()


def _go(runtimes, order, stop, asking, observing) -> None:
    for one in runtimes:
        asking.start_soon(one.act, asking, order["urls"], stop)
        for thing in one.things:
            asking.start_soon(one.change, thing, stop)
        mine = {thing.url for thing in one.things}
        for url in order["things"]:
            if url not in mine:
                observing.start_soon(one.observe, url)


def _say(said: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main, Part(**json.loads(sys.argv[1])))
