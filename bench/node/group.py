"""What does it cost that several nodes serve a domain?

Best case: messages of the same pairs over again, by two nodes that share NATS (`--engine`), whose
pairs are at one node or each at two; and by two processes of a node (`--processes`) beside one.
Ordinary case: messages between random pairs, half of which cross, and a change for many observers.
CPU of NATS is not in the figures; clients and NATS need processors as well, so the gain by several
processes depends on how many there are.
"""

from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import attrs
import click

from bench.node.objects import fan_outs
from bench.node.routed import PAIRS, SAME, SHORT, open_crowd
from bench.peers import prepare_client
from bench.report import Row, interleaved, medians, program, ratio
from bench.servers import UNLIMITED, Server, open_node_process
from tests.support.nats_server import PROGRAM, run_server

_WORKS: Final = {"same": SAME, "random": SHORT}


async def _by_turns(
    places: dict[str, tuple[Server, Server | None]], messages: int, rounds: int, sessions: int
) -> list[Row]:
    """Measure messages by each server, or pair of servers with the two ends at different ones."""
    rows = []
    for name, work in _WORKS.items():
        size = sessions if work.is_random else 2 * PAIRS
        async with AsyncExitStack() as opened:
            works = {}
            for what, (server, apart) in places.items():
                begin = f"{name}-{what.replace(' ', '-')}-"
                coming = open_crowd(server, size, is_plain=False, apart=apart, name=begin)
                crowd = await opened.enter_async_context(coming)
                await crowd.cost(work, messages // 4 + 32)
                works[what] = partial(crowd.flow, work, messages)
            taken = await interleaved(rounds, works)
        cpus, rates = (
            {what: [pair[at] for pair in taken[what]] for what in taken} for at in (0, 1)
        )
        single, double = cpus.values()
        times = Row(
            f"{work.what}, the latter in times of the former", ratio(double, single), "x", work.case
        )
        rows += [*medians(work.what, cpus, "us of CPU", work.case), times]
        rows += medians(work.what, rates, "a second", work.case)
    return rows


async def measure(messages: int, rounds: int, sessions: int, observers: int) -> list[Row]:
    """Measure a group of two nodes, then one node with two processes."""
    if PROGRAM is None:
        raise click.ClickException("nats-server is not installed")
    prepare_client()
    options = (*UNLIMITED, "--engine")
    with run_server() as server:
        async with (
            open_node_process(*options, server.url) as one,
            open_node_process(*options, server.url) as two,
        ):
            both = attrs.evolve(one, children=(*one.nodes, *two.nodes))
            places = {"at one node": (both, None), "at two nodes": (both, two)}
            rows = await _by_turns(places, messages, rounds, sessions)
    async with open_node_process() as one, open_node_process(*UNLIMITED, "--processes", "2") as two:
        places = {"one process": (one, None), "two processes": (two, None)}
        rows += await _by_turns(places, messages, rounds, sessions)
        servers = {"one process": one, "two processes": two}
        return rows + await fan_outs(servers, observers, 4 * rounds)


main = program(
    measure,
    {"messages": (4000, 64), "rounds": (3, 1), "sessions": (200, 10), "observers": (1000, 20)},
)

if __name__ == "__main__":
    main()
