"""What does a change of a data object cost, with one observer and with many?

Ordinary case: a reporter and its observers are runtimes of the product, and one value changes; and
a change to many observers, beside the same bytes by a bare relay (`bench.relay`) in the same run,
while two other sessions of the node exchange requests.
"""

import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from typing import Final

import attrs
import trio

import actors
from bench.asking import open_asking
from bench.peers import Peer, Sockets, at_once, framed, message, polled, prepare_client
from bench.report import Row, interleaved, program, ratio
from bench.servers import DOMAIN, Server, open_node_process, open_relay
from specs.jsonvalue import Json
from transports.memory import MemoryNetwork

_WANTED: Final = 15.0
"""Target: milliseconds until the last of 1,000 observers has a change."""

_OTHERS: Final = 5.0
"""Target: milliseconds that 99 % of the requests of other sessions do not exceed meanwhile."""

_CROWD: Final = 1000
_ENTRIES: Final = 100
_FEW: Final = (1, 10)
_NUMBERS: Final = count(1)


class _Host(actors.Hyperty):
    """Hyperty that answers every request, and accepts every observer."""

    async def on_subscribe(self, url: str, observer: str) -> None:
        pass

    async def on_request(self, message: actors.Message) -> None:
        pass


async def _of_the_product(changes: int, rounds: int) -> list[Row]:
    """Measure changes of an object with observers; node and runtimes are in this process."""
    network = MemoryNetwork()
    async with AsyncExitStack() as opened:
        node = await opened.enter_async_context(actors.open_node(DOMAIN, network=network))

        async def deploy(name: str) -> actors.Deployed:
            runtime = actors.open_runtime(DOMAIN, name, node=node.url, network=network)
            return await (await opened.enter_async_context(runtime)).deploy(_Host)

        reporter = await deploy("reporter")
        observers = [await deploy(f"observer{number}") for number in range(max(_FEW))]
        items: list[Json] = [
            {"text": f"entry {number}", "isDone": False} for number in range(_ENTRIES)
        ]

        async def change(number: int) -> float:
            async with AsyncExitStack() as observing:
                reported = reporter.report("comm", {"items": items, "n": 0}, public=True)
                thing = await observing.enter_async_context(reported)
                copies = [
                    await observing.enter_async_context(observer.observe(thing.url))
                    for observer in observers[:number]
                ]
                began = time.process_time()
                for value in range(1, changes + 1):
                    await thing.set("n", value)
                for copy in copies:
                    await copy.wait_for(lambda state: state["n"] == changes)
                return (time.process_time() - began) / changes * 1e6

        async def ask() -> float:
            began = time.process_time()
            for number in range(changes):
                await observers[0].request(reporter.url, number)
            return (time.process_time() - began) / changes * 1e6

        works = {number: partial(change, number) for number in (0, *_FEW)}
        taken = await interleaved(rounds, {**works, "request": ask})
    asked = taken.pop("request")
    rows = [Row("a request and its answer by the node", statistics.median(asked), "us of CPU")]
    for number, costs in taken.items():
        rows.append(Row(f"a change, {number} observers", statistics.median(costs), "us of CPU"))
        rows.append(Row(f"a change, {number} observers, in requests", ratio(costs, asked), "x"))
    return rows


@attrs.frozen
class _Audience:
    """A data object at a server, and the sessions that observe the object."""

    server: Server
    sockets: Sockets
    owner: Peer
    url: str

    async def change(self) -> tuple[float, float]:
        """Change the object; return milliseconds until the last observer has it, and of CPU."""
        number = next(_NUMBERS)
        mark = f"mark {number:08}"
        text = message(number, "update", self.url, f"{self.url}/changes", {"value": mark * 10})
        began, cpu = time.perf_counter(), self.server.cpu()
        await self.owner.write(framed(text))
        ended = await trio.to_thread.run_sync(self.sockets.await_all, mark.encode())
        return (ended - began) * 1e3, (self.server.cpu() - cpu) * 1e3


@asynccontextmanager
async def open_audience(
    server: Server, observers: int, *, is_plain: bool = False
) -> AsyncIterator[_Audience]:
    """Connect a session with a public object, and its observers, to a server."""
    name = f"{observers}-{next(_NUMBERS)}"
    owner = Peer(f"owner{name}")
    await owner.be_plain(server.place)
    [url] = await owner.allocate("comm")
    crowd = [Peer(f"o{name}-{number}") for number in range(observers)]

    async def come(peer: Peer) -> None:
        await (peer.be_plain if is_plain else peer.be_ours)(server.place)
        await peer.subscribe(url)

    await at_once(come, crowd)
    with polled(crowd) as sockets:
        yield _Audience(server, sockets, owner, url)
    for peer in (owner, *crowd):
        peer.close()


async def fan_outs(servers: dict[str, Server], observers: int, rounds: int) -> list[Row]:
    """Measure a change to many observers at several servers in turn."""
    async with AsyncExitStack() as opened:
        crowds = {
            name: await opened.enter_async_context(
                open_audience(server, observers, is_plain=name == "relay")
            )
            for name, server in servers.items()
        }
        for crowd in crowds.values():
            await crowd.change()
        taken = await interleaved(rounds, {name: crowds[name].change for name in crowds})
    rows = []
    for name, pairs in taken.items():
        last, cpu = map(statistics.median, zip(*pairs, strict=True))
        reach = _WANTED if observers == _CROWD and name == "node" else None
        what = f"a change, {observers} observers, {name}"
        rows.append(Row(f"{what}, until the last has it", last, "ms", reach=reach))
        rows.append(Row(what, cpu, "ms of CPU"))
    return rows


async def _others(node: Server, observers: int, seconds: float) -> list[Row]:
    """Measure requests of other sessions, without changes and during continuous changes."""
    async with open_asking(node.place, seconds) as quiet:
        pass
    async with open_audience(node, observers) as crowd, open_asking(node.place, seconds) as loud:
        while not loud.is_over:
            await crowd.change()
    what = "requests of others, 99 of 100 take less"
    return [
        Row(what, quiet.p99, "ms"),
        Row(f"{what}, while {observers} get changes", loud.p99, "ms",
            reach=_OTHERS if observers == _CROWD else None),
    ]  # fmt: skip


async def measure(changes: int, observers: int, rounds: int, seconds: float) -> list[Row]:
    """Measure changes with runtimes as observers, then with many plain sessions."""
    rows = await _of_the_product(changes, rounds)
    prepare_client()
    async with open_node_process() as node, open_relay() as relay:
        size = 1
        while size <= observers:
            rows += await fan_outs({"node": node, "relay": relay}, size, 4 * rounds)
            size *= 10
        return rows + await _others(node, observers, seconds)


main = program(
    measure,
    {"changes": (200, 5), "observers": (1000, 10), "rounds": (3, 1), "seconds": (4.0, 0.3)},
)

if __name__ == "__main__":
    main()
