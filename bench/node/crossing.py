"""Messages from node to node of a domain, over NATS: CPU of both nodes for each.

The same pairs as in `bench.node.routed` connect to one node, or each to two nodes of a group, in
turn; the nodes are the same ones.
"""

import gc
import statistics
from contextlib import AsyncExitStack
from typing import Final

import attrs
import click
import trio

from bench.node.crowd import UNLIMITED, quiet_node
from bench.node.routed import PAIRS, Figures, Runtimes, flow
from bench.verdict import Verdict
from tests.support.nats_server import PROGRAM, NatsServer, run_server

REACH: Final = 2.5
"""CPU of both nodes for a message that crosses, for the CPU of one that does not."""

_WORKS: Final = {"100": (100, False), "100 in lines": (100, True), "1000 in lines": (1000, True)}


async def measure(
    server: NatsServer, count: int, rounds: int
) -> dict[str, dict[str, list[Figures]]]:
    """Measure messages that stay and messages that cross, in turn.

    Args:
        server: The server of the engine.
        count: Messages of a round.
        rounds: How many rounds.
    """
    taken: dict[str, dict[str, list[Figures]]] = {
        work: {"stays": [], "crosses": []} for work in _WORKS
    }
    async with AsyncExitStack() as opened:
        options = (*UNLIMITED, "--engine", server.url)
        one = await opened.enter_async_context(quiet_node(*options))
        two = await opened.enter_async_context(quiet_node(*options))
        # Senders connect to the first one, and CPU is that of both.
        both = attrs.evolve(one, children=(*one.nodes, *two.nodes))
        for number in range(rounds):
            for work, (size, in_lines) in _WORKS.items():
                for way, apart in (("stays", None), ("crosses", two.place)):
                    name = f"{number}-{way}-{size}-{in_lines}".lower()
                    pairs = [
                        Runtimes(f"{name}-{one}", size, in_lines=in_lines, apart=apart)
                        for one in range(PAIRS)
                    ]
                    taken[work][way].append(await flow(both, pairs, count))
    return taken


@click.command()
@click.option("--messages", default=20_000, show_default=True, help="Messages of a round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds the median is over.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of a table.")
def main(*, messages: int, rounds: int, as_json: bool) -> None:
    """Measure what a message costs that crosses from node to node."""
    if PROGRAM is None:
        raise click.ClickException("nats-server is not installed")
    gc.disable()
    with run_server() as server:
        taken = trio.run(measure, server, messages, rounds)
    works = {
        work: {way: statistics.median(one.cpu for one in figures) for way, figures in ways.items()}
        for work, ways in taken.items()
    }
    first = works["100 in lines"]
    ratio = first["crosses"] / first["stays"]
    Verdict(
        bench="crossing",
        what="us of CPU of both nodes for a message of 100 B that crosses / that stays",
        ours=first["crosses"],
        peer=first["stays"],
        ratio=ratio,
        reach=None,
        missed=() if ratio <= REACH else (f"{ratio:.2f} times as much, reach {REACH:g}",),
        not_measured=("the CPU of NATS", "TLS", "events for many nodes"),
        figures={"messages": messages, "rounds": rounds, "works": works},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
