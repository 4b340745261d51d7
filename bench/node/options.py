"""What do policies, traces, the monitor and a viewer of the dashboard cost a node?

Ordinary case: messages of 100 bytes between random ones of many sessions of upstream's plain form,
as in `bench.node.routed`. Each figure is CPU of a node with the option in that of one without, in
the same run. A trace is written to a disk in memory where there is one.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import trio

from bench.node.routed import SHORT, open_crowd, rules
from bench.peers import prepare_client
from bench.report import BenchError, Row, interleaved, medians, program, ratio
from bench.servers import UNLIMITED, Server, open_node_process

_PLAIN: Final = "no option"
_WATCHED: Final = "a viewer of the dashboard"


@asynccontextmanager
async def _viewer(node: Server) -> AsyncIterator[None]:
    """Read the updates of the dashboard, as a viewer's page does, while the context is open."""
    place = urlsplit(node.ready["http_url"])
    host, port = str(place.hostname), int(place.port or 0)
    request = f"GET /dashboard/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
    async with await trio.open_tcp_stream(host, port) as stream, trio.open_nursery() as nursery:
        await stream.send_all(request.encode())
        if b"200" not in await stream.receive_some():
            raise BenchError("the dashboard shows nothing")

        async def read() -> None:
            async for _ in stream:
                pass

        nursery.start_soon(read)
        yield
        nursery.cancel_scope.cancel()


async def measure(messages: int, rounds: int, sessions: int) -> list[Row]:
    """Measure a node for each option in turn."""
    prepare_client()
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory()))
        wanted = {_PLAIN: (), "--monitor": ("--monitor",), "--trace": ("--trace", str(folder))}
        for number in (1, 10, 100):
            file = folder / f"{number}.toml"
            file.write_text(rules(number))
            wanted[f"--policy, {number} rules"] = ("--policy", str(file))
        wanted[_WATCHED] = ("--http", "127.0.0.1:0")
        works = {}
        for what, options in wanted.items():
            node = await opened.enter_async_context(open_node_process(*UNLIMITED, *options))
            if what == _WATCHED:
                await opened.enter_async_context(_viewer(node))
            crowd = await opened.enter_async_context(open_crowd(node, sessions, is_plain=True))
            await crowd.cost(SHORT, messages // 4)
            works[what] = partial(crowd.cost, SHORT, messages)
        taken = await interleaved(rounds, works)
    plain = taken.pop(_PLAIN)
    times = [Row(f"{what}, in times of that", ratio(taken[what], plain), "x") for what in taken]
    return [*medians("a message", {_PLAIN: plain}, "us of CPU"), *times]


main = program(measure, {"messages": (4000, 100), "rounds": (3, 1), "sessions": (200, 10)})

if __name__ == "__main__":
    main()
