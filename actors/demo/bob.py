"""Bob: a runtime with a hyperty that counts what it is asked.

Run as `python -m actors.demo.bob`; the demonstration does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import click

from actors.cli.entry import enter
from actors.cli.failure import run
from actors.cli.lifetime import serve
from actors.cli.options import check_domain, check_kinds
from actors.cli.output import say_ready
from actors.demo.leash import leashed
from actors.demo.observing import ObservingTracer
from actors.demo.watched_network import WatchedNetwork
from actors.hyperties import Counter
from actors.kit.log import configure_log
from actors.kit.time_of_day import fresh_ids
from actors.kit.trace_file import open_trace
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from transports.link import Kind
from transports.network import Network
from transports.system import open_system_network

__all__ = ["main"]

NAME = "bob"


@click.command(NAME)
@click.option("--domain", required=True, callback=check_domain)
@click.option("--node", required=True)
@click.option("--p2p", required=True, callback=check_kinds)
@click.option("--trace", required=True, type=click.Path(path_type=Path))
def main(*, domain: str, node: str, p2p: tuple[Kind, ...], trace: Path) -> int:
    """Serve the counting hyperty until SIGTERM."""
    configure_log()
    config = RuntimeConfig(domain=domain, name=NAME, node=node, kinds=p2p, ids=fresh_ids())
    service = partial(_open, config, trace)
    return run(partial(leashed, partial(serve, service, partial(_announce, domain))))


@asynccontextmanager
async def _open(config: RuntimeConfig, trace: Path) -> AsyncIterator[str]:
    async with (
        open_trace(trace, NAME) as inner,
        open_system_network() as system,
        open_runtime(config, _watched(system, config), ObservingTracer(NAME, inner)) as runtime,
    ):
        yield await runtime.deploy("counter", Counter)


def _watched(network: Network, config: RuntimeConfig) -> Network:
    return WatchedNetwork(NAME, network, config.node)


def _announce(domain: str, hyperty: str) -> None:
    say_ready("runtime", domain, url=hyperty)


if __name__ == "__main__":
    enter(main)
