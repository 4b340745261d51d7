"""The message node of the demonstration: the one of `python -m actors node`, watched.

Run as `python -m actors.demo.message_node`; the demonstration does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import click

from actors.cli.entry import enter
from actors.cli.failure import run
from actors.cli.lifetime import serve
from actors.cli.options import check_domain
from actors.cli.output import say_ready
from actors.demo.leash import leashed
from actors.demo.observing import ObservingTracer
from actors.kit.ids import IdSource
from actors.kit.log import configure_log
from actors.kit.time_of_day import clock_offset, fresh_ids
from actors.kit.trace_file import open_trace
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from actors.node.limits import UNLIMITED
from transports.system import open_system_network

__all__ = ["main"]

NAME: Final = "node"


@click.command(NAME)
@click.option("--domain", required=True, callback=check_domain)
@click.option("--registry", required=True, type=click.Path(path_type=Path))
@click.option("--trace", required=True, type=click.Path(path_type=Path))
def main(*, domain: str, registry: Path, trace: Path) -> int:
    """Serve the domain until SIGTERM."""
    configure_log()
    ids = fresh_ids()
    return run(
        partial(leashed, partial(serve, partial(_open, domain, registry, trace, ids), _ready))
    )


@asynccontextmanager
async def _open(domain: str, registry: Path, trace: Path, ids: IdSource) -> AsyncIterator[Node]:
    offset = clock_offset()
    config = NodeConfig(
        domain=domain, registry=registry, ids=ids, clock_offset=offset, limits=UNLIMITED
    )
    async with (
        open_trace(trace, f"node.{domain}") as inner,
        open_system_network() as network,
        open_node(config, network, ObservingTracer(NAME, inner)) as node,
    ):
        yield node


def _ready(node: Node) -> None:
    say_ready("node", node.domain, url=node.url)


if __name__ == "__main__":
    enter(main)
